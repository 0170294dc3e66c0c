"""The run as known so far, and `apply`, the one function that takes it and changes to the next state."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from trainwatch.model import naming
from trainwatch.model.course import NO_COURSE, Course, after
from trainwatch.model.facts import completed
from trainwatch.model.gpus import Gpus, gpus_in
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

MAX_EVENTS = 1000
"""So many of the newest events of an attempt are kept, and besides them its milestones."""
MILESTONES = frozenset(("start", "gpus", "exit", "hold", "hold-extended", "release", "end"))
"""Events that are kept however many come after them."""
MAX_MILESTONES = 200
MAX_PHASES = 1000
MAX_PROBLEMS = 200
RUN_DIRECTORY = "."
"""The path of a problem that is the whole run directory's."""


@dataclass(frozen=True)
class Phase:
    """What the command said it was doing, for a while. Times are Unix seconds on the worker's clock."""

    name: str
    started: float
    ended: float | None
    """When the next phase began or the command ended; None while it lasts."""
    offset: int
    """Where its line begins in output.log, in bytes."""
    source: str
    """`marker` (a line of the command) or `launcher`."""

    @property
    def duration(self) -> float | None:
        """Seconds, never negative; None while it lasts."""
        return None if self.ended is None else max(0.0, self.ended - self.started)


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
    """In the order written: the newest `MAX_EVENTS`, and before them the milestones."""
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

    @property
    def world_size(self) -> int | None:
        """Number of ranks: what run.json says, else what the launchers say; None when nobody knows."""
        if self.info is not None and self.info.world_size is not None:
            return self.info.world_size
        sizes = [a.status.world_size for a in self.attempts.values() if a.status is not None and not a.nested]
        return max((size for size in sizes if size is not None), default=None)

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
    for change in changes:
        if isinstance(change, RunFound):
            info = change.info
        elif isinstance(change, Unreadable):
            _set_problem(problems, change)
            if change.key is not None:
                attempt = attempts.get(change.key) or Attempt(change.key)
                attempts[change.key] = replace(attempt, problem=_problems_of(problems, change.key))
        else:
            attempt = attempts.get(change.key) or Attempt(change.key)
            attempts[change.key] = _changed(attempt, change)
    order, replaced, labels = run.order, run.superseded, run.labels
    if len(attempts) != len(run.attempts):
        order = tuple(sorted(attempts))
        replaced, labels = _superseded(order), MappingProxyType(naming.labels(order))
    return Run(info, MappingProxyType(attempts), tuple(problems.values())[-MAX_PROBLEMS:], order, replaced, labels)


def _set_problem(problems: dict[str, Unreadable], change: Unreadable) -> None:
    problems.pop(change.path, None)
    if change.message:
        problems[change.path] = change


def _problems_of(problems: Mapping[str, Unreadable], key: AttemptKey) -> str:
    """Why files of an attempt cannot be read now, all of them in one line."""
    return "; ".join(dict.fromkeys(problem.message for problem in problems.values() if problem.key == key))


def _changed(attempt: Attempt, change: AttemptFound | StatusChanged | EventsAppended) -> Attempt:
    if isinstance(change, AttemptFound):
        return replace(attempt, directory=change.directory, found=change.modified)
    if isinstance(change, StatusChanged):
        return replace(
            attempt,
            snapshot=change.status,
            status=completed(change.status, attempt.events, attempt.key),
            course=after(attempt.course, change.status),
        )
    events = _bounded(attempt.events + change.events)
    said = next((event for event in reversed(change.events) if event.event == "exit"), None)
    return replace(
        attempt,
        events=events,
        diagnosis=from_json(said.extra.get("diagnosis")) if said is not None else attempt.diagnosis,
        phases=_phases(attempt.phases, change.events),
        status=completed(attempt.snapshot, events, attempt.key),
    )


def _bounded(events: tuple[Event, ...]) -> tuple[Event, ...]:
    if len(events) <= MAX_EVENTS:
        return events
    milestones = [event for event in events[:-MAX_EVENTS] if event.event in MILESTONES]
    return (*milestones[:MAX_MILESTONES], *events[-MAX_EVENTS:])


def _phases(phases: tuple[Phase, ...], events: tuple[Event, ...]) -> tuple[Phase, ...]:
    """The phases after some more events: each ends when the next begins, the last when the command has ended."""
    result = list(phases)
    for event in events:
        if event.event not in ("phase", "exit", "end"):
            continue
        if result and result[-1].ended is None:
            result[-1] = replace(result[-1], ended=event.time)
        if event.event == "phase":
            offset = event.integer("offset") or 0
            result.append(Phase(event.text("name"), event.time, None, max(0, offset), event.text("source")))
    return tuple(result[-MAX_PHASES:])


def _superseded(keys: Sequence[AttemptKey]) -> frozenset[AttemptKey]:
    newest = naming.newest(keys)
    return frozenset(key for key in keys if key.attempt < newest[key[:1]] or key.local_attempt < newest[key[:3]])
