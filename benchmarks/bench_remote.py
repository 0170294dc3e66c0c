"""What it takes to watch hosts over SSH, beside asyncssh alone and `ssh host cat`: one sshd plays all of them, here."""
from __future__ import annotations

import asyncio
import os
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench_viewer import Screen
from many_hosts import ManyHosts, cpu_of
from report import table

from trainwatch.config import Config, Options
from trainwatch.opening import open_source
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import Source
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey

COUNTS = [int(word) for word in os.environ.get("BENCH_HOSTS", "64,256,1024").split(",")]
BARS = {64: 2.5, 256: 6.0, 1024: 25.0}
"""Seconds, where asyncssh alone takes 0.6, 3.0 and 12.5."""
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
RANKS = 8
BARE = "exec python3 -I -S -c 'import sys; print(flush=True); sys.stdin.read()'"
LOG = 256 << 20
TCP_BYTES = struct.Struct("=QQ")
TCP_BYTES_AT = 120
"""Where `struct tcp_info` of <linux/tcp.h> has bytes_acked and bytes_received."""


@dataclass(frozen=True)
class Took:
    """What one way to connect to all hosts took."""

    wall: float
    server: float
    """CPU seconds of sshd and all that it started."""
    client: float

    @property
    def cpu(self) -> float:
        return self.server + self.client


def connecting() -> None:
    """From the start of the program until its header says that all hosts are connected."""
    rows = []
    lab = ManyHosts(max(COUNTS))
    try:
        lab.fill()
        lab.start()
        os.environ["XDG_CONFIG_HOME"] = str(lab.settings)
        for count in COUNTS:
            rounds = max(1, ROUNDS if count < 1000 else ROUNDS - 1)
            ways: dict[str, Callable[[], Took]] = {
                "asyncssh alone": partial(alone, lab, count),
                "asyncssh, and a bare python3 on each": partial(alone, lab, count, BARE),
                "trainwatch": partial(screen, lab, count),
            }
            found: dict[str, list[Took]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    found[name].append(way())
            base = min(found["asyncssh alone"], key=lambda took: took.wall)
            base_cpu = min(took.cpu for took in found["asyncssh alone"])
            for name, all_of in found.items():
                best, cpu = min(took.wall for took in all_of), min(took.cpu for took in all_of)
                bar = f"{BARS[count]} s" if name == "trainwatch" and count in BARS else ""
                rows.append([f"{count} hosts: {name}", f"{best:.2f} s", bar, f"{best / base.wall:.1f}",
                             f"{cpu:.1f} s", f"{cpu / count * 1000:.0f} ms", f"{cpu / base_cpu:.1f}"])  # fmt: skip
    finally:
        lab.close()
    head = ["what", "connected and on screen", "bar", "ratio", "CPU of both ends", "a host", "ratio"]
    table(f"Connecting, minima of {ROUNDS} rounds", head, rows)


def alone(lab: ManyHosts, count: int, command: str = "") -> Took:
    server, client = lab.cpu(), time.process_time()
    wall = asyncio.run(lab.connect_alone(count, command))
    client = time.process_time() - client
    return Took(wall, lab.cpu() - server, client)


def screen(lab: ManyHosts, count: int) -> Took:
    before = lab.cpu()
    shown = Screen([str(Path(sys.executable).parent / "trainwatch"), "--hosts", lab.of(count), "~/run"])
    wall = shown.seconds_until(re.compile(rb"[^/\d]%d hosts" % count), 300.0)
    client = shown.cpu()
    shown.close()
    return Took(wall, lab.cpu() - before, client)


def watching() -> None:
    """One host with eight ranks: what the agent costs, what goes over the line, how soon news are on the screen."""
    lab = ManyHosts(1)
    try:
        lab.fill(RANKS)
        lab.start()
        os.environ["XDG_CONFIG_HOME"] = str(lab.settings)
        costs = asyncio.run(agent_costs(lab))
        head = ["what", "CPU", "bar", "peak memory", "bar", "line", "bar"]
        table(f"An agent with {RANKS} ranks over SSH", head, costs)
        table("News on the screen over SSH", ["what", "median", "p95", "bar"], [status_delay(lab), log_delay(lab)])
        table("A log through one connection", ["what", "MB/s", "ratio", "bar"], asyncio.run(throughput(lab)))
    finally:
        lab.close()


async def opened(lab: ManyHosts) -> tuple[Source, asyncio.Task[None]]:
    """The host's run, followed."""
    source = await open_source(parse("~/run", Config(options=Options(ssh_config=str(lab.config))), lab.of(1)))

    async def follow() -> None:
        async for _ in source.changes():
            pass

    task = asyncio.create_task(follow())
    while not all(link.up for link in source.links):
        await asyncio.sleep(0.05)
    return source, task


async def agent_costs(lab: ManyHosts) -> list[list[str]]:
    source, task = await opened(lab)
    assert isinstance(source, AgentSource)
    assert source._client is not None
    pid = int(source._client.hello["pid"])
    line = source._way._connection.get_extra_info("socket")  # type: ignore[attr-defined]
    rows = []
    for name, period, seconds, bars in (
        ("status of each rank once a second", 1.0, 30.0, ("1 %", "25 MiB", "")),
        ("quiet: a heartbeat each five seconds", 5.0, 60.0, ("", "", "1 KB/s")),
    ):
        await asyncio.sleep(6.0)
        cpu, sent, started = cpu_of(pid), bytes_over(line), time.monotonic()
        while time.monotonic() - started < seconds:
            lab.beat()
            await asyncio.sleep(period)
        took = time.monotonic() - started
        share, rate = (cpu_of(pid) - cpu) / took * 100, (bytes_over(line) - sent) / took
        status = Path(f"/proc/{pid}/status").read_text()
        peak = next(int(row.split()[1]) / 1024 for row in status.splitlines() if row.startswith("VmHWM"))
        rows.append([name, f"{share:.2f} % of a core", bars[0], f"{peak:.1f} MiB", bars[1], f"{rate:.0f} B/s", bars[2]])
    await source.close()
    await task
    return rows


def bytes_over(line: socket.socket) -> int:
    """Bytes of a TCP connection so far, both ways."""
    facts = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_BYTES_AT + TCP_BYTES.size)
    return sum(TCP_BYTES.unpack_from(facts, TCP_BYTES_AT))


