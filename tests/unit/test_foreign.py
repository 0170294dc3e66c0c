"""Logs that no launcher wrote: whose they are, what they tell, how they are read together and followed by name."""
from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from support.following import following
from support.logs import SIZE, enter, filled
from support.screens import press, screen_text, settle, wait_for
from trainwatch import cli
from trainwatch.app import TrainwatchApp
from trainwatch.model.state import EMPTY, apply
from trainwatch.sources.base import SourceError
from trainwatch.sources.combined import form_of
from trainwatch.sources.foreign import ForeignSource
from trainwatch.sources.foreign_files import found
from trainwatch_launcher.reader import log
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.pages import Page
from trainwatch_launcher.reader.runs import TargetError


def write(directory, name, text="x\n"):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("names", "keys"), [
    (["rank-0.log", "rank-1.log", "rank-10.log"], [(0,), (1,), (10,)]),
    (["slurm-991-0.out", "slurm-991-1.out", "slurm-991-12.out"], [(0,), (1,), (12,)]),
    (["attempt_0/0/stdout.log", "attempt_0/0/stderr.log", "attempt_0/1/stdout.log"], [(0,), (0, 1, 1, 1), (1,)]),
    (["worker_3.txt", "driver.log"], [(3,), (4,)]), (["train.log"], [(0,)]),
    (["log.2025-11-30.txt"], [(0,)]), (["a.log", "b.log"], [(0,), (1,)]),
])  # fmt: skip
def test_ranks_are_those_of_the_names(tmp_path, names, keys):
    for name in names:
        write(tmp_path, name)
    named = found([str(tmp_path)])
    assert sorted(log.key for log in named) == sorted(AttemptKey(*key) for key in keys)
    by_key = {log.key: log.name for log in named}
    if len(keys[0]) == 1:
        assert by_key[AttemptKey(*keys[0])] == names[0]


def test_what_is_not_there_is_said_before_the_screen_is_taken(tmp_path, capsys):
    with pytest.raises(TargetError, match="does not exist"):
        found([str(tmp_path / "none.log")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(TargetError, match="holds no logs"):
        found([str(tmp_path / "empty")])
    assert cli.main([write(tmp_path, "a.log"), str(tmp_path / "none.log")]) == 2
    assert "none.log does not exist" in capsys.readouterr().err
    assert cli.main([str(tmp_path / "empty")]) == 2
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "before"), [
    ("[rank%d]: step %d", ""), ("[default%d]:step %d", ""), ("%d: step %d", ""), (" %d: step %d", ""),
    ("[1,%d]<stdout>: step %d", ""), ("2025-11-30 10:00:00 [rank%d]: step %d", ""),
])  # fmt: skip
def test_one_file_with_many_ranks_is_taken_apart(line, before):
    lines = [line % (rank, step) for step in range(30) for rank in (0, 1, 11)]
    form = form_of("\n".join(["a banner", *lines]).encode())
    assert form is not None
    assert form.ranks == (0, 1, 11)
    assert [form.rank_of(text.encode()) for text in lines[:3]] == [0, 1, 11]
    assert form.rank_of(b"a banner") is None
    from trainwatch_launcher.reader.query import Query

    only = Query(form.only([1]), regex=True, case=True)
    assert [bool(only.pattern.search(text)) for text in lines[:3]] == [False, True, False]


@pytest.mark.parametrize("text", [
    "".join(f"step {n} loss {n / 7:.3f}\n" for n in range(50)), "", "[rank3]: alone\n" * 20,
    "".join(f"{n}: an item of a list\n" for n in range(30)), "Epoch 1: 10 done\n" * 30,
])  # fmt: skip
def test_the_log_of_one_process_stays_one(text):
    assert form_of(text.encode()) is None


CONSOLE = "".join(
    f"[rank{rank}]: 2025-11-30 10:00:{step:02d} step {step} loss {rank}.5\n" for step in range(60) for rank in range(3)
)


async def lines(source, keys, **asked):
    parts = [part async for part in source.ask_logs("page", keys, [0.0] * len(keys), **asked)]
    return [(keys[entry.log].rank, entry.data.decode()) for _, body in parts for entry in Page.decode(body)]


def run_of(follower):
    return apply(EMPTY, follower.seen)


async def test_ranks_of_one_file_are_read_apart_and_together(tmp_path):
    banner = "a banner of no rank\n"
    path = write(tmp_path, "console.log", CONSOLE + banner)
    async with following(ForeignSource([path])) as follower:
        await follower.until(lambda f: len(run_of(f).attempts) == 3)
        source, keys = follower.source, [AttemptKey(rank) for rank in range(3)]
        texts = [(int(line[5]), line) for line in CONSOLE.splitlines()]
        alone = await lines(source, keys[1:2], down=True, count=500)
        assert alone == [line for line in texts if line[0] == 1]
        assert await lines(source, keys, down=True, count=500) == [*texts, (2, banner.strip())]
        pair = [keys[2], keys[0]]
        assert sorted(await lines(source, pair, down=False, count=4)) == sorted(
            [line for line in texts if line[0] in (0, 2)][-4:])
        found_ = [part async for part in source.ask_logs("search", keys[1:2], [0.0], queries=[{"text": "step 7 "}])]
        assert sum(facts.get("count", 0) for facts, _ in found_) == 1
        status = run_of(follower).attempts[keys[2]].status
        assert (status.step, status.loss) == (59, 2.5)
        with pytest.raises(SourceError, match="no launcher"):
            await source.request(keys[0], "release")
        with pytest.raises(SourceError, match="nobody knows where"):
            await source.shell(keys[0])


