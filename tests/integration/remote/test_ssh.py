"""A real sshd: many hosts with a disk each, links that break, keys that are wrong."""
from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest

from builders import NOW, RunBuilder, at, crashed_run
from support.following import following
from support.sshd import Cable, Sshd, keygen, needs_sshd
from trainwatch.link import CONNECTED, LAGGING, LOST, RECONNECTING
from trainwatch.sources import agent_source, ssh
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch.sources.ssh import SshWay
from trainwatch.sources.ssh_settings import Address, SshSettings
from trainwatch_launcher.reader.changes import AttemptKey

pytestmark = [needs_sshd, pytest.mark.xdist_group("sshd")]
KEY = AttemptKey(0)


@pytest.fixture(scope="module")
def sshd():
    sshd = Sshd().start()
    yield sshd
    sshd.close()


def host(sshd, number, settings=None, **options):
    way = SshWay(Address(f"worker-{number}"), settings or SshSettings(str(sshd.config)))
    return AgentSource(way, str(sshd.path / "run"), **options)


def ready(follower):
    return follower.source.link.state == CONNECTED


async def test_a_run_on_another_host_is_read_and_acted_on(sshd):
    run = crashed_run(sshd.disk(0) / "run")
    async with following(host(sshd, 0)) as follower:
        await follower.until(ready)
        source = follower.source
        assert source.name == "worker-0"
        assert source.link.directory == str(sshd.path / "run")
        log = at(run, 2).log.read_bytes()
        assert await source.read_log(AttemptKey(2), 0, 1 << 20) == log
        at(run, 0).set(phase="Changed")
        await follower.until(lambda f: f.status(KEY).phase == "Changed", 5)
        identity = await source.request(AttemptKey(2), "release")
        assert (at(run, 2).directory / "control" / f"{identity}.json").exists()
        with pytest.raises(SourceError, match="no attempt 1 of rank 77"):
            await source.read_log(AttemptKey(77), 0, 1)


async def test_a_connection_that_breaks_is_made_again_and_nothing_comes_twice_or_is_missing(sshd):
    run = RunBuilder(sshd.disk(1) / "run")
    rank = run.rank(0).start()
    async with following(host(sshd, 1)) as follower:
        await follower.until(ready)
        for number in range(3):
            sshd.drop()
            rank.event("warning", NOW + number, number=number)
            await follower.until(lambda f: f.source.link.state in (LOST, RECONNECTING))
            await follower.until(ready)
        await follower.until(lambda f: len(f.events(KEY)) >= 5)
        assert [one.extra.get("number") for one in follower.events(KEY)] == [None, None, 0, 1, 2]


async def test_a_line_that_swallows_everything_lags_is_lost_and_comes_back(sshd, monkeypatch):
    for name, seconds in (("BEAT", 0.3), ("SLOW", 0.6), ("DEAD", 2.5)):
        monkeypatch.setattr(agent_source, name, seconds)
    run = RunBuilder(sshd.disk(2) / "run")
    rank = run.rank(0).start()
    cable = await Cable(sshd.port).start()
    config = sshd.base / "cable_config"
    config.write_text(f"Host far\n  HostName 127.0.0.1\n  Port {cable.port}\n  HostKeyAlias worker-2\n"
                      f"  User root\n  IdentityFile {sshd.key}\n  UserKnownHostsFile {config}.known\n")
    (sshd.base / "cable_config.known").write_text("worker-2 " + (sshd.base / "host_key.pub").read_text())
    (sshd.base / "hosts" / "127.0.0.1").unlink(missing_ok=True)
    (sshd.base / "hosts" / "127.0.0.1").symlink_to(sshd.disk(2))
    source = AgentSource(SshWay(Address("far"), SshSettings(str(config))), str(sshd.path / "run"))
    async with following(source) as follower:
        await follower.until(ready)
        cable.unplug()
        rank.event("warning", NOW, number=1)
        await follower.until(lambda f: f.source.link.state == LAGGING)
        await follower.until(lambda f: f.source.link.state == LOST)
        assert "no answer for" in source.link.reason
        cable.plug()
        await follower.until(ready)
        await follower.until(lambda f: len(f.events(KEY)) == 3)
    await cable.close()


