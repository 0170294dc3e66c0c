"""Many hosts, one run: each with its own disk, or all with the same one, of which then only one is read."""
from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trainwatch.link import LOST, Link
from trainwatch.sources.agent_source import AgentSource, ElsewhereError
from trainwatch.sources.asking_many import Share, ask_all
from trainwatch.sources.base import LogFile, Part, ShellPlan, SourceError
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

SETTLE = 2.0
"""Seconds that the first hosts wait for the others, so that a rank's attempts are numbered in their order."""
GATHER = 0.05
"""For so many seconds changes are gathered before they are told: a thousand hosts would be told of one by one."""


@dataclass(frozen=True)
class Newcomers:
    """Finds hosts that join a run later: pods that are made anew, nodes of an array's next job."""

    look: Callable[[], Awaitable[Sequence[AgentSource]]]
    """Those that are new since the last call. Raises SourceError."""
    every: float
    """Seconds between two looks."""


class MergedSource:
    """Follows all of `sources` as one run, and those that `newcomers` finds later.

    A rank that was started again on another host has an attempt 1 on each of their disks; here the later one becomes
    its attempt 2. Hosts that see the same directory are kept connected as spares, for shells and for when the one that
    is read is lost. A host that holds another run is left out, which is said. `changes` may be iterated once.
    """

    def __init__(self, name: str, sources: Sequence[AgentSource], newcomers: Newcomers | None = None) -> None:
        self.name = name
        self._sources = list(sources)
        self._newcomers = newcomers
        self._batches: asyncio.Queue[tuple[AgentSource, Sequence[Change]]] = asyncio.Queue(maxsize=len(sources) + 1)
        self._names = Names()
        self._disks: dict[str, _Disk] = {}
        self._errors: list[SourceError] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._run_id: str | None = None
        self._foreign: set[AgentSource] = set()
        self._closed = False
        self._carried = 0
        for source in self._sources:
            self._welcome(source)

    @property
    def links(self) -> tuple[Link, ...]:
        """One for each host, in the order that the user named them."""
        return tuple(source.link for source in self._sources)

    @property
    def pending(self) -> bool:
        """Whether something has come that `changes` has not given yet."""
        return self._carried > 0 or any(source.pending for source in self._sources)

    def ahead(self, key: AttemptKey) -> float:
        """Seconds that the file server's clock of an attempt is ahead of ours."""
        disk, own = self._names.own(key)
        return self._disks[disk].reader.ahead(own) if disk in self._disks else 0.0

    async def changes(self) -> AsyncIterator[Sequence[Change]]:
        """Batches of changes of all hosts. Raises SourceError when none of them can be read."""
        self._tasks = [asyncio.create_task(self._pump(source)) for source in self._sources]
        if self._newcomers is not None:
            self._tasks.append(asyncio.create_task(self._grow(self._newcomers)))
        came = await self._settled()
        self._carried -= len(came)
        yield [change for source, batch in came for change in self._renamed(source, batch)]
        while not self._closed:
            came = [await self._batches.get()]
            await asyncio.sleep(GATHER)
            while not self._batches.empty():
                came.append(self._batches.get_nowait())
            self._carried -= len(came)
            if len(self._errors) == len(self._sources):
                raise self._errors[0]
            self._relieve()
            if not self._closed:
                yield [change for source, batch in came for change in self._renamed(source, batch)]

    async def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now; 0 when there is none. Raises SourceError."""
        return (await self.log_file(key)).size

    async def log_file(self, key: AttemptKey) -> LogFile:
        """An attempt's output.log as it is now. Raises SourceError."""
        if not self._names.own(key)[0]:
            return LogFile(0, 0)
        source, own = self._owner(key)
        return await source.log_file(own)

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log; fewer at its end. Raises SourceError."""
        source, own = self._owner(key)
        return await source.read_log(own, offset, length)

    async def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        source, own = self._owner(key)
        return await source.read_metrics(own, most)

    async def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first. Raises SourceError."""
        source, own = self._owner(key)
        return await source.read_stacks(own, most)

    async def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work; see `Source`. Raises SourceError."""
        owned: dict[AgentSource, list[tuple[AttemptKey, AttemptKey, float]]] = {}
        for key, begin in zip(keys, since, strict=True):
            source, own = self._owner(key)
            owned.setdefault(source, []).append((key, own, begin))

        async def ask(source: AgentSource, wanted: Sequence[tuple[AttemptKey, AttemptKey, float]]) -> None:
            with contextlib.suppress(SourceError):  # a host that is lost keeps nobody from the others
                found = await source.read_idle([own for _, own, _ in wanted], [begin for *_, begin in wanted], lines)
                told.update({key: found[own] for key, own, _ in wanted if own in found})

        told: dict[AttemptKey, Sequence[Span]] = {}
        await asyncio.gather(*(ask(source, wanted) for source, wanted in owned.items()))
        return told

    async def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        """Ask something of logs where they lie, each host of its own. Raises SourceError."""
        owned: dict[AgentSource, list[tuple[AttemptKey, int]]] = {}
        for number, key in enumerate(keys):
            source, own = self._owner(key)
            owned.setdefault(source, []).append((own, number))
        shares = [
            Share(source.ask_logs, tuple(own for own, _ in logs), tuple(number for _, number in logs))
            for source, logs in owned.items()
        ]  # fmt: skip
        async for part in ask_all(shares, operation, shifts, facts):
            yield part

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        """Ask an attempt's launcher for something; returns the request's id. Raises SourceError."""
        source, own = self._owner(key)
        return await source.request(own, command, seconds=seconds, signal=signal)

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        source, own = self._owner(key)
        return await source.withdraw(own, request)

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """A shell, or `command`, for an attempt, on whichever of the hosts it ran. Raises SourceError."""
        source, own = self._owner(key)
        try:
            return await source.shell(own, command, label)
        except ElsewhereError as error:
            other = next((s for s in self._sources if s.link.up and _same_host(s.link, error.host)), None)
            directory = self._names.directories.get(key, "")
            if other is None or other is source or not directory:
                raise
            inside = os.path.relpath(directory, source.link.directory)
            return await other.shell_in(str(PurePosixPath(other.link.directory, inside)), own, command, label)

    async def close(self) -> None:
        """Stop following; `changes` ends."""
        self._closed = True
        with contextlib.suppress(asyncio.QueueFull):
            self._batches.put_nowait((self._sources[0], ()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(source.close() for source in self._sources), *self._tasks, return_exceptions=True)

    def _welcome(self, source: AgentSource) -> None:
        source.gate = self._may_read
        source.patient = True

    async def _grow(self, newcomers: Newcomers) -> None:
        """Look for hosts that join, again and again."""
        while not self._closed:
            await asyncio.sleep(newcomers.every)
            try:
                found = await newcomers.look()
            except SourceError:
                continue  # nobody answers now, or nothing of it runs any more: what we have stays
            for source in found:
                self._welcome(source)
                self._sources.append(source)
                self._tasks.append(asyncio.create_task(self._pump(source)))

    async def _pump(self, source: AgentSource) -> None:
        try:
            async for batch in source.changes():
                self._carried += 1
                await self._batches.put((source, batch))
        except SourceError as error:
            self._errors.append(error)
            self._carried += 1
            await self._batches.put((source, ()))

    async def _settled(self) -> list[tuple[AgentSource, Sequence[Change]]]:
        """What came until every host has told what it has or is lost, or until `SETTLE`. Raises SourceError."""
        came: list[tuple[AgentSource, Sequence[Change]]] = []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE
        while not self._closed and not all(source.link.up or source.link.state == LOST for source in self._sources):
            try:
                came.append(await asyncio.wait_for(self._batches.get(), max(0.0, deadline - loop.time())))
            except asyncio.TimeoutError:
                break
        while not self._batches.empty():
            came.append(self._batches.get_nowait())
        lost = [source.link for source in self._sources if source.link.state == LOST]
        if len(lost) == len(self._sources) and not self._closed:
            more = f" (and {len(lost) - 1} more hosts)" if len(lost) > 1 else ""
            raise SourceError(f"{lost[0].name}: {lost[0].reason}{more}")
        self._agree(came)
        return came

    def _agree(self, came: Sequence[tuple[AgentSource, Sequence[Change]]]) -> None:
        """Which run it is: that of most hosts; and which of a rank's attempts came first."""
        runs = Counter(change.info.run_id for _, batch in came for change in batch if isinstance(change, RunFound))
        self._run_id = runs.most_common(1)[0][0] if runs else None
        started = [
            (change.status.started or change.status.time) - source.link.clock_ahead
            for source, batch in came for change in batch if isinstance(change, StatusChanged)
        ]  # fmt: skip
        whose = [
            (source.disk, change.key) for source, batch in came for change in batch if isinstance(change, StatusChanged)
        ]  # fmt: skip
        for _, (disk, key) in sorted(zip(started, whose, strict=True)):
            self._names.name(disk, key)

    def _may_read(self, source: AgentSource) -> bool:
        """Whether a host is the one that reads the directory that it sees."""
        disk = self._disks.setdefault(source.disk, _Disk(source))
        if disk.reader is not source and (disk.reader.reading or disk.reader.called.is_set()):
            return False
        disk.reader = source
        source.have = disk.have
        return True

    def _relieve(self) -> None:
        """Of a directory whose reader is lost, another host that sees it becomes the reader."""
        for disk in self._disks.values():
            reader = disk.reader
            if reader.reading or reader.called.is_set() or reader.link.state != LOST:
                continue
            spare = next((s for s in self._sources if s.link.spare and s.link.up and s.disk == reader.disk), None)
            if spare is not None and self._may_read(spare):
                spare.called.set()

    def _renamed(self, source: AgentSource, batch: Sequence[Change]) -> list[Change]:
        return [named for change in batch if (named := self._rename(source, change)) is not None]

    def _rename(self, source: AgentSource, change: Change) -> Change | None:
        if isinstance(change, RunFound):
            self._run_id = self._run_id or change.info.run_id
            if change.info.run_id == self._run_id:
                return change
            self._foreign.add(source)
            return Unreadable(source.link.name, f"it holds run {change.info.run_id} there, which is not shown")
        if source in self._foreign:
            return None
        if isinstance(change, Unreadable):
            key = None if change.key is None else self._names.name(source.disk, change.key)
            return Unreadable(f"{source.link.name}: {change.path}", change.message, key)
        named = self._names.name(source.disk, change.key)
        if isinstance(change, AttemptFound):
            self._names.directories[named] = change.directory
            return change.replace(key=named)
        return change.replace(key=named)

    def _owner(self, key: AttemptKey) -> tuple[AgentSource, AttemptKey]:
        disk, own = self._names.own(key)
        if disk not in self._disks:
            raise SourceError(f"this run has no attempt {key.attempt} of rank {key.rank}")
        reader = self._disks[disk].reader
        if reader.disk != disk:
            raise SourceError(f"{reader.link.name}: what attempt {key.attempt} of rank {key.rank} wrote is gone there")
        return reader, own


