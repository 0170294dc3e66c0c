"""What all hosts of a source share: the user's own ssh configuration, unlocked keys, hosts on the way to others."""
from __future__ import annotations

import asyncio
import functools
import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import asyncssh
from asyncssh.config import SSHClientConfig

from trainwatch.sources import ssh_errors

if TYPE_CHECKING:
    from trainwatch.sources.ssh import SshWay

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
CIPHERS = "^aes128-gcm@openssh.com"
"""Before all others, unless the user has a list: half the work of the usual first one, in our process above all."""


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
    """`config` is a file to use instead of ~/.ssh/config and the system's; `handshakes` run at once."""

    def __init__(self, config: str | None = None, handshakes: int = HANDSHAKES) -> None:
        self.config = config
        self.unlocked: dict[str, asyncssh.SSHKey] = {}
        """By their files. Unlocked once for all hosts: each time costs a good part of a second, on purpose."""
        self._handshakes = handshakes
        self._gate: asyncio.Semaphore | None = None
        self._known_hosts: dict[tuple[tuple[str, int], ...], asyncssh.SSHKnownHosts] = {}
        self._jumps: dict[tuple[Address, ...], SshWay] = {}
        # our own keys are as valid as when they were made; the check costs up to 0.1 s for each host
        asyncssh.set_default_skip_rsa_key_validation(True)

    @property
    def gate(self) -> asyncio.Semaphore:
        """What every handshake passes through."""
        if self._gate is None:
            self._gate = asyncio.Semaphore(self._handshakes)
        return self._gate

    def of(self, address: Address) -> HostSettings:
        """What the configuration says of one host now. Raises OSError and ValueError for files that it cannot use."""
        user, port = address.user or (), address.port or ()
        words = (_user(), user, address.host, port)
        config = SSHClientConfig.load(None, self.configs(), False, False, False, *words)
        return HostSettings(self, address, cast(SSHClientConfig, config))

    def configs(self) -> list[str]:
        """The configuration files that are there; what the first says holds."""
        if self.config is not None:
            return [self.config]
        places = (Path("~/.ssh/config").expanduser(), Path("/etc/ssh/ssh_config"))
        return [str(place) for place in places if os.access(place, os.R_OK)]

    def known(self, files: tuple[str, ...]) -> asyncssh.SSHKnownHosts:
        """What these files say; read once for all hosts, and again when one of them changed."""
        stamps = tuple((file, Path(file).stat().st_mtime_ns) for file in files)
        if stamps not in self._known_hosts:
            empty = asyncssh.import_known_hosts("")
            self._known_hosts = {stamps: asyncssh.read_known_hosts(list(files)) if files else empty}
        return self._known_hosts[stamps]

    def jump(self, hops: tuple[Address, ...], make: Callable[[Address, tuple[Address, ...]], SshWay]) -> SshWay:
        """The way to the last of some hosts that lie one behind the other: one for all that go through it.

        `make` makes it: the way to a host through others.
        """
        if hops not in self._jumps:
            self._jumps[hops] = make(hops[-1], hops[:-1])
        return self._jumps[hops]


class HostSettings:
    """What the configuration says of one host."""

    def __init__(self, shared: SshSettings, address: Address, config: SSHClientConfig) -> None:
        self._shared, self._address, self._config = shared, address, config

    def options(self, witness: ssh_errors.Witness) -> dict[str, Any]:
        """As the user's own ssh would have them: what is not said here asyncssh reads for itself.

        Raises OSError, ValueError and asyncssh.Error for files that it cannot use.
        """
        options: dict[str, Any] = {
            "config": self._shared.configs(), "known_hosts": self._shared.known(tuple(self.known_hosts)),
            "connect_timeout": CONNECT, "login_timeout": LOGIN,
            "keepalive_interval": KEEPALIVE[0], "keepalive_count_max": KEEPALIVE[1],
            "passphrase": lambda file: self._locked(file, witness),
        }  # fmt: skip
        if self._address.user is not None:
            options["username"] = self._address.user
        if self._address.port is not None:
            options["port"] = self._address.port
        if self._config.get("Ciphers") is None:
            options["encryption_algs"] = CIPHERS
        unlocked = self._shared.unlocked
        if unlocked:
            options["client_keys"] = [unlocked.get(file, file) for file in self._identities()]
            options["ignore_encrypted"] = True
        return options

    @functools.cached_property
    def known_hosts(self) -> list[str]:
        """The known-hosts files that the configuration names, and that are there.

        asyncssh by itself would not look into the system's, and with `UserKnownHostsFile none` it would trust any key.
        """
        get = self._config.get
        named = [get("UserKnownHostsFile", USER_KNOWN), get("GlobalKnownHostsFile", GLOBAL_KNOWN)]
        files = [Path(file).expanduser() for some in named if isinstance(some, list) for file in some]
        return [str(file) for file in files if os.access(file, os.R_OK) and file.is_file()]

    @property
    def has_jump(self) -> bool:
        """Whether the configuration names hosts on the way, whichever."""
        return isinstance(self._config.get("ProxyJump"), str)

    @property
    def hops(self) -> tuple[Address, ...]:
        """The hosts on the way, from ours on. Raises ValueError for a ProxyJump that is not understood."""
        written = self._config.get("ProxyJump")
        hops = tuple(_hop(word) for word in written.split(",")) if isinstance(written, str) else ()
        # `Host *` with a ProxyJump means the jump host too, which nobody can reach through itself
        return () if any(hop.host == self._address.host for hop in hops) else hops

    def _identities(self) -> list[str]:
        """The files of the keys that the host may be offered, and that are there."""
        named = self._config.get("IdentityFile", DEFAULT_KEYS)
        files = named if isinstance(named, list) else []
        return [file for file in files if os.access(Path(file).expanduser(), os.R_OK)]

    def _locked(self, file: str, witness: ssh_errors.Witness) -> str:
        """Called for a key that the host would accept, and that we cannot use yet."""
        witness.secret = file
        raise asyncssh.KeyEncryptionError("no passphrase")


def _hop(word: str) -> Address:
    """A host on the way, as ProxyJump has it: [user@]host[:port], the host in brackets when it has colons itself."""
    user, _, place = word.strip().removeprefix("ssh://").rpartition("@")
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, ""
    host = host.removeprefix("[").removesuffix("]")
    if not host or (port and not port.isdecimal()):
        raise ValueError(f"ProxyJump {word} is not understood")
    return Address(host, user or None, int(port) if port else None)


@functools.cache
def _user() -> str:
    """Our own name, as the configuration's tokens want it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
