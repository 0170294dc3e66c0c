"""The other screens: a rank's details, the pages, the picker of runs."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.geometry import Region

from builders import NOW, RunBuilder, crashed_run
from support.screens import app_on, opened, press, screen_text, settle, wait_for
from trainwatch import actions
from trainwatch.app import TrainwatchApp
from trainwatch.screens.help import INDENT, WORDS, help_parts
from trainwatch.screens.page import Flowing
from trainwatch.screens.rank_facts import bar
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import STATES


async def test_a_ranks_details_are_facts_phases_and_events(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        shown = screen_text(pilot)
        for words in ("held, code 1", "ValueError: loss is nan", "python train.py", "/job", "command 4242", "268 MB",
                      "Train", "kept for 10m00s with code 1", "9:00 left"):
            assert words in shown
        await press(pilot, "l")
        assert "ValueError: loss is nan" in screen_text(pilot)
        await press(pilot, "escape", "escape")
        assert "last line" in screen_text(pilot)


async def test_a_phase_s_name_has_room_before_its_bar(tmp_path):
    name = "Environment Setup, then Warm-up"
    RunBuilder(tmp_path / "run").rank(0).start().phase("Load Data").phase(name)
    async with app_on(tmp_path / "run").run_test(size=(80, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert sum(line.count(name) for line in screen_text(pilot).splitlines()) >= 2  # among the phases and the events


async def test_an_attempt_that_died_at_once_has_details_too(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    (run.directory / "rank-00000" / "attempt-1").mkdir(parents=True)
    async with app_on(tmp_path / "run").run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert "no event yet" in screen_text(pilot)
        await press(pilot, "l")
        assert "no output yet" in screen_text(pilot)


async def test_commands_for_scripts_name_the_run_and_the_rank(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "y")
        assert "trainwatch hold /shared/runs/run-1 --rank 2 --extend 2h" in screen_text(pilot)
        assert "trainwatch hold /shared/runs/run-1 --rank 2 --release" in screen_text(pilot)


def test_help_names_every_action_and_every_state():
    said = "".join(text for text, _ in help_parts((), 200))
    for action in actions.ACTIONS:
        assert action.help in said
    for state in STATES:
        assert state in said


@pytest.mark.parametrize("size", [(80, 24), (48, 20), (160, 45)])
async def test_help_breaks_its_lines_where_its_frame_ends_and_not_again(tmp_path, size):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "question_mark")
        text = pilot.app.screen.query_one(Flowing)
        lines = [line.text.rstrip() for line in text.render_lines(Region(0, 0, *text.size))]
        assert lines[-1].endswith(WORDS[-1][1].split()[-1])
        assert any(line.startswith(" " * INDENT) for line in lines)
        titles = {*actions.TITLES.values(), "In the filter", "States", "Words"}
        assert {line for line in lines if line and not line.startswith(" ")} <= titles


def test_every_action_of_the_footer_and_the_palette_has_words_and_a_home():
    for action in actions.ACTIONS:
        assert action.label
        assert action.help
        assert action.scopes
        assert set(action.scopes) <= set(actions.TITLES)


def test_no_scope_binds_a_key_twice():
    for scope in actions.TITLES:
        keys = [key for action in actions.of(scope) for key in action.keys.split(",")]
        assert len(keys) == len(set(keys)), scope


def test_docs_keys_are_those_of_the_registry():
    page = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
    parts = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    for scope, title in actions.TITLES.items():
        for action in actions.of(scope):
            assert f"| {action.label} | {action.help} |" in parts[title], (title, action.label)


def test_bars_show_eighths_and_never_nothing_for_something():
    assert bar(0.5, 4) == "██"
    assert bar(1.0, 4) == "████"
    assert bar(0.001, 4) == "▏"
    assert bar(0.0, 4) == ""


async def test_the_newest_runs_are_offered_and_opened(tmp_path):
    crashed_run(tmp_path / "crashed")
    RunBuilder(tmp_path / "fresh", run_id="fresh", world_size=2).rank(0).start().phase("Train")
    app = TrainwatchApp(root=tmp_path, open_source=opened, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=(100, 30)) as pilot:
        await wait_for(pilot, lambda: "held" in screen_text(pilot) and "running" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "fresh" in shown
        assert "4/4" in shown
        assert "1/2" in shown
        crashed = next(n for n, line in enumerate(shown.splitlines()) if "held" in line)
        await pilot.press(*["j"] * (crashed - 2), "enter")
        await wait_for(pilot, lambda: "failed first" in screen_text(pilot))
        await settle(pilot)
        await press(pilot, "escape")
        await wait_for(pilot, lambda: "fresh" in screen_text(pilot))


@pytest.mark.parametrize("width", [80, 140])
async def test_runs_of_the_same_name_are_told_apart_by_their_directories(tmp_path, width):
    for name in ("job7", "job7-again", "a-directory-with-a-very-long-name-indeed-2025-12-01"):
        RunBuilder(tmp_path / name, run_id="job7", world_size=2).rank(0).start()
    app = TrainwatchApp(root=tmp_path, open_source=opened, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=(width, 24)) as pilot:
        await wait_for(pilot, lambda: screen_text(pilot).count("running") == 3)
        lines = [line for line in screen_text(pilot).splitlines() if "running" in line]
        assert sum("job7  job7-again" in line for line in lines) == 1
        assert sum("2025-12-01" in line and "job7" in line for line in lines) == 1
        assert len({line.index("1/2") for line in lines}) == 1


async def test_a_root_without_runs_says_where_it_looks(tmp_path):
    app = TrainwatchApp(root=tmp_path, open_source=opened, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=(100, 30)) as pilot:
        await wait_for(pilot, lambda: "No run here yet." in screen_text(pilot))


async def test_the_grid_has_a_cell_for_each_rank_and_leads_to_it(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "o")
        shown = screen_text(pilot)
        assert "state" in shown
        assert "★ failed first 1" in shown
        assert "held 2" in shown
        await press(pilot, "g", "right")
        assert "rank 1" in screen_text(pilot)
        await press(pilot, "full_stop")
        assert "phase" in screen_text(pilot)
        await press(pilot, "enter")
        assert "the launcher exits with 143" in screen_text(pilot)
        await press(pilot, "escape", "escape")
        assert "last line" in screen_text(pilot)


async def test_the_grid_opens_on_the_rank_that_was_selected_and_takes_clicks(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=16)
    for rank in range(16):
        run.rank(rank, host=f"gpu-{rank // 8}").start()
    async with app_on(tmp_path / "run").run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "G", "o")
        assert "rank 15" in screen_text(pilot)
        await pilot.click("RankGrid", offset=(8, 0))
        await settle(pilot)
        assert "rank 0 " in screen_text(pilot)


async def test_the_timeline_tells_what_a_rank_did_when_and_each_phase_over_all_ranks(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=3)
    for rank in range(3):
        started = run.rank(rank).start().phase("Load", NOW - 250).phase("Train", NOW - 200 + 10 * rank)
        started.set(gpu_seconds=2400.0)
    async with app_on(tmp_path / "run").run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "t")
        shown = screen_text(pilot)
        assert "Train  10:50:10 – now  3m10s so far" in shown, "rank 1, at the end"
        assert "rank 2, 1, 0" in shown, "the slowest to load"
        assert "3 in it" in shown
        assert "2.0 GPU-hours" in shown
        await press(pilot, "left_curly_bracket", "left_curly_bracket")
        assert "Load  10:49:10 – 10:50:10  1m00s" in screen_text(pilot)
        await press(pilot, "plus", "plus", "k")
        assert "rank 0" in screen_text(pilot)
        await press(pilot, "enter")
        assert "python train.py" in screen_text(pilot)


async def test_the_timeline_shades_phases_in_which_gpus_were_idle(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=2)
    for rank in range(2):
        one = run.rank(rank).start(NOW - 300).phase("Load", NOW - 300).phase("Train", NOW - 150)
        for at in range(-290, 1, 10):
            one.metrics(NOW + at, gpus=[{"index": 0, "util": [0 if at <= -150 or rank else 97, 100]}])
    for size in ((140, 40), (80, 24)):
        async with app_on(tmp_path / "run").run_test(size=size) as pilot:
            await settle(pilot)
            await press(pilot, "t")
            lanes = [line for line in screen_text(pilot).splitlines() if "gpu-0" in line]
            assert lanes[0].count("░") == pytest.approx(lanes[0].count("█"), abs=3)
            assert lanes[1].count("░") > 2 * lanes[0].count("░") - 4
            assert "█" not in lanes[1]
            shown = screen_text(pilot)
            assert "GPUs at work" in shown
            assert re.search(r"Load .* 100%", shown)
            assert re.search(r"Train .* 50%", shown)
            await press(pilot, "left_curly_bracket", "left_curly_bracket")
            assert "  GPUs idle" in screen_text(pilot)


async def test_of_many_ranks_only_those_on_screen_and_a_sample_are_asked_for_their_gpus(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=100)
    for rank in range(100):
        one = run.rank(rank, host="gpu").phase("Load", NOW - 60)
        one.metrics(NOW - 30, 30.0, gpus=[{"index": 0, "util": [0, 1]}]).metrics(NOW, gpus=[{"util": [0, 1]}])
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "t")
        assert 14 <= len(app._source.idle_asked) < 40
        assert AttemptKey(94) not in app._source.idle_asked
        await press(pilot, "G")
        lanes = [line for line in screen_text(pilot).splitlines() if re.match(r"[ ▌]9\d gpu", line)]
        assert lanes
        assert all("░" in line for line in lanes)
        assert len(app._source.idle_asked) < 60


async def test_the_timeline_of_a_run_without_ranks_says_so(tmp_path):
    RunBuilder(tmp_path / "run", world_size=3)
    async with app_on(tmp_path / "run").run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "t")
        assert "no rank has come yet" in screen_text(pilot)
        await press(pilot, "plus", "minus", "right", "j", "right_curly_bracket", "left_curly_bracket", "0", "l")
        await press(pilot, "escape")