async def test_a_host_that_accepts_and_never_answers_does_not_hold_the_others(sshd, monkeypatch):
    monkeypatch.setattr(ssh, "LOGIN", 1.0)
    monkeypatch.setattr(ssh, "CONNECT", 1.0)
    cable = await Cable(sshd.port).start()
    cable.unplug()
    source = AgentSource(SshWay(Address("127.0.0.1", port=cable.port), SshSettings(str(sshd.config))), "/x")
    async with following(source) as follower:
        await follower.until(lambda f: f.source.link.state == LOST)
        assert source.link.reason
    await cable.close()


async def lost(source):
    async with following(source) as follower:
        with pytest.raises(SourceError) as caught:
            await follower.until(ready)
        return str(caught.value)


async def test_an_unknown_host_key_is_refused_with_the_command_that_adds_it(sshd, tmp_path):
    crashed_run(sshd.disk(3) / "run")
    known = tmp_path / "known"
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), str(known)))
    settings = SshSettings(str(config))
    message = await lost(host(sshd, 3, settings))
    assert message.startswith("worker-3: ")
    assert re.search(r"its host key is not known \(ssh-ed25519 SHA256:\S+\)", message)
    command = shlex.split(message.rpartition("add it by: ")[2])
    assert command[0] == "ssh"
    assert "StrictHostKeyChecking=ask" in command
    yes = [word.replace("=ask", "=accept-new") for word in command]
    subprocess.run(yes, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    async with following(host(sshd, 3, SshSettings(str(config)))) as follower:
        await follower.until(ready)


async def test_a_changed_host_key_is_refused_loudly(sshd, tmp_path):
    crashed_run(sshd.disk(4) / "run")
    keygen(tmp_path / "other")
    known = tmp_path / "known"
    known.write_text(f"[127.0.2.5]:{sshd.port} {(tmp_path / 'other.pub').read_text()}")
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), str(known)))
    message = await lost(host(sshd, 4, SshSettings(str(config))))
    assert "ITS HOST KEY HAS CHANGED" in message
    subprocess.run(shlex.split(message.rpartition("old key by: ")[2]), check=True, capture_output=True)
    assert "is not known" in await lost(host(sshd, 4, SshSettings(str(config))))


async def test_no_known_hosts_file_means_that_no_host_is_known(sshd, tmp_path):
    crashed_run(sshd.disk(5) / "run")
    for written in ("none", str(tmp_path / "missing"), os.devnull):
        config = tmp_path / "config"
        config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), written))
        assert "its host key is not known" in await lost(host(sshd, 5, SshSettings(str(config))))


async def test_a_login_that_is_refused_says_so(sshd, tmp_path):
    sshd.disk(6)
    keygen(tmp_path / "stranger")
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.key), str(tmp_path / "stranger")))
    assert "it refuses our login" in await lost(host(sshd, 6, SshSettings(str(config))))
    config.write_text(sshd.config.read_text().replace(str(sshd.key), str(tmp_path / "missing")))
    assert "missing" in await lost(host(sshd, 6, SshSettings(str(config))))


async def test_a_host_that_is_down_is_tried_again(sshd):
    source = AgentSource(SshWay(Address("127.0.0.1", port=1), SshSettings(str(sshd.config))), "/x")
    async with following(source) as follower:
        link = await follower.until(lambda f: f.source.link.state == LOST and f.source.link)
        assert "refused" in link.reason
        assert link.retry_at is not None
        await follower.until(lambda f: f.source.link.failures >= 2)


async def test_the_shell_leads_to_the_host_and_into_the_attempts_directory(sshd):
    run = RunBuilder(sshd.disk(7) / "run")
    run.rank(0, host=os.uname().nodename).start(cwd="/usr/share").fail(3)
    async with following(host(sshd, 7)) as follower:
        await follower.until(ready)
        plan = await follower.source.shell(KEY, ("sh", "-c", 'pwd; echo "$TRAINWATCH_RANK $1" $TERM', "sh", "it's; $x"))
        assert plan.argv[:2] == ("ssh", "-t")
        done = subprocess.run(plan.argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.stdout.split() == ["/usr/share", "0", "it's;", "$x"]
