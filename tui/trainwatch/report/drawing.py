"""Pictures of a report as SVG: numbers and escaped words only, nothing that acts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from trainwatch.model import text
from trainwatch.model.idle import shaded
from trainwatch.model.phases import OMITTED
from trainwatch.model.text import printable
from trainwatch.model.timeline import HOLD, LAUNCHER, Lane, Span, Timeline
from trainwatch_launcher.reader.changes import AttemptKey

if TYPE_CHECKING:
    from trainwatch.model.idle import Spans

WIDTH = 1080.0
LABELS = 110.0
"""Room at the left for names."""
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
ROOMY = 4.0
"""Pixels of a lane from which on there is some room between two."""
MARKS = 8
"""Marks of the time axis, at most."""
CHART_HEIGHT = 150.0
PALE = "idle"
LEAST_PALE = 0.3
"""Units of a picture's width below which nothing can be seen."""
MOST_POINTS = 600
"""Points of one line; more are thinned."""


@dataclass(frozen=True)
class Line:
    """One line of a chart: (time, value) pairs in the order of time."""

    name: str
    points: Sequence[tuple[float, float]]


def lanes(line: Timeline, idle: Mapping[AttemptKey, Spans]) -> str:
    """The phases of all ranks over time, pale where their GPUs were idle (by the keys of the lanes).

    All spans of one colour are one path: thousands of ranks stay small.
    """
    if not line.lanes or line.end <= line.start:
        return ""
    height = lane_height(len(line.lanes))
    paths: dict[str, list[str]] = {}
    for number, lane in enumerate(line.lanes):
        y = number * height + height / 2
        for span in lane.spans:
            x, wide = _x(line, span.start), _x(line, span.end) - _x(line, span.start)
            paths.setdefault(_colour(line, span), []).append(f"M{x:.1f} {y:g}h{max(wide, 0.5):.1f}")
        for begin, end in _pale(lane, idle.get(lane.key, ())):
            wide = _x(line, end) - _x(line, begin)
            if wide >= LEAST_PALE:
                paths.setdefault(PALE, []).append(f"M{_x(line, begin):.1f} {y:g}h{wide:.1f}")
    total = len(line.lanes) * height
    thick = f'stroke-width="{height * (0.8 if height >= ROOMY else 1.0):g}"'
    over = {PALE: paths.pop(PALE)} if PALE in paths else {}
    drawn = [f'<path class="{name}" {thick} d="{"".join(parts)}"/>' for name, parts in (paths | over).items()]
    return _svg(total + 24, [*drawn, *_names(line, height), *_axis(line.start, line.end, total)])


def _pale(lane: Lane, spans: Spans) -> Iterable[tuple[float, float]]:
    """Where GPUs were idle while the rank's command ran: that they are idle in a hold needs no saying."""
    for begin, end in shaded(spans):
        for span in lane.spans:
            if span.kind != HOLD and span.start < end and begin < span.end:
                yield max(begin, span.start), min(end, span.end)


def lane_height(count: int) -> float:
    """Pixels for each lane: few are comfortable, thousands are thin."""
    return 16.0 if count <= 64 else max(0.5, round(1200 / count, 2))


def _colour(line: Timeline, span: Span) -> str:
    if span.kind == HOLD:
        return "hold"
    return "launcher" if span.kind in (LAUNCHER, OMITTED) else f"p{line.hues.of(span.name)}"


def _names(line: Timeline, height: float) -> Iterable[str]:
    """Ranks and hosts, as many as can be read."""
    every = max(1, math.ceil(14 / height))
    for number in range(0, len(line.lanes), every):
        lane = line.lanes[number]
        name = words(f"{lane.label}  {lane.host}", 16)
        yield f'<text class="label" x="0" y="{number * height + max(9.0, min(height, 14) * 0.75):.1f}">{name}</text>'


def _x(line: Timeline, moment: float) -> float:
    return LABELS + (WIDTH - LABELS) * (moment - line.start) / (line.end - line.start)


def _axis(start: float, end: float, y: float) -> Iterable[str]:
    """Times of day below a picture."""
    tick = next((seconds for seconds in TICKS if (end - start) / seconds <= MARKS), (end - start) / MARKS)
    form = "%H:%M:%S" if tick < 60 else "%H:%M" if end - start < 86400 else "%m-%d %H:%M"
    moment = math.ceil(start / tick) * tick
    while moment <= end:
        x = LABELS + (WIDTH - LABELS) * (moment - start) / (end - start)
        yield f'<path class="tick" d="M{x:.1f} 0V{y:g}"/>'
        yield f'<text class="time" x="{x:.1f}" y="{y + 16:g}">{text.moment(moment, form)}</text>'
        moment += tick


def chart(lines: Sequence[Line], unit: str) -> str:
    """Values over time, a line for each rank; empty when there are no two points to join."""
    shown = [Line(line.name, thinned([p for p in line.points if math.isfinite(p[1])])) for line in lines]
    shown = [line for line in shown if len(line.points) > 1]
    if not shown:
        return ""
    times = [time for line in shown for time, _ in line.points]
    values = [value for line in shown for _, value in line.points]
    start, end, low, high = min(times), max(times), min(values), max(values)
    if end <= start:
        return ""
    low, high = (low - 1, high + 1) if high == low else (low, high)

    def place(point: tuple[float, float]) -> str:
        x = LABELS + (WIDTH - LABELS) * (point[0] - start) / (end - start)
        return f"{x:.1f},{8 + (CHART_HEIGHT - 16) * (high - point[1]) / (high - low):.1f}"

    drawn = [
        f'<polyline class="l{number % 8}" points="{" ".join(map(place, line.points))}">'
        f"<title>{words(line.name, 60)}</title></polyline>"
        for number, line in enumerate(shown)
    ]
    scale = [f'<text class="label" x="0" y="{y:g}">{value:.4g} {words(unit, 12)}</text>'
             for y, value in ((14, high), (CHART_HEIGHT - 4, low))]  # fmt: skip
    return _svg(CHART_HEIGHT + 24, [*_axis(start, end, CHART_HEIGHT), *drawn, *scale])


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS of them; of each group the lowest and the highest stay, so that no spike is lost."""
    if len(points) <= MOST_POINTS:
        return list(points)
    size = math.ceil(len(points) / (MOST_POINTS // 2))
    kept: list[tuple[float, float]] = []
    for begin in range(0, len(points), size):
        group = points[begin : begin + size]
        extremes = {min(group, key=lambda point: point[1]), max(group, key=lambda point: point[1])}
        kept += sorted(extremes)
    return kept


def words(written: str, most: int) -> str:
    """Text from a run, cut and escaped."""
    shown = printable(written[: 2 * most])
    return escape(shown if len(shown) <= most else shown[: most - 1] + "…")


def _svg(height: float, parts: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img">{"".join(parts)}</svg>'
