"""What the screens look like, at two sizes, in both themes; `pytest tests/snapshots --snapshot-update` renews it."""
from __future__ import annotations

import time
from pathlib import Path

import pytest

from builders import NOW, RunBuilder, at, gpu, training_at, with_history
from support.screens import app_on, opened, press, settle, wait_for
from trainwatch.app import TrainwatchApp
from trainwatch.screens.runs import RunsScreen

WIDE, NARROW = (160, 45), (80, 24)
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
THEMES = pytest.mark.parametrize("theme", ["trainwatch-dark", "trainwatch-light"], ids=["dark", "light"])


@pytest.fixture(autouse=True)
def _one_time_zone(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def training(directory: Path, world_size: int = 8) -> RunBuilder:
    """Eight ranks in the middle of a training, with colours and Chinese in their logs."""
    run = RunBuilder(directory, "7b-pretrain-0412", world_size)
    steps = b"".join(
        b"\x1b[32m[%05d]\x1b[0m loss \x1b[1m%.4f\x1b[0m lr 3.0e-4 tok/s 412k\n" % (step, 2.5 / (step + 1) ** 0.3)
        for step in range(300)
    )
    for rank in range(world_size):
        attempt = run.rank(rank, host=f"gpu-node-{rank:03d}")
        command = ("bash", "train/7B1_test.sh", "10.0.0.1", "29500", "8", str(rank))
        attempt.start(NOW - 1931, argv=command, cwd="/job/code")
        attempt.phase("Environment Setup Complete", NOW - 1800)
        attempt.output("=== [Phase] Environment Setup Complete ===\n下载数据集 分词器 完成 ✓\n".encode(), NOW - 1700)
        attempt.phase("训练 Launching torchrun", NOW - 1500)
        attempt.output(b"=== [Phase] Launching torchrun ===\n" + steps, NOW - 1 - rank)
    return run


def crashed(directory: Path) -> RunBuilder:
    """The same after a crash: one culprit, its victims, one lost, one stalled, one with a full disk."""
    run = training(directory)
    reason = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 2 has 79.11 GiB"
    boom = b"Traceback (most recent call last):\n  File \"train.py\", line 214, in <module>\n    loss.backward()\n"
    at(run, 2).output(boom + reason.encode() + b"\n", NOW - 62).fail(1, NOW - 60, reason=reason, hold=9800)
    at(run, 0).fail(143, NOW - 55, signal=15, hold=600)
    at(run, 1).fail(143, NOW - 54, signal=15, hold=None)
    at(run, 3).fail(137, NOW - 53, signal=9, hold=36_000)
    at(run, 4).set(time=NOW - 50)
    at(run, 5).set(stalled_since=NOW - 300, last_output=NOW - 300)
    at(run, 6).set(warning="log disk full: 3.1 MB of output kept in memory")
    run.rank(1, attempt=2, host="gpu-node-001").start(NOW - 20).phase("Environment Setup Complete", NOW - 4)
    return run


def pretraining(directory: Path) -> RunBuilder:
    """Eight ranks of eight GPUs that train, with what goes wrong in such runs."""
    run = training(directory)
    for rank in range(8):
        attempt = at(run, rank)
        gpus = [gpu(rank, index) for index in range(8)]
        if rank == 1:
            gpus[2].update(ecc_uncorrected=2)
        if rank == 2:
            gpus[5].update(temperature=92, throttle=["sw_thermal"], clock=1210)
        attempt.set(gpus=gpus, **training_at(4100, NOW - 20))
        if rank < 3:
            with_history(attempt)
    return run


async def trains(pilot, run: RunBuilder) -> None:
    """Some steps, as a viewer sees them come: rank 3's loss becomes NaN, rank 5 stalls."""
    source = pilot.app._source
    for step in range(4101, 4113):
        for rank in range(8):
            loss = "nan" if rank == 3 and step > 4109 else 1.9 - (step - 4100) * 0.004 + rank * 0.001
            time = NOW - 20 + (step - 4100) * 1.24
            at(run, rank).set(**training_at(step, time, loss=loss))
        source.look()
    at(run, 5).set(stalled_since=NOW - 300)
    source.look()
    await wait_for(pilot, lambda: len(pilot.app.screen._board.found) == 4)
    await settle(pilot)


def shows_training(snap_compare, directory: Path, theme: str, size: tuple[int, int], *keys: str) -> bool:
    run = pretraining(directory)

    async def before(pilot) -> None:
        await settle(pilot)
        await trains(pilot, run)
        await press(pilot, *keys)

    return snap_compare(app_on(directory, theme), terminal_size=size, run_before=before)


def shows(snap_compare, app: TrainwatchApp, size: tuple[int, int], *keys: str) -> bool:
    async def before(pilot) -> None:
        await settle(pilot)
        await press(pilot, *keys)

    return snap_compare(app, terminal_size=size, run_before=before)


@SIZES
@THEMES
def test_running(snap_compare, tmp_path, size, theme):
    training(tmp_path)
    assert shows(snap_compare, app_on(tmp_path, theme), size)


@SIZES
@THEMES
def test_crashed_and_held(snap_compare, tmp_path, size, theme):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path, theme), size)


