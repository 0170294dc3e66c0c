"""Logs that no launcher wrote, as a run: what their text gives of phases, progress and failures, and their growth."""
from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainwatch.link import Link
from trainwatch.sources.asking import answers
from trainwatch.sources.base import LogFile, Part, ShellPlan, SourceError
from trainwatch.sources.foreign_files import Named, found
from trainwatch.sources.foreign_logs import ForeignLog
from trainwatch_launcher.reader import log
from trainwatch_launcher.reader.changes import AttemptKey, Change
from trainwatch_launcher.reader.engine import Engine, LogName
from trainwatch_launcher.reader.pages import Entry, Page
from trainwatch_launcher.reader.runs import TargetError
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

LOOK_EVERY = 0.5
"""Seconds between two looks at all files."""
SHARE = 10
"""Looking takes at most one part in so many of the time."""
LIST_EVERY = 5.0
"""Seconds between two looks for new files in directories."""
LOG_CHUNK = 16 << 20
NO_LAUNCHER = "no launcher of trainwatch wrote these logs: there is nobody to ask (trainwatch-launch -- COMMAND)"


class ForeignSource:
    """Follows files by their names. `changes` may be iterated once."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} logs"
        self._paths = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - links are followed each time anew
        self._engine = Engine()
        self._logs: dict[str, ForeignLog] = {}
        self._of: dict[AttemptKey, ForeignLog] = {}
        self._closed = asyncio.Event()

    @property
    def links(self) -> tuple[Link, ...]:
        """None: this is our own machine."""
        return ()

    def ahead(self, _key: AttemptKey) -> float:
        """Nothing."""
        return 0.0

    async def changes(self) -> AsyncIterator[Sequence[Change]]:
        """Batches of changes until the source is closed. Raises SourceError when there is no log at all."""
        try:
            await asyncio.to_thread(self._list)
        except TargetError as error:
            raise SourceError(str(error)) from None
        listed = time.monotonic()
        while not self._closed.is_set():
            started = time.monotonic()
            yield await asyncio.to_thread(self._look)
            took = time.monotonic() - started
            try:
                await asyncio.wait_for(self._closed.wait(), max(LOOK_EVERY, took * SHARE))
            except asyncio.TimeoutError:
                pass
            if time.monotonic() - listed >= LIST_EVERY:
                listed = time.monotonic()
                try:
                    await asyncio.to_thread(self._list)
                except TargetError:
                    pass  # they were there, and may come back

    def _list(self) -> None:
        """Learn of files. One that has a key keeps it; a new one whose key is taken gets the next free rank."""
        for named in found(self._paths):
            if named.path not in self._logs:
                key = named.key
                while key in self._of:
                    key = AttemptKey(key.rank + 1)
                known = self._logs[named.path] = ForeignLog(Named(named.path, named.name, key), self._may_claim)
                self._of[key] = known

    def _may_claim(self, known: ForeignLog, keys: Sequence[AttemptKey]) -> bool:
        """Whether these ranks, which a file holds, are no other file's."""
        return all(self._of.get(key, known) is known for key in keys)

    def _look(self) -> list[Change]:
        changes: list[Change] = []
        for known in self._logs.values():
            changes += known.look(time.time())
            for key in known.keys:
                self._of.setdefault(key, known)
        return changes

    # Logs

    def _log(self, key: AttemptKey) -> ForeignLog:
        known = self._of.get(key)
        if known is None:
            raise SourceError(f"there is no log of rank {key.rank}")
        return known

    def log_place(self, key: AttemptKey) -> str:
        """The file that an attempt's log is, or is a part of."""
        return self._log(key).path

    def is_part(self, key: AttemptKey) -> bool:
        """Whether a log is some lines of its file only."""
        return len(self._log(key).keys) > 1

    def groups(self, keys: Sequence[AttemptKey]) -> list[int]:
        """Which of some logs are parts of one file: those with the same number."""
        first: dict[str, int] = {}
        return [first.setdefault(self._log(key).path, number) for number, key in enumerate(keys)]

    async def log_size(self, key: AttemptKey) -> int:
        """Bytes in a log now; 0 when there is none. Raises SourceError."""
        return (await self.log_file(key)).size

    async def log_file(self, key: AttemptKey) -> LogFile:
        """A log as it is now. Raises SourceError."""
        return await asyncio.to_thread(self._log(key).file)

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of a log, 16 MiB at most; fewer at its end. Raises SourceError."""
        path = self._log(key).path
        try:
            real = await asyncio.to_thread(os.path.realpath, path)
            return await asyncio.to_thread(log.read, real, offset, min(length, LOG_CHUNK))
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from None

    async def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        """Ask something of logs. Parts of one file are read as one log, in that file's order. Raises SourceError."""
        groups = self.groups(keys)
        firsts = sorted(set(groups))
        names, wanted = [], []
        for first in firsts:
            known = self._log(keys[first])
            ranks = [key for key, group in zip(keys, groups, strict=True) if group == first]
            names.append(LogName(os.path.realpath(known.path), False, shifts[first], known.only(ranks)))
            wanted.append((known, ranks))
        asked: dict[str, Any] = dict(facts)
        for name in ("cuts", "ends", "at", "froms"):
            if asked.get(name) is not None:
                asked[name] = [asked[name][first] for first in firsts]
        if "log" in asked:
            asked["log"] = firsts.index(groups[int(facts["log"])])
        spread = [firsts.index(group) for group in groups]
        last: dict[int, int] = {}
        async for part, body in answers(self._engine, operation, names, asked):
            told = {
                name: [value[at] for at in spread] if name in ("cuts", "ends", "files", "whole") else value
                for name, value in part.items()
            }
            if operation == "page" and len(firsts) < len(keys):
                entries = [self._owned(entry, firsts, keys, wanted, last) for entry in Page.decode(body)]
                body = Page(entries, [], False, 0).encode()
            elif "log" in told:
                told["log"] = firsts[int(part["log"])]
            yield told, body

    def _owned(
        self, entry: Entry, firsts: Sequence[int], keys: Sequence[AttemptKey],
        wanted: Sequence[tuple[ForeignLog, list[AttemptKey]]], last: dict[int, int],
    ) -> Entry:
        """A line of a file with several ranks as one of its rank's; one that names none is of the rank before it."""
        known, ranks = wanted[entry.log]
        key = known.key_of(entry.data)
        number = keys.index(key) if key in ranks else last.get(entry.log, firsts[entry.log])
        last[entry.log] = number
        return entry._replace(log=number)

    # What only launchers can do

    async def read_metrics(self, _key: AttemptKey, _most: int) -> Sequence[Metrics]:
        """None: only launchers write them."""
        return ()

    async def read_stacks(self, _key: AttemptKey, _most: int) -> Sequence[Dump]:
        """None: only launchers take them."""
        return ()

    async def read_idle(
        self, _keys: Sequence[AttemptKey], _since: Sequence[float], _lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """None: only launchers write of GPUs."""
        return {}

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        """There is nobody to ask. Raises SourceError."""
        raise SourceError(NO_LAUNCHER)

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Nothing has been asked."""
        return False

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """Where its process is, no log tells. Raises SourceError."""
        raise SourceError("no launcher of trainwatch wrote this log, so that nobody knows where its process is")

    async def close(self) -> None:
        """Stop following; `changes` ends."""
        self._closed.set()
