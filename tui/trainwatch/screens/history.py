"""History that a screen shows: fetched while the screen is seen, the whole once and then what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trainwatch.model import history
from trainwatch.model.history import Sample
from trainwatch.screens.feed import Feed
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.changes import AttemptKey

WHOLE = 4 << 20
"""So many bytes are read at first, of all attempts together: with eight GPUs some nine hours of one rank."""
NEWER = 64 << 10
"""So many bytes of each attempt are read later on; a line comes every ten seconds."""
EVERY = 10.0
"""Seconds between two readings."""


class History:
    """Samples of some attempts, as far as they have come."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._samples: dict[AttemptKey, tuple[Sample, ...]] = {}
        self._problems: dict[AttemptKey, str] = {}
        self._due = float("-inf")
        self._reading = False

    def of(self, key: AttemptKey) -> tuple[Sample, ...]:
        """What is known of an attempt's history, by time on its worker's clock."""
        return self._samples.get(key, ())

    def problem(self, key: AttemptKey) -> str:
        """Why an attempt's history could not be read, in one line; empty when it could."""
        return self._problems.get(key, "")

    def has(self, keys: Sequence[AttemptKey]) -> bool:
        """Whether all of them have been asked for and have answered."""
        return all(key in self._samples or key in self._problems for key in keys)

    def take_turn(self) -> bool:
        """Whether it is time to read again; who is told so must call `renew`."""
        if self._reading or self._feed.now() < self._due:
            return False
        self._reading, self._due = True, self._feed.now() + EVERY
        return True

    async def renew(self, keys: Sequence[AttemptKey]) -> None:
        """Read what is new of some attempts, of all at the same time."""
        try:
            await asyncio.gather(*(self._renew(key, WHOLE // max(1, len(keys))) for key in keys))
        finally:
            self._reading = False

    async def _renew(self, key: AttemptKey, whole: int) -> None:
        known = self._samples.get(key)
        try:
            records = await self._feed.history(key, whole if known is None else NEWER)
        except ReadError as error:
            self._problems[key] = str(error)
            return
        self._problems.pop(key, None)
        newer = await asyncio.to_thread(history.samples, records)
        self._samples[key] = history.merged(known or (), newer)
