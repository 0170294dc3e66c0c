"""Speaks with one agent over one channel: requests and answers, the stream of changes, whether it is still there."""
from __future__ import annotations

import asyncio
import contextlib
import json
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from trainwatch.sources import boot
from trainwatch.sources.channel import Channel, Ended, WayError, last_line
from trainwatch_launcher.agent import clocks, frames, wire
from trainwatch_launcher.agent.resume import Have
from trainwatch_launcher.reader.changes import Change

HELLO = 30.0
"""Seconds from the command's start to the agent's greeting; a login shell and a network file system may be slow."""
ANSWER = 20.0
"""Seconds to an answer that a file has to give."""
MAX_CHANGES = 64 << 20
"""One frame of changes is never unpacked to more bytes than this."""


class LostError(Exception):
    """The agent is gone, or was never there; the message is one line for a person.

    With `final` trying again makes no sense before a person has done something.
    """

    def __init__(self, message: str, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class RefusedError(Exception):
    """The agent says that something cannot be done. `facts` came with that."""

    def __init__(self, message: str, facts: dict[str, Any]) -> None:
        super().__init__(message)
        self.facts = facts


class AgentClient:
    """One agent. Made by `start`; after LostError it is of no use any more."""

    def __init__(self, channel: Channel) -> None:
        self.hello: dict[str, Any] = {}
        """What the agent said of itself."""
        self.ahead: tuple[float, float] | None = None
        """Bounds of how far the host's clock is ahead of ours, as its greeting told."""
        self.heard = time.monotonic()
        """When anything came last, on the monotonic clock."""
        self._asked = 0.0
        self._channel = channel
        self._decoder = frames.Decoder(preamble=True)
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, _Waiting] = {}
        self._last = 0
        self._lost: LostError | None = None
        self._changes: asyncio.Queue[tuple[list[Change], bool] | None] = asyncio.Queue()
        self._unpack = zlib.decompressobj()
        self._told = wire.Told()
        self._reading = asyncio.create_task(self._read())
        self._sending: asyncio.Task[None] | None = None
        """The code that it asked for, on its way."""

    @classmethod
    async def start(cls, channel: Channel, program: bytes, within: float = HELLO) -> AgentClient:
        """Send the agent to the command that waits for it, and wait for its greeting. Raises LostError."""
        client = cls(channel)
        client._asked = time.time()
        try:
            async with _within(within):
                # both at once: a host that never starts it would leave us writing for ever
                sending = asyncio.create_task(channel.write(program))
                try:
                    await client._greeted
                    await sending
                finally:
                    sending.cancel()
                    with contextlib.suppress(WayError, asyncio.CancelledError):
                        await sending
        except asyncio.TimeoutError:
            await client.close()
            raise LostError(f"it was reached, but its agent has not started within {within:.0f} s") from None
        except BaseException:
            await client.close()
            raise
        return client

    async def call(self, operation: str, within: float | None = ANSWER, **facts: Any) -> dict[str, Any]:
        """Ask for something and return the answer's facts. Raises RefusedError, LostError and asyncio.TimeoutError."""
        return (await self._ask(operation, within, facts)).facts

    async def fetch(self, operation: str, within: float | None = ANSWER, **facts: Any) -> bytes:
        """Ask for bytes; `within` is the longest time between two parts. Raises as `call` does."""
        return b"".join((await self._ask(operation, within, facts)).parts)

    async def stream(self, operation: str, **facts: Any) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        """Ask for something that comes in parts, as they come; who leaves before the end cancels it.

        Raises RefusedError and LostError.
        """
        identity, waiting = self._register()
        parts: asyncio.Queue[tuple[dict[str, Any], bytes] | None] = asyncio.Queue()
        waiting.told = parts
        waiting.future.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            await self._send({"op": operation, "id": identity, **facts})
            while (part := await parts.get()) is not None:
                yield part
            answer = await waiting.future
            if isinstance(answer.get("error"), str):
                raise RefusedError(answer["error"], answer)
        finally:
            self._waiting.pop(identity, None)
            if not waiting.future.done() and self._lost is None:
                with contextlib.suppress(LostError):
                    await self._send({"op": "cancel", "id": identity})

    async def clock(self) -> tuple[tuple[float, float], float, dict[str, Any]]:
        """The host's clock: (bounds of how far it is ahead of ours, seconds of the round trip, the other facts)."""
        asked, started = time.time(), time.monotonic()
        facts = await self.call("clock", None)
        return clocks.of_host(asked, float(facts["time"]), time.time()), time.monotonic() - started, facts

    async def follow(self, directory: str, shared: bool, have: Have) -> AsyncIterator[tuple[list[Change], bool]]:
        """Changes of a run, all but what we have; with each batch whether all that there is has been told.

        Raises LostError and RefusedError.
        """
        body = zlib.compress(json.dumps(have.to_json()).encode("ascii"))
        identity, waiting = self._register()
        await self._send({"op": "follow", "id": identity, "directory": directory, "shared": shared}, body)
        waiting.future.add_done_callback(lambda _: self._changes.put_nowait(None))
        while (batch := await self._changes.get()) is not None:
            have.note(batch[0])
            yield batch
        await waiting.future

    async def acknowledge(self) -> None:
        """A batch of changes has been taken: another may come."""
        if self._lost is None:
            await self._send({"op": "ack"})

    def give_up(self, error: LostError) -> LostError:
        """It is lost: whoever waits for an answer gets this error. Returns the first one that was given."""
        if self._lost is None:
            self._lost = error
            futures: list[asyncio.Future[Any]] = [waiting.future for waiting in self._waiting.values()]
            for future in (self._greeted, *futures):
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # nobody may be waiting, which is no fault
        return self._lost

    async def close(self) -> None:
        """End the agent."""
        self.give_up(LostError("closed"))
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        await self._channel.close()

    async def _ask(self, operation: str, within: float | None, facts: dict[str, Any]) -> _Waiting:
        identity, waiting = self._register()
        try:
            await self._send({"op": operation, "id": identity, **facts})
            while not waiting.future.done():
                parts = len(waiting.parts)
                done, _ = await asyncio.wait([waiting.future], timeout=within)
                if not done and len(waiting.parts) == parts:
                    raise asyncio.TimeoutError
            waiting.facts = await waiting.future
        except (asyncio.CancelledError, asyncio.TimeoutError):
            if self._lost is None:
                with contextlib.suppress(LostError):
                    await self._send({"op": "cancel", "id": identity})
            raise
        finally:
            self._waiting.pop(identity, None)
        if isinstance(waiting.facts.get("error"), str):
            raise RefusedError(waiting.facts["error"], waiting.facts)
        return waiting

    def _register(self) -> tuple[int, _Waiting]:
        if self._lost is not None:
            raise self._lost
        self._last += 1
        waiting = self._waiting[self._last] = _Waiting()
        return self._last, waiting

    async def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        if self._lost is not None:
            raise self._lost
        try:
            await self._channel.write(frames.encode(header, body))
        except WayError as error:
            raise self.give_up(LostError(str(error))) from None

    async def _send_rest(self, compiled: bool) -> None:
        with contextlib.suppress(LostError):
            await self._send({"op": "code"}, await asyncio.to_thread(boot.rest, compiled))

    async def _read(self) -> None:
        try:
            while data := await self._channel.read():
                self.heard = time.monotonic()
                for header, body in self._decoder.feed(data):
                    self._take(header, body)
            self.give_up(self._why(await self._channel.ended()))
        except (WayError, frames.FrameError) as error:
            self.give_up(LostError(str(error)))
        except (ValueError, TypeError, KeyError, zlib.error) as error:
            self.give_up(LostError(f"its agent's output is damaged ({error})"))

    def _take(self, header: dict[str, Any], body: bytes) -> None:
        if "hello" in header:
            self.hello = header
            if isinstance(told := header.get("time"), float):
                self.ahead = clocks.of_host(self._asked, told, time.time())
            if not self._greeted.done():
                self._greeted.set_result(None)
            return
        if header.get("need") == "code":
            self._sending = asyncio.create_task(self._send_rest(header.get("compiled") is True))
            return
        waiting = self._waiting.get(header.get("id", 0))
        if "complete" in header:
            self._changes.put_nowait((self._unpacked(body), header["complete"] is True))
        elif waiting is None or waiting.future.done():
            pass  # cancelled meanwhile
        elif header.get("part"):
            waiting.take(header, body)
        else:
            waiting.future.set_result(header)

    def _unpacked(self, body: bytes) -> list[Change]:
        text = self._unpack.decompress(body, MAX_CHANGES)
        if self._unpack.unconsumed_tail:
            raise ValueError("too many changes at once")
        changes = (wire.decode_change(value, self._told) for value in json.loads(text))
        return [change for change in changes if change is not None]

    def _why(self, ended: Ended) -> LostError:
        """Why the channel ended, as well as can be told."""
        said = ended.stderr or ("" if self._decoder.started else last_line(self._decoder.unread))
        if self._decoder.started:
            return LostError("the connection was closed" + (f": {said}" if said else ""))
        if ended.code == boot.TOO_OLD:
            return LostError("it has no Python 3.8 or newer; name one with --python", final=True)
        code = f" (exit code {ended.code})" if ended.code else ""
        return LostError(f"the agent did not start there{code}" + (f": {said}" if said else ""))


class _Waiting:
    """A request whose answer has not come."""

    def __init__(self) -> None:
        self.future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.parts: list[bytes] = []
        self.facts: dict[str, Any] = {}
        self.told: asyncio.Queue[tuple[dict[str, Any], bytes] | None] | None = None
        """Where parts go one by one, when they are not collected."""

    def take(self, facts: dict[str, Any], body: bytes) -> None:
        """A part has come."""
        if self.told is not None:
            self.told.put_nowait((facts, body))
        else:
            self.parts.append(body)


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """As asyncio.timeout, which Python 3.10 has not: asyncio.TimeoutError when the block takes longer."""
    task = asyncio.current_task()
    assert task is not None
    late = False

    def cancel() -> None:
        nonlocal late
        late = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, cancel)
    try:
        yield
    except asyncio.CancelledError:
        if late:
            raise asyncio.TimeoutError from None
        raise
    finally:
        timer.cancel()
