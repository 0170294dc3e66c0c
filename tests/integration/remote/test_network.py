"""A real network whose cable is pulled while a log comes through it: packets vanish, and come through again."""
from __future__ import annotations

import asyncio
import contextlib

import pytest

from builders import NOW, RunBuilder
from support.following import following
from support.netns import needs_netns, network
from support.sshd import Sshd, needs_sshd
from trainwatch.link import CONNECTED, LAGGING, LOST, RECONNECTING
from trainwatch.sources import agent_source, ssh_settings
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch.sources.ssh import SshWay
from trainwatch.sources.ssh_settings import Address, SshSettings
from trainwatch_launcher.reader.changes import AttemptKey

pytestmark = [needs_sshd, needs_netns, pytest.mark.xdist_group("sshd")]
KEY = AttemptKey(0)
PART = 1 << 18


@pytest.fixture
def cable():
    with network() as there:
        yield there


@pytest.fixture
def sshd(cable):
    sshd = Sshd(cable.address, cable.inside)
    yield sshd.start()
    sshd.close()


class Writer:
    """A rank that never stops: its log and its events grow, all numbered."""

    def __init__(self, run: RunBuilder) -> None:
        self.rank = run.rank(0).start()
        self.written = 0

    async def write(self) -> None:
        while True:
            for _ in range(200):
                with self.rank.log.open("ab") as log:
                    log.write(b"%d the quick brown fox jumps over the lazy dog, again and again\n" % self.written)
                self.written += 1
            self.rank.event("warning", NOW, number=self.written)
            await asyncio.sleep(0.02)


class Reader:
    """Reads the log as a view does, part by part, and tries again when it cannot."""

    def __init__(self, source: AgentSource) -> None:
        self.source, self.read, self.failures = source, bytearray(), 0

    async def follow(self) -> None:
        while True:
            try:
                self.read += await self.source.read_log(KEY, len(self.read), PART)
            except SourceError:
                self.failures += 1
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def going_on(*works):
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def numbers(follower):
    return [event.extra["number"] for event in follower.events(KEY) if "number" in event.extra]


async def test_a_cable_that_is_pulled_mid_stream_loses_nothing_and_repeats_nothing(cable, sshd, monkeypatch):
    for name, seconds in (("BEAT", 0.3), ("SLOW", 0.6), ("DEAD", 2.5)):
        monkeypatch.setattr(agent_source, name, seconds)
    monkeypatch.setattr(ssh_settings, "CONNECT", 1.0)
    directory = sshd.base / "hosts" / cable.address / "run"
    writer = Writer(RunBuilder(directory))
    source = AgentSource(SshWay(Address(cable.address), SshSettings(str(sshd.config))), str(sshd.path / "run"))
    reader = Reader(source)
    async with following(source) as follower, going_on(writer.write(), reader.follow()):
        await follower.until(lambda _: source.link.state == CONNECTED and len(reader.read) > PART)
        cable.unplug()
        before, told = writer.written, len(follower.links)
        await follower.until(lambda f: any(links[0].state == RECONNECTING for links in f.links[told:]))
        order = [state for state in (LAGGING, LOST, RECONNECTING) if state in follower.states()]
        first = [next(at for at, links in enumerate(follower.links) if links[0].state == state) for state in order]
        assert len(first) == 3
        assert first == sorted(first)
        # further tries time out too, as nobody answers them
        await follower.until(lambda _: source.link.failures >= 2 and source.link.reason == "no answer in time")
        assert writer.written > before
        cable.plug()
        await follower.until(lambda _: source.link.state == CONNECTED)
        again = writer.written
        await follower.until(lambda f: (numbers(f) or [0])[-1] > again and reader.read.count(b"\n") > again)
        assert reader.failures > 0
    assert numbers(follower) == list(range(200, numbers(follower)[-1] + 1, 200))
    assert bytes(reader.read) == writer.rank.log.read_bytes()[: len(reader.read)]


async def test_a_cable_that_is_pulled_for_a_moment_only_lags(cable, sshd, monkeypatch):
    for name, seconds in (("BEAT", 0.3), ("SLOW", 0.6)):
        monkeypatch.setattr(agent_source, name, seconds)
    writer = Writer(RunBuilder(sshd.base / "hosts" / cable.address / "run"))
    source = AgentSource(SshWay(Address(cable.address), SshSettings(str(sshd.config))), str(sshd.path / "run"))
    reader = Reader(source)
    async with following(source) as follower, going_on(writer.write(), reader.follow()):
        await follower.until(lambda _: source.link.state == CONNECTED and len(reader.read) > PART)
        cable.unplug()
        await follower.until(lambda _: source.link.state == LAGGING)
        cable.plug()
        await follower.until(lambda _: source.link.state == CONNECTED)
        again = writer.written
        await follower.until(lambda f: (numbers(f) or [0])[-1] > again and reader.read.count(b"\n") > again)
        assert {LOST, RECONNECTING}.isdisjoint(follower.states())
    assert numbers(follower) == list(range(200, numbers(follower)[-1] + 1, 200))
    assert bytes(reader.read) == writer.rank.log.read_bytes()[: len(reader.read)]
