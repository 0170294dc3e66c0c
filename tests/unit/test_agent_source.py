"""A run behind a command's stdin and stdout: as good as a local one, and honest when it is not."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builders import NOW, RunBuilder, at, crashed_run
from support.following import following
from support.launching import ROOT
from support.pythons import every_python
from support.users import NOBODY, unprivileged_directory
from support.waiting import wait_until
from trainwatch.link import CONNECTED, LAGGING, LOST, RECONNECTING
from trainwatch.sources import agent_source, boot
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import LogFile, SourceError
from trainwatch.sources.channel import ExecWay
from trainwatch.sources.local import LocalSource
from trainwatch_launcher.reader.changes import AttemptKey, RunFound
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.stacks import Dump, as_bytes

KEY = AttemptKey(0)
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def source_of(run, *piped, **options):
    return AgentSource(ExecWay("there", piped), str(run.directory), python=sys.executable, **options)


def ready(follower):
    return follower.source.link.state == CONNECTED


def kill(follower, number=9):
    os.kill(int(follower.source._client.hello["pid"]), number)


@every_python
async def test_the_agent_tells_what_a_reader_tells_on_every_promised_python(tmp_path, python):
    run = crashed_run(tmp_path / "run")
    async with following(AgentSource(ExecWay("there"), str(run.directory), python=python)) as follower:
        await follower.until(ready)
        assert follower.seen == Reader(str(run.directory)).poll()
        source = follower.source
        assert await source.log_size(AttemptKey(2)) == at(run, 2).log.stat().st_size
        assert await source.read_log(AttemptKey(2), 5, 10) == at(run, 2).log.read_bytes()[5:15]
        at(run, 2).metrics(NOW, step=7).metrics(NOW + 10, step=8, gpus=[{"index": 0, "util": [0, 3]}])
        assert [line.extra["step"] for line in await source.read_metrics(AttemptKey(2), 1 << 20)] == [7, 8]
        assert await source.read_metrics(AttemptKey(1), 1 << 20) == []
        for number in (1, 2):
            (at(run, 2).directory / paths.stacks_name(number)).write_bytes(as_bytes(Dump(NOW + number, 2, "gpu-02")))
        found = await source.read_stacks(AttemptKey(2), 5)
        assert [(one.number, one.time, one.host) for one in found] == [(2, NOW + 2, "gpu-02"), (1, NOW + 1, "gpu-02")]
        assert await source.read_stacks(AttemptKey(1), 5) == []
        assert await source.read_idle([AttemptKey(2), AttemptKey(1)], [0.0, 0.0], 64) == {
            AttemptKey(2): [(NOW, NOW + 10, 1.0)], AttemptKey(1): []}
        assert await source.request(AttemptKey(2), "stacks")
        assert await source.request(AttemptKey(2), "extend", seconds=60)
        assert source.link.host == os.uname().nodename


async def test_another_file_in_a_logs_place_is_told_apart_here_and_over_an_agent(tmp_path):
    run = RunBuilder(tmp_path / "run")
    log = run.rank(0).start().output(b"old\n").log
    async with following(source_of(run)) as there, following(LocalSource(run.directory)) as here:
        await there.until(ready)
        await here.until(lambda f: f.status(KEY))
        before = await there.source.log_file(KEY)
        assert before == await here.source.log_file(KEY) == LogFile(4, log.stat().st_ino)
        (tmp_path / "other").write_bytes(b"another, and longer\n")
        (tmp_path / "other").replace(log)
        after = await there.source.log_file(KEY)
        assert after == await here.source.log_file(KEY)
        assert (after.size, after.number != before.number) == (20, True)
        assert await there.source.log_file(AttemptKey(9)) == await here.source.log_file(AttemptKey(9)) == LogFile(0, 0)


async def test_changes_come_as_they_happen(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start()
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        rank.phase("Train")
        await follower.until(lambda f: (status := f.status(KEY)) and status.phase == "Train", 3)
        run.rank(1).start()
        await follower.until(lambda f: f.events(AttemptKey(1)), 5)


async def test_a_run_that_holds_nothing_yet_is_read_and_says_so(tmp_path):
    run = RunBuilder(tmp_path / "run")
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        assert [type(change) for change in follower.seen] == [RunFound]


async def test_a_link_that_is_lost_is_made_again_and_nothing_comes_twice_or_is_missing(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start()
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        for number in range(3):
            kill(follower)
            await follower.until(lambda f: f.source.link.state in (LOST, RECONNECTING))
            rank.event("warning", NOW + number, number=number)
            await follower.until(ready)
        await follower.until(lambda f: len(f.events(KEY)) == 5)
        assert [one.extra.get("number") for one in follower.events(KEY)] == [None, None, 0, 1, 2]
        assert follower.states()[:4] == [CONNECTED, LOST, RECONNECTING, CONNECTED]
        lost = next(links[0] for links in follower.links if links[0].state == LOST)
        assert lost.reason == "the connection was closed: Killed"
        assert lost.retry_at is not None
        assert lost.heard is not None


async def test_a_reading_waits_for_the_new_link_and_a_request_is_never_made_twice(tmp_path):
    run = crashed_run(tmp_path / "run")
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        control = at(run, 2).directory / paths.CONTROL
        kill(follower, 19)  # stopped: it takes what is asked and never answers
        reading = asyncio.create_task(follower.source.read_log(AttemptKey(2), 0, 7))
        asking = asyncio.create_task(follower.source.request(AttemptKey(2), "release"))
        await asyncio.sleep(0)
        kill(follower, 9)
        assert await reading == at(run, 2).log.read_bytes()[:7]
        with pytest.raises(SourceError, match=r"whether it was done is not known|is not connected"):
            await asking
        assert list(control.iterdir()) == []


async def test_an_agent_that_stops_answering_lags_and_is_replaced(tmp_path, monkeypatch):
    for name, seconds in (("BEAT", 0.2), ("SLOW", 0.5), ("DEAD", 2.0)):
        monkeypatch.setattr(agent_source, name, seconds)
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        kill(follower, 19)
        await follower.until(lambda f: f.source.link.state == LAGGING)
        assert "no answer for" in follower.source.link.reason
        await follower.until(lambda f: f.source.link.state == LOST)
        await follower.until(ready)
        assert len(follower.events(KEY)) == 2


async def test_a_flood_of_changes_waits_for_the_viewer_and_logs_are_read_meanwhile(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start().output(b"x" * (3 << 20))
    for number in range(4000):
        rank.event("warning", NOW, number=number, message="m" * 2000)
    source = source_of(run)
    async with following(source) as follower:
        await follower.until(ready)
        assert await source.read_log(KEY, 0, 3 << 20) == b"x" * (3 << 20)
        await follower.until(lambda f: len(f.events(KEY)) == 4002)
        assert [one.extra.get("number") for one in follower.events(KEY)][2:] == list(range(4000))


def script(tmp_path, text):
    path = tmp_path / "way"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def test_what_a_login_shell_prints_is_skipped(tmp_path):
    run = crashed_run(tmp_path / "run")
    motd = script(tmp_path, 'printf "Welcome\\n\\033[31mto \\000\\377 gpu-03\\n"; echo quota >&2; exec "$@"\n')
    async with following(source_of(run, motd)) as follower:
        await follower.until(ready)


@pytest.mark.parametrize(("text", "said"), [
    ("echo 'Permission denied (publickey).' >&2; exit 255", r"exit code 255\): Permission denied \(publickey\)."),
    ("echo 'This account is currently not available.'; exit 1", "This account is currently not available"),
    ("exit 0", "the agent did not start there"),
    (f"exit {boot.TOO_OLD}", "it has no Python 3.8 or newer"),
    ("while echo Welcome; do :; done", "prints without end"),
    ("printf '\\000\\377trainwatch-agent\\377\\000Connection closed by remote host\\n'; exit 1", "damaged"),
])  # fmt: skip
async def test_a_host_that_cannot_serve_is_lost_for_a_reason_in_one_line(tmp_path, monkeypatch, text, said):
    monkeypatch.setattr(agent_source, "PATIENCE", 0.1)
    run = crashed_run(tmp_path / "run")
    async with following(source_of(run, script(tmp_path, text))) as follower:
        lost = await follower.until(lambda f: f.source.link.state == LOST and f.source.link, 60)
        assert re.search(said, lost.reason), lost.reason
        assert "\n" not in lost.reason
        with pytest.raises(SourceError, match="is not connected"):
            await follower.source.read_log(KEY, 0, 1)


async def test_a_python_that_is_too_old_is_passed_over_for_one_that_is_not(tmp_path):
    old = tmp_path / "python3"
    old.write_text(f"#!/bin/sh\nexit {boot.TOO_OLD}\n")
    old.chmod(0o755)
    run = crashed_run(tmp_path / "run")
    way = ExecWay("there", ["env", f"PATH={tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"])
    source = AgentSource(way, str(run.directory))
    async with following(source) as follower:
        await follower.until(ready)


async def test_a_host_that_accepts_and_never_answers_does_not_hold_anybody(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_source.AgentClient.start.__func__, "__defaults__", (0.3,))
    run = crashed_run(tmp_path / "run")
    async with following(source_of(run, script(tmp_path, "exec sleep 60"))) as follower:
        lost = await follower.until(lambda f: f.source.link.state == LOST and f.source.link)
        assert "its agent has not started" in lost.reason


@pytest.mark.parametrize(("path", "said"), [
    ("/no/such/run", "there: /no/such/run does not exist"), ("/etc/passwd", "is a file"), ("/proc", "holds no run"),
])  # fmt: skip
async def test_a_directory_that_is_no_run_is_an_error_and_not_tried_again(path, said):
    async with following(AgentSource(ExecWay("there"), path, python=sys.executable)) as follower:
        with pytest.raises(SourceError, match=said):
            await follower.until(ready)
        assert follower.source.link.retry_at is None


async def test_of_a_root_the_newest_run_is_meant(tmp_path):
    RunBuilder(tmp_path / "old", run_id="old")
    os.utime(tmp_path / "old" / paths.RUN_FILE, (1, 1))
    newer = RunBuilder(tmp_path / "new", run_id="new")
    newer.info = newer.info.replace(created=NOW + 10)
    (tmp_path / "new" / paths.RUN_FILE).write_text(json.dumps(newer.info.to_json()))
    async with following(AgentSource(ExecWay("there"), str(tmp_path), python=sys.executable)) as follower:
        await follower.until(ready)
        assert follower.source.link.directory == str(tmp_path / "new")


class CutChannel:
    """A channel that ends after so many bytes of what the other side says."""

    def __init__(self, inner, left):
        self._inner, self._left = inner, left

    async def read(self):
        data = (await self._inner.read())[: self._left] if self._left else b""
        self._left -= len(data)
        return data

    async def write(self, data):
        await self._inner.write(data)

    async def ended(self):
        return await self._inner.ended()

    async def close(self):
        await self._inner.close()


async def test_an_agents_output_that_is_cut_anywhere_is_asked_for_again_and_nothing_comes_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_source, "BACK_OFF", (0.01, 0.02))
    monkeypatch.setattr(agent_source, "FIRST_BEATS", ())
    monkeypatch.setattr(agent_source, "BEAT", 0.02)
    run = RunBuilder(tmp_path / "run")
    for number in range(40):
        run.rank(number % 4).event("warning", NOW, number=number, message=os.urandom(20).hex())
    # within the preamble, the greeting, the first answers, and again and again within the changes
    cuts = [1, 9, 30, 90, 200, *range(300, 2600, 170)]
    waiting = list(cuts)

    class Cut(ExecWay):
        async def open(self, argv):
            channel = await ExecWay.open(self, argv)
            return CutChannel(channel, waiting.pop(0)) if waiting else channel

    source = AgentSource(Cut("there"), str(run.directory), python=sys.executable)
    async with following(source) as follower:
        await follower.until(lambda f: not waiting and ready(f), 120)
        numbers = [one.extra["number"] for rank in range(4) for one in follower.events(AttemptKey(rank))]
        assert numbers == [number for rank in range(4) for number in range(rank, 40, 4)]
        reasons = {links[0].reason for links in follower.links if links[0].state == LOST}
        assert reasons
        assert all(reason and "\n" not in reason for reason in reasons)


@pytest.mark.parametrize("python", ["/no/such/python3", "no-such-python3"])
async def test_a_host_without_a_python_is_told_what_to_do(tmp_path, python):
    run = crashed_run(tmp_path / "run")
    async with following(AgentSource(ExecWay("there"), str(run.directory), python=python)) as follower:
        with pytest.raises(SourceError, match=r"there: it has no Python 3\.8 or newer; name one"):
            await follower.until(ready)
        assert follower.source.link.retry_at is None


async def test_a_run_that_the_hosts_user_may_not_read_says_so(tmp_path):
    with unprivileged_directory() as directory:
        run = crashed_run(directory / "run")
        run.directory.chmod(0)
        try:
            async with following(as_nobody(run)) as follower:
                with pytest.raises(SourceError, match=r"there: .*run.*[Pp]ermission"):
                    await follower.until(ready)
        finally:
            run.directory.chmod(0o700)


async def test_a_request_that_the_hosts_user_may_not_make_says_whom_to_ask(tmp_path):
    with unprivileged_directory() as directory:
        run = crashed_run(directory / "run")
        control = at(run, 2).directory / paths.CONTROL
        control.chmod(0o500)
        async with following(as_nobody(run)) as follower:
            await follower.until(ready)
            with pytest.raises(SourceError, match=r"no permission to write in .*; ask as the user that started"):
                await follower.source.request(AttemptKey(2), "release")
        assert list(control.iterdir()) == []


def as_nobody(run):
    """The run read by an agent for whom permissions count."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    return AgentSource(ExecWay("there", drop), str(run.directory))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_a_request_that_finds_the_disk_full_says_so_and_leaves_nothing(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], check=True)
    try:
        run = crashed_run(place / "run")
        control = at(run, 2).directory / paths.CONTROL
        async with following(source_of(run)) as follower:
            await follower.until(ready)
            with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            with pytest.raises(SourceError, match=f"no space left for {control}; free some and ask again"):
                await follower.source.request(AttemptKey(2), "release")
            assert list(control.iterdir()) == []
            (place / "filler").unlink()
            identity = await follower.source.request(AttemptKey(2), "release")
            assert (control / f"{identity}.json").exists()
            assert await follower.source.withdraw(AttemptKey(2), identity)
            assert list(control.iterdir()) == []
            assert not await follower.source.withdraw(AttemptKey(2), identity)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


