"""When an attempt's GPUs were idle: its history as few spans, at a cost that has a bound however long it ran."""
from __future__ import annotations

import os

from trainwatch_launcher.reader import log
from trainwatch_launcher.reader.spans import fewer, rounded
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import READ_FLAGS
from trainwatch_launcher.rundir.files import decode as record_of
from trainwatch_launcher.rundir.gpus import IDLE, Metrics, pair_of
from trainwatch_launcher.rundir.record import RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Sequence

    from trainwatch_launcher.reader.spans import Span

LINES = 512
"""So many lines of a long history are looked at, spread over all of it, unless one asks for fewer."""
LINE = 1 << 10
"""Bytes of a line, about, with several GPUs: a history of so many of these is read whole."""
PIECE, LARGE_PIECE = 4 << 10, 64 << 10
"""Bytes that are read for one line of many; for one that is longer."""
RECENT = 64 << 10
"""Bytes in which what is new is looked for first."""


def idle_spans(directory: str, since: float = 0.0, lines: int = LINES) -> list[Span]:
    """When the GPUs of an attempt were idle or at work, by time; nothing of times of which nothing is known.

    Times are Unix seconds on the worker's clock; what ended at `since` or before is left out. A history that cannot be
    read says nothing: it is there for pictures only.
    """
    try:
        return _read(directory, since, lines)
    except OSError:
        return []


def _read(directory: str, since: float, lines: int) -> list[Span]:
    path = os.path.join(directory, paths.METRICS)
    size = log.size(path)
    if since and size > RECENT:
        found = _spans(log.read(path, size - RECENT, RECENT).split(b"\n"))
        if found and found[0][0] <= since:
            return fewer([span for span in found if span[1] > since])
    if size <= lines * LINE:
        found = _spans(log.read(path, 0, size).split(b"\n"))
    else:
        found = _held(_spans(_sampled(path, size, lines)))
    return fewer([span for span in found if span[1] > since])


def _sampled(path: str, size: int, lines: int) -> Iterator[bytes]:
    """So many whole lines, spread evenly over a file. Raises OSError."""
    fd = os.open(path, READ_FLAGS)
    try:
        after = 0
        """Where the line ends that was found last."""
        for number in range(lines):
            target = size * number // lines
            for length in (PIECE, LARGE_PIECE):
                if target <= after:
                    offset, begin, data = after, 0, os.pread(fd, length, after)
                else:
                    offset, data = target, os.pread(fd, length, target)
                    begin = data.find(b"\n") + 1 or len(data)
                end = data.find(b"\n", begin)
                if end >= 0:
                    after = offset + end + 1
                    yield data[begin:end]
                    break
    finally:
        os.close(fd)


def _spans(lines: Iterable[bytes]) -> list[Span]:
    """What each line says, by time; what is no line, or says nothing of its GPUs, is left out."""
    found = []
    for line in lines:
        try:
            record = record_of(Metrics, line) if line else None
        except RecordError:
            continue
        share = None if record is None else _share(record)
        if record is not None and share is not None:
            found.append((record.time - max(0.0, record.seconds), record.time, share))
    return sorted(found)


def _share(record: Metrics) -> float | None:
    """Which share of its GPUs was idle; a lost one does not work. None when none says."""
    rows = record.extra.get("gpus")
    idle = known = 0
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            util, lost = pair_of(row, "util"), bool(row.get("lost"))
            known += lost or util is not None
            idle += lost or (util is not None and util[0] < IDLE)
    return rounded(idle / known) if known else None


def _held(spans: Sequence[Span]) -> list[Span]:
    """Lines of which many between them were left out: each says how it was since the one before."""
    begins = [spans[0][0], *[end for _, end, _ in spans[:-1]]] if spans else []
    return [(min(begin, span[0]), span[1], span[2]) for begin, span in zip(begins, spans)]
