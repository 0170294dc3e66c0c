"""`trainwatch inspect`: what any log says, whether a launcher wrote it or not."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from trainwatch.loglist import rank_in
from trainwatch.model import text
from trainwatch_launcher.diagnosis.answer import Diagnosis
from trainwatch_launcher.diagnosis.diagnose import MOST_TEXT, diagnose
from trainwatch_launcher.phases import PhaseScanner
from trainwatch_launcher.progress.explicit import Pattern, PatternError
from trainwatch_launcher.progress.latest import Progress
from trainwatch_launcher.progress.stream import Point, Reader
from trainwatch_launcher.progress.values import KEYS

DESCRIPTION = "Say what a log tells: its format, the newest step, loss and rates, how many samples, its phases."
EPILOG = """\
exit codes:
  0  every LOG was read
  2  a LOG could not be read

with --json a list is printed, one object for each LOG:
  [{"file", "format", "progress": {"step", "total", "loss", ...}, "samples", "phases": [{"name", "line"}], "diagnosis"}]
diagnosis is null when nothing failed, else {"kind", "summary", "line", "frame", ...} (see docs/diagnosis.md).
with --points --json every sample: [{"line", "step", "total", "loss", ...}]; several LOGs add "file" to each.
Keys: step, total, epoch, epochs_total, loss, lr, grad_norm, ms_per_iter, eta_s, tokens_per_s, tokens_per_s_per_gpu,
samples_per_s, samples_per_s_per_gpu, tflops_per_gpu, mfu (percent), tokens, samples, reward. NaN is "nan", infinity
"inf".

examples:
  trainwatch inspect train.log
  kubectl logs worker-0 | trainwatch inspect -
  trainwatch inspect --points --json train.log | jq -r '.[] | [.step, .loss] | @tsv'
