"""Runs whose file server's clock is not ours: the offsets of their attempts are made to lead to ours. Pure.

`Status.clock_offset` leads from a worker's clock to its file server's; `clock` takes that to be ours. Where a source
has measured that it is not, what it measured is added here, and everything that `clock` computes is right again.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey

MATTERS = 0.5
"""Seconds below which a difference is none: it would only make ages flicker."""


class OurClock:
    """Takes a run as its launchers wrote it to the same run on our clock.

    What it has worked out it remembers by attempt, so that the cost follows what changed.
    """

    def __init__(self) -> None:
        self._known: dict[AttemptKey, tuple[Attempt, float, Attempt]] = {}

    def of(self, run: Run, ahead: Callable[[AttemptKey], float]) -> Run:
        """The run on our clock. `ahead` says for how many seconds an attempt's file server is ahead of it."""
        off = {key: seconds for key in run.attempts if abs(seconds := ahead(key)) >= MATTERS}
        if not off:
            return run
        attempts = {
            key: self._shifted(attempt, off[key]) if key in off else attempt for key, attempt in run.attempts.items()
        }  # fmt: skip
        return replace(run, attempts=MappingProxyType(attempts))

    def _shifted(self, attempt: Attempt, ahead: float) -> Attempt:
        known = self._known.get(attempt.key)
        if known is not None and known[0] is attempt and known[1] == ahead:
            return known[2]
        status = attempt.status
        if status is not None:
            status = status.replace(clock_offset=(status.clock_offset or 0.0) - ahead)
        found = None if attempt.found is None else attempt.found - ahead
        shifted = replace(attempt, status=status, found=found)
        self._known[attempt.key] = (attempt, ahead, shifted)
        return shifted
