"""Hosts that lie behind others: one connection to what is on the way, and its troubles told as its own."""
from __future__ import annotations

import asyncio

import pytest

from builders import RunBuilder
from support.following import following
from support.sshd import Sshd, needs_sshd
from support.waiting import wait_until
from trainwatch.link import CONNECTED
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch.sources.channel import WayError
from trainwatch.sources.merged import MergedSource
from trainwatch.sources.ssh import SshWay
from trainwatch.sources.ssh_settings import Address, SshSettings

pytestmark = [needs_sshd, pytest.mark.xdist_group("sshd")]
INNER = 6


@pytest.fixture(scope="module")
def sshd():
    sshd = Sshd()
    for number in range(INNER):
        RunBuilder(sshd.disk(number) / "run", world_size=INNER).rank(number).start()
    sshd.disk(20)
    sshd.disk(21)
    yield sshd.start()
    sshd.close()


def configured(sshd, tmp_path, extra, leave_out=""):
    """The client's configuration with something before it; the address `leave_out` is nobody that we know."""
    known = tmp_path / "known"
    known.write_text("".join(line for line in sshd.known_hosts.read_text().splitlines(True)
                             if not leave_out or leave_out not in line))  # fmt: skip
    config = tmp_path / "jump_config"
    config.write_text(extra + sshd.config.read_text().replace(str(sshd.known_hosts), str(known)))
    return SshSettings(str(config))


def hosts(sshd, settings):
    ways = [SshWay(Address(f"worker-{number}"), settings) for number in range(INNER)]
    return MergedSource("run", [AgentSource(way, str(sshd.path / "run")) for way in ways])


def all_connected(follower):
    return all(link.state == CONNECTED for link in follower.source.links)


async def test_all_hosts_behind_one_share_the_connection_to_it_and_it_ends_with_the_last_of_them(sshd, tmp_path):
    jump = "Host worker-20\n  ProxyJump none\nHost worker-?\n  ProxyJump worker-20\n"
    async with following(hosts(sshd, configured(sshd, tmp_path, jump))) as follower:
        await follower.until(all_connected)
        assert len(sshd.sessions()) == INNER + 1
        sshd.drop()
        await follower.until(lambda f: not all_connected(f))
        await follower.until(all_connected)
        assert len(sshd.sessions()) == INNER + 1
    await asyncio.to_thread(wait_until, lambda: not sshd.sessions(), 10, "the connections' end")


async def test_several_hosts_on_the_way_are_gone_through_in_their_order(sshd, tmp_path):
    # also what applies to all hosts, those on the way included
    jump = "Host *\n  ProxyJump root@worker-20,worker-21\n"
    async with following(hosts(sshd, configured(sshd, tmp_path, jump))) as follower:
        await follower.until(all_connected)
        assert len(sshd.sessions()) == INNER + 2


async def test_a_host_on_the_way_that_is_not_trusted_is_named_with_the_command_that_adds_its_key(sshd, tmp_path):
    settings = configured(sshd, tmp_path, "Host worker-0\n  ProxyJump worker-20\n", leave_out="127.0.2.21]")
    with pytest.raises(WayError, match="on the way there, worker-20: its host key is not known") as caught:
        await SshWay(Address("worker-0"), settings).connect()
    assert caught.value.final
    assert str(caught.value).endswith("worker-20 true")
    source = AgentSource(SshWay(Address("worker-0"), settings), "/x")
    async with following(source) as follower:
        with pytest.raises(SourceError, match="worker-0: on the way there, worker-20: its host key"):
            await follower.until(lambda f: f.source.link.up)


@pytest.mark.parametrize(("jump", "said"), [
    ("Host worker-0\n  ProxyJump worker-1\nHost worker-1\n  ProxyJump worker-0\n", "leads back to itself"),
    ("Host worker-0\n  ProxyJump worker-1:ssh\n", "ProxyJump worker-1:ssh is not understood"),
    ("Host worker-0\n  ProxyJump 127.0.0.1:1\n", "on the way there, 127.0.0.1: connection refused"),
])
async def test_a_way_that_leads_nowhere_says_why(sshd, tmp_path, jump, said):
    way = SshWay(Address("worker-0"), configured(sshd, tmp_path, jump))
    with pytest.raises(WayError, match=said):
        await way.connect()
    await way.close()