class _Disk:
    """A directory that one or several hosts see."""

    def __init__(self, reader: AgentSource) -> None:
        self.reader = reader
        self.have = reader.have


class Names:
    """Whose attempt is which: the same rank and attempt on two disks are two attempts."""

    def __init__(self) -> None:
        self.directories: dict[AttemptKey, str] = {}
        """Where an attempt lies on its host."""
        self._given: dict[tuple[str, int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()
        self._own: dict[AttemptKey, tuple[str, AttemptKey]] = {}

    def name(self, disk: str, key: AttemptKey) -> AttemptKey:
        """What an attempt on a disk is called here: as there, or by the next number that is free."""
        whose = (disk, key.rank, key.attempt)
        attempt = self._given.get(whose)
        if attempt is None:
            attempt = key.attempt
            while (key.rank, attempt) in self._taken:
                attempt += 1
            self._taken.add((key.rank, attempt))
            self._given[whose] = attempt
        named = key.of_attempt(attempt)
        self._own[named] = (disk, key)
        return named

    def own(self, key: AttemptKey) -> tuple[str, AttemptKey]:
        """The disk that an attempt is on, and what it is called there; no disk for one that nobody named."""
        return self._own.get(key, ("", key))


def _same_host(link: Link, host: str) -> bool:
    return bool(host) and link.host.partition(".")[0] == host.partition(".")[0]
