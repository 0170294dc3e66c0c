"""Follows a source as the app does, and remembers what it said."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from trainwatch.link import Link
from trainwatch.sources.base import Source, SourceError
from trainwatch_launcher.reader.changes import AttemptKey, Change, EventsAppended, StatusChanged
from trainwatch_launcher.rundir.records import Event, Status


class Follower:
    """All changes of a source so far, and every link state that was seen with them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.seen: list[Change] = []
        self.links: list[tuple[Link, ...]] = []
        self.error: SourceError | None = None
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            async for batch in self.source.changes():
                self.seen.extend(batch)
                self.links.append(self.source.links)
                self._news.set()
        except SourceError as error:
            self.error = error
            self._news.set()

    async def until(self, condition: Callable[[Follower], Any], timeout: float = 30.0) -> Any:
        """Wait until a condition is true of what came; returns what it gave."""

        async def wait() -> Any:
            while not (value := condition(self)):
                self._news.clear()
                # links also age by themselves
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.1)
                if self._task.done() and not condition(self):
                    raise self.error or AssertionError("the source ended")
            return value

        try:
            return await asyncio.wait_for(wait(), timeout)
        except asyncio.TimeoutError:
            last = "\n".join(str(change)[:300] for change in self.seen[-8:])
            raise AssertionError(f"not within {timeout} s; links {self.source.links}, seen\n{last}") from None

    def events(self, key: AttemptKey) -> list[Event]:
        """All events of an attempt, in the order that they came."""
        return [
            one for change in self.seen if isinstance(change, EventsAppended) and change.key == key
            for one in change.events
        ]  # fmt: skip

    def status(self, key: AttemptKey) -> Status | None:
        """The newest status of an attempt."""
        found = [change.status for change in self.seen if isinstance(change, StatusChanged) and change.key == key]
        return found[-1] if found else None

    def states(self) -> list[str]:
        """The states that the first link went through, each once in a row."""
        states: list[str] = []
        for links in self.links:
            if links and (not states or states[-1] != links[0].state):
                states.append(links[0].state)
        return states

    async def close(self) -> None:
        await self.source.close()
        await asyncio.wait_for(self._task, 10)


@contextlib.asynccontextmanager
async def following(source: Source) -> AsyncIterator[Follower]:
    """Follow a source until the end of the block."""
    follower = Follower(source)
    try:
        yield follower
    finally:
        await follower.close()
