"""The run as known so far, and `apply`, the one function that takes it and changes to the next state."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from trainwatch.model import naming, phases
from trainwatch.model.course import NO_COURSE, Course, after
from trainwatch.model.facts import completed
from trainwatch.model.gpus import Gpus, gpus_in
from trainwatch.model.phases import Phase
from trainwatch.model.progress import Progress, progress_of
from trainwatch_launcher.diagnosis.answer import Diagnosis, from_json
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.rundir.records import Event, RunInfo, Status

KEPT = 64_000
"""About so many events and phases of a run are kept, shared by its attempts, so that memory has a bound after weeks."""
MOST, LEAST = 1000, 24
"""Of one attempt's, however few or many there are."""
MILESTONES = frozenset(("start", "gpus", "exit", "hold", "hold-extended", "release", "end"))
"""Events that are kept however many come after them."""
MAX_MILESTONES = 200
NEWEST_PHASES = 2
"""So many events of phases complete a status: the launcher's own last one, and what the command did before that."""
MAX_PROBLEMS = 200
RUN_DIRECTORY = "."
"""The path of a problem that is the whole run directory's."""


@dataclass(frozen=True)
class Attempt:
    """One start of a rank: everything that is known of it."""

    key: AttemptKey
    directory: str = ""
    found: float | None = None
    """When its directory was last changed as it was found, in Unix seconds on the file server's clock."""
    snapshot: Status | None = None
    """status.json as it was read last."""
    status: Status | None = None
    """`snapshot`, completed by events that are newer; None when there are neither."""
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    """In the order written: the newest ones, and before them the milestones; of phases only those that the status does
    not know yet, two at most, as `phases` has them all."""
    diagnosis: Diagnosis | None = None
    """Why its command failed, as its launcher found out; None when it has not said so."""
    problem: str = ""
    """Why something of this attempt could not be read, in one line; empty when all is well."""
    course: Course = NO_COURSE
    """Its last steps and losses."""

    @cached_property
    def gpus(self) -> Gpus:
        """Its GPUs as they were when the status was taken."""
        return gpus_in(self.status)

    @cached_property
    def progress(self) -> Progress:
        """How far it is, how fast, how well."""
        return progress_of(self.status, self.course)

    @property
    def host(self) -> str:
        """The host that it runs on, empty when unknown."""
        return self.status.host if self.status is not None else ""

    @property
    def start(self) -> Event | None:
        """The `start` event: argv, cwd, pid and the other facts."""
        return self.first("start")

    @property
    def nested(self) -> bool:
        """Whether this is a local rank inside another launcher's command."""
        return self.key.local_rank >= 0

    @property
    def argv(self) -> tuple[str, ...]:
        """The command, empty when unknown."""
        start = self.start
        return tuple(start.texts("argv")) if start is not None else ()

    @property
    def cwd(self) -> str:
        """The command's working directory at its start, empty when unknown."""
        start = self.start
        return start.text("cwd") if start is not None else ""

    def first(self, kind: str) -> Event | None:
        """The first event of one kind; None when there is none."""
        return next((event for event in self.events if event.event == kind), None)

    def last(self, kind: str) -> Event | None:
        """The newest event of one kind; None when there is none."""
        return next((event for event in reversed(self.events) if event.event == kind), None)

    def answer(self, request_id: str) -> Event | None:
        """The `control` event that answers a request; None while there is none."""
        for event in reversed(self.events):
            if event.event == "control" and event.text("id") == request_id:
                return event
        return None

    def stacks_of(self, request_id: str) -> Event | None:
        """The `stacks` event that tells what came of a request for them; None while there is none."""
        for event in reversed(self.events):
            if event.event == "stacks" and event.text("request") == request_id:
                return event
        return None


@dataclass(frozen=True)
class Run:
    """All workers of one job, as known so far."""

    info: RunInfo | None = None
    attempts: Mapping[AttemptKey, Attempt] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[Unreadable, ...] = ()
    """What cannot be read now, the newest last, one for each path."""
    order: tuple[AttemptKey, ...] = ()
    """The keys of `attempts` by rank, then attempt; nested ranks after their container."""
    superseded: frozenset[AttemptKey] = frozenset()
    """Attempts of which a newer one exists; with a rank's attempt, all the local ranks inside it."""
    labels: Mapping[AttemptKey, str] = field(default_factory=lambda: MappingProxyType({}))
    """What each attempt is called; no two are called the same, and commands understand it."""
    serial: int = 0
    """Which state it is, counted from the first: tells whether something changed without keeping the one before."""

    @property
    def world_size(self) -> int | None:
        """Number of ranks: what run.json says, else what the launchers say; None when nobody knows."""
        if self.info is not None and self.info.world_size and self.info.world_size > 0:
            return self.info.world_size
        sizes = [a.status.world_size for a in self.attempts.values() if a.status is not None and not a.nested]
        return max((size for size in sizes if size is not None and size > 0), default=None)

    @property
    def run_id(self) -> str:
        """The run's name, empty when nobody has said it."""
        if self.info is not None:
            return self.info.run_id
        return next((a.status.run_id for a in self.attempts.values() if a.status is not None), "")

    def label(self, key: AttemptKey) -> str:
        """What an attempt is called."""
        return self.labels.get(key) or naming.label(key)

    @property
    def trouble(self) -> str:
        """Why the run directory as a whole cannot be read now, in one line; empty while it can be."""
        return next((problem.message for problem in self.problems if problem.path == RUN_DIRECTORY), "")

    def current(self) -> list[Attempt]:
        """The attempts that no newer one has replaced, by rank, local ranks included."""
        return [self.attempts[key] for key in self.order if key not in self.superseded]


