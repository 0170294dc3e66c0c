"""When GPUs were idle, beside the phases of their ranks: what the timeline shades. Pure."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from trainwatch.model.timeline import Lane, Timeline
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.spans import fewer, joined

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

    Spans = Sequence[Span]
    """By time, none over another. Of a `Lane` on the clock of its phases."""

SHADED = 0.5
"""From this share of idle GPUs on a stretch of time is shaded."""


def grown(known: Spans, newer: Spans) -> tuple[Span, ...]:
    """What is known with what came later, in a bounded number of spans."""
    return tuple(fewer([*known, *newer]))


def of_lane(lane: Lane, known: Mapping[AttemptKey, Spans]) -> tuple[Span, ...]:
    """All attempts of a rank on one clock; nothing while nothing is known."""
    found: list[Span] = []
    for part in lane.parts:
        told = known.get(part.key, ())
        found += [(begin + part.offset, end + part.offset, share) for begin, end, share in told]
    return tuple(joined(sorted(found)))


def columns(spans: Spans, begin: float, second: float, count: int) -> list[float | None]:
    """Which share of the GPUs was idle in each of `count` stretches of `second` seconds; None where nobody knows."""
    idle, known = [0.0] * count, [0.0] * count
    for start, end, share in spans:
        if end <= begin or start >= begin + count * second:
            continue
        first = max(0, int((start - begin) / second))
        last = min(count - 1, int((end - begin) / second))
        for column in range(first, last + 1):
            left = begin + column * second
            overlap = min(end, left + second) - max(start, left)
            if overlap > 0:
                idle[column] += overlap * share
                known[column] += overlap
    return [part / whole if whole > 0 else None for part, whole in zip(idle, known, strict=True)]


def at(spans: Spans, moment: float) -> float | None:
    """Which share was idle at a moment; None when nobody knows."""
    place = bisect_right(spans, (moment, float("inf"), 0.0)) - 1
    return spans[place][2] if place >= 0 and moment <= spans[place][1] else None


def shaded(spans: Spans) -> Iterable[tuple[float, float]]:
    """The stretches that are shaded."""
    return [(begin, end) for begin, end, share in spans if share >= SHADED]


def of_phases(line: Timeline, idle: Mapping[AttemptKey, Spans]) -> dict[str, float]:
    """By the name of each phase, which share of its GPU time was idle, over the ranks of which that is known."""
    sums: dict[str, list[float]] = {}
    for lane in line.lanes:
        spans = idle.get(lane.key)
        if not spans:
            continue
        for span in lane.spans:
            first = max(0, bisect_right(spans, (span.start, float("inf"), 0.0)) - 1)
            for begin, end, share in spans[first:]:
                if begin >= span.end:
                    break
                overlap = min(end, span.end) - max(begin, span.start)
                if overlap > 0:
                    found = sums.setdefault(span.name, [0.0, 0.0])
                    found[0] += overlap * share
                    found[1] += overlap
    return {name: part / whole for name, (part, whole) in sums.items()}