class FarChannel:
    """A channel through which every byte takes a second, in both directions."""

    def __init__(self, inner):
        self._inner = inner
        self._there, self._back = asyncio.Queue(), asyncio.Queue()
        self._tasks = [asyncio.create_task(self._carry()), asyncio.create_task(self._listen())]

    async def read(self):
        due, data = await self._back.get()
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        return data

    async def write(self, data):
        self._there.put_nowait((time.monotonic() + 1.0, data))

    async def ended(self):
        return await self._inner.ended()

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await self._inner.close()

    async def _carry(self):
        while True:
            due, data = await self._there.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._inner.write(data)

    async def _listen(self):
        data = b"?"
        while data:
            data = await self._inner.read()
            self._back.put_nowait((time.monotonic() + 1.0, data))


async def test_two_seconds_to_a_host_and_back_are_no_trouble(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start().output(b"x" * (2 << 20))

    class Far(ExecWay):
        async def open(self, argv):
            return FarChannel(await ExecWay.open(self, argv))

    source = AgentSource(Far("far"), str(run.directory), python=sys.executable)
    async with following(source) as follower:
        await follower.until(ready)
        started = time.monotonic()
        assert await source.read_log(KEY, 0, 2 << 20) == b"x" * (2 << 20)
        assert time.monotonic() - started < 5  # one trip, not one for each part
        for number in range(8):
            rank.event("warning", NOW, number=number)
        await follower.until(lambda f: len(f.events(KEY)) == 10)
        assert LAGGING not in follower.states()
        assert LOST not in follower.states()
        assert source.link.round_trip == pytest.approx(2, abs=0.8)
        assert source.ahead(KEY) == 0.0


CLOCK = """
import sys, time
sys.path.insert(0, sys.argv[1])
from trainwatch_launcher.agent import main
main.main(clock=lambda: time.time() + float(sys.argv[2]))
"""


@pytest.mark.parametrize("off", [300.0, -300.0, 0.0])
async def test_a_hosts_clock_is_measured(tmp_path, off):
    run = crashed_run(tmp_path / "run")

    class Way(ExecWay):
        async def open(self, argv):
            return await ExecWay.open(self, [sys.executable, "-c", CLOCK, str(ROOT / "launcher"), str(off)])

    source = AgentSource(Way("there"), str(run.directory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boot, "program", lambda: b"")
        async with following(source) as follower:
            await follower.until(ready)
            assert source.ahead(KEY) == pytest.approx(off, abs=5.0)  # what a busy machine adds
            assert source.link.clock_ahead == source.link.server_ahead


@LINUX
async def test_nothing_of_the_agent_stays_when_the_viewer_leaves(tmp_path):
    run = crashed_run(tmp_path / "run")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        pid = int(follower.source._client.hello["pid"])
        opened = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
        assert not [name for name in opened if name.startswith("/") and not name.startswith("/dev")]
    assert not Path(f"/proc/{pid}").exists()
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@LINUX
def test_the_agent_ends_when_the_viewer_is_killed(tmp_path):
    run = crashed_run(tmp_path / "run")
    viewer = subprocess.Popen(
        [sys.executable, "-c", VIEWER, str(run.directory)], stdout=subprocess.PIPE, text=True)
    assert viewer.stdout is not None
    pid = int(viewer.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    viewer.kill()
    viewer.communicate()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), 10, "the agent's end")


VIEWER = """
import asyncio, sys
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.channel import ExecWay

async def main():
    source = AgentSource(ExecWay("there"), sys.argv[1], python=sys.executable)
    async for batch in source.changes():
        if source._client is not None:
            print(source._client.hello["pid"], flush=True)

asyncio.run(main())
"""


async def test_a_shell_is_described_there_and_entered_with_the_live_environment(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0, host=os.uname().nodename).start(cwd=str(tmp_path))
    pretender = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; f = open(sys.argv[2], 'a'); print(1, flush=True); time.sleep(600)",
         "trainwatch-launch", str(rank.directory / paths.EVENTS)],
        stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"], "JOB_FACT": "it's 42; $HOME"})  # fmt: skip
    try:
        pretender.stdout.readline()
        rank.set(launcher_pid=pretender.pid).fail(3, hold=600)
        async with following(source_of(run)) as follower:
            await follower.until(ready)
            show = (sys.executable, "-c", "import os; print(os.getcwd(), os.environ['JOB_FACT'], os.environ['TERM'])")
            plan = await follower.source.shell(KEY, show)
            assert plan.env is None
            assert plan.note.startswith("rank 0 · exit code 3 · held until ")
            assert plan.note.endswith(" · on there")
            assert not any("it's 42" in word for word in plan.argv)
            done = subprocess.run(plan.argv, capture_output=True, text=True, env={**os.environ, "TERM": "xterm-ours"})
            assert (done.stdout, done.stderr) == (f"{tmp_path} it's 42; $HOME xterm-ours\n", "")
            pretender.kill()
            pretender.wait()
            gone = subprocess.run(plan.argv, capture_output=True, text=True, env={**os.environ, "JOB_FACT": "own"})
            assert "has ended meanwhile: this is your own environment" in gone.stderr
            missing = await follower.source.shell(KEY, ("/no/such/program",))
            assert subprocess.run(missing.argv, capture_output=True).returncode == 127
    finally:
        pretender.kill()
        pretender.wait()
        pretender.stdout.close()


async def test_the_agent_costs_little_for_eight_busy_ranks(tmp_path):
    run = RunBuilder(tmp_path / "run")
    ranks = [run.rank(number).start() for number in range(8)]
    async with following(source_of(run)) as follower:
        await follower.until(ready)
        pid = int(follower.source._client.hello["pid"])
        for step in range(3):
            for rank in ranks:
                rank.set(output_bytes=step)
            await follower.until(lambda f, step=step: f.status(AttemptKey(7)).output_bytes == step)
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        assert resident < 25 << 20
