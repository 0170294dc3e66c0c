"""A run on this machine, followed: changes come soon, the event loop stays free, requests and logs work."""
from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time

import pytest

from builders import NOW, RunBuilder, crashed_run
from trainwatch.sources import local, watching
from trainwatch.sources.base import SourceError
from trainwatch.sources.local import LocalSource
from trainwatch_launcher.agent import mounts
from trainwatch_launcher.reader.changes import AttemptFound, AttemptKey, RunFound, StatusChanged, Unreadable
from trainwatch_launcher.rundir import paths


class Following:
    """Collects what a source says, in the background."""

    def __init__(self, source):
        self.source = source
        self.seen = []
        self.task = asyncio.create_task(self._follow())

    async def _follow(self):
        async for batch in self.source.changes():
            self.seen.extend(batch)

    async def until(self, condition, timeout=10.0):
        deadline = time.monotonic() + timeout
        while not condition(self.seen):
            assert time.monotonic() < deadline, f"only saw {self.seen}"
            assert not self.task.done(), "the source ended"
            await asyncio.sleep(0.01)

    async def close(self):
        await self.source.close()
        await asyncio.wait_for(self.task, 5)


@contextlib.asynccontextmanager
async def following(source):
    follower = Following(source)
    try:
        yield follower
    finally:
        await follower.close()


def phases(seen):
    return [change.status.phase for change in seen if isinstance(change, StatusChanged)]


