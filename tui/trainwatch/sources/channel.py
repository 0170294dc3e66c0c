"""A command's stdin and stdout, wherever it runs: what an agent is spoken to through, and the ways that lead to one."""
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

CHUNK = 256 << 10
STDERR = 4096
"""So many of the last bytes of a command's stderr are kept, to say why it ended."""
GRACE = 1.0
"""Seconds that a command has to end by itself after its stdin was closed."""


class WayError(Exception):
    """A host cannot be reached, or a command not started there; the message is one line for a person.

    With `final` trying again makes no sense before a person has done something.
    """

    def __init__(self, message: str, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None
    """Its exit code, negative for a signal; None when nobody knows."""
    stderr: str
    """The last that it said."""


class Channel(Protocol):
    """A duplex stream of bytes to a command that runs somewhere."""

    async def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end. Raises WayError when the way there breaks."""
        ...

    async def write(self, data: bytes) -> None:
        """Write all of it, as fast as it is taken. Raises WayError."""
        ...

    async def ended(self) -> Ended:
        """How the command ended; to be called at the end of its output."""
        ...

    async def close(self) -> None:
        """End the command, and wait for it no longer than a moment."""
        ...


class Way(Protocol):
    """A way to one host, container or node: how to run commands there."""

    name: str
    """What the user calls the place."""

    async def open(self, argv: Sequence[str]) -> Channel:
        """Run a command there with its stdin and stdout in our hands. Raises WayError."""
        ...

    def terminal(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command for this machine that runs another one there, in the terminal that it is started from."""
        ...

    async def close(self) -> None:
        """Leave nothing open."""
        ...


class ExecChannel:
    """A command of this machine. It has a session of its own: a ctrl+c at our terminal is not its business."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._errors = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, argv: Sequence[str], env: dict[str, str] | None = None) -> ExecChannel:
        """Start a command. Raises WayError."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True, limit=CHUNK
            )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            why = "it is not installed here" if missing else error.strerror or str(error)
            raise WayError(f"cannot run {argv[0]}: {why}", final=missing) from None
        return cls(process)

    async def read(self) -> bytes:
        """Some bytes, as soon as there are any; none at the end."""
        return await self._stdout.read(CHUNK)

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises WayError."""
        try:
            self._stdin.write(data)
            await self._stdin.drain()
        except OSError as error:
            raise WayError(f"the connection broke: {error.strerror or error}") from None

    async def ended(self) -> Ended:
        """How the command ended; one that only closed its output is ended."""
        await self.close()
        return Ended(self._process.returncode, last_line(bytes(self._errors)))

    async def close(self) -> None:
        """Close its stdin, and end it when that does not."""
        self._stdin.close()
        if not await self._gone():
            self._signal(signal.SIGTERM)
            await self._gone()
            # to all of its group: the shell may have ended, and an agent that was stopped takes no other signal
            self._signal(signal.SIGKILL)
            await self._gone()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), GRACE)
        self._listening.cancel()
        # a pipe with something unread stays open, and a process has no public way to close it
        transport: asyncio.SubprocessTransport = self._process._transport  # type: ignore[attr-defined]
        transport.close()

    async def _gone(self) -> bool:
        """Whether it has ended within a moment; one that hangs in a dead mount cannot even be killed."""
        try:
            await asyncio.wait_for(self._process.wait(), GRACE)
        except asyncio.TimeoutError:
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(STDERR):
            self._errors += data
            del self._errors[:-STDERR]


class ExecWay:
    """A command that runs others: `docker exec -i NAME`, or nothing at all for this machine."""

    def __init__(self, name: str, piped: Sequence[str] = (), terminal: Sequence[str] = ()) -> None:
        self.name = name
        self._piped, self._terminal = tuple(piped), tuple(terminal)

    async def open(self, argv: Sequence[str]) -> Channel:
        """Run a command there. Raises WayError."""
        return await ExecChannel.start([*self._piped, *argv], dict(os.environ))

    def terminal(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command that runs another one there in our terminal."""
        return (*self._terminal, *argv)

    async def close(self) -> None:
        """Nothing is open."""


def last_line(data: bytes) -> str:
    """The last line with something in it, as text."""
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
