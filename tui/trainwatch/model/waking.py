"""Time after we did not run for a while: stopped, or asleep with the laptop. Pure.

What we know is as old as our last look then, and the clock alone would make lost of all that live. So time stands back
by what was missed until the ranks have been read anew.
"""
from __future__ import annotations

from collections.abc import Callable

from trainwatch.model.rows import state_at
from trainwatch.model.state import Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import LIVE

GAP = 3.0
"""Seconds between two looks at the clock that are more than a busy machine takes for a second."""
ANEW = 20.0
"""Seconds in which whoever lives has said so again, on a file system that is looked at seldom too."""
CONNECT = 60.0
"""The same where hosts have to be connected to again first."""


class Waking:
    """Takes the clock's time to the time that what we know may be judged by. To be asked once a second at least."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._missed = 0.0
        self._woken = 0.0
        self._lived: dict[AttemptKey, float] = {}

    def now(self, clock: float, run: Run, connected: Callable[[], bool] = lambda: True) -> float:
        """Now, at `clock` (Unix seconds); `connected` tells whether all hosts can be asked."""
        last, self._last = self._last, clock
        if last is not None and clock - last > GAP:
            if not self._missed:
                self._lived = _living(run, last)
            self._missed += clock - last
            self._woken = clock
        if self._missed and self._is_over(clock, run, connected):
            self._missed = 0.0
        return clock - self._missed

    def _is_over(self, clock: float, run: Run, connected: Callable[[], bool]) -> bool:
        if clock - self._woken > (ANEW if connected() else CONNECT) or clock < self._woken:
            return True
        now = ((key, run.attempts.get(key)) for key in self._lived)
        return all(
            attempt is None or attempt.status is None or attempt.status.time != self._lived[key] for key, attempt in now
        )


def _living(run: Run, now: float) -> dict[AttemptKey, float]:
    """The attempts that lived at a moment, and when each was last heard of."""
    return {
        key: attempt.status.time for key, attempt in run.attempts.items()
        if attempt.status is not None and state_at(attempt, now) in LIVE
    }  # fmt: skip