EMPTY = Run()
"""A run of which nothing is known yet."""


def apply(run: Run, changes: Iterable[Change]) -> Run:
    """The run after some changes, in their order. `run` stays as it was; each mapping is copied once for all."""
    info = run.info
    attempts = dict(run.attempts)
    problems = {problem.path: problem for problem in run.problems}
    most = min(MOST, max(LEAST, KEPT // max(1, len(attempts))))
    for change in changes:
        if isinstance(change, RunFound):
            info = change.info
        elif isinstance(change, Unreadable):
            _set_problem(problems, change)
            if change.key is not None:
                attempt = attempts.get(change.key) or Attempt(change.key)
                attempts[change.key] = _with(attempt, problem=_problems_of(problems, change.key))
        else:
            attempt = attempts.get(change.key) or Attempt(change.key)
            attempts[change.key] = _changed(attempt, change, most)
    order, replaced, labels = run.order, run.superseded, run.labels
    if len(attempts) != len(run.attempts):
        order = tuple(sorted(attempts))
        replaced, labels = _superseded(order), MappingProxyType(naming.labels(order))
    told = tuple(problems.values())[-MAX_PROBLEMS:]
    return Run(info, MappingProxyType(attempts), told, order, replaced, labels, run.serial + 1)


def _set_problem(problems: dict[str, Unreadable], change: Unreadable) -> None:
    problems.pop(change.path, None)
    if change.message:
        problems[change.path] = change


def _problems_of(problems: Mapping[str, Unreadable], key: AttemptKey) -> str:
    """Why files of an attempt cannot be read now, all of them in one line."""
    return "; ".join(dict.fromkeys(problem.message for problem in problems.values() if problem.key == key))


def _changed(attempt: Attempt, change: AttemptFound | StatusChanged | EventsAppended, most: int) -> Attempt:
    if isinstance(change, AttemptFound):
        return _with(attempt, directory=change.directory, found=change.modified)
    if isinstance(change, StatusChanged):
        return _with(
            attempt,
            snapshot=change.status,
            status=completed(change.status, attempt.events, attempt.key),
            events=_without_old_phases(attempt.events, change.status.time),
            course=after(attempt.course, change.status),
        )
    events = _bounded(attempt.events + change.events, most)
    said = next((event for event in reversed(change.events) if event.event in ("exit", "diagnosis")), None)
    return _with(
        attempt,
        events=events,
        diagnosis=from_json(said.extra.get("diagnosis")) if said is not None else attempt.diagnosis,
        phases=phases.after(attempt.phases, change.events, most),
        status=completed(attempt.snapshot, events, attempt.key),
    )


def _with(attempt: Attempt, **facts: Any) -> Attempt:
    """A copy with some facts changed: what `replace` does, at a fifth of its cost, as thousands change each second."""
    copy = object.__new__(Attempt)
    values = copy.__dict__
    values.update(attempt.__dict__)
    for worked_out in ("gpus", "progress"):
        values.pop(worked_out, None)
    values.update(facts)
    return copy


def _without_old_phases(events: tuple[Event, ...], time: float) -> tuple[Event, ...]:
    """The events without phases that a status of this time knows; the same ones when there are none, as a rule."""
    for event in events:
        if event.event == "phase" and event.time <= time:
            return tuple([event for event in events if event.event != "phase" or event.time > time])
    return events


def _bounded(events: tuple[Event, ...], most: int) -> tuple[Event, ...]:
    named = [event for event in events if event.event == "phase"]
    if len(named) > NEWEST_PHASES:
        old = set(map(id, named[:-NEWEST_PHASES]))
        events = tuple(event for event in events if id(event) not in old)
    if len(events) <= most:
        return events
    milestones = [event for event in events[:-most] if event.event in MILESTONES]
    return (*milestones[:MAX_MILESTONES], *events[-most:])


def _superseded(keys: Sequence[AttemptKey]) -> frozenset[AttemptKey]:
    newest = naming.newest(keys)
    return frozenset(key for key in keys if key.attempt < newest[key[:1]] or key.local_attempt < newest[key[:3]])
