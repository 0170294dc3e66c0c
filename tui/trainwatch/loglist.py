"""Logs that no launcher of ours wrote: which files of a directory they are, whose, and what their ends say."""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainwatch.model.parties import Party
from trainwatch_launcher.diagnosis.answer import NONE, Diagnosis
from trainwatch_launcher.diagnosis.diagnose import MOST_TEXT, diagnose
from trainwatch_launcher.progress.stream import points

SUFFIXES = frozenset((".log", ".out", ".err", ".txt", ""))
RANK = re.compile(r"(?:^|[._-])(?:rank|worker|task|node_?rank|proc)[._-]?(\d{1,6})(?=$|[._-])", re.IGNORECASE)
NUMBER = re.compile(r"^(?:.*[._-])?(\d{1,6})$")
STREAMS = frozenset(("stdout", "stderr", "output"))
"""Files that torchrun --log-dir writes into a directory for each local rank."""
DEEPEST = 4
MOST_LOGS = 20_000
COUNTED = 1 << 30
"""Lines before the end are counted in logs up to so many bytes; beyond that a place is told by its offset alone."""
HALF_HOUR = 1800.0
FARTHEST_ZONE = 14.5 * 3600.0
QUIET = 600.0
"""A log that was written within so many seconds may still be of a living process."""
PROGRESS_TAIL = 32 << 10
BLOCK = 1 << 20


@dataclass(frozen=True)
class LogFile:
    """One log: its path, what to call it, and the rank that its name says (None for that of no rank)."""

    path: str
    name: str
    rank: int | None = None


def rank_in(name: str) -> int | None:
    """The rank that a file's name says: `rank-3.log`, `worker_3.out`, `slurm-99_3.out` no, `3.log`."""
    stem = name.rpartition("/")[2]
    stem = stem[: -len(Path(stem).suffix)] if Path(stem).suffix.lower() in SUFFIXES and Path(stem).suffix else stem
    match = RANK.search(stem)
    if match:
        return int(match.group(1))
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) <= 6 else None


def logs_in(directory: str) -> list[LogFile]:
    """The logs of a directory and of those below it; of files in a directory whose name is a number, that is the rank.

    Raises OSError when it cannot be read.
    """
    found: list[LogFile] = []
    next(os.scandir(directory), None)  # to fail when it cannot be read: os.walk would not
    base = directory.rstrip("/")
    for here, below, names in os.walk(base):
        depth = here[len(base) :].count("/")
        below[:] = sorted(name for name in below if not name.startswith("."))[:2000] if depth < DEEPEST else []
        for name in sorted(names):
            path = Path(here, name)
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES - {""} or not path.is_file():
                continue
            found.append(LogFile(str(path), str(path.relative_to(base)), _rank_of(path, base)))
            if len(found) >= MOST_LOGS:
                return found
    return found


def is_log(path: str) -> bool:
    """Whether a path that is no run is a log, or a directory with logs in it."""
    try:
        return Path(path).is_file() or (Path(path).is_dir() and bool(logs_in(path)))
    except OSError:
        return False


def _rank_of(path: Path, base: str) -> int | None:
    rank = rank_in(path.name)
    if rank is None and path.stem in STREAMS and str(path.parent) != base:
        parent = path.parent.name
        return int(parent) if parent.isascii() and parent.isdigit() else rank_in(parent)
    return rank


def is_beside(file: LogFile) -> bool:
    """Whether a log is of what runs ranks (a launcher, a scheduler, a kernel), judged by its name."""
    return (
        re.search(r"slurm|launcher|agent|driver|dmesg|events|kubectl|console|syslog|kern", file.name, re.I) is not None
    )


def read(file: LogFile) -> Party:
    """What a log says, `-` for standard input. Raises OSError."""
    if file.path == "-":
        data = sys.stdin.buffer.read()
        return Party(diagnose(data, rank=file.rank), file.rank, str(file.rank), file.name)
    with Path(file.path).open("rb", buffering=0) as opened:
        facts = os.fstat(opened.fileno())
        start = max(0, facts.st_size - MOST_TEXT)
        before: int | None = 0
        if start:
            before = _newlines(opened.fileno(), start) if facts.st_size <= COUNTED else None
        data = _bytes(opened.fileno(), start, facts.st_size)
        if not facts.st_size:
            data = opened.read(MOST_TEXT) or b""  # a pipe, or a file of /proc
    found = diagnose(data, rank=file.rank)
    if start:
        found = found.at(before, start)
    label = str(file.rank) if file.rank is not None else file.name
    return Party(found, file.rank, label, file.name, found.time, step=_step(data), written=facts.st_mtime)


def _bytes(fd: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (data := os.pread(fd, min(BLOCK, end - start), start)):
        parts.append(data)
        start += len(data)
    return b"".join(parts)


def _newlines(fd: int, end: int) -> int:
    count, at = 0, 0
    while at < end and (data := os.pread(fd, min(BLOCK, end - at), at)):
        count += data.count(b"\n")
        at += len(data)
    return count


def _step(data: bytes) -> int | None:
    """The last training step that a log tells of."""
    tail = data[-PROGRESS_TAIL:]
    last = None
    for point in points(tail[tail.find(b"\n") + 1 :] if len(data) > PROGRESS_TAIL else tail):
        step = point.values.get("step")
        if isinstance(step, int):
            last = step
    return last


def merged(parties: Sequence[Party]) -> list[Party]:
    """One party for each rank: of its several logs (stdout and stderr) the one that says why."""
    best: dict[int, Party] = {}
    others: list[Party] = []
    for party in parties:
        if party.rank is None:
            others.append(party)
            continue
        known = best.get(party.rank)
        if known is None:
            best[party.rank] = party
            continue
        first, second = (party, known) if party.level < known.level else (known, party)
        step = first.step if first.step is not None else second.step
        best[party.rank] = replace(first, step=step, ended=first.ended and second.ended)
    return [best[rank] for rank in sorted(best)] + others


def are_written(parties: Sequence[Party], now: float) -> bool | None:
    """Whether these logs are being written at `now`; None when that cannot be told.

    One that was written a moment ago may be a copy: then the times in the logs are others. Their zone is not known, so
    that only what is left of whole half hours counts.
    """
    if all(party.written is None or now - party.written > QUIET for party in parties):
        return False
    times = [party.diagnosis.time for party in parties if party.diagnosis.time is not None]
    if not times:
        return None
    apart = abs(now - max(times))
    return apart < FARTHEST_ZONE and min(apart % HALF_HOUR, HALF_HOUR - apart % HALF_HOUR) <= QUIET


def settled(parties: Sequence[Party], now: float) -> list[Party]:
    """The parties, with those that still run: their logs are written, and tell of no failure."""
    if not are_written(parties, now):
        return list(parties)
    return [
        replace(party, ended=False)
        if party.kind == NONE and party.written is not None and now - party.written <= QUIET
        else party
        for party in parties
    ]


def silent_hang(parties: Sequence[Party], now: float) -> Diagnosis | None:
    """What to call it when no log tells of an end, good or bad, and none is written any more; None when one does."""
    ranks = [party for party in parties if party.rank is not None]
    told = any(party.kind != NONE or party.diagnosis.finished for party in parties)
    if len(ranks) < 2 or told or are_written(parties, now) is not False:
        return None
    from trainwatch_launcher.diagnosis.table import kind

    row = kind("hang")
    words = "no log tells of an end, and none is written any more"
    return Diagnosis(kind=row.name, family=row.family, summary=words, confidence=0.4, hint=row.hint)
