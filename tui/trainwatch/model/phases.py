"""What an attempt's command said it was doing, one phase after the other. Pure, and bounded."""
from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from trainwatch_launcher.rundir.records import Event

MARKER = "marker"
"""The source of a phase that a line of the command announced."""
OMITTED = "omitted"
"""The source of what stands for phases that are not kept."""
FIRST = 4
"""One part in so many of what is kept are the first phases: setup is looked at long after it."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What the command said it was doing, for a while. Times are Unix seconds on the worker's clock."""

    name: str
    started: float
    ended: float | None
    """When the next phase began or the command ended; None while it lasts."""
    offset: int
    """Where its line begins in output.log, in bytes."""
    source: str
    """MARKER (a line of the command), `launcher`, or OMITTED for the phases between the first and the newest ones."""
    count: int = 1
    """How many phases it stands for."""

    @property
    def duration(self) -> float | None:
        """Seconds, never negative; None while it lasts."""
        return None if self.ended is None else max(0.0, self.ended - self.started)


def after(phases: tuple[Phase, ...], events: tuple[Event, ...], most: int) -> tuple[Phase, ...]:
    """The phases after some more events: each ends when the next begins, the last when the command has ended.

    Of more than `most` the first and the newest are kept, and one phase stands for those between.
    """
    result = list(phases)
    for event in events:
        if event.event not in ("phase", "exit", "end"):
            continue
        if result and result[-1].ended is None:
            result[-1] = replace(result[-1], ended=event.time)
        if event.event == "phase":
            offset = event.integer("offset") or 0
            # the same few names come from thousands of ranks
            name, source = sys.intern(event.text("name")), sys.intern(event.text("source"))
            result.append(Phase(name, event.time, None, max(0, offset), source))
    return tuple(_bounded(result, most)) if len(result) > most else tuple(result)


def _bounded(phases: list[Phase], most: int) -> list[Phase]:
    """The first ones and the newest, with one between them that stands for the rest."""
    first = most // FIRST
    newest = phases[len(phases) - (most - first - 1):]
    left = phases[first : len(phases) - len(newest)]
    count = sum(phase.count for phase in left)
    gap = Phase(f"… {count} phases", left[0].started, left[-1].ended, left[0].offset, OMITTED, count)
    return [*phases[:first], gap, *newest]
