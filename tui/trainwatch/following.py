"""A source, followed: the one place where changes become the run's state, and where requests wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainwatch.link import Link
from trainwatch.model import holding, text
from trainwatch.model.rows import row_of
from trainwatch.model.skew import OurClock
from trainwatch.model.state import EMPTY, Run, apply
from trainwatch.sources.base import ShellPlan, Source, SourceError
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Metrics

ANSWER_WITHIN = 10.0
"""Seconds that a worker has to answer a request before we say that it has not."""


@dataclass(frozen=True)
class Answer:
    """What became of a request, for a person."""

    said: str
    good: bool


@dataclass(frozen=True)
class _Asked:
    key: AttemptKey
    command: str
    deadline: float


class Following:
    """One run, followed from a source; what the screens get as their feed."""

    def __init__(self, source: Source, clock: Callable[[], float], program: str = "trainwatch") -> None:
        self.name = source.name
        self.program = program
        self.problem = ""
        self.loaded = False
        self._source = source
        self._clock = clock
        self._run = EMPTY
        self._written = EMPTY
        self._our_clock = OurClock()
        self._asked: dict[str, _Asked] = {}

    @property
    def run(self) -> Run:
        """The run as known now."""
        return self._run

    @property
    def links(self) -> tuple[Link, ...]:
        """How each host is reached now; none for a run of this machine."""
        return self._source.links

    def now(self) -> float:
        """The reader's clock, in Unix seconds."""
        return self._clock()

    def log(self, key: AttemptKey) -> _Log:
        """The bytes of an attempt's log."""
        return _Log(self._source, key)

    async def history(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most. Raises ReadError."""
        try:
            return await self._source.read_metrics(key, most)
        except SourceError as error:
            raise ReadError(str(error)) from None

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
        self._asked[request] = _Asked(key, command, self._clock() + ANSWER_WITHIN)
        return request

    def answers(self) -> list[Answer]:
        """The answers that came since the last call, and the requests that got none in time."""
        found = []
        for request, asked in list(self._asked.items()):
            attempt = self._run.attempts.get(asked.key)
            event = attempt.answer(request) if attempt is not None else None
            label = self._run.label(asked.key)
            if event is not None:
                found.append(_answer(self._run, asked, event.text("result"), self._clock()))
            elif self._clock() > asked.deadline:
                said = f"Rank {label}: no answer to {asked.command} after {ANSWER_WITHIN:.0f} s."
                found.append(Answer(said, False))
            else:
                continue
            del self._asked[request]
        return found

    async def shell(self, key: AttemptKey) -> ShellPlan:
        """How to open a shell where an attempt runs, or ran, in its container. Raises SourceError."""
        where, said = holding.stand_beside(self._run, key, self._clock())
        try:
            plan = await self._source.shell(where)
        except SourceError as error:
            raise SourceError(f"{said}: {error}" if said else str(error)) from None
        return replace(plan, note=" · ".join(part for part in (said, plan.note) if part))

    async def close(self) -> None:
        """Stop following."""
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


class _Log:
    """An attempt's log as views want it."""

    def __init__(self, source: Source, key: AttemptKey) -> None:
        self._source, self._key = source, key

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes of the log; fewer at its end. Raises ReadError."""
        try:
            return await self._source.read_log(self._key, offset, length)
        except SourceError as error:
            raise ReadError(str(error)) from None

    async def size(self) -> int:
        """Bytes in the log now. Raises ReadError."""
        try:
            return await self._source.log_size(self._key)
        except SourceError as error:
            raise ReadError(str(error)) from None
