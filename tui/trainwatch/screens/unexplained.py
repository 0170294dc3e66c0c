"""What the logs say of ranks whose launchers did not say why they failed: older ones, or ones that were killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from trainwatch.model.failure import unexplained
from trainwatch.model.state import Run
from trainwatch.screens.feed import Feed
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.diagnosis.answer import NONE, Diagnosis
from trainwatch_launcher.diagnosis.diagnose import diagnose
from trainwatch_launcher.reader.changes import AttemptKey

MOST_READ = 64
"""So many logs are read, of those that failed first."""
MOST_TEXT = 256 << 10
"""Bytes from the end of each: it may come from far away."""
AT_ONCE = 4


class Unexplained:
    """Reads such logs once each, and keeps what they say."""

    def __init__(self, feed: Feed) -> None:
        self.found: Mapping[AttemptKey, Diagnosis] = {}
        """Replaced when there is more of it."""
        self.busy = False
        self._feed = feed
        self._asked: set[AttemptKey] = set()

    def due(self, run: Run) -> list[AttemptKey]:
        """Whose logs are to be read now; each is told once."""
        keys = [attempt.key for attempt in unexplained(run)[:MOST_READ] if attempt.key not in self._asked]
        keys = keys[: max(0, MOST_READ - len(self._asked))]
        self._asked.update(keys)
        return keys

    async def read(self, keys: list[AttemptKey], told: Callable[[], None]) -> None:
        """Read these logs; `told` is called when some of them have been."""
        try:
            for first in range(0, len(keys), AT_ONCE):
                some = keys[first : first + AT_ONCE]
                said = await asyncio.gather(*[self._read(key) for key in some])
                new = {key: one for key, one in zip(some, said, strict=True) if one is not None}
                self.found = {**self.found, **new}
                told()
        finally:
            self.busy = False

    async def _read(self, key: AttemptKey) -> Diagnosis | None:
        reader = self._feed.logs([key])
        try:
            [size] = await reader.ends()
            start = max(0, size - MOST_TEXT)
            data = await reader.read(start, size - start)
        except ReadError:
            return None  # whoever looks at the log is told
        found = (await asyncio.to_thread(diagnose, data)).at(None if start else 0, start)
        return found if found.kind != NONE else None
