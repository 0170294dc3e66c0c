"""How metrics.jsonl is kept small: its older lines are merged into fewer, longer ones."""
from __future__ import annotations

import os

from trainwatch_launcher.gpu.series import HIGHS, LOWS, SECONDS, shortened
from trainwatch_launcher.rundir.files import decode
from trainwatch_launcher.rundir.gpus import Metrics, metrics, pair_of
from trainwatch_launcher.rundir.record import RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Iterable, Iterator


def line_start(fd: int, offset: int) -> int:
    """Where the first line begins at or after an offset."""
    if not offset:
        return 0
    end = os.pread(fd, 1 << 20, offset - 1).find(b"\n")
    return offset if end < 0 else offset + end


def lines(file: BinaryIO, end: int) -> Iterator[Metrics]:
    """The records of a file up to an offset; what is none is left out."""
    for line in file:
        end -= len(line)
        if end < 0:
            return
        try:
            yield decode(Metrics, line)
        except RecordError:
            continue


def coarser(fd: int, end: int, room: int) -> float:
    """How many seconds a line must cover so that all up to an offset fit into `room` bytes: 20, 40, 80, …"""
    head = os.pread(fd, min(end, 1 << 16), 0)
    tail = os.pread(fd, min(end, 1 << 16), max(0, end - (1 << 16)))
    times = [record.time for part in (head.split(b"\n"), tail.split(b"\n")) for record in decoded(part)]
    average = len(tail) / max(1, tail.count(b"\n"))
    wanted = (max(times) - min(times)) * average / room if times else 0.0
    seconds = 2 * SECONDS
    while seconds < wanted:
        seconds *= 2
    return seconds


def decoded(parts: Iterable[bytes]) -> Iterator[Metrics]:
    """The records among pieces of a file."""
    for part in parts:
        try:
            yield decode(Metrics, part)
        except RecordError:
            continue


def merged(records: Iterable[Metrics], seconds: float) -> Iterator[Metrics]:
    """Records with all merged that fall into the same span of so many seconds. Records as long as that stay."""
    group: list[Metrics] = []
    for record in records:
        if group and int(record.time // seconds) != int(group[0].time // seconds):
            yield merge(group)
            group = []
        group.append(record)
    if group:
        yield merge(group)


def merge(group: list[Metrics]) -> Metrics:
    """One record for several: means by their length, the extremes of the extremes, and of all else the newest."""
    if len(group) == 1:
        return group[0]
    gpus: dict[tuple[Any, Any], list[tuple[float, dict[str, Any]]]] = {}
    for record in group:
        rows = record.extra.get("gpus")
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict):
                gpus.setdefault((row.get("index"), row.get("mig")), []).append((record.seconds or SECONDS, row))
    rest = {name: value for record in group for name, value in record.extra.items() if name != "gpus"}
    if gpus:
        rest["gpus"] = [merge_rows(rows) for rows in gpus.values()]
    return metrics(group[-1].time, round(sum(record.seconds for record in group), 3), **rest)


def merge_rows(rows: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """One row of a GPU for several, each with its length in seconds."""
    found = {name: value for _, row in rows for name, value in row.items()}
    for name in HIGHS + LOWS:
        pairs = [(seconds, pair) for seconds, row in rows for pair in [pair_of(row, name)] if pair is not None]
        if pairs:
            mean = sum(seconds * pair[0] for seconds, pair in pairs) / sum(seconds for seconds, _ in pairs)
            extreme = (min if name in LOWS else max)(pair[1] for _, pair in pairs)
            found[name] = [shortened(name, mean), shortened(name, extreme)]
    shares = [(seconds, row.get("throttle") or {}) for seconds, row in rows]
    reasons = {reason for _, share in shares for reason in share}
    if reasons:
        total = sum(seconds for seconds, _ in shares)
        found["throttle"] = {
            reason: round(sum(seconds * share.get(reason, 0.0) for seconds, share in shares) / total, 2)
            for reason in sorted(reasons)
        }
    return found
