"""A source, followed: the one place where changes become the run's state, and where requests wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from trainwatch.model import text
from trainwatch.model.rows import row_of
from trainwatch.model.state import EMPTY, Attempt, Run, apply
from trainwatch.sources.base import ShellPlan, Source, SourceError
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.changes import AttemptKey

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

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self.name = source.name
        self.problem = ""
        self.loaded = False
        self._source = source
        self._clock = clock
        self._run = EMPTY
        self._asked: dict[str, _Asked] = {}

    @property
    def run(self) -> Run:
        """The run as known now."""
        return self._run

    def now(self) -> float:
        """The reader's clock, in Unix seconds."""
        return self._clock()

    def log(self, key: AttemptKey) -> _Log:
        """The bytes of an attempt's log."""
        return _Log(self._source, key)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Apply what the source says until it is closed; `changed` is called after each batch."""
        try:
            async for batch in self._source.changes():
                self._run = apply(self._run, batch)
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
            label = text.label(asked.key)
            if attempt is not None and event is not None:
                found.append(_answer(label, asked.command, event.text("result"), attempt, self._clock()))
            elif self._clock() > asked.deadline:
                said = f"Rank {label}: no answer to {asked.command} after {ANSWER_WITHIN:.0f} s."
                found.append(Answer(said, False))
            else:
                continue
            del self._asked[request]
        return found

    async def shell(self, key: AttemptKey) -> ShellPlan:
        """How to open a shell where an attempt runs. Raises SourceError."""
        return await self._source.shell(key)

    async def close(self) -> None:
        """Stop following."""
        await self._source.close()


def _answer(label: str, command: str, result: str, attempt: Attempt, now: float) -> Answer:
    if result != "done":
        return Answer(f"Rank {label} says to {command}: {result or 'nothing'}", False)
    left = row_of(attempt, now).hold_left
    if command == "extend":
        return Answer(f"Rank {label} is held {f'{text.countdown(left)} more' if left else 'for longer'}.", True)
    return Answer(f"Rank {label} is released." if command == "release" else f"Rank {label}: {command} done.", True)


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
