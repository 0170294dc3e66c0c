"""A run whose directory can be read on this machine."""
from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from trainwatch.link import Link
from trainwatch.sources import shells
from trainwatch.sources.asking import answers
from trainwatch.sources.base import LogFile, Part, ShellPlan, SourceError
from trainwatch.sources.watching import Doubt, Watcher
from trainwatch_launcher.agent.mounts import file_system, is_remote
from trainwatch_launcher.reader import idle, log, metrics, stacks
from trainwatch_launcher.reader.attempt import log_number, log_path
from trainwatch_launcher.reader.changes import AttemptKey, Change, StatusChanged, Unreadable
from trainwatch_launcher.reader.directory import Reader, concerns
from trainwatch_launcher.reader.engine import Engine, LogName
from trainwatch_launcher.reader.requests import RequestError, withdraw_request, write_request
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump, Frame

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

T = TypeVar("T")

SAFETY = 5.0
"""Seconds between looks at everything while the kernel tells of changes: a new directory may hide its first files."""
POLL = 0.5
"""Seconds between looks where the kernel tells nothing."""
POLL_SHARE = 10
"""Looking takes at most one part in so many of the time."""
WATCHED = 256
"""Of more attempts that live the kernel is not asked: it tells of each several times a second, at the price of several
looks at it."""
GLANCE, GLANCE_CALM, FEW = 1.0, 2.0, 4
"""Seconds between two looks at the statuses of so many; the same when less than one in `FEW` was new; …"""
GLANCE_SHARE = 10
"""… which take at most one part in so many of a core."""
AT_ONCE = 512
"""So many changes are given on at once: between two portions the keys have their turn."""
LOG_CHUNK = 16 << 20
"""More bytes than this are never read at once."""


