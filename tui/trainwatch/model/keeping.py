"""Which holds are to be extended because somebody has a shell open beside their ranks, and by how much. Pure."""
from __future__ import annotations

from collections import Counter

from trainwatch.model import holding
from trainwatch.model.state import Run
from trainwatch_launcher.reader.changes import AttemptKey

LEAST = 15 * 60.0
"""Seconds that are left of a hold at least, while a shell is open and when it is left."""
STEP = 5 * 60.0
"""So many more are asked for, so that it is not asked for all the time."""
GLANCE = 10.0
"""Seconds for which a shell may be open before anything is asked: a look at nvidia-smi is no reason to hold GPUs."""
URGENT = 60.0
"""Unless so few seconds are left of the hold."""
AGAIN = 15.0
"""Seconds until a launcher that has not answered is asked again."""


class Keeping:
    """The shells that are open, and what is asked of the launchers that hold for them.

    A launcher is asked only once it holds and less than `LEAST` is left, for as much as is missing to `LEAST` and a
    `STEP`.
    """

    def __init__(self) -> None:
        self._open: Counter[AttemptKey] = Counter()
        self._since: dict[AttemptKey, float] = {}
        self._asked: dict[AttemptKey, float] = {}

    @property
    def kept(self) -> frozenset[AttemptKey]:
        """The launchers whose holds are kept when there are any."""
        return frozenset(self._open)

    def opened(self, key: AttemptKey, now: float) -> None:
        """A shell is open beside an attempt."""
        outer = holding.container(key)
        self._open[outer] += 1
        self._since.setdefault(outer, now)

    def closed(self, key: AttemptKey) -> None:
        """One that was open beside it is not any more."""
        outer = holding.container(key)
        self._open[outer] -= 1
        if self._open[outer] <= 0:
            del self._open[outer]
            del self._since[outer]
            self._asked.pop(outer, None)

    def due(self, run: Run, now: float) -> list[tuple[AttemptKey, float]]:
        """Who is to be asked at `now` (reader's clock, Unix seconds), and for how many seconds more."""
        found = []
        for key in self._open:
            row = holding.holder(run, key, now)
            if row is None or not holding.may_hold(row) or row.hold_left is None or row.hold_left >= LEAST:
                continue
            if 0 <= now - self._since[key] < GLANCE and row.hold_left >= URGENT:
                continue
            if key in self._asked and 0 <= now - self._asked[key] < AGAIN:
                continue
            self._asked[key] = now
            found.append((key, LEAST + STEP - row.hold_left))
        return found
