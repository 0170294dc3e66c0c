"""Phases of all ranks over time: a lane for each rank, and how far the ranks are apart in each phase."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainwatch.model import clock
from trainwatch.model.hues import Hues, hues
from trainwatch.model.phases import MARKER, OMITTED, Phase
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import HELD

LAUNCHER = "launcher"
HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Span:
    """What a rank did for a while. Times are Unix seconds on the file server's clock."""

    name: str
    start: float
    end: float
    kind: str
    """MARKER (a phase of the command), OMITTED (phases that are not kept), LAUNCHER (one of its own) or HOLD."""
    open: bool = False
    """It still lasts."""
    attempt: int = 1

    @property
    def duration(self) -> float:
        """Seconds, never negative."""
        return max(0.0, self.end - self.start)


@dataclass(frozen=True, slots=True)
class Part:
    """What a lane keeps of one attempt: never its status, of which thousands would be kept twice."""

    key: AttemptKey
    phases: tuple[Phase, ...]
    offset: float
    """Seconds that the file server's clock is ahead of the worker's."""
    over: float | None
    """When its command ended, on the worker's clock; None while it runs."""
    seen: float
    """Until when it is known to live, on the file server's clock."""
    hold: Span | None
    now: float

    def until(self, phase: Phase) -> float:
        """Until when one of its phases lasted, on the file server's clock."""
        end = phase.ended if phase.ended is not None else self.over
        return self.seen if end is None else clock.moved(end, self.offset)

    def is_in(self, phase: Phase) -> bool:
        """Whether it is in that phase now."""
        return phase.ended is None and self.over is None and self.seen == self.now

    def spans(self) -> Iterable[Span]:
        """Its phases, then its hold."""
        number = self.key.local_attempt if self.key.local_rank >= 0 else self.key.attempt
        for phase in self.phases:
            start = clock.moved(phase.started, self.offset)
            yield Span(phase.name, start, self.until(phase), _kind(phase), self.is_in(phase), number)
        if self.hold is not None:
            yield self.hold


@dataclass(frozen=True)
class Lane:
    """One rank, with all its attempts one after another."""

    key: AttemptKey
    """Its newest attempt."""
    label: str
    host: str
    parts: tuple[Part, ...]
    """Its attempts, the newest last."""

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """What it did, by time; made when it is asked for, as of thousands of ranks few are looked at."""
        found = [span for part in self.parts for span in part.spans()]
        return tuple(sorted(found, key=lambda span: span.start))

    @property
    def keys(self) -> tuple[AttemptKey, ...]:
        """Its attempts, the newest last."""
        return tuple([part.key for part in self.parts])

    def at(self, moment: float) -> Span | None:
        """What it did at a moment; where two spans meet, the later one."""
        return next((span for span in reversed(self.spans) if span.start <= moment <= span.end), None)


@dataclass(frozen=True)
class Spread:
    """One phase over all ranks that were in it. Times are Unix seconds, durations seconds."""

    name: str
    ranks: int
    first_in: float
    last_in: float
    last_out: float
    still: int
    """Ranks that are in it now."""
    median: float
    longest: float
    slowest: tuple[str, ...]
    """Labels of the ranks that took longest, the worst first, at most three."""


@dataclass(frozen=True)
class Timeline:
    """A run over time."""

    lanes: tuple[Lane, ...]
    start: float
    end: float
    spreads: tuple[Spread, ...]
    """Phases in the order in which the first rank came into them."""

    @cached_property
    def hues(self) -> Hues:
        """The colours of its phases."""
        return hues({one.name: one.ranks for one in self.spreads}, {one.name: one.first_in for one in self.spreads})


def timeline(run: Run, now: float) -> Timeline:
    """A run's phases up to `now`, in Unix seconds on the reader's clock."""
    lanes = tuple(_lanes(run, now))
    edges = [edge for lane in lanes for part in lane.parts for edge in _edges(part)]
    return Timeline(lanes, min(edges, default=now), max(edges, default=now), _spreads(lanes))


