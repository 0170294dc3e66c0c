"""Where one stands in several logs that are read as one in the order of time: an offset in each.

Lines are ordered by (time, log's number, offset). What is above a place in that order is in each log what is above one
offset, its cut; so pages that begin where the last one ended miss nothing and show nothing twice, whatever is appended
and whenever an index learns a line's time.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from trainwatch_launcher.reader.timeline import TimedLog

    Cuts = list[int]


def at_time(logs: Sequence[TimedLog], time: float, ends: Cuts) -> Cuts:
    """The cuts above the first line that was written at `time` or later."""
    return [log.first_with(time, True, end) for log, end in zip(logs, ends)]


def above(logs: Sequence[TimedLog], number: int, start: int, ends: Cuts) -> Cuts:
    """The cuts above the line of log `number` that begins at `start`."""
    if len(logs) == 1:
        return [start]
    time = logs[number].time_of(start)
    return [
        min(start, ends[at]) if at == number else log.first_with(time, at > number, ends[at])
        for at, log in enumerate(logs)
    ]  # fmt: skip


def further(logs: Sequence[TimedLog], cuts: Cuts, ends: Cuts, step: int) -> Cuts:
    """The cuts about `step` bytes below `cuts` in the log that has most lines there, less in the others."""
    if len(logs) == 1:
        return [logs[0].first_start(cuts[0] + step, ends[0])]
    places = []
    for number, log in enumerate(logs):
        if ends[number] - cuts[number] > step:
            start = log.first_start(cuts[number] + step, ends[number])
            if start < ends[number]:
                places.append((log.time_of(start), number, start))
    if not places:
        return list(ends)
    _, number, start = min(places)
    return [max(cut, new) for cut, new in zip(cuts, above(logs, number, start, ends))]


def back(logs: Sequence[TimedLog], cuts: Cuts, step: int) -> Cuts:
    """The same above `cuts`."""
    if len(logs) == 1:
        return [logs[0].line_start(max(0, cuts[0] - step))]
    places = []
    for number, log in enumerate(logs):
        if cuts[number] > step:
            start = log.line_start(cuts[number] - step)
            if start > 0:
                places.append((log.time_of(start), number, start))
    if not places:
        return [0] * len(logs)
    _, number, start = max(places)
    return [min(cut, new) for cut, new in zip(cuts, above(logs, number, start, cuts))]
