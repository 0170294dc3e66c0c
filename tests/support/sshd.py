"""A real sshd that is many hosts: every 127.0.0.x is an address of its own, and each has its own disk at one path."""
from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.waiting import wait_until

needs_sshd = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists(), reason="needs root and openssh-server")

# The command runs where the directory of the address that was called is mounted at `disk`.
FORCED = """\
#!/bin/sh
set -- $SSH_CONNECTION
export HOST_DISK={base}/hosts/$3
exec unshare --mount sh -c 'mount --bind "$HOST_DISK" {base}/disk && exec sh -c "${{SSH_ORIGINAL_COMMAND:-exec sh -i}}"'
"""
CONFIG = """\
ListenAddress 0.0.0.0
Port {port}
HostKey {base}/host_key
PidFile none
AuthorizedKeysFile {base}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 1000
MaxSessions 1000
PrintMotd no
Subsystem sftp internal-sftp
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Sshd:
    """`host(3)` is a host named worker-3, whose disk is `disk(3)` here and `path` there.

    `address` is where it is asked whether it listens; `inside` are words before the command that starts it.
    """

    def __init__(self, address: str = "127.0.0.1", inside: Sequence[str] = ()) -> None:
        self.address, self._inside = address, list(inside)
        self.base = Path(tempfile.mkdtemp(prefix="tw-sshd-"))
        self.port = free_port()
        self.path = self.base / "disk"
        self.path.mkdir()
        (self.base / "home").mkdir()
        self.config = self.base / "ssh_config"
        self.known_hosts = self.base / "known_hosts"
        self.key = self.base / "key"
        self._hosts: dict[int, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host_key", "key"):
            keygen(self.base / name)
        shutil.copy(self.base / "key.pub", self.base / "authorized_keys")
        script = self.base / "forced"
        script.write_text(FORCED.format(base=self.base))
        script.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)

    def start(self, forced: bool = True, command: str = "") -> Sshd:
        """Listen. With `forced` each address has its own disk; else every session runs `command`, when there is one."""
        config = self.base / "sshd_config"
        text = CONFIG.format(base=self.base, port=self.port)
        command = f"{self.base}/forced" if forced else command
        config.write_text(text + (f"Match All\n  ForceCommand {command}\n" if command else ""))
        with (self.base / "sshd.log").open("ab") as log:
            # with a home of its own: what this machine's user does in .bashrc is not what we test
            home = 'mount --bind "$1" "$HOME" && shift && exec "$@"'
            argv = [*self._inside, "unshare", "--mount", "sh", "-c", home, "sh", str(self.base / "home"),
                    "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]  # fmt: skip
            self._process = subprocess.Popen(argv, stderr=log)
        wait_until(self._listens, 15, "sshd")
        self.write_config()
        return self

    def disk(self, number: int) -> Path:
        """The disk of a host, made when it is first asked for."""
        address = f"127.0.2.{number + 1}"
        directory = self.base / "hosts" / address
        directory.mkdir(parents=True, exist_ok=True)
        if number not in self._hosts:
            self._hosts[number] = address
            self.write_config()
        return directory

    def write_config(self, extra: str = "") -> None:
        """The client's configuration; `extra` comes first, so that it holds."""
        common = f"Port {self.port}\n  User root\n  IdentityFile {self.key}\n  UserKnownHostsFile {self.known_hosts}\n"
        hosts = "".join(f"Host worker-{n}\n  HostName {address}\n" for n, address in self._hosts.items())
        self.config.write_text(f"{extra}{hosts}Host *\n  {common}  StrictHostKeyChecking yes\n  IdentityAgent none\n")
        key = (self.base / "host_key.pub").read_text()
        lines = [f"[{address}]:{self.port} {key}" for address in {*self._hosts.values(), "127.0.0.1", self.address}]
        self.known_hosts.write_text("".join(lines))

    def sessions(self) -> list[int]:
        """The processes that serve a connection."""
        assert self._process is not None
        return children(self._process.pid)

    def drop(self) -> None:
        """Break all connections, as a host does that goes down."""
        for pid in self.sessions():
            for child in [*children(pid), pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def stop(self) -> None:
        """Listen no more; connections stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.drop()
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 1):
            return True
        return False


class Cable:
    """A line to a port that can be unplugged: nothing comes through any more, and nobody is told. One event loop's."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._plugged = asyncio.Event()
        self._plugged.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> Cable:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def unplug(self) -> None:
        """From now on all that is sent is lost on the way, and new connections hang."""
        self._plugged.clear()

    def plug(self) -> None:
        """A new line; what was on the old one is gone for ever."""
        for task in self._tasks:
            task.cancel()
        self._plugged.set()

    async def close(self) -> None:
        self.plug()
        self._server.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._plugged.wait()
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._copy(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                await self._plugged.wait()
                target.write(data)
                await target.drain()
        finally:
            target.close()


def children(pid: int) -> list[int]:
    """A process's child processes."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def keygen(path: Path, passphrase: str = "") -> None:
    """Make a key and its public half."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@contextlib.contextmanager
def running_sshd(forced: bool = True) -> Iterator[Sshd]:
    """A sshd until the end of the block."""
    sshd = Sshd()
    try:
        yield sshd.start(forced)
    finally:
        sshd.close()
