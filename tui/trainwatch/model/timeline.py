"""Phases of all ranks over time: a lane for each rank, and how far the ranks are apart in each phase."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainwatch.model import clock
from trainwatch.model.phases import MARKER, OMITTED, Phase
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import HELD

HUES = 6
"""Phases with a colour of their own; the rest share the last one."""
LAUNCHER = "launcher"
HOLD = "hold"


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Lane:
    """One rank, with all its attempts one after another."""

    key: AttemptKey
    """Its newest attempt."""
    label: str
    host: str
    spans: tuple[Span, ...]
    attempts: tuple[AttemptKey, ...] = ()
    """Its attempts, the newest last."""

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

    def hue(self, name: str) -> int:
        """The colour of a phase: the commonest have their own."""
        return self._hues.get(name, HUES - 1)

    @cached_property
    def _hues(self) -> dict[str, int]:
        own = sorted(self.spreads, key=lambda spread: -spread.ranks)[: HUES - 1]
        names = [spread.name for spread in self.spreads if spread in own]
        return {name: number for number, name in enumerate(names)}


def timeline(run: Run, now: float) -> Timeline:
    """A run's phases up to `now`, in Unix seconds on the reader's clock."""
    lanes = tuple(_lanes(run, now))
    starts = [span.start for lane in lanes for span in lane.spans]
    ends = [span.end for lane in lanes for span in lane.spans]
    return Timeline(lanes, min(starts, default=now), max(ends, default=now), _spreads(lanes))


def _lanes(run: Run, now: float) -> Iterable[Lane]:
    """Ranks in their order; local ranks have lanes of their own."""
    spans: dict[tuple[int, int], list[Span]] = {}
    attempts: dict[tuple[int, int], list[AttemptKey]] = {}
    for key in run.order:
        who = (key.rank, key.local_rank)
        spans.setdefault(who, []).extend(_spans(run.attempts[key], now))
        attempts.setdefault(who, []).append(key)
    for who, keys in attempts.items():
        key, found = keys[-1], tuple(sorted(spans[who], key=lambda span: span.start))
        yield Lane(key, run.label(key), run.attempts[key].host, found, tuple(keys))


def _spans(attempt: Attempt, now: float) -> Iterable[Span]:
    """The phases of one attempt, then its hold."""
    status = attempt.status
    over = None
    if status is not None:
        over = status.exited if status.exited is not None else status.ended
    number = attempt.key.local_attempt if attempt.nested else attempt.key.attempt
    for phase in attempt.phases:
        end = phase.ended if phase.ended is not None else over
        until = _seen(attempt, now) if end is None else clock.server_time(status, end)
        lasts = end is None and until == now
        yield Span(phase.name, clock.server_time(status, phase.started), until, _kind(phase), lasts, number)
    if status is not None and status.exited is not None and status.hold_until is not None:
        begin = clock.server_time(status, status.exited)
        if status.ended is not None:
            yield Span(HELD, begin, clock.server_time(status, status.ended), HOLD, False, number)
        else:
            until = min(_seen(attempt, now), clock.server_time(status, status.hold_until))
            yield Span(HELD, begin, until, HOLD, until == now, number)


def _kind(phase: Phase) -> str:
    return phase.source if phase.source in (MARKER, OMITTED) else LAUNCHER


def _seen(attempt: Attempt, now: float) -> float:
    """Until when a phase that has not ended is known to last: a launcher that was lost said nothing later."""
    status = attempt.status
    if status is None:
        return now
    said = clock.server_time(status, status.time)
    return now if now - said <= 3 * status.interval else said


def _spreads(lanes: Sequence[Lane]) -> tuple[Spread, ...]:
    """The phases of the newest attempts. A phase that a rank enters again and again counts with its whole time."""
    found: dict[str, list[tuple[Lane, list[Span]]]] = {}
    for lane in lanes:
        newest = max((span.attempt for span in lane.spans), default=1)
        mine: dict[str, list[Span]] = {}
        for span in lane.spans:
            if span.kind == MARKER and span.attempt == newest:
                mine.setdefault(span.name, []).append(span)
        for name, spans in mine.items():
            found.setdefault(name, []).append((lane, spans))
    spreads = [_spread(name, entries) for name, entries in found.items()]
    return tuple(sorted(spreads, key=lambda spread: spread.first_in))


def _spread(name: str, entries: Sequence[tuple[Lane, list[Span]]]) -> Spread:
    times = sorted(((sum(span.duration for span in spans), lane.label) for lane, spans in entries), reverse=True)
    firsts = [spans[0].start for _, spans in entries]
    durations = [time for time, _ in times]
    same = Counter(round(time, 1) for time in durations)
    slowest = () if len(same) == 1 else tuple(label for _, label in times[:3])
    return Spread(
        name, len(entries), min(firsts), max(firsts), max(spans[-1].end for _, spans in entries),
        sum(spans[-1].open for _, spans in entries), durations[len(durations) // 2], durations[0], slowest,
    )  # fmt: skip
