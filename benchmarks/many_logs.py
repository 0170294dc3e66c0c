"""Logs for benchmarks: one of any size, or those of many ranks, with indexes as launchers write them; their growth."""
from __future__ import annotations

import pickle
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from builders import RunBuilder  # noqa: E402
from trainwatch_launcher.rundir import paths  # noqa: E402

NEEDLE = "a needle in the haystack"
RECORD = struct.Struct("<dQQ")
STEP = 0.01
"""Seconds between two writes into each log."""


@dataclass
class Grown:
    """A log as far as it was written."""

    directory: Path
    size: int
    lines: int


def line(now: float, rank: int, number: int) -> bytes:
    """A line of a training, with its time in it: some 110 bytes."""
    return b"%.3f INFO rank %d step %d loss 2.3142 lr 3.0e-4 tokens/s 412000 grad_norm 0.531 ms/step 231 gpu 97%%\n" % (
        now, rank, number)  # fmt: skip


def run_of(place: Path, ranks: int, size: int) -> list[Grown]:
    """A run whose logs have about so many bytes each, written within the last ten minutes; a needle near their ends."""
    builder = RunBuilder(place, world_size=ranks)
    return [_filled(builder, rank, size) for rank in range(ranks)]


def _filled(builder: RunBuilder, rank: int, size: int) -> Grown:
    now = time.time()
    attempt = builder.rank(rank, time=now + 36_000)  # not lost meanwhile
    attempt.start(now - 600)
    total = number = 0
    count = max(1, size // len(line(now, rank, 100_000)))
    needle = int(count * 0.985)
    with attempt.log.open("wb") as out, (attempt.directory / paths.INDEX).open("wb") as index:
        while number < count:
            when = now - 600 + 590 * number / count
            many = max(1, min(20_000, count // 50, count - number))
            index.write(RECORD.pack(when, total, number))
            block = [line(when, rank, number + at) for at in range(many)]
            number += many
            if number - many <= needle < number:
                block[needle - number + many] = b"%.3f %s\n" % (when, NEEDLE.encode())
            total += out.write(b"".join(block))
    return Grown(attempt.directory, total, number)


def grow(logs: list[Grown], rate: int, seconds: float) -> None:
    """Append lines to all logs at a rate (lines a second in each), with index records as a launcher writes them."""
    sinks = [(_appending(log.directory / paths.OUTPUT), _appending(log.directory / paths.INDEX)) for log in logs]
    recorded = [0.0] * len(logs)
    many = max(1, int(rate * STEP))
    following = time.monotonic()
    end = following + seconds
    while time.monotonic() < end:
        for rank, (log, (output, index)) in enumerate(zip(logs, sinks, strict=True)):
            now = time.time()
            data = b"".join(line(now, rank, log.lines + at) for at in range(many))
            if now - recorded[rank] >= 0.1:
                recorded[rank] = now
                index.write(RECORD.pack(now, log.size, log.lines))
            output.write(data)
            log.size, log.lines = log.size + len(data), log.lines + many
        following = max(following + STEP, time.monotonic() - 1.0)
        time.sleep(max(0.0, following - time.monotonic()))


def _appending(path: Path) -> BinaryIO:
    return path.open("ab", buffering=0)


def main() -> None:
    """As a program: grow the logs that a pickle at the given path lists."""
    logs = pickle.loads(Path(sys.argv[1]).read_bytes())
    grow(logs, int(sys.argv[2]), float(sys.argv[3]))


if __name__ == "__main__":
    main()
