"""Reads the history of an attempt: the newest lines of its metrics file, never more bytes of it than asked for."""
from __future__ import annotations

import os

from trainwatch_launcher.reader import log
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import decode
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.record import RecordError

MOST = 8 << 20
"""More bytes than this are never read at once; a launcher keeps the file smaller than that, as a rule."""


def tail(directory: str, most: int) -> bytes:
    """The newest whole lines, of `most` bytes together at most; none when there is no file. Raises OSError."""
    path = os.path.join(directory, paths.METRICS)
    most = max(0, min(most, MOST))
    begin = max(0, log.size(path) - most)
    # with the byte before, one sees whether the first line is whole
    data = log.read(path, begin - 1, most + 1) if begin else log.read(path, 0, most)
    if begin:
        data = data[data.find(b"\n") + 1:] if b"\n" in data else b""
    return data[:data.rfind(b"\n") + 1]


def records(lines: bytes) -> list[Metrics]:
    """Lines as records, in the order of their times; what is none is left out."""
    found = []
    for line in lines.split(b"\n"):
        if line:
            try:
                found.append(decode(Metrics, line))
            except RecordError:
                continue
    return sorted(found, key=lambda record: record.time)
