"""`trainwatch hold`: end or extend the holds of failed workers."""
from __future__ import annotations

import argparse
import sys
import time

from trainwatch.commands.targets import Followed, run_directory
from trainwatch.model import text
from trainwatch.model.query import QueryError, ranks
from trainwatch.model.rows import Row, rows
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.requests import RequestError, write_request

DESCRIPTION = "End or extend the holds of failed workers, and wait for their answers."
EPILOG = """\
A released worker exits with the code of its command; its container then goes, and its GPUs are free.

exit codes:
  0  every worker that was asked has done it
  1  nothing was held, or a worker could not be asked, said no, or did not answer within 5 seconds
  2  TARGET is no run that can be read, or the options make no sense

examples:
  trainwatch hold RUN --rank 2 --extend 2h
  trainwatch hold RUN --rank 0-3,7 --release
  trainwatch hold RUN --all --release
"""
ANSWER_WITHIN = 5.0
LOOK_EVERY = 0.1


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = _parser().parse_args(argv)
    target = run_directory(options.target)
    followed = Followed(target.path)
    held = [row for row in rows(followed.run, time.time()) if row.state == "held"]
    chosen = [row for row in held if options.all or options.rank(row.key.rank)]
    if not chosen:
        others = f"; held are rank {', '.join(row.label for row in held)}" if held else ""
        print(f"trainwatch: no {'rank' if options.all else 'such rank'} is held{others}", file=sys.stderr)
        return 1
    command = "release" if options.release else "extend"
    asked: dict[AttemptKey, str] = {}
    for row in chosen:
        try:
            asked[row.key] = write_request(followed.run.attempts[row.key].directory, command, options.extend)
        except RequestError as error:
            print(f"trainwatch: rank {row.label}: {error}", file=sys.stderr)
    done = _answers(followed, asked)
    return 0 if done == len(chosen) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainwatch hold", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", help="a run directory, or a directory of runs for its newest")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--rank", type=_ranks, metavar="N", help="the held attempts of a rank; also 0-7 or 0-7,12")
    who.add_argument("--all", action="store_true", help="all that are held")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--release", action="store_true", help="end the hold now")
    what.add_argument("--extend", type=_seconds, metavar="TIME", help="hold so much longer: 600 (seconds), 10m, 2h")
    return parser


def _ranks(written: str) -> object:
    try:
        return ranks(written)
    except QueryError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(written: str) -> float:
    seconds = text.parse_duration(written)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{written!r} is no length of time; write 600, 10m, 2h or 1h30m")
    return seconds


def _answers(followed: Followed, asked: dict[AttemptKey, str]) -> int:
    """Wait for the workers' answers and print each; returns how many have done it."""
    done = 0
    waiting = dict(asked)
    deadline = time.monotonic() + ANSWER_WITHIN
    while waiting and time.monotonic() < deadline:
        followed.look()
        now = {row.key: row for row in rows(followed.run, time.time())}
        for key, identity in list(waiting.items()):
            answer = followed.run.attempts[key].answer(identity)
            if answer is None:
                continue
            del waiting[key]
            result = answer.text("result")
            done += result == "done"
            print(f"rank {text.label(key)}: {_outcome(answer.text('command'), result, now[key])}", flush=True)
        time.sleep(LOOK_EVERY if waiting else 0)
    for key in waiting:
        print(f"trainwatch: rank {text.label(key)} has not answered; its launcher may be gone or slow", file=sys.stderr)
    return done


def _outcome(command: str, result: str, row: Row) -> str:
    if result != "done":
        return text.printable(result)
    if command == "release":
        return f"released; it exits with {row.exit_text}"
    return f"held for {text.duration(row.hold_left)} more" if row.hold_left is not None else "extended"
