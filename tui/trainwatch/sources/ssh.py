"""Ways over SSH: one connection for each host, made as the user's own ssh would make it, a few at a time."""
from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import sys
from collections.abc import Sequence

import asyncssh

from trainwatch.sources import ssh_errors
from trainwatch.sources.channel import CHUNK, STDERR, Channel, Ended, WayError, last_line
from trainwatch.sources.ssh_settings import CONNECT, LOGIN, Address, HostSettings, SshSettings

WINDOW = 8 << 20
"""Bytes on their way before the host waits for us: enough for a log at full speed over a long line."""


class SshWay:
    """One host. Its connection is made when first needed, again after it broke, and carries everything.

    `through` are hosts on the way to it, one behind the other; without them those that the configuration names.
    """

    def __init__(
        self, address: Address, settings: SshSettings, name: str = "", through: tuple[Address, ...] = ()
    ) -> None:
        self.name = name or address.host
        self.address = address
        self._settings = settings
        self._through = through
        self._before: SshWay | None = None
        self._travellers: set[SshWay] = set()
        """Those whose way leads through this host."""
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()

    async def open(self, argv: Sequence[str]) -> Channel:
        """Run a command there. Raises WayError."""
        connection = await self._connected()
        try:
            process = await connection.create_process(
                shlex.join(argv), encoding=None, window=WINDOW, max_pktsize=1 << 15, stderr=asyncssh.PIPE
            )
        except (OSError, asyncssh.Error) as error:
            await self.close()
            raise WayError(f"it runs no commands for us: {ssh_errors.reason(error)}") from None
        return _SshChannel(process)

    async def connect(self) -> asyncssh.SSHClientConnection:
        """Connect now, so that the first command need not. Raises WayError."""
        return await self._connected()

    def terminal(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The user's own ssh with a terminal, where there is one, else ours."""
        command = shlex.join(argv)
        if shutil.which("ssh") is None:
            ours = (sys.executable, "-m", "trainwatch.sources.ssh_terminal")
            return (*ours, *self.options(), self.address.host, command)
        return ("ssh", "-t", *self.options(), "--", self.address.host, command)

    def options(self) -> list[str]:
        """The words that lead OpenSSH's client to the same host."""
        words: list[str] = []
        if self._settings.config is not None:
            words += ["-F", self._settings.config]
        if self.address.port is not None:
            words += ["-p", str(self.address.port)]
        if self.address.user is not None:
            words += ["-l", self.address.user]
        return words

    async def close(self) -> None:
        """Close the connection, and what leads to it when nobody else goes there."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(connection.wait_closed(), 1.0)
        await self._leave()

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> asyncssh.SSHClientConnection:
        witness = ssh_errors.Witness()
        files: list[str] = []
        try:
            settings = self._settings.of(self.address)
            files = settings.known_hosts
            # not within the gate: all that are in it would wait for one that is not
            tunnel = await self._jump(settings)
            async with self._settings.gate:
                return await asyncio.wait_for(self._handshake(settings, tunnel, witness), CONNECT + LOGIN)
        except (OSError, asyncssh.Error, asyncio.TimeoutError, ValueError) as error:
            raise ssh_errors.explained(error, self.address.host, self.options(), files, witness) from None

    async def _jump(self, settings: HostSettings) -> asyncssh.SSHClientConnection | None:
        """A connection to the host that ours lies behind, shared with all that do. Raises WayError."""
        hops = self._through or settings.hops
        before = self._settings.jump(hops, self._way_to) if hops else None
        if before is not self._before:
            await self._leave()
        if before is None:
            return None
        self._before = before
        before._travellers.add(self)
        if before._leads_through(self):
            raise WayError("its ProxyJump leads back to itself", final=True)
        try:
            return await before.connect()
        except WayError as error:
            raise ssh_errors.on_the_way(error, before.name) from None

    def _way_to(self, last: Address, first: tuple[Address, ...]) -> SshWay:
        return SshWay(last, self._settings, through=first)

    def _leads_through(self, other: SshWay) -> bool:
        way: SshWay | None = self
        while way is not None and way is not other:
            way = way._before
        return way is not None

    async def _leave(self) -> None:
        """Go through no other host any more."""
        before, self._before = self._before, None
        if before is not None:
            before._travellers.discard(self)
            if not before._travellers:
                await before.close()

    async def _handshake(
        self, settings: HostSettings, tunnel: asyncssh.SSHClientConnection | None, witness: ssh_errors.Witness
    ) -> asyncssh.SSHClientConnection:
        options = settings.options(witness)
        if tunnel is not None or settings.has_jump:
            options["tunnel"] = tunnel
        connection, _ = await asyncssh.create_connection(
            lambda: ssh_errors.Client(witness), self.address.host, **options
        )
        return connection


class _SshChannel:
    """A command on a connection."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process
        self._errors = bytearray()
        self._listening = asyncio.create_task(self._listen())

    async def read(self) -> bytes:
        """Some bytes, none at the end. Raises WayError."""
        try:
            return await self._process.stdout.read(CHUNK)
        except (OSError, asyncssh.Error) as error:
            raise WayError(f"the connection broke: {ssh_errors.reason(error)}") from None

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises WayError."""
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except (OSError, asyncssh.Error) as error:
            raise WayError(f"the connection broke: {ssh_errors.reason(error)}") from None

    async def ended(self) -> Ended:
        """How the command ended."""
        with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(asyncio.shield(self._process.wait_closed()), 1.0)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), 1.0)
        return Ended(self._process.exit_status, last_line(bytes(self._errors)))

    async def close(self) -> None:
        """Close the channel: the command's stdin ends with it."""
        self._listening.cancel()
        self._process.close()
        with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(self._process.wait_closed(), 1.0)

    async def _listen(self) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await self._process.stderr.read(STDERR):
                self._errors += data
                del self._errors[:-STDERR]
