"""Other clocks against ours: a host's from its answers, a file server's from what others write there. Pure."""
from __future__ import annotations

WINDOW = 64
"""So many of the newest observations count: clocks drift, and are set."""
STEP = 0.01
"""Observations that contradict each other by more seconds than this saw a clock being set."""
CACHE = 4.0
"""Seconds for which a network file system may show an old time."""


class Bounds:
    """How far another clock is ahead of ours: each observation says between which bounds, in seconds."""

    def __init__(self) -> None:
        self._bounds: list[tuple[float, float]] = []

    def note(self, low: float, high: float) -> None:
        """It is ahead by at least `low` and at most `high`."""
        self._bounds.append((low, high))
        del self._bounds[:-WINDOW]

    def ahead(self) -> float | None:
        """Seconds that it is ahead of ours: 0 when that is possible, else the least that it must be; None at first."""
        if not self._bounds:
            return None
        low = max(low for low, _ in self._bounds)
        high = min(high for _, high in self._bounds)
        if low > high + STEP:  # a clock was set meanwhile: the newest observation stands
            low, high = self._bounds[-1]
        return max(min(low, high), min(0.0, high))


def of_server(modified: float, last_look: float, seen: float) -> tuple[float, float]:
    """Bounds for a file server's clock, from a file that it stamped `modified` between two moments on ours.

    It changed since the last look, or earlier when the file system showed us an old stamp then.
    """
    return modified - seen, modified - last_look + CACHE


def of_host(asked: float, told: float, received: float) -> tuple[float, float]:
    """Bounds for another host's clock, which read `told` after we asked and before we received its answer."""
    return told - received, told - asked
