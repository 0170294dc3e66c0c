"""Why a host cannot be reached over SSH, in one line, with the command that helps where there is one."""
from __future__ import annotations

import asyncio
import os
import shlex
import socket
from collections.abc import Sequence

import asyncssh

from trainwatch.sources.channel import WayError

CHANGED = (
    "{host}: ITS HOST KEY HAS CHANGED{key}. Somebody may be listening in, or the host was installed anew. "
    "Not connected. If you know why, forget the old key by: {command}"
)
SSH_PORT = 22
THERE = "on the way there, "
UNKNOWN = "{host}: its host key is not known{key}; compare it and add it by: {command}"


class SecretNeededError(WayError):
    """A key is locked, and nobody has given its passphrase yet."""

    def __init__(self, file: str) -> None:
        super().__init__(f"the passphrase for {file} is needed; your agent gets it by: ssh-add {file}", final=True)
        self.file = file


class Witness:
    """What was seen during one handshake that its error does not tell."""

    def __init__(self) -> None:
        self.key: asyncssh.SSHKey | None = None
        """The host key that was refused."""
        self.place = ""
        """Whose it is, as known-hosts files write it."""
        self.secret: str | None = None
        """The file of the key whose passphrase was needed."""


class Client(asyncssh.SSHClient):
    """Refuses what is not trusted, and remembers it."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Called for keys that no known-hosts file has: none of them is trusted."""
        self._witness.key = key
        self._witness.place = host if port == SSH_PORT else f"[{host}]:{port}"
        return False


def explained(
    error: BaseException, host: str, options: Sequence[str], known_hosts: Sequence[str], witness: Witness
) -> WayError:
    """An error of a handshake as what a person can act on. `options` lead the user's own ssh to the same host."""
    if witness.secret is not None:
        return SecretNeededError(witness.secret)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _host_key(error, host, options, known_hosts, witness)
    if isinstance(error, asyncssh.PermissionDenied):
        command = shlex.join(["ssh", "-v", *options, host])
        return WayError(f"it refuses our login: no key that it accepts, see: {command}", final=True)
    if isinstance(error, asyncssh.ConfigParseError):
        return WayError(f"the ssh configuration is not understood: {_line(error)}", final=True)
    if isinstance(error, asyncssh.KeyImportError):
        return WayError(f"a key of the ssh configuration cannot be used: {_line(error)}", final=True)
    if isinstance(error, OSError) and error.filename is not None:
        return WayError(f"{error.filename}, which the ssh configuration names: {error.strerror}", final=True)
    return WayError(reason(error))


def on_the_way(error: WayError, hop: str) -> WayError:
    """Why a host on the way to others cannot be reached, for those others."""
    if isinstance(error, SecretNeededError):
        return error
    said = str(error)
    if said.startswith(THERE):
        return error
    whose = "" if said.startswith(f"{hop}: ") else f"{hop}: "
    return WayError(THERE + whose + said, error.final)


def reason(error: BaseException) -> str:
    """Any error of a connection in a few words."""
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return f"its name is not known here ({error.strerror})"
    if isinstance(error, asyncssh.ConnectionLost):
        return "the connection was lost"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return _line(error)


def _host_key(
    error: BaseException, host: str, options: Sequence[str], known_hosts: Sequence[str], witness: Witness
) -> WayError:
    key = f" ({witness.key.get_algorithm()} {witness.key.get_fingerprint()})" if witness.key is not None else ""
    file = next((file for file in known_hosts if witness.key is not None and _names(file, witness.place)), None)
    if file is not None:
        command = shlex.join(["ssh-keygen", "-f", file, "-R", witness.place])
        return WayError(CHANGED.format(host=host, key=key, command=command), final=True)
    if "not trusted" in str(error):
        command = shlex.join(["ssh", *options, "-o", "StrictHostKeyChecking=ask", host, "true"])
        return WayError(UNKNOWN.format(host=host, key=key, command=command), final=True)
    return WayError(f"its host key is not accepted: {_line(error)}", final=True)


def _names(file: str, place: str) -> bool:
    """Whether a known-hosts file has a key of this host and port."""
    try:
        return bool(asyncssh.read_known_hosts(file).match(place, "", None)[0])
    except (OSError, ValueError):
        return False


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
