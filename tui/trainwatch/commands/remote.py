"""A source's run for commands that are no screens: followed in a thread of its own, asked from ours."""
from __future__ import annotations

import asyncio
import atexit
import getpass
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from trainwatch.link import LOST, Link
from trainwatch.model.skew import OurClock
from trainwatch.model.state import EMPTY, Run, apply
from trainwatch.opening import open_source
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import Part, ShellPlan, Source, SourceError
from trainwatch.sources.foreign import ForeignSource
from trainwatch.sources.merged import MergedSource
from trainwatch.targets import Named
from trainwatch_launcher.reader.changes import AttemptKey, Unreadable
from trainwatch_launcher.reader.runs import TargetError
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until all hosts have told what they have, or are lost."""


class RemoteRun:
    """Follows the run of a source, which `opening` gives, until `close`. Its methods block, and are for one thread.

    Made when every host has told what it has, or cannot be reached. Raises TargetError when none can.
    """

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, Source]]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="follow", daemon=True).start()
        self._changed = threading.Condition()
        self._run: Run = EMPTY
        self._clock = OurClock()
        self._read = False
        self._error: SourceError | None = None
        self._closed = False
        try:
            self._source = self._do(opening)
            atexit.register(self.close)
            asyncio.run_coroutine_threadsafe(self._follow(), self._loop)
            self._wait_until_read()
        except SourceError as error:
            raise TargetError(str(error)) from None

    def look(self) -> Run:
        """The run as it is known now, on our clock; hosts that cannot be reached are among its problems."""
        with self._changed:
            run = self._run
        lost = [Unreadable(link.name, _trouble(link)) for link in self._source.links if not link.up]
        return self._clock.of(apply(run, lost), self._source.ahead)

    def request(self, key: AttemptKey, command: str, seconds: float | None = None, signal: str | None = None) -> str:
        """Ask an attempt's launcher for something; returns the request's id. Raises SourceError."""
        return self._do(lambda: self._source.request(key, command, seconds=seconds, signal=signal))

    def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now. Raises SourceError."""
        return self._do(lambda: self._source.log_size(key))

    def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log; fewer at its end. Raises SourceError."""
        return self._do(lambda: self._source.read_log(key, offset, length))

    def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> Iterator[Part]:
        """Ask something of logs where they lie; see `trainwatch_launcher.reader.engine`. Raises SourceError."""
        parts: Any = self._source.ask_logs(operation, keys, shifts, **facts)

        async def next_part() -> Part | None:
            return await anext(parts, None)

        async def leave() -> None:
            await parts.aclose()

        try:
            while (part := self._do(next_part)) is not None:
                yield part
        finally:
            self._do(leave)

    def is_part(self, key: AttemptKey) -> bool:
        """Whether a log is some lines of its file only."""
        return isinstance(self._source, ForeignSource) and self._source.is_part(key)

    def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        return self._do(lambda: self._source.read_metrics(key, most))

    def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first. Raises SourceError."""
        return self._do(lambda: self._source.read_stacks(key, most))

    def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work; see `Source`. Raises SourceError."""
        return self._do(lambda: self._source.read_idle(keys, since, lines))

    def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        return self._do(lambda: self._source.withdraw(key, request))

    def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """A shell, or `command`, for an attempt. Raises SourceError."""
        return self._do(lambda: self._source.shell(key, command, label))

    def close(self) -> None:
        """Leave all hosts; at the end of the process at the latest."""
        if not self._closed:
            self._closed = True
            self._do(self._source.close)

    def _do(self, what: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(what(), self._loop).result()

    async def _follow(self) -> None:
        error: SourceError | None = None
        try:
            async for batch in self._source.changes():
                with self._changed:
                    self._run = apply(self._run, batch)
                    self._read = self._read or self._all_told()
                    self._changed.notify_all()
        except SourceError as caught:
            error = caught
        with self._changed:
            self._error, self._read = error, True
            self._changed.notify_all()

    def _all_told(self) -> bool:
        """Whether nothing more is to come soon: a host that is up has told what it has, one with a reason waits."""
        links = self._source.links
        waiting = isinstance(self._source, (AgentSource, MergedSource)) and self._source.pending
        return not waiting and all(link.up or link.state == LOST or link.reason for link in links)

    def _wait_until_read(self) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._read, PATIENCE):
                self._error = SourceError(f"no answer within {PATIENCE:.0f} s")
            error, links = self._error, self._source.links
        if error is None and links and not any(link.up for link in links):
            error = SourceError(f"{links[0].name}: {_trouble(links[0])}")
        if error is not None:
            self.close()
            raise error


def run_elsewhere(named: Named) -> RemoteRun:
    """The run of a target. Raises TargetError."""
    return RemoteRun(lambda: open_source(named, ask if sys.stdin.isatty() else None))


def run_of_logs(paths: Sequence[str]) -> RemoteRun:
    """Logs that no launcher wrote, as a run. Raises TargetError."""

    async def opened() -> Source:
        return ForeignSource(paths)

    return RemoteRun(opened)


def _trouble(link: Link) -> str:
    return f"not connected: {link.reason or link.state}"


async def ask(question: str) -> str:
    """Ask the person at the terminal for a secret, before any screen is shown."""
    return await asyncio.to_thread(getpass.getpass, f"trainwatch: {question}")
