"""Who is elsewhere while all others wait, by the stacks that launchers have taken and told of in their events. Pure.

Only where a rank stands counts, not where it was caught: stacks say nothing any more once it has made progress.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from trainwatch.model.state import Attempt

K = TypeVar("K", bound=Hashable)

STANDS = 30.0
"""A rank that has been in its step for so many seconds when its stacks were taken stands still."""
FEWEST = 3
"""Of fewer ranks nobody is the odd one out."""
FEW = 4
"""At most one rank in so many may be elsewhere: of more nobody knows who waits for whom."""


@dataclass(frozen=True)
class Stand:
    """Where the processes of a rank that train stand."""

    waits: bool
    """Whether all of them wait for others."""
    where: str
    """Of the first that does not, else of the first: `in all_reduce at comm.py:80`."""


@dataclass(frozen=True)
class Elsewhere(Generic[K]):
    """Who does not wait where all others do."""

    who: tuple[K, ...]
    where: str
    """Where the first of them is."""
    count: int
    """How many wait."""
    wait: str
    """Where most of them do."""


def stand_of(attempt: Attempt) -> Stand | None:
    """Where an attempt stands; None when nobody has looked, or when it has made progress since."""
    status = attempt.status
    if status is None or not status.stacks:
        return None
    event = attempt.last("stacks")
    places = event.extra.get("places") if event is not None else None
    if event is None or not isinstance(places, list):
        return None
    if event.text("by") == "stall":
        stands = not any(one.event == "recovered" and one.text("kind") == "stall" and one.time > event.time
                         for one in attempt.events)  # fmt: skip
    else:
        stands = status.progress_since is not None and status.progress_since <= event.time - STANDS
    told = [(one["where"], one.get("waits") is True) for one in places
            if isinstance(one, dict) and isinstance(one.get("where"), str)]  # fmt: skip
    if not stands or not told:
        return None
    where = next((where for where, waits in told if not waits), told[0][0])
    return Stand(all(waits for _, waits in told), where)


def elsewhere(stands: Mapping[K, Stand | None]) -> Elsewhere[K] | None:
    """The few that do not wait while all others do; None when that is not so, or not known of every one."""
    known = {key: stand for key, stand in stands.items() if stand is not None}
    if len(known) < max(FEWEST, len(stands)):
        return None
    waiting = [stand for stand in known.values() if stand.waits]
    few = [key for key, stand in known.items() if not stand.waits]
    if not few or not waiting or len(few) > max(1, len(known) // FEW):
        return None
    wait = Counter(stand.where for stand in waiting).most_common(1)[0][0]
    return Elsewhere(tuple(few), known[few[0]].where, len(waiting), wait)
