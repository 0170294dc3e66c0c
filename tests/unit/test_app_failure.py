"""The failure screen: what it says of a crash and of a good run, and where its keys lead."""
from __future__ import annotations

import pytest
from rich.cells import cell_len

from builders import NOW, RunBuilder, at, crashed_run
from support.screens import app_on, notes, press, screen_text, settle, wait_for
from trainwatch.screens.failure import FailureScreen
from trainwatch.screens.log import LogScreen
from trainwatch.screens.overview import Overview
from trainwatch.widgets.excerpt import cut
from trainwatch.widgets.fit import fit_frame
from trainwatch.widgets.log_view import LogView
from trainwatch_launcher.diagnosis.answer import Diagnosis
from trainwatch_launcher.diagnosis.diagnose import diagnose
from trainwatch_launcher.reader.changes import AttemptKey

WIDE, NARROW = (160, 45), (80, 24)


def traced(directory) -> RunBuilder:
    """A crash of which the launchers say why; the line that does stands in the middle of a long log."""
    run = crashed_run(directory)
    rank = at(run, 2)
    before, lines = rank.log.stat().st_size, rank.log.read_bytes().count(b"\n")
    said = b'Traceback (most recent call last):\n  File "/job/train.py", line 7, in step\n    check(loss)\n'
    boom = said + b"ValueError: loss is nan\n"
    rank.output(boom + b"".join(b"cleaning up %d\n" % number for number in range(500)))
    rank.fail(1, NOW - 60, hold=600, diagnosis=diagnose(boom).at(lines, before).as_json())
    for number in (0, 1, 3):
        lost = Diagnosis("nccl_timeout", "comm", "watchdog timed out", confidence=0.8, collateral=True)
        at(run, number).fail(134, NOW - 48, signal=6, hold=600, diagnosis=lost.as_json())
    return run


async def test_beside_what_followed_the_log_has_all_the_room_that_is_left(tmp_path):
    traced(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(126, 32)) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        screen = pilot.app.screen
        await wait_for(pilot, lambda: screen.query_one("#lines").region.height > 12)
        assert screen.body.max_scroll_y == 0
        assert screen.body.region.bottom - screen.query_one("#lines").region.bottom <= 2


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_crash_is_told_from_where_it_began(tmp_path, size):
    traced(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        shown = screen_text(pilot)
        assert "rank 2 on gpu-02  python error   exit 1" in shown
        assert "train.py:7 in step" in shown
        assert "in Train" in shown
        assert "▶ ValueError: loss is nan" in shown
        assert "⏎ l the line" in shown
        if size is NARROW:
            await press(pilot, "G")
        assert "3 ranks: nccl timeout, 12s later" in screen_text(pilot)
        assert "+0.0s" in screen_text(pilot)


async def test_enter_leads_to_the_line_in_the_log_and_escape_comes_back(tmp_path):
    traced(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "w", "enter")
        assert isinstance(pilot.app.screen, LogScreen)
        await wait_for(pilot, lambda: "ValueError: loss is nan" in screen_text(pilot))
        assert not pilot.app.screen.query_one(LogView).following
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, FailureScreen)
        await press(pilot, "w")
        assert isinstance(pilot.app.screen, Overview)


@pytest.mark.parametrize("way", [["o"], ["t"], ["enter"]], ids=["grid", "timeline", "rank"])
async def test_it_opens_from_wherever_one_looks(tmp_path, way):
    traced(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, *way, "w")
        assert isinstance(pilot.app.screen, FailureScreen)
        assert "rank 2 on gpu-02  python error" in screen_text(pilot)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("way", ["o", "t"], ids=["grid", "timeline"])
async def test_grid_and_timeline_say_why_it_failed_as_the_table_does_and_a_click_tells_more(tmp_path, way, size):
    traced(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=size) as pilot:
        await settle(pilot)
        said = next(line for line in screen_text(pilot).splitlines() if "failed first" in line)
        assert "ValueError: loss is n" in said
        await press(pilot, way)
        assert screen_text(pilot).splitlines()[1] == said
        assert " w why" in screen_text(pilot).splitlines()[-1]
        await pilot.click("#banner")
        await settle(pilot)
        assert isinstance(pilot.app.screen, FailureScreen)