async def test_everything_comes_first_and_then_each_change(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        assert isinstance(follower.seen[0], RunFound)
        attempt.set(phase="Load")
        await follower.until(lambda seen: "Load" in phases(seen))
        run.rank(1).start()
        await follower.until(lambda seen: any(isinstance(c, AttemptFound) and c.key.rank == 1 for c in seen))


async def test_changes_come_by_notification_and_not_only_by_looking(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "SAFETY", 1e6)
    monkeypatch.setattr(local, "POLL", 0.2)
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        await asyncio.sleep(0.6)  # past the second look at everything
        attempt.set(phase="Told")
        await follower.until(lambda seen: "Told" in phases(seen))
        late = run.local(0, 3).start()
        await follower.until(lambda seen: any(c.key.local_rank == 3 for c in seen if isinstance(c, StatusChanged)))
        late.set(phase="Deep")
        await follower.until(lambda seen: "Deep" in phases(seen))


async def test_without_notification_the_directory_is_looked_at(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    async with following(LocalSource(run.directory, watch=False)) as follower:
        await follower.until(phases)
        attempt.set(phase="Seen")
        await follower.until(lambda seen: "Seen" in phases(seen))


async def test_when_watching_is_not_possible_it_is_said_and_the_run_still_followed(tmp_path, monkeypatch):
    def limit(*_args, **_options):
        raise OSError("OS file watch limit reached. about [...]")

    monkeypatch.setattr(watching.watchfiles, "watch", limit)
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(lambda seen: any(isinstance(change, Unreadable) for change in seen))
        attempt.set(phase="Still")
        await follower.until(lambda seen: "Still" in phases(seen))
        said = [change.message for change in follower.seen if isinstance(change, Unreadable)]
        assert len(said) == 1
        assert "fs.inotify.max_user_watches" in said[0]


async def test_the_event_loop_stays_free_while_the_disk_is_slow(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    source = LocalSource(run.directory)
    real = source._reader.poll

    def slow(*args, **named):
        time.sleep(0.5)
        return real(*args, **named)

    monkeypatch.setattr(source._reader, "poll", slow)
    async with following(source) as follower:
        longest, last = 0.0, time.monotonic()
        while not phases(follower.seen):
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert longest < 0.4


async def test_closing_ends_the_changes_at_once(tmp_path):
    run = RunBuilder(tmp_path / "run")
    source = LocalSource(run.directory)
    follower = Following(source)
    await follower.until(lambda seen: seen)
    started = time.monotonic()
    await follower.close()
    assert time.monotonic() - started < 2


async def test_a_directory_that_is_not_there_is_a_problem_and_not_a_crash(tmp_path):
    async with following(LocalSource(tmp_path / "none")) as follower:
        await follower.until(lambda seen: any(isinstance(change, Unreadable) for change in seen))


async def test_logs_are_read_in_ranges(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).output(b"0123456789")
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        source, key = follower.source, AttemptKey(0)
        assert await source.log_size(key) == 10
        assert await source.read_log(key, 3, 4) == b"3456"
        assert await source.read_log(key, 8, 100) == b"89"
        assert await source.log_size(AttemptKey(9)) == 0
        with pytest.raises(SourceError, match="no attempt 1 of rank 9"):
            await source.read_log(AttemptKey(9), 0, 1)


async def test_a_size_that_cannot_be_had_for_a_moment_is_an_error_and_not_an_empty_log(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).output(b"0123456789")
    answers = [OSError(errno.ESTALE, os.strerror(errno.ESTALE))]
    real = os.lstat

    def stale_once(path, **options):
        if str(path).endswith(paths.OUTPUT) and answers:
            raise answers.pop()
        return real(path, **options)

    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        monkeypatch.setattr(os, "lstat", stale_once)
        with pytest.raises(SourceError, match=r"cannot read .*: Stale file handle"):
            await follower.source.log_size(AttemptKey(0))
        assert await follower.source.log_size(AttemptKey(0)) == 10


async def test_a_log_that_may_not_be_read_is_an_error_in_one_line(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0)
    attempt.log.mkdir()
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        with pytest.raises(SourceError, match="Is a directory"):
            await follower.source.read_log(AttemptKey(0), 0, 10)


async def test_history_is_read_from_its_end(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0)
    for number in range(40):
        attempt.metrics(NOW + 10 * number, step=number, gpus=[])
    with (attempt.directory / paths.METRICS).open("ab") as out:
        out.write(b"no json\n{\"time\": 7, \"step\": 99")  # torn
    run.rank(1)
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        source = follower.source
        assert [line.extra["step"] for line in await source.read_metrics(AttemptKey(0), 1 << 20)] == list(range(40))
        newest = await source.read_metrics(AttemptKey(0), 400)
        assert [line.extra["step"] for line in newest] == list(range(40))[-len(newest):]
        assert 2 < len(newest) < 10
        assert await source.read_metrics(AttemptKey(0), 20) == []
        assert await source.read_metrics(AttemptKey(1), 400) == []
        with pytest.raises(SourceError, match="no attempt 1 of rank 9"):
            await source.read_metrics(AttemptKey(9), 1)
        (attempt.directory / paths.METRICS).unlink()
        (attempt.directory / paths.METRICS).mkdir()
        with pytest.raises(SourceError, match="Is a directory"):
            await source.read_metrics(AttemptKey(0), 400)


async def test_requests_reach_the_control_directory_or_say_why_not(tmp_path):
    run = crashed_run(tmp_path / "run")
    async with following(LocalSource(run.directory)) as follower:
        await follower.until(phases)
        identity = await follower.source.request(AttemptKey(2), "extend", seconds=60)
        control = run.directory / paths.rank_name(2) / paths.attempt_name(1) / paths.CONTROL
        assert [path.name for path in control.iterdir()] == [identity + ".json"]
        with pytest.raises(SourceError, match="a launcher knows no dance"):
            await follower.source.request(AttemptKey(2), "dance")


@pytest.mark.parametrize(("path", "kind"), [
    ("/shared/run", "nfs4"), ("/shared", "nfs4"), ("/shared/deep disk/x", "fuse.sshfs"), ("/sharedother", "ext4"),
    ("/", "ext4"),
])  # fmt: skip
def test_the_file_system_of_a_path_is_that_of_its_nearest_mount(tmp_path, path, kind):
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/sda / ext4 rw 0 0\nserver:/x /shared nfs4 rw 0 0\nme@h:/ /shared/deep\\040disk fuse.sshfs rw 0 0\n\n")
    assert mounts.file_system(path, str(table)) == kind


def test_file_systems_that_other_hosts_write_to_are_known():
    assert all(map(mounts.is_remote, ("nfs", "nfs4", "lustre", "fuse.sshfs", "beegfs", "ceph")))
    assert not any(map(mounts.is_remote, ("ext4", "xfs", "tmpfs", "overlay", "btrfs", "")))
    assert mounts.file_system("/", "/no/such/file") == ""
