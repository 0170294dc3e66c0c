"""A run that an agent reads on another host, or behind any command; connected again and again until it is closed."""
from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from trainwatch.link import CONNECTED, LAGGING, LOST, RECONNECTING, UP, Link
from trainwatch.sources import boot
from trainwatch.sources.agent_client import AgentClient, LostError, RefusedError
from trainwatch.sources.base import LogFile, Part, ShellPlan, SourceError
from trainwatch.sources.channel import Way, WayError
from trainwatch_launcher.agent import clocks, wire
from trainwatch_launcher.agent.resume import Have
from trainwatch_launcher.reader import metrics, spans, stacks
from trainwatch_launcher.reader.changes import AttemptKey, Change
from trainwatch_launcher.reader.requests import whoami
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump, Frame

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span

T = TypeVar("T")
Facts = dict[str, Any]

BEAT = 5.0
"""Seconds between two questions whether it is still there; they carry the clocks too."""
FIRST_BEATS = (2.0,)
"""The first comes sooner: the quickest answer tells most of a clock, and a greeting comes slowly."""
SLOW = 4.0
"""After so many seconds without an answer it lags."""
DEAD = 20.0
"""After so many seconds without a byte it is lost."""
LATE = 3.0
"""Its file system lags when it has not answered for so many seconds more than usual."""
PATIENCE = 3.0
"""Seconds that a reading waits for a link that is being made again."""
BACK_OFF = (0.5, 30.0)
"""Seconds before the first new try, doubled for each further one, and the longest."""
LOG_CHUNK = 16 << 20
"""More bytes than this are never read at once."""