"""

BLOCK = 1 << 20
"""Bytes read at once."""
LONGEST = 160
NOTE_EVERY = 0.5
"""Seconds between two notes on a terminal of how far reading is."""
INTEGERS = frozenset(("step", "total", "epoch", "epochs_total", "tokens", "samples"))
SHOWN = {
    "lr": "lr {}", "grad_norm": "grad norm {}", "ms_per_iter": "{} ms/step", "tokens_per_s": "{} tokens/s",
    "tokens_per_s_per_gpu": "{} tokens/s/GPU", "samples_per_s": "{} samples/s",
    "samples_per_s_per_gpu": "{} samples/s/GPU", "tflops_per_gpu": "{} TFLOP/s/GPU", "mfu": "MFU {} %",
    "tokens": "{} tokens", "samples": "{} samples", "reward": "reward {}",
}  # fmt: skip


class Log:
    """What has been found in one log so far; its memory does not grow with the log, save for its phases."""

    def __init__(self, name: str, own: list[Pattern]) -> None:
        self.name = name
        self.progress = Progress()
        self.phases: list[dict[str, Any]] = []
        self._reader = Reader(own)
        self._scanner = PhaseScanner()
        self._lines = 0
        self._tail = Tail(MOST_TEXT)
        self._diagnosis = Diagnosis()

    def feed(self, data: bytes) -> list[Point]:
        """Read one more piece; returns the samples that it completed."""
        base = self._scanner.offset
        self._tail.add(data)
        for offset, phase in self._scanner.feed(data):
            newlines = data.count(b"\n", 0, offset - base) if offset > base else 0
            self.phases.append({"name": phase, "line": self._lines + newlines + 1})
        self._lines += data.count(b"\n")
        return self._took(self._reader.feed(data))

    def finish(self) -> list[Point]:
        """Read what no newline ended."""
        self.phases += [{"name": phase, "line": self._lines + 1} for _, phase in self._scanner.finish()]
        text = self._tail.text()
        found = diagnose(text, rank=rank_in(self.name))
        self._diagnosis = found.at(self._lines - text.count(b"\n"), self._scanner.offset - len(text))
        return self._took(self._reader.finish())

    def _took(self, points: list[Point]) -> list[Point]:
        for point in points:
            self.progress.add(point)
        return points

    def as_json(self) -> dict[str, Any]:
        """What --json prints of it."""
        return {
            "file": self.name,
            "format": self.progress.format or None,
            "progress": in_order(self.progress.values),
            "samples": self.progress.points,
            "phases": self.phases,
            "diagnosis": self._diagnosis.as_json() if self._diagnosis.failed else None,
        }

    def as_lines(self) -> Iterator[str]:
        """What is printed of it for people."""
        found = self.progress
        if found.points:
            samples = "1 sample" if found.points == 1 else f"{found.points:,} samples"
            yield f"{text.printable(self.name)}: {found.format}, {samples}"
            yield "  " + sentence(found.values)
        else:
            yield f"{text.printable(self.name)}: no training steps found"
        for phase in self.phases:
            yield f"  phase {text.printable(phase['name'])}, line {phase['line']:,}"
        failure = self._diagnosis
        if failure.failed:
            place = f", line {failure.line:,}" if failure.line is not None else ""
            kind = failure.kind.replace("_", " ")
            yield f"  {kind}: {text.printable(failure.summary)[:LONGEST]}{place} (trainwatch why says more)"


class Tail:
    """The end of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """The stream goes on."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > 4 * self._most:
            self._pieces = [self.text()]
            self._size = len(self._pieces[0])

    def text(self) -> bytes:
        """Its last bytes."""
        return b"".join(self._pieces)[-self._most :]


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    try:
        own = [Pattern(pattern) for pattern in options.progress_pattern]
    except PatternError as error:
        print(f"trainwatch inspect: --progress-pattern {error}", file=sys.stderr)
        return 2
    printer = Printer(options.json, options.points, len(options.log) > 1)
    failed = False
    for name in options.log:
        log = Log("-" if name == "-" else name, own)
        try:
            for points in read(log, name):
                printer.points(log, points)
        except BrokenPipeError:
            raise  # nobody reads what we print
        except OSError as error:
            print(f"trainwatch inspect: {text.printable(name)}: {error.strerror or error}", file=sys.stderr)
            failed = True
            continue
        printer.log(log)
    printer.end()
    return 2 if failed else 0


def read(log: Log, name: str) -> Iterator[list[Point]]:
    """The samples of a log, piece by piece. Raises OSError."""
    if name == "-":
        yield from _read(log, sys.stdin.buffer, 0)
        return
    with Path(name).open("rb", buffering=0) as file:
        yield from _read(log, file, Path(name).stat().st_size)


def _read(log: Log, file: BinaryIO, size: int) -> Iterator[list[Point]]:
    note = Note(log.name, size)
    done = 0
    try:
        while data := _block(file):
            yield log.feed(data)
            done += len(data)
            note.show(done)
    finally:
        note.clear()
    yield log.finish()


def _block(file: BinaryIO) -> bytes:
    """The next bytes: of a pipe those that are there, so that a slow one is not waited for."""
    one: bytes = file.read1(BLOCK) if hasattr(file, "read1") else file.read(BLOCK)
    return one


class Note:
    """How far reading is, on stderr when that is a terminal and it takes long."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = text.printable(name), size
        self._next = time.monotonic() + 2 * NOTE_EVERY
        self._shown = False

    def show(self, done: int) -> None:
        """Tell that so many bytes are read."""
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + NOTE_EVERY
        share = f" of {text.size(self._size)}" if self._size >= done else ""
        sys.stderr.write(f"\r\x1b[K{self._name[:40]}: {text.size(done)}{share}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the note away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Printer:
    """Prints while reading goes on: a log of any size has any number of samples."""

    def __init__(self, as_json: bool, points: bool, several: bool) -> None:
        self._json, self._points, self._several = as_json, points, several
        self._printed = 0

    def points(self, log: Log, points: list[Point]) -> None:
        """Print samples, if they are wanted."""
        if not self._points:
            return
        for point in points:
            if self._json:
                facts: dict[str, Any] = {"file": log.name} if self._several else {}
                self._item({**facts, "line": point.line, **in_order(point.values)})
            else:
                name = f"{text.printable(log.name)}:" if self._several else ""
                print(f"{name}{point.line}: {sentence(point.values)}")

    def log(self, log: Log) -> None:
        """Print what a whole log says."""
        if self._points:
            return
        if self._json:
            self._item(log.as_json())
        else:
            print("\n".join(log.as_lines()))

    def end(self) -> None:
        """Print what closes the list."""
        if self._json:
            print("\n]" if self._printed else "[]")

    def _item(self, value: dict[str, Any]) -> None:
        sys.stdout.write((",\n" if self._printed else "[\n") + json.dumps(value, allow_nan=False))
        self._printed += 1


def in_order(values: dict[str, Any]) -> dict[str, Any]:
    """Values in the order of KEYS."""
    return {key: values[key] for key in KEYS if key in values}


def sentence(values: dict[str, Any]) -> str:
    """Values in words: `step 120/4,800, epoch 2/3, loss 2.31, 410 ms/step, 1h02m left`."""
    parts = []
    for key, total in (("step", "total"), ("epoch", "epochs_total")):
        if key in values:
            of = f"/{number(key, values[total])}" if total in values else ""
            parts.append(f"{key} {number(key, values[key])}{of}")
    if "loss" in values:
        parts.append(f"loss {number('loss', values['loss'])}")
    parts += [words.format(number(key, values[key])) for key, words in SHOWN.items() if key in values]
    if "eta_s" in values:
        parts.append(f"{text.duration(values['eta_s'])} left")
    return ", ".join(parts)


def number(key: str, value: float | str) -> str:
    """A value as short text: counters with their thousands, others with five digits."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if key in INTEGERS and isinstance(value, int) else f"{value:.5g}"


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch inspect`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch inspect", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("log", metavar="LOG", nargs="+", help="a file; - is standard input")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--points", action="store_true", help="print every sample, not only the newest values")
    parser.add_argument("--progress-pattern", metavar="REGEX", action="append", default=[],
                        help=r"also read lines like this; named groups are keys: 'it (?P<step>\d+) L=(?P<loss>\S+)'")
    return parser
