"""The screen of stacks: it asks, shows what comes, folds it, and names who differs; also what was taken before."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, at
from support.screens import app_on, notes, press, screen_text, settle, wait_for
from trainwatch.screens.log import LogScreen
from trainwatch.screens.overview import Overview
from trainwatch.screens.stacks import StacksScreen
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.stacks import Dump, Frame, Process, Tasks, Thread, as_bytes

WIDE, NARROW = (160, 45), (80, 24)
SYNC = [Frame("all_reduce", "/x/site-packages/torch/distributed/distributed_c10d.py", 2501),
        Frame("sync", "/job/comm.py", 80), Frame("<module>", "/job/train.py", 9)]
LOAD = [Frame("__getitem__", "/job/data_loader.py", 41), Frame("<module>", "/job/train.py", 9)]


def write(run, rank, frames, number=1, time=NOW - 5, note=""):
    """The launcher of a rank has taken its stacks."""
    dump, process = Dump(time, rank, f"gpu-0{rank}"), Process(4711 + rank, "S", "python train.py")
    process.method = dump.method = "py-spy" if frames else "kernel"
    dump.note = note
    if frames:
        process.threads = [Thread(4711 + rank, "MainThread", "idle"), Thread(0, "pin_memory", "idle")]
        process.threads[0].frames, process.threads[1].frames = list(frames), [Frame("wait", "/job/pin.py", 3)]
    else:
        process.tried.append(note)
    process.tasks = [Tasks(4, "S", "futex_do_wait", "futex", "python")]
    dump.processes.append(process)
    (at(run, rank).directory / paths.stacks_name(number)).write_bytes(as_bytes(dump))


def hung(directory, ranks=4):
    run = RunBuilder(directory / "run")
    for rank in range(ranks):
        run.rank(rank).start().phase("Train")
    return run


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_all_ranks_are_asked_and_the_one_that_differs_stands_out(tmp_path, size):
    run = hung(tmp_path)
    app = app_on(tmp_path / "run")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "D")
        await wait_for(pilot, lambda: len(app._source.requests) == 4)
        assert {(key.rank, command) for key, command, _ in app._source.requests} == {(n, "stacks") for n in range(4)}
        assert "taking stacks: 0 of 4 have come" in screen_text(pilot)
        for rank in range(4):
            write(run, rank, LOAD if rank == 2 else SYNC)
        for number in range(3):
            app._source.took(number, 1)
        await wait_for(pilot, lambda: "taking stacks: 3 of 4 have come" in screen_text(pilot))
        app._source.took(3, 1)
        await wait_for(pilot, lambda: "stacks of ranks 0-3" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "3 ranks  in all_reduce at comm.py:80   0-1, 3" in shown
        assert "▲ rank 2   in data_loader.py:41 (__getitem__)" in shown
        assert "5s ago · py-spy" in shown
        assert "distributed_c10d.py" not in shown
        await press(pilot, "enter")
        assert "all_reduce  /x/site-packages/torch/distributed/distributed_c10d.py:2501" in screen_text(pilot)
        assert "rank 1 · gpu-01 · process 4712 · 4 threads · python train.py" in screen_text(pilot)
        await press(pilot, "j", "j", "j", "j", "enter")
        assert "thread pin_memory · idle" in screen_text(pilot)
        assert "kernel: 4 × python S in futex (futex_do_wait)" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(app.screen, Overview)


async def test_the_marked_ranks_are_asked_and_again_from_where_they_are_shown(tmp_path):
    run = hung(tmp_path)
    app = app_on(tmp_path / "run")
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "m", "m", "d")
        await wait_for(pilot, lambda: len(app._source.requests) == 2)
        assert sorted(key.rank for key, _, _ in app._source.requests) == [0, 1]
        await press(pilot, "d")
        assert len(app._source.requests) == 2  # they are being taken
        for rank in (0, 1):
            write(run, rank, SYNC)
            app._source.took(rank, 1)
        await wait_for(pilot, lambda: "stacks of ranks 0-1" in screen_text(pilot))
        await press(pilot, "d")
        await wait_for(pilot, lambda: len(app._source.requests) == 4)
        write(run, 0, LOAD, 2, NOW)
        app._source.took(2, 2)
        app._source.took(3, None, "no process of the command is left")
        await wait_for(pilot, lambda: "rank 0   in data_loader.py:41" in screen_text(pilot)
                       or "rank 0  in data_loader.py:41" in screen_text(pilot))
        assert "rank 1: no process of the command is left" in screen_text(pilot)


async def test_what_was_taken_of_a_run_that_has_ended_is_shown_and_what_was_before(tmp_path, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    run = hung(tmp_path, 3)
    for rank in range(3):
        write(run, rank, LOAD, 1, NOW - 3600)
        write(run, rank, SYNC, 2, NOW - 60)
        at(run, rank).set(stacks=2).finish()
    app = app_on(tmp_path / "run")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "D")
        assert app._source.requests == []
        assert "3 ranks  in all_reduce at comm.py:80" in screen_text(pilot)
        assert "1 of 2, [ older ] newer" in screen_text(pilot)
        await press(pilot, "left_square_bracket")
        assert "3 ranks  in data_loader.py:41 (__getitem__)" in screen_text(pilot)
        assert "1h" in screen_text(pilot)
        await press(pilot, "left_square_bracket", "left_square_bracket")
        assert "the first ones that were taken" in notes(pilot)
        await press(pilot, "right_square_bracket")
        assert "all_reduce" in screen_text(pilot)
        await press(pilot, "c")
        await wait_for(pilot, lambda: app.clipboard)
        assert "    all_reduce (/x/site-packages" in app.clipboard
        await press(pilot, "d")
        assert "No rank runs" in notes(pilot)
        await press(pilot, "l")
        assert isinstance(app.screen, LogScreen)


async def test_what_is_not_permitted_is_said_with_what_would_help(tmp_path):
    run = hung(tmp_path)
    for rank in range(4):
        write(run, rank, [], note="py-spy is not permitted: run the container with --cap-add SYS_PTRACE")
        at(run, rank).set(stacks=1)
    app = app_on(tmp_path / "run")
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "d")
        await wait_for(pilot, lambda: app._source.requests)
        app._source.took(0, 1)
        await wait_for(pilot, lambda: "rank 0: py-spy is not permitted: run the container with" in screen_text(pilot))
        assert "python train.py in futex (futex_do_wait)" in screen_text(pilot)
        assert "Traceback" not in screen_text(pilot)


async def test_a_launcher_that_refuses_or_is_silent_is_said(tmp_path):
    hung(tmp_path)
    now = [NOW]
    app = app_on(tmp_path / "run")
    app._clock = lambda: now[0]
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "m", "m", "d")
        await wait_for(pilot, lambda: len(app._source.requests) == 2)
        app._source.answer(0, "this launcher does not know that command")
        await wait_for(pilot, lambda: "does not know that command" in screen_text(pilot))
        for _ in range(6):
            now[0] += 2
            app.following.answers()
        await wait_for(pilot, lambda: app._source.withdrawn == ["request-1"])
        await wait_for(pilot, lambda: "no answer; the request is taken back" in screen_text(pilot))


async def test_a_rank_without_any_is_said(tmp_path):
    run = hung(tmp_path, 1)
    at(run, 0).finish()
    app = app_on(tmp_path / "run")
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "d", "D")
        assert isinstance(app.screen, Overview)
        assert "rank 0 has finished, and no stacks were taken before" in notes(pilot)
        assert "No rank runs" in notes(pilot)


async def test_hostile_names_are_text(tmp_path):
    run = hung(tmp_path, 1)
    write(run, 0, [Frame("[bold]f[/]", "/job/a.py", 1)])
    path = at(run, 0).directory / paths.stacks_name(1)
    path.write_bytes(path.read_bytes().replace(b"gpu-00", b"\x1b[2Jgpu").replace(b"pin_memory", b"\x1b]0;x\x07"))
    at(run, 0).set(stacks=1).finish()
    app = app_on(tmp_path / "run")
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "d")
        assert isinstance(app.screen, StacksScreen)
        await press(pilot, "enter", "G", "enter")
        assert "[bold]f[/]" in screen_text(pilot)
        assert "\x1b" not in screen_text(pilot)
