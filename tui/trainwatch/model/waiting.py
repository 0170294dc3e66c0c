"""Who did not come, when ranks waited for each other in vain. Pure.

The rank whose timer fires first is a victim. What tells the absent one: a message that names it; a watchdog that says
that all its work is done while others have work pending; another operation under the same number; a stack that is
elsewhere; a step that is behind.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainwatch.model.parties import Party
from trainwatch.model.stands import Stand, elsewhere
from trainwatch_launcher.diagnosis.answer import NONE


@dataclass(frozen=True)
class Absent:
    """Ranks that did not come, how sure that is, and how it is known."""

    ranks: tuple[int, ...]
    confidence: float
    why: str


def who_did_not_come(ranks: Sequence[Party]) -> Absent | None:
    """The ranks that the others waited for; None when nothing tells."""
    waiting = [party for party in ranks if party.collective is not None and party.collective.waits]
    for rule in (_named, _not_entered, _odd_one, _elsewhere, _behind, _silent):
        found = rule(ranks, waiting)
        if found is not None and len(found.ranks) < max(2, len(ranks)):
            return found
    return None


def _named(ranks: Sequence[Party], _waiting: Sequence[Party]) -> Absent | None:
    """A barrier or a desynchronization report that names who did not join."""
    votes: Counter[tuple[int, ...]] = Counter()
    for party in ranks:
        if party.collective is not None and party.collective.blames:
            votes[party.collective.blames] += 1
    if not votes:
        return None
    blamed = votes.most_common(1)[0][0]
    return Absent(blamed, 0.85, f"{_ranks(blamed)} did not come to the barrier")


def _not_entered(ranks: Sequence[Party], waiting: Sequence[Party]) -> Absent | None:
    """All its work is done while others have work pending: it never entered the collective."""
    idle = [
        party for party in ranks
        if party.collective is not None and not party.collective.waits and party.collective.enqueued is not None
    ]  # fmt: skip
    if not waiting or not idle:
        return None
    absent = tuple(sorted(party.rank for party in idle if party.rank is not None))
    op = next((party.collective.op for party in waiting if party.collective and party.collective.op), "the collective")
    return Absent(absent, 0.85, f"{_ranks(absent)} had no work pending while the others waited in {op}")


def _odd_one(_ranks_: Sequence[Party], waiting: Sequence[Party]) -> Absent | None:
    """The same sequence number, another operation or another size: the odd one left the common path."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for party in waiting:
        place = party.collective
        if place is not None and party.rank is not None and place.op:
            groups.setdefault((place.group, place.sequence), [])
    best: Absent | None = None
    for group, sequence in groups:
        same: dict[tuple[str, int | None], list[int]] = {}
        for party in waiting:
            place = party.collective
            if place is not None and party.rank is not None and (place.group, place.sequence) == (group, sequence):
                same.setdefault((place.op, place.size), []).append(party.rank)
        if len(same) < 2:
            continue
        most = max(len(ranks) for ranks in same.values())
        odd = tuple(sorted(rank for ranks in same.values() if len(ranks) < most for rank in ranks))
        if odd:
            common = next(op for (op, _), ranks in same.items() if len(ranks) == most)
            other = next(op for (op, _), ranks in same.items() if len(ranks) < most)
            best = Absent(odd, 0.8, f"{_ranks(odd)} called {other} where the others wait in {common} (work {sequence})")
    return best


def _elsewhere(ranks: Sequence[Party], _waiting: Sequence[Party]) -> Absent | None:
    """The stacks say that it was elsewhere, while all others stood in a collective."""
    stands: dict[int, Stand | None] = {}
    for party in ranks:
        if party.rank is not None:  # of a container and its local ranks whoever does not wait tells
            known = stands.get(party.rank)
            stands[party.rank] = party.stand if known is None or (party.stand is not None and known.waits) else known
    found = elsewhere(stands)
    if found is None:
        return None
    who = tuple(sorted(found.who))
    why = f"{_ranks(who)} {'is' if len(who) == 1 else 'are'} {found.where}, while {found.count} wait {found.wait}"
    return Absent(who, 0.8, why)


def _behind(ranks: Sequence[Party], waiting: Sequence[Party]) -> Absent | None:
    """Fewer collectives enqueued, or fewer steps done, than all others."""
    done = {
        party.rank: party.collective.enqueued for party in waiting
        if party.rank is not None and party.collective is not None and party.collective.enqueued is not None
    }  # fmt: skip
    found = _lowest(done)
    if found and len({party.collective.group for party in waiting if party.collective}) == 1:
        return Absent(found, 0.7, f"{_ranks(found)} had started fewer collectives than the others")
    steps = {party.rank: party.step for party in ranks if party.rank is not None and party.step is not None}
    found = _lowest(steps)
    return Absent(found, 0.6, f"{_ranks(found)} was behind in its steps") if found else None


def _silent(ranks: Sequence[Party], waiting: Sequence[Party]) -> Absent | None:
    """The others tell of waiting; this one's output just stops."""
    silent = tuple(
        party.rank for party in ranks if party.kind == NONE and party.rank is not None and party.collective is None
    )
    told = [party for party in ranks if party.kind != NONE]
    if any(party.kind == "unknown" for party in told):
        return None  # that one ended by itself
    if len(silent) == 1 and len(told) >= 1 and not any(party.collective and party.collective.told for party in ranks):
        return Absent(silent, 0.55, f"{_ranks(silent)} says nothing of it: its output just stops")
    return None


def _lowest(numbers: dict[int, int]) -> tuple[int, ...]:
    """Who has the lowest number, if they are the few."""
    if len(numbers) < 2:
        return ()
    least, most = min(numbers.values()), max(numbers.values())
    lowest = tuple(sorted(rank for rank, number in numbers.items() if number == least))
    return lowest if least < most and len(lowest) * 2 <= len(numbers) else ()


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(str(rank) for rank in ranks[:6]) + ("…" if len(ranks) > 6 else "")