@SIZES
def test_waiting_for_the_first_rank(snap_compare, tmp_path, size):
    RunBuilder(tmp_path, "7b-pretrain-0412", 8)
    assert shows(snap_compare, app_on(tmp_path), size)


@SIZES
def test_rank_details(snap_compare, tmp_path, size):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path), size, "enter")


@SIZES
@THEMES
def test_log_with_a_search(snap_compare, tmp_path, size, theme):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path, theme), size, "l", "slash", *"loss", "enter")


@SIZES
def test_filtered_by_state_and_sorted(snap_compare, tmp_path, size):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path), size, "full_stop", "slash", *"state:held", "enter")


@SIZES
@THEMES
def test_training_with_what_stands_out(snap_compare, tmp_path, size, theme):
    assert shows_training(snap_compare, tmp_path, theme, size, "j", "j")


@SIZES
@THEMES
def test_rank_with_progress_and_gpus(snap_compare, tmp_path, size, theme):
    down = ["j"] * 15 if size == NARROW else []
    assert shows_training(snap_compare, tmp_path, theme, size, "j", "j", "enter", *down)


@SIZES
@THEMES
def test_charts(snap_compare, tmp_path, size, theme):
    assert shows_training(snap_compare, tmp_path, theme, size, "m", "m", "m", "c")


def test_a_chart_in_the_terminals_own_16_colours(snap_compare, tmp_path):
    assert shows_training(snap_compare, tmp_path, "ansi-dark", NARROW, "m", "m", "c", "right", "right", "right")


def test_what_stands_out(snap_compare, tmp_path):
    assert shows_training(snap_compare, tmp_path, "trainwatch-dark", NARROW, "p")


def test_help(snap_compare, tmp_path):
    training(tmp_path)
    assert shows(snap_compare, app_on(tmp_path), WIDE, "question_mark")


def test_extend_dialog(snap_compare, tmp_path):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path), NARROW, "e")


def test_release_dialog(snap_compare, tmp_path):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path, "trainwatch-light"), NARROW, "x")


def test_the_terminals_own_16_colours(snap_compare, tmp_path):
    crashed(tmp_path)
    assert shows(snap_compare, app_on(tmp_path, "ansi-dark"), NARROW)


def test_runs_to_pick_from(snap_compare, tmp_path, monkeypatch):
    crashed(tmp_path / "b")
    training(tmp_path / "a", 4)
    monkeypatch.chdir(tmp_path)
    app = TrainwatchApp(root=Path(), open_source=opened, clock=lambda: NOW, theme_name="trainwatch-dark")

    async def before(pilot) -> None:
        await wait_for(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and pilot.app.screen.is_complete)

    assert snap_compare(app, terminal_size=NARROW, run_before=before)