async def test_all_but_the_root_are_released_after_a_question_and_it_is_told_once(tmp_path):
    traced(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "w", "X")
        assert "Release 2 ranks?" in screen_text(pilot)
        assert "left alone: it failed first." in screen_text(pilot)
        await press(pilot, "escape")
        assert app._source.requests == []
        await press(pilot, "X", "y")
        await wait_for(pilot, lambda: len(app._source.requests) == 2)
        assert {(key.rank, command) for key, command, _ in app._source.requests} == {(0, "release"), (3, "release")}
        app._source.answer(0, "done")
        app._source.answer(1, "done")
        await wait_for(pilot, lambda: "2 ranks are released." in notes(pilot))
        assert "Rank 0 is released" not in notes(pilot)
        await press(pilot, "e")
        assert "Hold rank 2 for longer" in screen_text(pilot)


async def test_a_ticket_is_copied(tmp_path, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    traced(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "w", "c")
        await wait_for(pilot, lambda: app.clipboard)
        assert app.clipboard.startswith("## rank 2 on gpu-02: python error, exit 1")
        assert "> ValueError: loss is nan\n" in app.clipboard


async def test_logs_of_launchers_that_said_nothing_are_read_for_the_reason(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().phase("Train").output(b"step 1\n").fail(134, NOW - 48, signal=6)
    told = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    run.rank(2).start().phase("Train").output(told).fail(1, NOW - 60, reason="see the log")
    async with app_on(tmp_path / "run").run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        await wait_for(pilot, lambda: "cuda oom" in screen_text(pilot))
        assert "rank 2 on gpu-02" in screen_text(pilot)


async def test_a_good_run_says_that_nothing_failed(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().phase("Train")
    async with app_on(tmp_path / "run").run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        assert "No rank has failed." in screen_text(pilot)
        assert "none stands out" in screen_text(pilot)
        await press(pilot, "X", "c")
        assert "No rank has failed" in notes(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, FailureScreen)


async def test_what_stands_out_is_shown_before_a_failure_and_its_log_is_one_key_away(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(4):
        run.rank(rank).start().phase("Train").output(b"x\n")
    at(run, 1).set(stalled_since=NOW - 300)
    async with app_on(tmp_path / "run").run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        assert "▲ rank 1: no progress for 5m00s" in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, LogScreen)
        assert pilot.app.screen.key == AttemptKey(1)


async def test_a_failure_that_comes_while_it_is_open_is_told(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().phase("Train").output(b"x\n")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        at(run, 0).output(b"KeyError: 'x'\n").fail(1, NOW - 1, reason="KeyError: 'x'")
        app._source.look()
        await wait_for(pilot, lambda: "rank 0 on gpu-00" in screen_text(pilot))
        await wait_for(pilot, lambda: "KeyError: 'x'" in screen_text(pilot).split("log of rank 0")[-1])


def test_lines_around_a_place_are_whole_and_harmless():
    data = b"torn line\nfirst\n\x1b]0;title\x07se\x1b[31mcond\x1b[0m\n10%\r20%\rlast\n" + b"x" * 100_000
    found = cut(data, 50, 50 + data.index(b"\x1b]0"))
    assert found.lines[:3] == ("first", "second", "last")
    assert found.lines[found.hit] == "second"
    assert all(len(line) <= 4000 for line in found.lines)
    assert found.around(2).lines == ("first", "second")
    assert cut(b"", 0, None).lines == ()
    assert cut(b"a\nb\nc\n", 0, None).around(2).lines == ("b", "c")


def test_a_frame_that_is_too_long_keeps_its_line_and_the_end_of_its_path():
    frame = '[rank3]:   File "/shared/users/ann/projects/llama/训练/train.py", line 217, in main'
    assert fit_frame(frame, 60) == '[rank3]:   File "…ts/llama/训练/train.py", line 217, in main'
    for width in range(46, 90):
        shown = fit_frame(frame, width)
        assert cell_len(shown) <= width
        assert shown.endswith('train.py", line 217, in main')
    assert fit_frame(frame, 200) == frame
    assert fit_frame(frame, 20) == "[rank3]:   File \"/s…"
    assert fit_frame("loss " * 20, 12) == "loss loss l…"