def status_delay(lab: ManyHosts) -> list[str]:
    """From a status that is replaced to the table."""
    return ["a status in the table", *delays(lab, lambda number: lab.say(f"news-{number}-")), "1.2 s"]


def log_delay(lab: ManyHosts) -> list[str]:
    """From a line that is written to the selected rank's log."""
    return ["a line in the log", *delays(lab, lambda number: lab.append(f"line-{number}-\n")), "0.4 s + polling"]


def delays(lab: ManyHosts, act: Callable[[int], str]) -> list[str]:
    shown = Screen([str(Path(sys.executable).parent / "trainwatch"), "--hosts", lab.of(1), "~/run"])
    shown.seconds_until(re.compile(rb"gpu-0000"), 60.0)
    shown.drain(7.0)
    took = []
    for number in range(40):
        shown.drain(0.31 + number % 7 * 0.13)
        started = time.perf_counter()
        text, seen = act(number).encode(), b""
        while text not in seen and time.perf_counter() - started < 10:
            if select.select([shown.fd], [], [], 0.01)[0]:
                seen += os.read(shown.fd, 1 << 16)
        took.append(time.perf_counter() - started)
    shown.close()
    return [f"{statistics.median(took):.2f} s", f"{sorted(took)[int(len(took) * 0.95)]:.2f} s"]


async def throughput(lab: ManyHosts) -> list[list[str]]:
    """Reading a log as the viewer does, beside OpenSSH's client and cat."""
    log = lab.log(LOG)
    source, task = await opened(lab)
    ssh = ["ssh", "-F", str(lab.config), lab.addresses[0], f"cat {log}"]
    found: dict[str, list[float]] = {"ssh host cat": [], "trainwatch": []}
    for _ in range(ROUNDS):
        started = time.perf_counter()
        size = len(subprocess.run(ssh, check=True, capture_output=True).stdout)
        found["ssh host cat"].append(size / (time.perf_counter() - started))
        started, size = time.perf_counter(), 0
        while data := await source.read_log(AttemptKey(0), size, 16 << 20):
            size += len(data)
        found["trainwatch"].append(size / (time.perf_counter() - started))
    await source.close()
    await task
    best = {name: max(rates) for name, rates in found.items()}
    return [
        [name, f"{rate / 1e6:.0f}", f"{rate / best['ssh host cat']:.2f}", "0.5" if name == "trainwatch" else ""]
        for name, rate in best.items()
    ]


if __name__ == "__main__":
    watching()
    connecting()
