"""Whether GPUs earn their money: for how long they were idle, and when one worked last."""
from __future__ import annotations

from trainwatch_launcher.rundir.gpus import IDLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

LONGEST_GAP = 15.0
"""Seconds between two samples above which nothing is known of the time between: the driver did not answer."""


class Usage:
    """Adds up samples. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.idle = 0.0
        """Seconds times GPUs in which they were seen to be idle, or lost."""
        self.busy_at: float | None = None
        """When one was last seen to work."""
        self._last: float | None = None

    def add(self, rows: Sequence[Mapping[str, Any]], tick: float) -> None:
        """Take the rows of one sample, which stand for the time since the one before."""
        since = tick - self._last if self._last is not None else 0.0
        self._last = tick
        utils = [0 if row.get("lost") else row.get("util") for row in rows]
        if any(util is not None and util >= IDLE for util in utils):
            self.busy_at = tick
        if since <= LONGEST_GAP:
            self.idle += since * sum(util is not None and util < IDLE for util in utils)
