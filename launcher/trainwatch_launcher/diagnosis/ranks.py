"""Whom it happened to in a log of several ranks, and who died of it."""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

    from trainwatch_launcher.diagnosis.elastic import Agents
    from trainwatch_launcher.diagnosis.endings import Ending
    from trainwatch_launcher.diagnosis.lines import Text
    from trainwatch_launcher.diagnosis.statements import Statement

VICTIM_SIGNALS = (9, 15, 2)
DIGITS = re.compile(r"\d+|0x[0-9a-f]+")


def same_fault(one: Statement, other: Statement) -> bool:
    """Whether two statements tell of the same fault: the same words but for numbers (ranks, pids, addresses)."""
    return one.kind is other.kind and fingerprint(one.text) == fingerprint(other.text)


def fingerprint(words: str) -> str:
    """A message without its numbers, by which the same fault is known on several ranks."""
    return DIGITS.sub("#", words[:200]).lower()


class Who:
    """The ranks of one log: whose fault the chosen statement is, who has the same, who died of it."""

    def __init__(
        self, text: Text, chosen: Statement, stated: Sequence[Statement], agents: Agents, ends: Sequence[Ending]
    ) -> None:
        alike = {one.rank for one in stated if one.rank is not None and same_fault(one, chosen)}
        self.rank = self._rank(text, chosen, alike, agents, ends)
        self.alike = tuple(sorted(alike - {self.rank}))
        victims = set(agents.victims()) | _ended_after(ends, chosen)
        for one in stated:
            if one.rank is not None and one.role == table.COLLATERAL and one.rank not in alike:
                victims.add(one.rank)
        victims -= alike | {self.rank if self.rank is not None else -1}
        self.collateral = tuple(sorted(victims)) if text.rank is None and not self._job(chosen) else ()

    @staticmethod
    def _job(chosen: Statement) -> bool:
        """Whether it was the whole job's end and no rank's."""
        return chosen.role == table.STOP

    def _rank(
        self, text: Text, chosen: Statement, alike: set[int], agents: Agents, ends: Sequence[Ending]
    ) -> int | None:
        if text.rank is not None:
            return text.rank
        if self._job(chosen):
            return None
        if chosen.rank is not None:
            return None if len(alike) > 1 and alike >= _seen(text, chosen) else chosen.rank
        first = [one for one in agents.workers if one.first]
        if first:
            codes = {one.code for one in agents.workers if one.code not in (-15, -9)}
            alone = len(agents.workers) == 1 or len(codes) != 1 or bool(agents.closed)
            ranks = {one.rank if one.rank is not None else one.local_rank for one in first}
            return ranks.pop() if alone and len(ranks) == 1 else None
        return _first_of(ends)


def _seen(text: Text, chosen: Statement) -> set[int]:
    """Ranks that have lines of their own near the statement."""
    around = range(max(0, chosen.line - 400), min(len(text), chosen.end + 400))
    return {rank for rank in (text[index].rank for index in around) if rank is not None}


def _first_of(ends: Sequence[Ending]) -> int | None:
    """The one rank that ended first by the order of lines; None when several did at once."""
    for one in ends:
        if one.code or one.by == "mpi":
            if one.rank is not None and len(one.ranks) <= 1:
                return one.rank
            if one.ranks:
                return None
    return None


def _ended_after(ends: Iterable[Ending], chosen: Statement) -> set[int]:
    """Ranks that were ended by a signal from outside, other than that of the statement itself."""
    found: set[int] = set()
    for one in ends:
        if one.signal in VICTIM_SIGNALS and one.ranks and one.line != chosen.line and one.by == "slurm":
            found.update(one.ranks)
    return found
