"""One sshd that is as many hosts as are asked for, each with a run at ~/run; and asyncssh alone against them."""
from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import asyncssh

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from builders import AttemptBuilder, RunBuilder  # noqa: E402
from support.sshd import Sshd, children  # noqa: E402
from support.waiting import wait_until  # noqa: E402

HANDSHAKES = 16
AHEAD = 36000.0
"""Heartbeats are so many seconds in the future, so that nothing is lost while nobody beats."""
ADOPT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what outlives its session is ours, and so is its cost
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
while os.wait()[0] != pid: pass
"""
FORCED = """\
#!/bin/sh
set -- $SSH_CONNECTION
HOME={base}/hosts/$3 exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


class ManyHosts(Sshd):
    """Hosts are addresses. That each has a home of its own costs it one shell, about a millisecond."""

    def __init__(self, count: int) -> None:
        super().__init__(inside=[sys.executable, "-I", "-S", "-c", ADOPT])
        self.addresses = [f"127.{1 + n // 250}.0.{1 + n % 250}" for n in range(count)]
        (self.base / "forced").write_text(FORCED.format(base=self.base))
        self._attempts: list[AttemptBuilder] = []
        """Those of the first host."""
        self.hosts_file = self.base / "hosts.txt"
        self.settings = self.base / "settings"
        (self.settings / "trainwatch").mkdir(parents=True)
        (self.settings / "trainwatch" / "config.toml").write_text(f'[options]\nssh_config = "{self.config}"\n')

    def write_config(self, extra: str = "") -> None:
        """The client's configuration, and keys that are known for all addresses."""
        super().write_config(extra)
        key = (self.base / "host_key.pub").read_text()
        self.known_hosts.write_text("".join(f"[{address}]:{self.port} {key}" for address in self.addresses))

    def of(self, count: int) -> str:
        """The first so many hosts as a target's hosts: a file with a name in each line."""
        self.hosts_file.write_text("\n".join(self.addresses[:count]))
        return str(self.hosts_file)

    def fill(self, ranks: int = 1) -> None:
        """On each host ranks that train and say something now and then for hours."""
        for number, address in enumerate(self.addresses):
            builder = RunBuilder(self.base / "hosts" / address / "run", world_size=ranks * len(self.addresses))
            for rank in range(number * ranks, (number + 1) * ranks):
                attempt = builder.rank(rank, host=f"gpu-{number:04d}", time=time.time() + AHEAD)
                attempt.start().phase("Train").output(b"".join(b"step %d loss 2.31\n" % step for step in range(100)))
                if number == 0:
                    self._attempts.append(attempt)

    def sessions(self) -> list[int]:
        """What serves a connection, and what has outlived one."""
        server, *others = super().sessions()
        return [*children(server), *others]

    def stop(self) -> None:
        """Listen no more: the server itself is a child of what adopts."""
        for pid in super().sessions() if self._process is not None else []:
            os.kill(pid, signal.SIGKILL)
        super().stop()

    def cpu(self) -> float:
        """CPU seconds of the server and of all that it has started; called when nothing of it is left."""
        wait_until(lambda: not self.sessions(), 60, "the connections' end")
        assert self._process is not None
        return sum(_cpu_with_children(pid) for pid in (self._process.pid, *super().sessions()))

    def beat(self) -> None:
        """The first host's launchers write their status again, with a little more progress."""
        for attempt in self._attempts:
            step = (attempt.status.step or 0) + 1
            progress = {"step": step, "loss": 2.0 + step % 7 / 10, "output_lines": step, "output_bytes": 30 * step}
            attempt.set(time=time.time() + AHEAD, **progress)

    def say(self, text: str) -> str:
        """The first rank's last line is another one; returns the text."""
        self._attempts[0].set(time=time.time() + AHEAD, last_line=text, last_output=time.time())
        return text

    def append(self, text: str) -> str:
        """The first rank's log grows, and its status tells; returns what to look for."""
        with self._attempts[0].log.open("a") as log:
            log.write(text)
        return text.strip()

    def log(self, size: int) -> str:
        """The first rank's log, made so long."""
        text = b"".join(b"step %8d loss 2.3105 %s\n" % (at, os.urandom(8).hex().encode()) for at in range(9999))
        path = self._attempts[0].log
        with path.open("wb") as log:
            while log.tell() < size:
                log.write(text)
        return str(path)

    async def connect_alone(self, count: int, command: str = "") -> float:
        """Seconds until asyncssh holds a connection to each of so many hosts, and a line of the command's, if any."""
        known = asyncssh.read_known_hosts(str(self.known_hosts))
        key = asyncssh.read_private_key(str(self.key))
        gate = asyncio.Semaphore(HANDSHAKES)

        async def connect(address: str) -> asyncssh.SSHClientConnection:
            async with gate:
                options = {"username": "root", "client_keys": [key], "agent_path": None}
                connection = await asyncssh.connect(address, self.port, known_hosts=known, config=None, **options)
            if command:
                process = await connection.create_process(command)
                await process.stdout.readline()
            return connection

        started = time.perf_counter()
        held = await asyncio.gather(*(connect(address) for address in self.addresses[:count]))
        took = time.perf_counter() - started
        for connection in held:
            connection.abort()
        return took


def _cpu_with_children(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and all its threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
