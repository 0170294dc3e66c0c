"""Small pictures made of text: bars and lines of block characters. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"
REST = "░"
"""What a bar has not reached yet."""
GAP = "·"
"""Stands where nothing is known."""
ARROWS = {-1: "↘", 0: "→", 1: "↗"}


def level(value: float | None, low: float, high: float) -> str:
    """One cell for a value between two others."""
    if value is None or not math.isfinite(value):
        return GAP
    # halves: the difference of two numbers may be none any more
    share = (max(low, min(high, value)) / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
    return LEVELS[min(len(LEVELS) - 1, int(share * len(LEVELS)))]


def line(values: Sequence[float | None], width: int, low: float | None = None, high: float | None = None) -> str:
    """Values over time in at most `width` cells, each the mean of its part; scaled to what there is, or as told."""
    if width <= 0 or not values:
        return ""
    cells = [mean(values[int(at * len(values) / width) : int((at + 1) * len(values) / width)]) for at in range(width)]
    shown = cells if len(values) > width else list(values)
    known = [value for value in shown if value is not None and math.isfinite(value)]
    if not known:
        return GAP * len(shown)
    bottom, top = min(known) if low is None else low, max(known) if high is None else high
    return "".join(level(value, bottom, top) for value in shown)


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None when nothing is."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(value / len(known) for value in known) if known else None


def bar(share: float, width: int) -> str:
    """A bar of eighths of a cell; something is always seen of what is not nothing."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
