"""When GPUs were idle, of the ranks that are looked at: read as they come into view, kept in bounds, and renewed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainwatch.model import idle
from trainwatch.screens.feed import Feed
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.changes import AttemptKey

if TYPE_CHECKING:
    from trainwatch.model.idle import Spans

AT_ONCE = 32
"""Attempts that are read together: about a screen of them in two or three turns, between which keys have theirs."""
EVERY = 10.0
"""Seconds between two readings of an attempt that still writes."""
AFTER_END = 15.0
"""Seconds after a launcher's end from which on nothing more is awaited of it."""
MOST = 1024
"""Attempts that are kept."""


class Idleness:
    """What is known of attempts' GPUs, on their workers' clocks."""

    def __init__(self, feed: Feed) -> None:
        self.known: dict[AttemptKey, Spans] = {}
        self.problem = ""
        """Why the last reading failed, in one line."""
        self.busy = False
        self._feed = feed
        self._due: dict[AttemptKey, float] = {}

    def due(self, keys: Iterable[AttemptKey]) -> list[AttemptKey]:
        """Which of these attempts are to be read now: those that nobody knows first."""
        now = self._feed.now()
        wanted = [key for key in keys if self._due.get(key, -math.inf) <= now]
        return sorted(wanted, key=lambda key: key in self.known)[:AT_ONCE]

    async def renew(self, keys: list[AttemptKey]) -> None:
        """Read what is new of these."""
        self.busy = True
        try:
            since = [spans[-1][1] if (spans := self.known.get(key)) else 0.0 for key in keys]
            now = self._feed.now()
            try:
                found = await self._feed.idle(keys, since)
                self.problem = ""
            except ReadError as error:
                found, self.problem = {}, str(error)
            for key in keys:
                self._take(key, found.get(key, ()), now)
        finally:
            self.busy = False

    def _take(self, key: AttemptKey, newer: Spans, now: float) -> None:
        known = self.known.pop(key, ())
        self.known[key] = idle.grown(known, newer) if newer else known
        attempt = self._feed.run.attempts.get(key)
        ended = attempt.status.ended if attempt is not None and attempt.status is not None else None
        is_over = ended is not None and not self.problem and ended < now - AFTER_END
        self._due[key] = math.inf if is_over else now + EVERY
        while len(self.known) > MOST:
            oldest = next(iter(self.known))
            del self.known[oldest], self._due[oldest]
