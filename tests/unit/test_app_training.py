"""Training on the screens: what stands out, marks, charts, a rank's progress and GPUs."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, at, gpu, training_at, with_history
from support.screens import app_on, press, screen_text, settle, wait_for
from trainwatch.screens.chart import ChartScreen
from trainwatch.screens.overview import Overview
from trainwatch.widgets.rank_table import RankTable
from trainwatch_launcher.rundir import paths

WIDE, NARROW = (160, 45), (80, 24)


def training(directory, ranks=4, **facts):
    run = RunBuilder(directory, world_size=ranks)
    for rank in range(ranks):
        run.rank(rank).start().phase("Train").set(
            gpus=[gpu(rank, index) for index in range(8)], **training_at(4120, NOW - 1, **facts))
    return run


async def test_the_header_says_how_far_the_run_is_and_the_table_how_far_each_rank(tmp_path):
    training(tmp_path)
    for size in (WIDE, NARROW):
        async with app_on(tmp_path).run_test(size=size) as pilot:
            await settle(pilot)
            shown = screen_text(pilot)
            assert "4120/48000 " in shown.splitlines()[1]
            assert "loss 2.000" in shown.splitlines()[1]
            assert "412k tok/s" in shown.splitlines()[1]
            assert "GPU 96%" in shown.splitlines()[1]
            assert shown.count("4120/48000") == 5
            assert " ▲ " not in shown


async def test_what_the_gpus_cost_is_told_in_hours_and_in_money(tmp_path):
    training(tmp_path, 1, gpu_seconds=28800.0, gpu_seconds_idle=3600.0, gpu_seconds_setup=2880.0)
    for price, said in ((None, "8.0 GPU-h, 1.0 idle"), (2.5, "8.0 GPU-h = 20.00, 2.50 idle")):
        async with app_on(tmp_path, gpu_price=price).run_test(size=WIDE) as pilot:
            await settle(pilot)
            assert said in screen_text(pilot).splitlines()[1]


async def test_a_run_without_progress_and_gpus_has_no_line_and_no_columns_for_them(tmp_path):
    RunBuilder(tmp_path).rank(0).start().phase("Train")
    async with app_on(tmp_path).run_test(size=WIDE) as pilot:
        await settle(pilot)
        titles = screen_text(pilot).splitlines()[1]
        assert titles.split()[:2] == ["rank▲", "host"]
        assert "loss" not in titles
        assert "gpu" not in titles


async def test_what_stands_out_is_said_and_one_key_leads_there(tmp_path):
    run = training(tmp_path)
    at(run, 2).set(**training_at(4120, NOW - 1, loss="nan"))
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert "▲ rank 2: loss is nan at step 4120" in screen_text(pilot)
        await press(pilot, "w", "escape")
        assert pilot.app.screen.query_one(RankTable).selected.rank == 2
        assert "! loss is nan at step 4120" in screen_text(pilot)
        await press(pilot, "p")
        assert "▲ rank 2: loss is nan at step 4120" in screen_text(pilot)


async def test_nothing_stands_out_in_a_good_run(tmp_path):
    training(tmp_path)
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        assert "none stands out" in screen_text(pilot)
        await press(pilot, "escape", "p")
        assert "No rank stands out" in screen_text(pilot)


async def test_after_a_failure_only_what_may_be_its_cause_stands_out(tmp_path):
    run = training(tmp_path)
    at(run, 3).fail(1, reason="ValueError: boom")
    at(run, 1).set(stalled_since=NOW - 300)
    async with app_on(tmp_path).run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "rank 3 on gpu-03 failed first" in screen_text(pilot)
        assert " ▲ " not in screen_text(pilot)
        at(run, 0).set(gpus=[gpu(0, 4, lost=True)])
        pilot.app._source.look()
        await wait_for(pilot, lambda: "▲ rank 0: GPU 4 is lost: it fell off the bus" in screen_text(pilot))
        await press(pilot, "w", "escape")
        assert pilot.app.screen.query_one(RankTable).selected.rank == 3


async def test_a_stalled_rank_says_since_when(tmp_path):
    run = training(tmp_path)
    at(run, 1).set(stalled_since=NOW - 300)
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert "◍ stalled 5m" in screen_text(pilot)
        assert "▲ rank 1: no progress for 5m00s, since " in screen_text(pilot)


async def test_gpus_that_two_rows_report_are_drawn_once(tmp_path):
    run = training(tmp_path, 1)
    for local in range(2):
        run.local(0, local).start().set(gpus=[gpu(0, index) for index in range(local * 4, local * 4 + 4)])
    async with app_on(tmp_path).run_test(size=WIDE) as pilot:
        await settle(pilot)
        rows = [line for line in screen_text(pilot).splitlines() if "● running" in line and "rank" not in line][:3]
        assert "see 0.0" in rows[0]
        assert "████  96%" in rows[1]
        assert "████  96%" in rows[2]
        assert "GPU 96% of 8" in screen_text(pilot)


async def test_marked_ranks_are_charted_together(tmp_path):
    run = training(tmp_path)
    for rank in range(4):
        with_history(at(run, rank), lines=30)
    async with app_on(tmp_path).run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m", "down", "m")
        assert screen_text(pilot).count("◆") == 2
        await press(pilot, "c")
        shown = screen_text(pilot)
        assert "ranks 0, 2" in shown.splitlines()[0]
        assert all(title in shown for title in ("loss", "rate tok/s", "step time", "GPU mean utilisation", "power"))
        assert shown.count("━ 0 ") == shown.count("━ 2 ") == 5
        await press(pilot, "right")
        assert screen_text(pilot).count("━ 0 ") == 1
        await press(pilot, "right", "right", "right")
        assert "4/5 GPU mean utilisation" in screen_text(pilot)
        await press(pilot, "a")
        assert screen_text(pilot).count("━ 0 ") == 5
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, Overview)
        assert screen_text(pilot).count("◆") == 2
        await press(pilot, "escape")
        assert "◆" not in screen_text(pilot)


@pytest.mark.parametrize("way", ["o", "t", "enter"], ids=["grid", "timeline", "rank"])
async def test_the_selected_rank_is_charted_from_wherever_it_is_seen(tmp_path, way):
    run = training(tmp_path, 3)
    with_history(at(run, 1), lines=30)
    async with app_on(tmp_path).run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", way, "c")
        assert isinstance(pilot.app.screen, ChartScreen)
        assert "rank 1" in screen_text(pilot).splitlines()[0]


async def test_a_shorter_time_can_be_charted(tmp_path):
    run = training(tmp_path, 1)
    with_history(at(run, 0), lines=180)
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "c")
        whole = screen_text(pilot)
        assert "3.500" in whole
        await press(pilot, "plus", "plus", "plus", "plus")
        assert "last 15m" in screen_text(pilot).splitlines()[0]
        assert "3.500" not in screen_text(pilot)
        await press(pilot, "minus", "minus", "minus", "minus")
        assert screen_text(pilot) == whole


async def test_a_chart_says_why_there_is_nothing_to_draw(tmp_path):
    run = training(tmp_path, 3)
    at(run, 1).metrics(NOW, gpus=[{"index": 0, "util": [50, 60]}])
    at(run, 2).metrics(NOW, progress={"step": 1, "loss": 2.0}).set(gpus=[], gpu_note="NVML: driver not loaded")
    history = at(run, 0).directory / paths.METRICS
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "c")
        assert "no history yet" in screen_text(pilot)
        await press(pilot, "escape", "down", "c")
        assert "nothing to draw: no progress in a format that is known" in screen_text(pilot)
        await press(pilot, "escape", "down", "c", "left")
        assert "5/5 power" in screen_text(pilot)
        assert "NVML: driver not loaded" in screen_text(pilot)
        await press(pilot, "escape")
        history.mkdir()
        await press(pilot, "up", "up", "c")
        assert isinstance(pilot.app.screen, ChartScreen)
        assert "Is a directory" in screen_text(pilot)


async def test_a_loss_that_is_none_is_not_hidden_by_the_chart_of_the_good_ones(tmp_path):
    run = training(tmp_path, 1)
    with_history(at(run, 0), lines=30).set(**training_at(4120, NOW - 1, loss="nan"))
    async with app_on(tmp_path).run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "c")
        assert "━ 0 nan" in screen_text(pilot)


async def test_a_ranks_progress_and_gpus_are_shown_also_after_its_end(tmp_path):
    run = training(tmp_path, 1)
    with_history(at(run, 0), lines=30).set(
        gpu_seconds=28800.0, gpu_seconds_idle=3600.0, gpu_seconds_setup=2880.0, gpu_seconds_training=25920.0,
        gpus=[gpu(0, 0, ecc_corrected=7), gpu(0, 1, temperature=95)])
    at(run, 0).fail(1, NOW - 5, hold=None)
    async with app_on(tmp_path).run_test(size=(120, 60)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await wait_for(pilot, lambda: "█" in screen_text(pilot))
        shown = screen_text(pilot)
        for said in ("4120/48000", "2.000", "412k", "41.7 %", "0.82", "megatron-lm", "as it was last", "640/700 W",
                     "68/80G", "95 °C", "is hot at 95 °C", "7 corrected memory errors", "sw_power_cap holds back 0",
                     "1m00s before the first step, 3m55s since",
                     "8: 0.80 before the first step, 7.2 training, 1 idle"):  # fmt: skip
            assert said in shown, said
        assert "time left" not in shown
        await press(pilot, "c")
        assert isinstance(pilot.app.screen, ChartScreen)
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, Overview)