class LocalSource:
    """Follows a run directory with a reader in this process. Reading happens in threads, never in the event loop.

    `changes` may be iterated once.
    """

    def __init__(self, path: str | os.PathLike[str], *, watch: bool = True) -> None:
        self.name = os.fspath(path)
        self._directory = os.path.realpath(self.name)
        self._reader = Reader(self._directory)
        self._engine = Engine()
        self._watch = watch
        self._frames: dict[str, Frame] = {}
        self._closed = False
        self._wake = asyncio.Event()
        self._touched: set[str] = set()
        self._trouble: list[Change] = []
        self._watcher: Watcher | None = None
        self._doubt = Doubt()
        self._remote = False
        self._looking = ThreadPoolExecutor(1, "trainwatch-look")
        self._next_look = 0.0
        self._next_glance = math.inf
        """When to look at statuses only; never while the kernel tells of changes."""
        self._glance_began, self._glance_cost, self._glance_found = 0.0, 0.0, 0
        """When that began last, the seconds of a core that it has taken so far, and how much was new."""

    @property
    def links(self) -> tuple[Link, ...]:
        """None: this is our own machine."""
        return ()

    def ahead(self, _key: AttemptKey) -> float:
        """Nothing: our clock is the file system's."""
        return 0.0

    async def changes(self) -> AsyncIterator[Sequence[Change]]:
        """Batches of changes from the first reading on, until the source is closed."""
        begun = False
        try:
            while not self._closed:
                self._wake.clear()
                batch = await self._look()
                if not begun:  # the second look at everything comes soon: what changed meanwhile was not told
                    begun = True
                    await self._start_watching()
                    self._next_look = time.monotonic() + POLL
                self._watch_no_more_than_pays()
                batch.extend(self._trouble)
                self._trouble.clear()
                for first in range(0, len(batch), AT_ONCE):
                    if not self._closed:
                        yield batch[first : first + AT_ONCE]
                await self._sleep()
        finally:
            self._stop_watching()

    async def _look(self) -> list[Change]:
        """One look: at everything when that is due, else at statuses, else at what the kernel has told of."""
        touched, self._touched = self._touched, set()
        started = time.monotonic()
        if started >= self._next_look:
            glanced = self._next_glance < math.inf
            batch, _ = await self._in_thread(lambda: self._reader.poll(glanced=glanced))
            if self._watcher is not None:
                self._question(batch)
            pause = SAFETY if self._watcher is not None or glanced else POLL
            self._next_look = time.monotonic() + max(pause, (time.monotonic() - started) * POLL_SHARE)
        elif started >= self._next_glance:
            if not self._reader.glancing:
                self._glance_began, self._glance_cost, self._glance_found = started, 0.0, 0
            batch, cpu = await self._in_thread(self._reader.glance)
            self._glance_cost += cpu
            self._glance_found += len(batch)
            if not self._reader.glancing:  # else the rest comes at once
                few = self._glance_found < self._reader.live // FEW
                pause = max(GLANCE_CALM if few else GLANCE, self._glance_cost * GLANCE_SHARE)
                self._next_glance = self._glance_began + pause
        else:
            batch, _ = await self._in_thread(lambda: self._reader.poll(touched))
        return batch

    async def _in_thread(self, look: Callable[[], list[Change]]) -> tuple[list[Change], float]:
        """What a look found, and the seconds of a core that it took. Always the same thread, as each one that allocates
        thousands of records keeps memory of its own."""

        def timed() -> tuple[list[Change], float]:
            began = time.thread_time()
            return look(), time.thread_time() - began

        return await asyncio.get_running_loop().run_in_executor(self._looking, timed)

    async def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now; 0 when there is none. Raises SourceError."""
        return (await self.log_file(key)).size

    async def log_file(self, key: AttemptKey) -> LogFile:
        """An attempt's output.log as it is now. Raises SourceError."""
        directory = self._reader.attempt_directory(key)
        if directory is None:
            return LogFile(0, 0)
        path = log_path(directory)
        try:
            return await asyncio.to_thread(lambda: LogFile(log.size(path), log_number(directory)))
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from None

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log, 16 MiB at most; fewer at its end. Raises SourceError."""
        path = log_path(self._directory_of(key))
        try:
            return await asyncio.to_thread(log.read, path, offset, min(length, LOG_CHUNK))
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from None

    async def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        directory = self._directory_of(key)
        try:
            return await asyncio.to_thread(lambda: metrics.records(metrics.tail(directory, most)))
        except OSError as error:
            raise SourceError(f"the history in {directory} cannot be read: {error.strerror or error}") from None

    async def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first. Raises SourceError."""
        directory = self._directory_of(key)
        try:
            return await asyncio.to_thread(lambda: stacks.dumps(stacks.newest(directory, most), self._frames))
        except OSError as error:
            raise SourceError(f"the stacks in {directory} cannot be read: {error.strerror or error}") from None

    async def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work; see `Source`. Raises SourceError."""
        wanted = [(key, self._directory_of(key), begin) for key, begin in zip(keys, since, strict=True)]

        def read() -> Mapping[AttemptKey, Sequence[Span]]:
            return {key: idle.idle_spans(directory, begin, lines) for key, directory, begin in wanted}

        if self._closed:
            return {}
        return await asyncio.get_running_loop().run_in_executor(self._looking, read)

    async def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        """Ask something of logs, which is worked out in a thread. Raises SourceError."""
        names = [LogName(self._directory_of(key), True, shift) for key, shift in zip(keys, shifts, strict=True)]
        async for part in answers(self._engine, operation, names, facts):
            yield part

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        """Ask an attempt's launcher for something; returns the request's id. Raises SourceError."""
        try:
            return await asyncio.to_thread(write_request, self._directory_of(key), command, seconds, signal)
        except RequestError as error:
            raise SourceError(str(error)) from None

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        try:
            return await asyncio.to_thread(withdraw_request, self._directory_of(key), request)
        except RequestError as error:
            raise SourceError(str(error)) from None

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """A shell, or `command`, in an attempt's working directory and environment. Raises SourceError."""
        return await asyncio.to_thread(shells.plan, self._directory_of(key), key, tuple(command), label)

    async def close(self) -> None:
        """Stop following; `changes` ends."""
        self._closed = True
        self._looking.shutdown(wait=False)
        self._stop_watching()
        self._wake.set()

    def _directory_of(self, key: AttemptKey) -> str:
        directory = self._reader.attempt_directory(key)
        if directory is None:
            raise SourceError(f"this run has no attempt {key.attempt} of rank {key.rank}")
        return directory

    async def _start_watching(self) -> None:
        kind = await asyncio.to_thread(file_system, self._directory)
        self._remote = is_remote(kind)
        if not self._watch or self._remote or self._reader.live > WATCHED:
            return
        loop = asyncio.get_running_loop()

        def call(method: Callable[[T], None]) -> Callable[[T], None]:
            def from_thread(value: T) -> None:
                try:
                    loop.call_soon_threadsafe(method, value)
                except RuntimeError:
                    pass  # the loop has ended before the watcher

            return from_thread

        self._watcher = Watcher(self._directory, concerns, call(self._note), call(self._note_failure))
        self._watcher.start()

    def _watch_no_more_than_pays(self) -> None:
        """With many attempts look at their statuses instead from now on; a file server is asked seldom all the same."""
        if self._next_glance == math.inf and not self._remote and self._reader.live > WATCHED:
            self._stop_watching()
            self._watcher = None
            self._next_glance = 0.0

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()

    def _question(self, batch: Sequence[Change]) -> None:
        """After a look at everything: watch no longer when the kernel turns out to tell of some changes only."""
        changed = {self._directory_of(change.key) for change in batch if isinstance(change, StatusChanged)}
        if self._doubt.confirmed(changed) and self._watcher is not None:
            self._stop_watching()
            self._note_failure(Doubt.sentence)

    def _note(self, touched: set[str]) -> None:
        self._touched |= touched
        self._doubt.note(touched)
        self._wake.set()

    def _note_failure(self, why: str) -> None:
        self._watcher = None
        self._next_look = 0.0
        self._trouble.append(Unreadable("watching", why))
        self._wake.set()

    async def _sleep(self) -> None:
        """Until something was touched, or it is time for the next look."""
        due = 0.0 if self._reader.behind else min(self._next_look, self._next_glance)
        try:
            await asyncio.wait_for(self._wake.wait(), max(0.0, due - time.monotonic()))
        except asyncio.TimeoutError:
            pass
