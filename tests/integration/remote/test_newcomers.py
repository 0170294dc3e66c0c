"""What joins a run after the viewer has started: rank directories that appear on hosts, and hosts' runs."""
from __future__ import annotations

import pytest

from builders import RunBuilder
from support.following import following
from support.sshd import Sshd, needs_sshd
from trainwatch.config import Config, Options
from trainwatch.opening import open_source
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey

pytestmark = [needs_sshd, pytest.mark.xdist_group("sshd")]


def up(follower, *names):
    return [link.name for link in follower.source.links if link.up] == list(names)


async def test_rank_directories_and_runs_that_appear_on_hosts_are_read():
    sshd = Sshd()
    try:
        for number in range(3):
            sshd.disk(number)
        RunBuilder(sshd.disk(0) / "run").rank(0).start()
        sshd.start()
        settings = Config(options=Options(ssh_config=str(sshd.config)))
        async with following(await open_source(parse(f"ssh://worker-[0-2]{sshd.path}/run", settings))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            run = RunBuilder(sshd.disk(1) / "run")
            await follower.until(lambda f: up(f, "worker-0", "worker-1"))
            run.rank(1).start()
            RunBuilder(sshd.disk(0) / "run").rank(4).start()
            await follower.until(lambda f: f.status(AttemptKey(1)) and f.status(AttemptKey(4)))
            RunBuilder(sshd.disk(2) / "run").rank(2).start()
            await follower.until(lambda f: f.status(AttemptKey(2)))
            assert up(follower, "worker-0", "worker-1", "worker-2")
    finally:
        sshd.close()