def _lanes(run: Run, now: float) -> Iterable[Lane]:
    """Ranks in their order; local ranks have lanes of their own."""
    attempts: dict[tuple[int, int], list[Attempt]] = {}
    for key in run.order:
        attempts.setdefault((key.rank, key.local_rank), []).append(run.attempts[key])
    for found in attempts.values():
        newest = found[-1]
        yield Lane(newest.key, run.label(newest.key), newest.host, tuple([_part(attempt, now) for attempt in found]))


def _part(attempt: Attempt, now: float) -> Part:
    status = attempt.status
    over = None
    if status is not None:
        over = status.exited if status.exited is not None else status.ended
    offset, seen = clock.server_time(status, 0.0), _seen(attempt, now)
    return Part(attempt.key, attempt.phases, offset, over, seen, _hold(attempt, seen, now), now)


def _hold(attempt: Attempt, seen: float, now: float) -> Span | None:
    status = attempt.status
    if status is None or status.exited is None or status.hold_until is None:
        return None
    begin, number = clock.server_time(status, status.exited), attempt.key.attempt
    if status.ended is not None:
        return Span(HELD, begin, clock.server_time(status, status.ended), HOLD, False, number)
    until = min(seen, clock.server_time(status, status.hold_until))
    return Span(HELD, begin, until, HOLD, until == now, number)


def _edges(part: Part) -> Iterable[float]:
    """The first and the last moments of which there is something to show."""
    if part.phases:
        yield clock.moved(part.phases[0].started, part.offset)
        yield part.until(part.phases[-1])
    if part.hold is not None:
        yield part.hold.end


def _kind(phase: Phase) -> str:
    return phase.source if phase.source in (MARKER, OMITTED) else LAUNCHER


def _seen(attempt: Attempt, now: float) -> float:
    """Until when a phase that has not ended is known to last: a launcher that was lost said nothing later."""
    status = attempt.status
    if status is None:
        return now
    said = clock.server_time(status, status.time)
    return now if now - said <= 3 * status.interval else said


@dataclass(slots=True)
class _Stay:
    """One rank in one phase, all its times in it together."""

    label: str
    first: float
    time: float
    last: Phase
    part: Part


def _spreads(lanes: Sequence[Lane]) -> tuple[Spread, ...]:
    """The phases of the newest attempts. A phase that a rank enters again and again counts with its whole time."""
    found: dict[str, list[_Stay]] = {}
    for lane in lanes:
        newest = next((part for part in reversed(lane.parts) if part.phases), None)
        if newest is None:
            continue
        mine: dict[str, _Stay] = {}
        for phase in newest.phases:  # of thousands of ranks these are a hundred thousand
            if phase.source == MARKER:
                stay = mine.get(phase.name)
                if stay is None:
                    first = clock.moved(phase.started, newest.offset)
                    stay = mine[phase.name] = _Stay(lane.label, first, 0.0, phase, newest)
                    found.setdefault(phase.name, []).append(stay)
                stay.last = phase
                if phase.ended is not None:
                    stay.time += max(0.0, phase.ended - phase.started)
                else:
                    stay.time += max(0.0, newest.until(phase) - clock.moved(phase.started, newest.offset))
    spreads = [_spread(name, stays) for name, stays in found.items()]
    return tuple(sorted(spreads, key=lambda spread: spread.first_in))


def _spread(name: str, stays: Sequence[_Stay]) -> Spread:
    times = sorted(((stay.time, stay.label) for stay in stays), reverse=True)
    firsts = [stay.first for stay in stays]
    same = Counter(round(time, 1) for time, _ in times)
    slowest = () if len(same) == 1 else tuple(label for _, label in times[:3])
    return Spread(
        name, len(stays), min(firsts), max(firsts), max(stay.part.until(stay.last) for stay in stays),
        sum(stay.part.is_in(stay.last) for stay in stays), times[len(times) // 2][0], times[0][0], slowest,
    )  # fmt: skip
