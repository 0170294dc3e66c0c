"""Where a chart's ticks stand and what range it shows. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from trainwatch.model import text
from trainwatch.model.history import Series

TIME_STEPS = (10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
"""Seconds between two ticks of a time axis."""
TICK = 12
"""Cells that a tick of a time axis takes at least."""
ROWS = 4
"""Rows that a tick of a value axis takes at least."""


def value_range(series: Sequence[Series], whole: tuple[float, float] | None) -> tuple[float, float]:
    """The lowest and the highest value shown: all there are, with some air, and what is always shown."""
    values = [value for one in series for value in one.values]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if whole is not None:
        low, high = min(low, whole[0]), max(high, whole[1])
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        air = abs(high) * 0.05 or 1.0
        return low - air, high + air
    return low, high


def value_ticks(low: float, high: float, rows: int) -> list[float]:
    """Round values between two others, as many as have room."""
    most = max(1, rows // ROWS)
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    exponent = math.floor(math.log10(span / most))
    for power in (exponent, exponent + 1):
        for factor in (1.0, 2.0, 2.5, 5.0):
            step = factor * 10.0**power
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if 1 <= last - first + 1 <= most + 1:
                return [place * step for place in range(first, last + 1)]
    return [low, high]


def labels(ticks: Sequence[float], say: Callable[[float], str]) -> list[str]:
    """What stands at ticks; two that would say the same get more digits."""
    said = [say(tick) for tick in ticks]
    return said if len(set(said)) == len(said) else [f"{tick:.6g}" for tick in ticks]


def time_ticks(begin: float, end: float, cells: int) -> list[tuple[float, str]]:
    """Round moments between two others in the reader's zone, each with its label."""
    span = end - begin
    if not 0 < span < 1e9:
        return []
    most = max(1, cells // TICK)
    step = next((step for step in TIME_STEPS if span / step <= most), TIME_STEPS[-1])
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 and span < 86400 else "%m-%d %H:%M"
    zone = text.zone_offset(begin)
    first = math.ceil((begin + zone) / step)
    moments = [place * step - zone for place in range(first, first + most + 1)]
    return [(moment, text.moment(moment, form)) for moment in moments if moment <= end]
