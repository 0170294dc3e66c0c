"""`trainwatch simulate`: write a made-up run of many ranks, for benchmarks, screenshots and trying the viewer."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from trainwatch.model.text import printable
from trainwatch.simulation.plan import Fault, Plan, Trouble
from trainwatch.simulation.writer import Writer, begin

DESCRIPTION = """\
Write a run directory as so many launchers would: phases, heartbeats, logs, GPUs and failures, in the real format and at
real rates. Nothing is trained and no process is started: the run is made up, and its files say so ("simulated": true).
"""
EPILOG = """\
--trouble RANK:SECONDS:KIND, as often as wanted. KIND is
  exception, oom, killed   the rank fails then, the others some time after it
  hang                     the rank stands still, the others wait for it
  nan, slow, hot           its loss is NaN, its steps take longer, its GPU throttles; the run goes on

examples:
  trainwatch simulate /tmp/big --ranks 4096 &                    and beside it: trainwatch /tmp/big
  trainwatch simulate /tmp/sad --age 300 --trouble 37:200:oom --once
"""
MAX_RANKS = 100_000


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    plan = Plan(
        ranks=options.ranks, per_host=options.per_host, gpus=options.gpus, step_time=options.step_time,
        setup=options.setup, save_every=options.save_every, lines=options.lines, hold=options.hold,
        troubles=tuple(options.trouble),
    )  # fmt: skip
    directory = options.directory or Path(mkdtemp(prefix="trainwatch-simulated-")) / "run"
    try:
        writers = begin(directory, plan, time.time() - options.age)
        print(f"simulated run of {plan.ranks} ranks: trainwatch {printable(str(directory))}", flush=True)
        _history(writers, options.age)
        if not options.once:
            _live(writers, options.seconds)
    except OSError as error:
        print(f"trainwatch: cannot write {printable(str(directory))}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _history(writers: list[Writer], age: float) -> None:
    """Write what happened before now."""
    shows = sys.stderr.isatty()
    for number, writer in enumerate(writers, 1):
        writer.advance(age)
        if shows and number % 64 == 0:
            print(f"\r{number} of {len(writers)} ranks have their past", end="", file=sys.stderr, flush=True)
    if shows:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _live(writers: list[Writer], seconds: float | None) -> None:
    """Write each rank once a second, spread over the second as real ones are, until `seconds` have passed."""
    started = time.monotonic()
    share = 1.0 / len(writers)
    turn = 0
    while seconds is None or time.monotonic() - started < seconds:
        for number, writer in enumerate(writers):
            due = started + turn + number * share
            wait = due - time.monotonic()
            if wait > 0.002:
                time.sleep(wait)
            writer.advance(time.time() - writer.began)
        turn = max(turn + 1, int(time.monotonic() - started))


def _trouble(text: str) -> Trouble:
    match = re.fullmatch(r"(\d+):(\d+(?:\.\d+)?):(\w+)", text)
    kinds = [fault.value for fault in Fault]
    if match is None or match.group(3) not in kinds:
        raise argparse.ArgumentTypeError(f"{text!r} is not RANK:SECONDS:KIND with KIND one of {', '.join(kinds)}")
    return Trouble(int(match.group(1)), float(match.group(2)), Fault(match.group(3)))


def _whole(low: int, high: int) -> argparse._ActionType:
    def convert(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {low} to {high}")
        return int(text)

    return convert


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def _age(text: str) -> float:
    return 0.0 if text in ("0", "0.0") else _positive(text)


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch simulate`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch simulate", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="?", help="the run directory (a new one)")
    parser.add_argument("--ranks", metavar="N", type=_whole(1, MAX_RANKS), default=64, help="ranks (64)")
    parser.add_argument("--per-host", metavar="N", type=_whole(1, 1024), default=8, help="ranks on each host (8)")
    parser.add_argument("--gpus", metavar="N", type=_whole(0, 16), default=1, help="GPUs of each rank (1)")
    parser.add_argument("--step-time", metavar="S", type=_positive, default=1.0, help="seconds of one step (1)")
    parser.add_argument("--setup", metavar="S", type=_positive, default=40.0, help="seconds before the first step (40)")
    parser.add_argument("--save-every", metavar="S", type=_positive, default=100.0,
                        help="seconds between two checkpoints of a rank, two changes of phase (100)")
    parser.add_argument("--lines", metavar="N", type=_whole(0, 10_000), default=1,
                        help="lines of log that a rank prints a second beside its steps (1)")
    parser.add_argument("--hold", metavar="S", type=_positive, default=10_000.0, help="how long failed ranks are held")
    parser.add_argument("--trouble", metavar="R:S:KIND", type=_trouble, action="append", default=[], help="see below")
    parser.add_argument("--age", metavar="S", type=_age, default=0.0, help="begin so many seconds ago (0)")
    parser.add_argument("--seconds", metavar="S", type=_positive, help="go on for so long (until interrupted)")
    parser.add_argument("--once", action="store_true", help="write the past (--age) and leave")
    return parser
