"""Which colour a phase has: the same one in the grid, in the timeline and in the report. Pure."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwatch.model import clock
from trainwatch.model.phases import MARKER
from trainwatch.model.state import Run

HUES = 6
"""Colours of phases; those that are rarer than the first five share the last one."""


@dataclass(frozen=True)
class Hues:
    """The colours of a run's phases, from 0 on."""

    own: Mapping[str, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    """All phases that they were given to; those without a colour of their own have the last one."""

    def of(self, name: str) -> int:
        """The colour of a phase."""
        return self.own.get(name, HUES - 1)


def hues(ranks: Mapping[str, int], firsts: Mapping[str, float]) -> Hues:
    """Colours for phases of which it is known in how many ranks they were, and when the first rank came into each."""
    common = sorted(ranks, key=lambda name: (-ranks[name], firsts[name], name))[: HUES - 1]
    in_order = sorted(common, key=lambda name: (firsts[name], name))
    return Hues({name: number for number, name in enumerate(in_order)}, frozenset(ranks))


def hues_of(run: Run) -> Hues:
    """The colours of all phases that the newest attempts of a run told."""
    ranks: dict[str, int] = {}
    firsts: dict[str, float] = {}
    for attempt in run.current():
        mine: set[str] = set()
        for phase in attempt.phases:
            if phase.source == MARKER and phase.name not in mine:
                mine.add(phase.name)
                ranks[phase.name] = ranks.get(phase.name, 0) + 1
                started = clock.server_time(attempt.status, phase.started)
                if started < firsts.get(phase.name, float("inf")):
                    firsts[phase.name] = started
    return hues(ranks, firsts)