class AgentSource:
    """One host's run. `path` is the run directory there, a root for its newest run, or empty for what launchers there
    announce, those whose environment has all of `environ`.

    `python` names the interpreter to use there. `changes` may be iterated once.
    """

    def __init__(
        self, way: Way, path: str = "", *, name: str = "", environ: Mapping[str, str] | None = None, python: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name or way.name
        self.link = Link(way.name, since=clock())
        self.disk = ""
        """Names the directory among those of all hosts: the same where several see the same one. Empty at first."""
        self.gate: Callable[[AgentSource], bool] | None = None
        """Asked, once the directory is known, whether to read it. If not, the link is a spare until `called` is set."""
        self.called = asyncio.Event()
        self.reading = False
        """Whether it reads the directory, or is about to."""
        self.have = Have()
        """What has come. Sources of the same directory may share it: one of them reads."""
        self.patient = False
        """Whether a run that is not there (yet) is waited for."""
        self._way, self._path, self._environ, self._python = way, path, dict(environ or {}), python
        self._clock = clock
        self._client: AgentClient | None = None
        self._batches: asyncio.Queue[tuple[list[Change], AgentClient | None]] = asyncio.Queue()
        self._moved = asyncio.Event()
        self._bounds = clocks.Bounds()
        self._task: asyncio.Task[None] | None = None
        self._fatal: SourceError | None = None
        self._frames: dict[str, Frame] = {}
        self._closed = False
        self._told = False

    @property
    def links(self) -> tuple[Link, ...]:
        """The one link."""
        return (self.link,)

    @property
    def pending(self) -> bool:
        """Whether something has come that `changes` has not given yet."""
        return not self._batches.empty()

    def ahead(self, _key: AttemptKey) -> float:
        """Seconds that the file server's clock there is ahead of ours."""
        return self.link.server_ahead

    async def changes(self) -> AsyncIterator[Sequence[Change]]:
        """Batches of changes, until the source is closed. Raises SourceError when it could never be read."""
        self._task = asyncio.create_task(self._run())
        while not self._closed:
            batch, client = await self._batches.get()
            if self._fatal is not None and not self._told:
                raise self._fatal
            if self._closed:
                return
            self._told = self._told or client is not None
            yield batch
            if client is not None:
                with contextlib.suppress(LostError):
                    await client.acknowledge()

    async def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now; 0 when there is none. Raises SourceError."""
        return (await self.log_file(key)).size

    async def log_file(self, key: AttemptKey) -> LogFile:
        """An attempt's output.log as it is now. Raises SourceError."""
        facts = await self._ask(lambda client: client.call("log_size", key=wire.encode_key(key)), again=True)
        return LogFile(int(facts["size"]), int(facts["file"]))

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log, 16 MiB at most; fewer at its end. Raises SourceError."""
        facts: Facts = {"key": wire.encode_key(key), "offset": offset, "length": min(length, LOG_CHUNK)}
        return await self._ask(lambda client: client.fetch("read_log", **facts), again=True)

    async def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        facts: Facts = {"key": wire.encode_key(key), "most": min(most, metrics.MOST)}
        packed = await self._ask(lambda client: client.fetch("read_metrics", **facts), again=True)
        return await asyncio.to_thread(_history, packed)

    async def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first. Raises SourceError."""
        facts: Facts = {"key": wire.encode_key(key), "most": most}
        packed = await self._ask(lambda client: client.fetch("read_stacks", **facts), again=True)
        try:
            return await asyncio.to_thread(lambda: stacks.dumps(stacks.unpacked(packed), self._frames))
        except ValueError as error:
            raise SourceError(f"the stacks came damaged: {error}") from None

    async def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work; see `Source`. Raises SourceError."""
        facts: Facts = {"keys": [wire.encode_key(key) for key in keys], "since": list(since), "lines": lines}
        told = await self._ask(lambda client: client.fetch("read_idle", **facts), again=True)
        return dict(zip(keys, map(spans.decode, told.splitlines()), strict=False))

    async def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        """Ask something of logs where they lie. Not asked again when the link breaks meanwhile. Raises SourceError."""
        client = await self._connected()
        wanted: Facts = {**facts, "ask": operation, "keys": [wire.encode_key(key) for key in keys]}
        try:
            async with contextlib.aclosing(client.stream("logs", shifts=list(shifts), **wanted)) as parts:
                async for part in parts:
                    yield part
        except RefusedError as refused:
            raise _refusal(refused) from None
        except LostError as lost:
            raise SourceError(f"{self.link.name}: {lost}") from None

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        """Ask an attempt's launcher for something; returns the request's id. Raises SourceError.

        Never tried a second time: the launcher might do it twice.
        """
        facts: Facts = {"key": wire.encode_key(key), "command": command, "seconds": seconds, "signal": signal}
        facts["by"] = whoami()
        answer = await self._ask(lambda client: client.call("request", **facts), again=False)
        return str(answer["request"])

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        facts: Facts = {"key": wire.encode_key(key), "request": request}
        answer = await self._ask(lambda client: client.call("withdraw", **facts), again=True)
        return answer["withdrawn"] is True

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """A shell, or `command`, in an attempt's working directory and environment. Raises SourceError."""
        return await self.shell_in("", key, command, label)

    async def shell_in(
        self, directory: str, key: AttemptKey, command: Sequence[str] = (), label: str = ""
    ) -> ShellPlan:
        """The same for an attempt in a directory that this host sees and does not follow. Raises SourceError."""
        facts: Facts = {"key": wire.encode_key(key), "argv": list(command), "directory": directory, "label": label}
        facts["shell"] = os.environ.get("SHELL", "")
        found = await self._ask(lambda client: client.call("shell", **facts), again=True)
        argv = self._way.terminal([*found["way"], *boot.enter(str(found["python"]), found["enter"])])
        return ShellPlan(argv, note=f"{found['note']} · on {self.link.name}")

    async def close(self) -> None:
        """Stop following; `changes` ends, and nothing is left running there."""
        self._closed = True
        self._batches.put_nowait(([], None))
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._way.close()

    # The link

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                await self._live_once()
                error: LostError | WayError = LostError("the connection was closed")
            except (LostError, WayError) as lost:
                error = lost
            except RefusedError as refused:
                error = LostError(str(refused), final=not self._told and not self.patient)
            failures = 1 if self.link.up else failures + 1
            delay = _delay(failures)
            retry_at = None if error.final else self._clock() + delay
            since = self._clock() if self.link.state not in (LOST, RECONNECTING) else self.link.since
            self._become(LOST, str(error), since=since, retry_at=retry_at, failures=failures)
            if error.final:
                self._fatal = SourceError(f"{self.link.name}: {error}")
                return
            # whatever was on the way may be dead without knowing it yet: nothing of it is used again
            await asyncio.gather(self._way.close(), asyncio.sleep(delay))
            self._become(RECONNECTING, str(error), since=since)

    async def _live_once(self) -> None:
        """Connect, and pass changes on until the link breaks. Raises LostError, WayError and RefusedError."""
        channel = await self._way.open(boot.command(self._python))
        client = await AgentClient.start(channel, await boot.prepared())
        beats = asyncio.create_task(self._beat(client))
        try:
            self._set(host=str(client.hello.get("host", "")), heard=self._clock())
            if client.ahead is not None:
                self._learn(client.ahead, 0.0)
            await self._follow(client, beats)
        finally:
            self._client, self.reading = None, False
            self.called.clear()
            beats.cancel()
            with contextlib.suppress(asyncio.CancelledError, LostError, RefusedError):
                await beats
            await client.close()

    async def _follow(self, client: AgentClient, beats: asyncio.Task[None]) -> None:
        path = self.link.directory or self._path
        # no limit in time: a mount that hangs may come back, and the beats tell whether the agent is still there
        found = await client.call("find", None, path=path, environ=self._environ)
        self._set(directory=str(found["directory"]))
        disk = str(found["identity"]) or self.disk or f"{self.link.name}:{self.link.directory}"
        if self.disk and disk != self.disk and self.gate is not None:
            self.have = Have()  # a container that was made anew, say: what came was of another directory
        self.disk = disk if self.gate is not None else self.disk or disk
        if self.gate is not None and not self.gate(self):
            await self._stand_by(client, beats)
        self.reading = True
        self.called.clear()
        self._set(spare=False)
        async for batch, complete in client.follow(self.link.directory, bool(found["shared"]), self.have):
            self._batches.put_nowait((batch, client))
            if complete and self._client is None:
                self._client = client
                self._become(CONNECTED)

    async def _stand_by(self, client: AgentClient, beats: asyncio.Task[None]) -> None:
        """Be there and read nothing, until called. Raises LostError."""
        self._client = client
        self.called.clear()
        self._become(CONNECTED, spare=True)
        calling = asyncio.create_task(self.called.wait())
        await asyncio.wait([beats, calling], return_when=asyncio.FIRST_COMPLETED)
        calling.cancel()
        if not self.called.is_set():
            await beats

    async def _beat(self, client: AgentClient) -> None:
        """Ask again and again whether it is there; ends when the client does. Raises LostError."""
        waits = list(FIRST_BEATS)
        while True:
            await asyncio.sleep(waits.pop(0) if waits else BEAT)
            await self._answered(client)

    async def _answered(self, client: AgentClient) -> None:
        """Ask once, and say so while no answer comes. Raises LostError when there will be none."""
        asking = asyncio.create_task(self._measure(client))
        asked = time.monotonic()
        try:
            while not asking.done():
                await asyncio.wait([asking], timeout=1.0)
                silent = time.monotonic() - max(client.heard, asked)
                if not asking.done() and silent > DEAD:
                    client.give_up(LostError(f"no answer for {silent:.0f} s"))
                elif not asking.done() and silent > SLOW:
                    self._lag(f"no answer for {silent:.0f} s")
            await asking
        finally:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError, LostError, RefusedError):
                await asking

    async def _measure(self, client: AgentClient) -> None:
        bounds, took, facts = await client.clock()
        server = facts.get("server")
        self._set(heard=self._clock(), round_trip=took)
        self._learn(bounds, server if isinstance(server, float) else 0.0)
        late = facts.get("late")
        if isinstance(late, (int, float)) and late > LATE:
            self._lag(f"its file system has not answered for {late:.0f} s")
        elif self.link.state == LAGGING:
            self._become(CONNECTED)

    def _learn(self, bounds: tuple[float, float], server: float) -> None:
        """What the host's clock reads, and how many seconds its file server's is ahead of that."""
        self._bounds.note(*bounds)
        ahead = self._bounds.ahead() or 0.0
        news = abs(ahead + server - self.link.server_ahead) >= 0.5
        self._set(clock_ahead=ahead, server_ahead=ahead + server, news=news)

    def _lag(self, why: str) -> None:
        if self.link.state in UP:
            since = self.link.since if self.link.state == LAGGING else self._clock()
            self._become(LAGGING, why, since=since)
        else:
            self._set(reason=why, news=True)

    def _become(self, state: str, reason: str = "", **facts: Any) -> None:
        facts.setdefault("since", self._clock())
        if state in UP:
            facts["failures"] = 0
        self._set(state=state, reason=reason, retry_at=facts.pop("retry_at", None), news=True, **facts)

    def _set(self, news: bool = False, **facts: Any) -> None:
        self.link = replace(self.link, **facts)
        if news:
            self._moved.set()
            self._moved.clear()
            if self._batches.empty():
                self._batches.put_nowait(([], None))

    # Asking

    async def _ask(self, ask: Callable[[AgentClient], Awaitable[T]], again: bool) -> T:
        """Have something answered; with `again` once more when the link breaks meanwhile. Raises SourceError."""
        try:
            client = await self._connected()
            try:
                return await ask(client)
            except LostError:
                if not again:
                    raise SourceError(
                        f"{self.link.name}: the connection was lost; whether it was done is not known"
                    ) from None
                return await ask(await self._connected(other_than=client))
        except RefusedError as refused:
            raise _refusal(refused) from None
        except LostError as lost:
            raise SourceError(f"{self.link.name}: {lost}") from None
        except asyncio.TimeoutError:
            raise SourceError(f"{self.link.name}: the file system there does not answer") from None

    async def _connected(self, other_than: AgentClient | None = None) -> AgentClient:
        deadline = time.monotonic() + PATIENCE
        while self._client is None or self._client is other_than:
            left = deadline - time.monotonic()
            if left <= 0 or self._fatal is not None or self._closed:
                raise SourceError(f"{self.link.name} is not connected: {self.link.reason or self.link.state}")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._moved.wait(), min(left, 0.2))
        return self._client


class ElsewhereError(SourceError):
    """An attempt's process is on another host than the one that was asked."""

    def __init__(self, message: str, host: str) -> None:
        super().__init__(message)
        self.host = host


def _refusal(refused: RefusedError) -> SourceError:
    host = refused.facts.get("host")
    return ElsewhereError(str(refused), host) if isinstance(host, str) and host else SourceError(str(refused))


def _history(packed: bytes) -> list[Metrics]:
    """Lines of history as they came."""
    try:
        return metrics.records(zlib.decompressobj().decompress(packed, metrics.MOST))
    except zlib.error as error:
        raise SourceError(f"the history came damaged: {error}") from None


def _delay(failures: int) -> float:
    """Seconds until the next try, never the same for all hosts of a switch that failed."""
    first, longest = BACK_OFF
    return min(longest, first * 2.0 ** min(failures - 1, 16)) * random.uniform(0.5, 1.0)
