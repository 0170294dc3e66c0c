"""Shared storage as the kernel knows it least: FUSE, no notification, and a server that stops answering."""
from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time

import pytest

from builders import NOW, RunBuilder
from support.following import following
from support.sshd import Sshd, needs_sshd
from support.waiting import wait_until
from trainwatch.link import CONNECTED, LAGGING
from trainwatch.opening import directory
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch_launcher.reader.changes import AttemptKey

pytestmark = [
    needs_sshd, pytest.mark.xdist_group("sshd"),
    pytest.mark.skipif(shutil.which("sshfs") is None or not os.path.exists("/dev/fuse"), reason="needs sshfs"),
]  # fmt: skip
KEY = AttemptKey(0)


class Share:
    """A directory of a host, mounted here."""

    def __init__(self, sshd, source, mount):
        self.mount = mount
        mount.mkdir()
        self._process = subprocess.Popen(
            ["sshfs", "-f", "-F", str(sshd.config), "-o", "reconnect,dcache_timeout=1", f"worker-0:{source}",
             str(mount)])
        wait_until(lambda: os.path.ismount(mount), 15, "the mount")

    def stop(self):
        """The server hangs."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        self.go_on()
        subprocess.run(["fusermount3", "-u", "-z", str(self.mount)], capture_output=True)
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture
def share(tmp_path):
    sshd = Sshd()
    sshd.disk(0)
    sshd.start(forced=False)
    (tmp_path / "there").mkdir()
    share = Share(sshd, tmp_path / "there", tmp_path / "here")
    yield share
    share.close()
    sshd.close()


async def test_what_other_hosts_write_is_seen_without_notification(share, tmp_path):
    rank = RunBuilder(tmp_path / "there" / "run").rank(0).start()
    source = await directory(str(share.mount / "run"))
    assert isinstance(source, AgentSource)
    async with following(source) as follower:
        await follower.until(lambda f: f.source.link.state == CONNECTED)
        rank.event("warning", NOW, number=1)
        rank.output(b"hello\n")
        await follower.until(lambda f: len(f.events(KEY)) == 3, 10)
        assert await source.read_log(KEY, 0, 99) == b"hello\n"


async def test_a_mount_that_hangs_lags_and_freezes_nothing(share, tmp_path):
    rank = RunBuilder(tmp_path / "there" / "run").rank(0).start().output(b"hello\n")
    source = await directory(str(share.mount / "run"))
    async with following(source) as follower:
        await follower.until(lambda f: f.source.link.state == CONNECTED)
        share.stop()
        longest, last = 0.0, time.monotonic()
        reading = [asyncio.create_task(source.read_log(KEY, 0, 9)) for _ in range(70)]
        while source.link.state != LAGGING:
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert longest < 2  # a reading of the mount in our loop would have hung for good
        assert "its file system has not answered for" in source.link.reason
        with pytest.raises(SourceError, match="does not answer"):
            await reading[-1]
        share.go_on()
        await follower.until(lambda f: f.source.link.state == CONNECTED)
        assert await source.read_log(KEY, 0, 9) == b"hello\n"
        rank.event("warning", NOW, number=1)
        await follower.until(lambda f: len(f.events(KEY)) == 3, 15)
        await asyncio.gather(*reading, return_exceptions=True)


async def test_leaving_does_not_wait_for_a_mount_that_hangs(share, tmp_path):
    RunBuilder(tmp_path / "there" / "run").rank(0).start()
    source = await directory(str(share.mount / "run"))
    async with following(source) as follower:
        await follower.until(lambda f: f.source.link.state == CONNECTED)
        share.stop()
        await follower.until(lambda f: f.source.link.state == LAGGING)
        started = time.monotonic()
    assert time.monotonic() - started < 6
