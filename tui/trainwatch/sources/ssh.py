"""Ways over SSH: one connection for each host, made as the user's own ssh would make it, a few at a time."""
from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncssh
from asyncssh.config import SSHClientConfig

from trainwatch.sources import ssh_errors
from trainwatch.sources.channel import CHUNK, STDERR, Channel, Ended, WayError, last_line

HANDSHAKES = 16
"""So many hosts at once are connected to; more would time out at each other's expense."""
CONNECT = 20.0
"""Seconds to a connection, the way through other hosts included."""
LOGIN = 30.0
"""Seconds to a login on it."""
KEEPALIVE = (10.0, 3)
"""Seconds without a word before the host is asked whether it is there, and how often in vain."""
USER_KNOWN = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]
GLOBAL_KNOWN = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
DEFAULT_KEYS = [f"~/.ssh/id_{kind}" for kind in ("ed25519_sk", "ecdsa_sk", "ed448", "ed25519", "ecdsa", "rsa")]
WINDOW = 8 << 20
"""Bytes on their way before the host waits for us: enough for a log at full speed over a long line."""


@dataclass(frozen=True)
class Address:
    """Where a host is, as the user wrote it; what is not written the configuration says."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self.host}{port}"


class SshSettings:
    """What all hosts of one source share: the configuration, keys that were unlocked, how many handshakes run at once.

    `config` is a file to use instead of ~/.ssh/config and the system's.
    """

    def __init__(self, config: str | None = None, handshakes: int = HANDSHAKES) -> None:
        self.config = config
        self.unlocked: dict[str, asyncssh.SSHKey] = {}
        """By their files. Unlocked once for all hosts: each time costs a good part of a second, on purpose."""
        self._handshakes = handshakes
        self._gate: asyncio.Semaphore | None = None
        self._known_hosts: dict[tuple[tuple[str, int], ...], asyncssh.SSHKnownHosts] = {}
        # our own keys are as valid as when they were made; the check costs up to 0.1 s for each host
        asyncssh.set_default_skip_rsa_key_validation(True)

    @property
    def gate(self) -> asyncio.Semaphore:
        """What every handshake passes through."""
        if self._gate is None:
            self._gate = asyncio.Semaphore(self._handshakes)
        return self._gate

    def options(self, address: Address, witness: ssh_errors.Witness) -> dict[str, Any]:
        """For one host, as the user's own ssh would have them: what is not said here asyncssh reads for itself.

        Raises OSError, ValueError and asyncssh.Error for files that it cannot use.
        """
        options: dict[str, Any] = {
            "config": self._configs(), "known_hosts": self._known(tuple(self.known_hosts(address))),
            "connect_timeout": CONNECT, "login_timeout": LOGIN,
            "keepalive_interval": KEEPALIVE[0], "keepalive_count_max": KEEPALIVE[1],
            "passphrase": lambda file: self._locked(file, witness),
        }  # fmt: skip
        if address.user is not None:
            options["username"] = address.user
        if address.port is not None:
            options["port"] = address.port
        if self.unlocked:
            options["client_keys"] = [self.unlocked.get(file, file) for file in self._identities(address)]
            options["ignore_encrypted"] = True
        return options

    def known_hosts(self, address: Address) -> list[str]:
        """The known-hosts files that the configuration names for a host, and that are there.

        asyncssh by itself would not look into the system's, and with `UserKnownHostsFile none` it would trust any key.
        """
        config = self._config(address)
        named = [config.get("UserKnownHostsFile", USER_KNOWN), config.get("GlobalKnownHostsFile", GLOBAL_KNOWN)]
        files = [Path(file).expanduser() for some in named if isinstance(some, list) for file in some]
        return [str(file) for file in files if os.access(file, os.R_OK) and file.is_file()]

    def _known(self, files: tuple[str, ...]) -> asyncssh.SSHKnownHosts:
        """What these files say; read once for all hosts, and again when one of them changed."""
        stamps = tuple((file, Path(file).stat().st_mtime_ns) for file in files)
        if stamps not in self._known_hosts:
            empty = asyncssh.import_known_hosts("")
            self._known_hosts = {stamps: asyncssh.read_known_hosts(list(files)) if files else empty}
        return self._known_hosts[stamps]

    def _configs(self) -> list[str]:
        """The configuration files that are there; what the first says holds."""
        if self.config is not None:
            return [self.config]
        places = (Path("~/.ssh/config").expanduser(), Path("/etc/ssh/ssh_config"))
        return [str(place) for place in places if os.access(place, os.R_OK)]

    def _config(self, address: Address) -> SSHClientConfig:
        user, port = address.user or (), address.port or ()
        words = (_user(), user, address.host, port)
        return cast(SSHClientConfig, SSHClientConfig.load(None, self._configs(), False, False, False, *words))

    def _identities(self, address: Address) -> list[str]:
        """The files of the keys that a host may be offered, and that are there."""
        named = self._config(address).get("IdentityFile", DEFAULT_KEYS)
        files = named if isinstance(named, list) else []
        return [file for file in files if os.access(Path(file).expanduser(), os.R_OK)]

    def _locked(self, file: str, witness: ssh_errors.Witness) -> str:
        """Called for a key that the host would accept, and that we cannot use yet."""
        witness.secret = file
        raise asyncssh.KeyEncryptionError("no passphrase")


class SshWay:
    """One host. Its connection is made when first needed, again after it broke, and carries everything."""

    def __init__(self, address: Address, settings: SshSettings, name: str = "") -> None:
        self.name = name or address.host
        self.address = address
        self._settings = settings
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
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(connection.wait_closed(), 1.0)

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> asyncssh.SSHClientConnection:
        witness = ssh_errors.Witness()
        files: list[str] = []
        try:
            async with self._settings.gate:
                files = self._settings.known_hosts(self.address)
                return await asyncio.wait_for(self._handshake(witness), CONNECT + LOGIN)
        except (OSError, asyncssh.Error, asyncio.TimeoutError, ValueError) as error:
            raise ssh_errors.explained(error, self.address.host, self.options(), files, witness) from None

    async def _handshake(self, witness: ssh_errors.Witness) -> asyncssh.SSHClientConnection:
        options = self._settings.options(self.address, witness)
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



def _user() -> str:
    """Our own name, as the configuration's tokens want it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
