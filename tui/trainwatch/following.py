"""A source, followed: the one place where changes become the run's state, and where requests wait for their answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trainwatch.link import Link
from trainwatch.logs import Logs
from trainwatch.model import holding, text
from trainwatch.model.clock import server_time
from trainwatch.model.keeping import Keeping
from trainwatch.model.rows import row_of
from trainwatch.model.skew import OurClock
from trainwatch.model.stacks import Taken
from trainwatch.model.state import EMPTY, Run, apply
from trainwatch.model.waking import Waking
from trainwatch.sources.base import ShellPlan, Source, SourceError
from trainwatch.sources.foreign import ForeignSource
from trainwatch.takings import Takings
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.idle import LINES
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

AT_ONCE = 32
"""Requests that are written at the same time."""
KEEP_EVERY = 1.0
"""Seconds between two looks whether a hold is to be kept."""
ANSWER_WITHIN = 10.0
"""Seconds that a worker has to answer a request before we say that it has not."""


@dataclass(frozen=True)
class Answer:
    """What became of a request, for a person."""

    said: str
    good: bool


@dataclass
class _Batch:
    """Several requests for the same, which are answered by one sentence."""

    command: str
    left: int
    good: int = 0
    bad: list[str] = field(default_factory=list)

    def add(self, label: str, answer: Answer) -> Answer | None:
        """One more is answered; the sentence for all, when it is the last one."""
        self.left -= 1
        if answer.good:
            self.good += 1
        else:
            self.bad.append(label)
        if self.left:
            return None
        done = "released" if self.command == "release" else "held for longer"
        said = f"{self.good} rank{' is' if self.good == 1 else 's are'} {done}."
        if self.bad:
            more = f" and {len(self.bad) - 5} more" if len(self.bad) > 5 else ""
            said += f" Not: rank {', '.join(self.bad[:5])}{more}; x on each says why."
        return Answer(said, not self.bad)


@dataclass
class _Asked:
    key: AttemptKey
    command: str
    deadline: float
    quiet: bool = False
    """Nobody has asked for it in person: only that it did not work is worth words."""
    taking_back: asyncio.Task[str] | None = None
    """Once nobody has answered in time; it gives the words for what became of the request."""
    batch: _Batch | None = None
    """What it was asked together with."""


class Following:
    """One run, followed from a source; what the screens get as their feed."""

    def __init__(
        self, source: Source, clock: Callable[[], float], program: str = "trainwatch", keep_hold: bool = True,
        gpu_price: float | None = None,
    ) -> None:
        self.name = source.name
        self.program = program
        self.gpu_price = gpu_price
        self.problem = ""
        self.loaded = False
        self._source = source
        self._clock = clock
        self._run = EMPTY
        self._written = EMPTY
        self._our_clock = OurClock()
        self._waking = Waking()
        self._asked: dict[str, _Asked] = {}
        self._keeping = Keeping() if keep_hold else None
        self._kept_by: asyncio.Task[None] | None = None
        self.left = asyncio.Event()
        """Set when it is followed no more."""
        self._not_kept: set[AttemptKey] = set()
        self._notes: list[Answer] = []
        self._takings = Takings(source)

    @property
    def run(self) -> Run:
        """The run as known now."""
        return self._run

    @property
    def links(self) -> tuple[Link, ...]:
        """How each host is reached now; none for a run of this machine."""
        return self._source.links

    def now(self) -> float:
        """The reader's clock, in Unix seconds. After we did not run it stands back until all has been read anew."""
        return self._waking.now(self._clock(), self._run, lambda: all(link.up for link in self.links))

    def logs(self, keys: Sequence[AttemptKey]) -> Logs:
        """The logs of some attempts, to be read as one in the order of time."""
        logs = Logs(self._source, keys, [self._run.label(key) for key in keys], self._shift)
        if isinstance(self._source, ForeignSource):
            logs.groups = self._source.groups(keys)
            logs.is_part = any(self._source.is_part(key) for key in keys)
        return logs

    def log_path(self, key: AttemptKey) -> str:
        """Where an attempt's log lies, as far as this machine can open it; empty when it cannot."""
        attempt = self._run.attempts.get(key)
        if isinstance(self._source, ForeignSource):
            return self._source.log_place(key)
        return "" if attempt is None or self.links or not attempt.directory else log_path(attempt.directory)

    def _shift(self, key: AttemptKey) -> float:
        """Seconds from an attempt's clock to ours."""
        attempt = self._run.attempts.get(key)
        return server_time(attempt.status if attempt is not None else None, 0.0)

    async def history(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most. Raises ReadError."""
        try:
            return await self._source.read_metrics(key, most)
        except SourceError as error:
            raise ReadError(str(error)) from None

    async def idle(self, keys: Sequence[AttemptKey], since: Sequence[float]) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work. Raises ReadError."""
        try:
            return await self._source.read_idle(keys, since, LINES)
        except SourceError as error:
            raise ReadError(str(error)) from None

    def taking(self, key: AttemptKey) -> Taken | None:
        """What became of the newest request for an attempt's stacks; None when there was none."""
        return self._takings.of(key, self._run)

    async def take_stacks(self, keys: Sequence[AttemptKey], changed: Callable[[], None]) -> None:
        """Ask for stacks, and call `changed` when all have been asked; `taking` tells what comes of it."""
        await self._takings.ask(keys, self.now())
        changed()

    async def stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first, on our clock. Raises ReadError."""
        try:
            found = await self._source.read_stacks(key, most)
        except SourceError as error:
            raise ReadError(str(error)) from None
        for dump in found:
            dump.time += self._shift(key)
        return found

    async def follow(self, changed: Callable[[], None]) -> None:
        """Apply what the source says until it is closed; `changed` is called after each batch."""
        try:
            async for batch in self._source.changes():
                self._written = apply(self._written, batch)
                self._run = self._our_clock.of(self._written, self._source.ahead)
                self.loaded = True
                changed()
                await asyncio.sleep(0)  # a source that always has something must not starve the keys
        except SourceError as error:
            self.problem = str(error)
            changed()

    async def ask(self, key: AttemptKey, command: str, seconds: float | None) -> str:
        """Write a request, whose answer `answers` will give. Raises SourceError."""
        request = await self._source.request(key, command, seconds=seconds)
        self._asked[request] = _Asked(key, command, self.now() + ANSWER_WITHIN)
        return request

    async def ask_many(self, keys: Sequence[AttemptKey], command: str) -> None:
        """Write the same request to several, whose one answer `answers` will give."""
        batch = _Batch(command, len(keys))

        async def ask(key: AttemptKey) -> None:
            try:
                request = await self._source.request(key, command)
            except SourceError as error:
                self._note(batch.add(self._run.label(key), Answer(str(error), False)))
            else:
                self._asked[request] = _Asked(key, command, self.now() + ANSWER_WITHIN, batch=batch)

        for first in range(0, len(keys), AT_ONCE):
            await asyncio.gather(*[ask(key) for key in keys[first : first + AT_ONCE]])

    def _note(self, answer: Answer | None) -> None:
        if answer is not None:
            self._notes.append(answer)

    def answers(self) -> list[Answer]:
        """The answers that came since the last call, and the requests that got none in time."""
        self._takings.check(self._run, self.now())
        for request, asked in list(self._asked.items()):
            attempt = self._run.attempts.get(asked.key)
            event = attempt.answer(request) if attempt is not None else None
            if event is not None:
                self._answered(asked, event.text("result"))
            elif asked.taking_back is not None and asked.taking_back.done():
                self._unanswered(asked, asked.taking_back.result())
            else:
                if asked.taking_back is None and self.now() > asked.deadline:
                    asked.taking_back = asyncio.create_task(self._take_back(asked.key, request))
                continue
            del self._asked[request]
        notes, self._notes = self._notes, []
        return notes

    def _answered(self, asked: _Asked, result: str) -> None:
        if asked.quiet:
            self._note_kept(asked.key, "" if result == "done" else f"it says: {result or 'nothing'}")
        else:
            self._tell(asked, _answer(self._run, asked, result, self.now()))

    def _unanswered(self, asked: _Asked, became: str) -> None:
        said = f"no answer to {asked.command} after {ANSWER_WITHIN:.0f} s. {became}"
        if asked.quiet:
            self._note_kept(asked.key, said)
        else:
            self._tell(asked, Answer(f"Rank {self._run.label(asked.key)}: {said}", False))

    def _tell(self, asked: _Asked, answer: Answer) -> None:
        """An answer for a person; of several that were asked together the last one tells for all."""
        batch = asked.batch
        self._note(answer if batch is None else batch.add(self._run.label(asked.key), answer))

    @property
    def kept(self) -> frozenset[AttemptKey]:
        """The launchers whose holds are kept, because shells are open beside them."""
        return self._keeping.kept if self._keeping is not None else frozenset()

    @contextlib.contextmanager
    def shell_open(self, key: AttemptKey) -> Iterator[bool]:
        """While the block lasts a shell is open beside an attempt, and its hold does not run out.

        Gives whether there is a launcher that holds or may come to.
        """
        row = holding.holder(self._run, key, self.now())
        if self._keeping is None or row is None or not (row.live or holding.may_hold(row)):
            yield False
            return
        self._keeping.opened(key, self.now())
        if self._kept_by is None or self._kept_by.done():
            self._kept_by = asyncio.create_task(self._keep(self._keeping))
        try:
            yield True
        finally:
            self._keeping.closed(key)

    async def _keep(self, keeping: Keeping) -> None:
        """Extend holds as they need it, until no shell is open."""
        while keeping.kept:
            for key, seconds in keeping.due(self._run, self.now()):
                try:
                    request = await self._source.request(key, "extend", seconds=seconds)
                    self._asked[request] = _Asked(key, "extend", self.now() + ANSWER_WITHIN, quiet=True)
                except SourceError as error:
                    self._note_kept(key, str(error))
            await asyncio.sleep(KEEP_EVERY)

    def _note_kept(self, key: AttemptKey, why_not: str) -> None:
        """A hold could be kept, or not; the latter is told when it begins."""
        if not why_not:
            self._not_kept.discard(key)
        elif key not in self._not_kept:
            self._not_kept.add(key)
            self._notes.append(Answer(f"The hold of rank {self._run.label(key)} is not kept: {why_not}", False))

    async def _take_back(self, key: AttemptKey, request: str) -> str:
        """A launcher that comes back to life must not find it much later; in words what became of it."""
        try:
            withdrawn = await self._source.withdraw(key, request)
        except SourceError as error:
            return f"The request is still there: {error}"
        return "The request is taken back." if withdrawn else "Its launcher has taken the request and not answered."

    async def shell(self, key: AttemptKey) -> ShellPlan:
        """How to open a shell where an attempt runs, or ran, in its container. Raises SourceError."""
        where, said = holding.stand_beside(self._run, key, self.now())
        try:
            plan = await self._source.shell(where, label=self._run.label(where))
        except SourceError as error:
            raise SourceError(f"{said}: {error}" if said else str(error)) from None
        return replace(plan, note=" · ".join(part for part in (said, plan.note) if part))

    async def close(self) -> None:
        """Stop following."""
        self.left.set()
        if self._kept_by is not None:
            self._kept_by.cancel()
        await self._source.close()


def _answer(run: Run, asked: _Asked, result: str, now: float) -> Answer:
    label = run.label(asked.key)
    if result != "done":
        return Answer(f"Rank {label} says to {asked.command}: {result or 'nothing'}", False)
    if asked.command == "release":
        return Answer(f"Rank {label} is released.", True)
    if asked.command != "extend":
        return Answer(f"Rank {label}: {asked.command} done.", True)
    row = row_of(run, asked.key, now)
    if row.hold_left is None or row.hold_until is None:
        return Answer(f"Rank {label} is held for longer.", True)
    until = text.time_of_day(row.hold_until, now)
    return Answer(f"Rank {label} is held until {until}, {text.countdown(row.hold_left)} more.", True)
