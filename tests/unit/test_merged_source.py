"""Many hosts as one run: own disks, one shared disk, a rank that moved, hosts that are not there."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

from builders import NOW, RunBuilder, crashed_run
from support.following import following
from trainwatch.link import LOST
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.summary import summary
from trainwatch.sources import merged
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch.sources.channel import ExecWay
from trainwatch.sources.merged import MergedSource
from trainwatch_launcher.reader.changes import AttemptKey, RunFound, Unreadable
from trainwatch_launcher.rundir import paths


def hosts(*directories, piped=()):
    sources = [
        AgentSource(ExecWay(f"host-{number}", piped), str(directory), python=sys.executable)
        for number, directory in enumerate(directories)
    ]
    return MergedSource("hosts", sources)


def all_up(follower):
    return all(link.up for link in follower.source.links)


def kill(source, number=9):
    os.kill(int(source._client.hello["pid"]), number)


async def test_hosts_with_a_disk_each_are_one_run(tmp_path):
    for number in range(3):
        run = RunBuilder(tmp_path / str(number), world_size=3)
        one = run.rank(number, host=f"gpu-{number}").start().output(b"I am %d\n" % number)
        one.metrics(NOW, gpus=[{"index": 0, "util": [0 if number else 90, 99]}])
    async with following(hosts(*(tmp_path / str(number) for number in range(3)))) as follower:
        await follower.until(all_up)
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 3)
        source = follower.source
        for number in range(3):
            key = AttemptKey(number)
            assert await source.log_size(key) == 7
            assert await source.read_log(key, 0, 99) == b"I am %d\n" % number
            identity = await source.request(key, "release")
            attempt = tmp_path / str(number) / paths.rank_name(number) / paths.attempt_name(1)
            assert (attempt / paths.CONTROL / f"{identity}.json").exists()
        told = await source.read_idle([AttemptKey(2), AttemptKey(0)], [0.0, 0.0], 64)
        assert told == {AttemptKey(2): [(NOW - 10, NOW, 1.0)], AttemptKey(0): [(NOW - 10, NOW, 0.0)]}
        assert summary(apply(EMPTY, follower.seen), NOW).counts == {"running": 3}
        assert await source.log_size(AttemptKey(9)) == 0
        with pytest.raises(SourceError, match="no attempt 1 of rank 9"):
            await source.read_log(AttemptKey(9), 0, 1)


async def test_a_rank_that_was_started_again_elsewhere_has_two_attempts_the_later_one_last(tmp_path, monkeypatch):
    monkeypatch.setattr(merged, "SETTLE", 60.0)  # all three come in time, however busy this machine is
    for number, started in ((0, NOW - 50), (1, NOW - 200), (2, NOW - 100)):
        run = RunBuilder(tmp_path / str(number), world_size=1)
        run.rank(0, host=f"gpu-{number}").start(started).output(b"%d" % number)
    async with following(hosts(*(tmp_path / str(number) for number in range(3)))) as follower:
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 3)
        state = apply(EMPTY, follower.seen)
        assert [state.attempts[AttemptKey(0, attempt)].host for attempt in (1, 2, 3)] == ["gpu-1", "gpu-2", "gpu-0"]
        assert [a.host for a in state.current()] == ["gpu-0"]
        assert await follower.source.read_log(AttemptKey(0, 1), 0, 9) == b"1"
        assert await follower.source.read_log(AttemptKey(0, 3), 0, 9) == b"0"


async def test_hosts_that_see_the_same_directory_are_read_once_and_relieve_each_other(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start()
    source = hosts(*[tmp_path / "run"] * 3)
    async with following(source) as follower:
        await follower.until(all_up)
        assert sorted(link.spare for link in source.links) == [False, True, True]
        for number in range(3):
            await follower.until(all_up)
            reader = next(one for one in source._sources if not one.link.spare)
            kill(reader)
            rank.event("warning", NOW + number, number=number)
            await follower.until(lambda f, number=number: len(f.events(AttemptKey(0))) == 3 + number)
        assert [one.extra.get("number") for one in follower.events(AttemptKey(0))] == [None, None, 0, 1, 2]
        assert {attempt.key for attempt in apply(EMPTY, follower.seen).attempts.values()} == {AttemptKey(0)}
        await follower.until(all_up)
        assert sum(not link.spare for link in source.links) == 1


async def test_a_host_that_cannot_be_reached_does_not_hide_the_others(tmp_path):
    crashed_run(tmp_path / "run")
    source = hosts(tmp_path / "run", "/no/such/run")
    async with following(source) as follower:
        await follower.until(lambda f: f.source.links[0].up and f.source.links[1].state == LOST)
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 4)
        assert "does not exist" in source.links[1].reason
        assert source.links[1].retry_at is not None


async def test_a_host_whose_launcher_comes_later_joins(tmp_path):
    RunBuilder(tmp_path / "0", world_size=2).rank(0).start()
    async with following(hosts(tmp_path / "0", tmp_path / "1")) as follower:
        await follower.until(lambda f: f.source.links[1].state == LOST)
        RunBuilder(tmp_path / "1", world_size=2).rank(1).start()
        await follower.until(lambda f: f.events(AttemptKey(1)), 15)


async def test_no_host_at_all_is_one_error(tmp_path):
    source = hosts("/no/such/run", "/nor/this")
    async with following(source) as follower:
        with pytest.raises(SourceError, match=r"host-0: /no/such/run does not exist.*\(and 1 more hosts\)"):
            await follower.until(all_up)


async def test_a_host_that_holds_another_run_is_left_out_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(merged, "SETTLE", 60.0)  # the many come in time, however busy this machine is
    for number, name in ((0, "new"), (1, "old"), (2, "new")):
        RunBuilder(tmp_path / str(number), run_id=name).rank(number).start()
    async with following(hosts(*(tmp_path / str(number) for number in range(3)))) as follower:
        await follower.until(lambda f: any(isinstance(change, Unreadable) for change in f.seen))
        state = apply(EMPTY, follower.seen)
        assert state.run_id == "new"
        assert sorted(key.rank for key in state.attempts) == [0, 2]
        assert [(p.path, p.message) for p in state.problems] == [
            ("host-1", "it holds run old there, which is not shown")]
        assert {change.info.run_id for change in follower.seen if isinstance(change, RunFound)} == {"new"}


async def test_a_shell_opens_on_the_host_where_the_rank_ran_though_another_reads_the_disk(tmp_path):
    here = os.uname().nodename
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host="gpu-00").start()
    run.rank(1, host=here).start(cwd=str(tmp_path)).fail(1)
    other = ["unshare", "--uts", "sh", "-c", 'hostname gpu-00 && exec "$@"', "sh"]
    sources = [
        AgentSource(ExecWay("reader", other, other), str(run.directory), python=sys.executable),
        AgentSource(ExecWay("spare"), str(run.directory), python=sys.executable),
    ]
    if os.geteuid() != 0:
        pytest.skip("another host name needs root")
    source = MergedSource("hosts", sources)
    sources[1].gate = lambda one: sources[0].reading and source._may_read(one)
    async with following(source) as follower:
        await follower.until(lambda f: all_up(f) and f.source.links[1].spare and f.events(AttemptKey(1)))
        assert source.links[0].host == "gpu-00"
        plan = await source.shell(AttemptKey(1), ("pwd",))
        assert plan.note.endswith("on spare")
        assert subprocess.run(plan.argv, capture_output=True, text=True).stdout == f"{tmp_path}\n"
        assert (await source.shell(AttemptKey(0), ("pwd",))).note.endswith("on reader")


def test_names_are_given_once():
    names = merged.Names()
    assert names.name("a", AttemptKey(0, 1)) == AttemptKey(0, 1)
    assert names.name("b", AttemptKey(0, 1)) == AttemptKey(0, 2)
    assert names.name("a", AttemptKey(0, 2)) == AttemptKey(0, 3)
    assert names.name("b", AttemptKey(0, 1, 4, 1)) == AttemptKey(0, 2, 4, 1)
    assert names.own(AttemptKey(0, 2, 4, 1)) == ("b", AttemptKey(0, 1, 4, 1))
    assert names.own(AttemptKey(7)) == ("", AttemptKey(7))