async def test_phases_and_failures_are_told_as_far_as_the_text_gives_them(tmp_path):
    boom = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    f()\nRuntimeError: boom\n'
    good = write(tmp_path, "rank-0.log", "=== [Phase] Load ===\n=== [Phase] Train ===\nstep 1 loss 0.5\n")
    bad = write(tmp_path, "rank-1.log", "=== [Phase] Load ===\n" + boom)
    old = time.time() - 60
    os.utime(bad, (old, old))
    async with following(ForeignSource([good, bad])) as follower:
        await follower.until(lambda f: run_of(f).attempts.get(AttemptKey(1)) and len(
            run_of(f).attempts[AttemptKey(0)].phases) == 2)
        run = run_of(follower)
        assert [phase.name for phase in run.attempts[AttemptKey(0)].phases] == ["Load", "Train"]
        assert run.attempts[AttemptKey(0)].phases[1].offset == 21
        failed = run.attempts[AttemptKey(1)].status
        assert failed.reason == "RuntimeError: boom"
        assert failed.exit_code == 1


async def test_files_are_followed_by_name_when_they_are_rotated_and_truncated(tmp_path):
    path = tmp_path / "rank-0.log"
    path.write_text("old line\n" * 1000)
    async with following(ForeignSource([str(tmp_path)])) as follower:
        await follower.until(lambda f: AttemptKey(0) in run_of(f).attempts)
        source, key = follower.source, AttemptKey(0)
        before = await source.log_file(key)
        path.rename(tmp_path / "rank-0.log.1")
        path.write_text("new line\n" * 2000)
        after = await source.log_file(key)
        assert after.number != before.number
        assert (await lines(source, [key], down=True, count=1)) == [(0, "new line")]
        counted = [facts async for facts, _ in source.ask_logs("count", [key], [0.0])]
        assert counted[-1] == {"lines": 2000}
        path.write_text("")
        path.write_text("short\n")
        counted = [facts async for facts, _ in source.ask_logs("count", [key], [0.0])]
        assert counted[-1] == {"lines": 1}
        write(tmp_path, "rank-1.log", "a new rank\n")
        await follower.until(lambda f: AttemptKey(1) in run_of(f).attempts, 30)


async def test_foreign_logs_are_shown_as_a_run(tmp_path):
    for rank in range(2):
        write(tmp_path, f"rank-{rank}.log", "".join(f"10:00:{s:02d} step {s} of {rank}\n" for s in range(60)))
    app = TrainwatchApp(ForeignSource([str(tmp_path)]))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await wait_for(pilot, lambda: "rank-1.log" in screen_text(pilot))
        await press(pilot, "M")
        await wait_for(pilot, lambda: filled(pilot)[-2:] == ["0 ▏ 10:00:59 step 59 of 0", "1 ▏ 10:00:59 step 59 of 1"])
        await press(pilot, "g")
        await wait_for(pilot, lambda: filled(pilot)[:2] == ["0 ▏ 10:00:00 step 0 of 0", "1 ▏ 10:00:00 step 0 of 1"])


async def test_a_rank_of_a_combined_log_is_scrolled_through_and_grows(tmp_path):
    path = tmp_path / "console.log"
    path.write_text(CONSOLE * 20)
    app = TrainwatchApp(ForeignSource([str(path)]))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await wait_for(pilot, lambda: screen_text(pilot).count("console.log") > 3)
        await press(pilot, "j", "l")
        await wait_for(pilot, lambda: filled(pilot)[-1:] == ["[rank1]: 2025-11-30 10:00:59 step 59 loss 1.5"])
        assert all(row.startswith("[rank1]") for row in filled(pilot))
        with path.open("a") as out:
            out.write("[rank0]: not mine\n[rank1]: a new line\n")
        await wait_for(pilot, lambda: filled(pilot)[-1] == "[rank1]: a new line")
        await press(pilot, "pageup", "pageup")
        assert all(row.startswith("[rank1]") for row in filled(pilot))
        assert len(filled(pilot)) == 28


async def test_the_title_says_how_many_lines_there_are_by_now_and_nothing_old_is_new(tmp_path):
    path = write(tmp_path, "train.log", "one\ntwo\nthree\n")
    async with TrainwatchApp(ForeignSource([path])).run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await wait_for(pilot, lambda: "3 lines" in screen_text(pilot).splitlines()[0])
        write(tmp_path, "train.log", "one\ntwo\nthree\nfour\n")
        await wait_for(pilot, lambda: "4 lines" in screen_text(pilot).splitlines()[0])
        await press(pilot, "f")
        await enter(pilot, "ampersand", "o")
        await wait_for(pilot, lambda: filled(pilot) == ["one", "two", "four"])
        assert "new" not in screen_text(pilot).splitlines()[0]
        await press(pilot, "escape")
        await wait_for(pilot, lambda: filled(pilot) == ["one", "two", "three", "four"])
        assert "new" not in screen_text(pilot)
        assert "4 lines" in screen_text(pilot).splitlines()[0]


async def test_a_log_that_cannot_be_read_is_a_rank_that_says_so_until_it_can(tmp_path, monkeypatch):
    path = write(tmp_path, "rank-0.log", "step 1\n")
    may_read = threading.Event()
    read = log.read

    def denied(*asked):
        if not may_read.is_set():
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read(*asked)

    monkeypatch.setattr(log, "read", denied)
    async with TrainwatchApp(ForeignSource([path])).run_test(size=(120, 30)) as pilot:
        await wait_for(pilot, lambda: "cannot read it: Permission denied" in screen_text(pilot))
        await pilot.press("l")  # nothing settles where nothing can be read
        await wait_for(pilot, lambda: "Permission denied" in screen_text(pilot).splitlines()[0])
        may_read.set()
        await wait_for(pilot, lambda: filled(pilot) == ["step 1"])
        await press(pilot, "escape")
        await wait_for(pilot, lambda: "Permission denied" not in screen_text(pilot))
