"""Finding one's way in a log: search while one types, filters, errors, phases, lines, times; taking lines along."""
from __future__ import annotations

import asyncio
import time

import pytest
from textual.events import Key

from builders import NOW, RunBuilder, at
from support.logs import LINES, SIZE, enter, filled, marked, run_with_log, shown, type_in, view
from support.screens import app_on, notes, press, screen_text, settle, wait_for
from trainwatch.app import TrainwatchApp
from trainwatch.screens import wishes
from trainwatch.screens.log import LogScreen
from trainwatch.widgets.log_pane import LogPane

SIZE_80 = (80, 24)


@pytest.fixture(autouse=True)
def _one_time_zone(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_the_first_hit_is_shown_while_one_types_and_esc_leads_back(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await type_in(pilot, "slash", "00042")
        await wait_for(pilot, lambda: marked(pilot) == "step 00042 loss 0.5")
        await press(pilot, "escape")
        await wait_for(pilot, lambda: "step 04999" in shown(pilot)[-1])
        assert view(pilot).following


async def test_all_hits_are_counted_and_each_has_its_number(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await type_in(pilot, "slash", "step 00.50")
        await press(pilot, "ctrl+r", "enter")
        await wait_for(pilot, lambda: "10 of 10 lines" in screen_text(pilot))
        assert marked(pilot) == "step 00950 loss 0.5"
        await press(pilot, "N")
        await wait_for(pilot, lambda: "9 of 10 lines" in screen_text(pilot))
        assert marked(pilot) == "step 00850 loss 0.5"


async def test_only_lines_that_pass_are_shown_with_what_is_around_them(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await enter(pilot, "ampersand", "99 loss")
        await wait_for(pilot, lambda: shown(pilot)[-2:] == ["step 04899 loss 0.5", "step 04999 loss 0.5"])
        assert "& 99 loss" in screen_text(pilot).splitlines()[0]
        await press(pilot, "g")
        await wait_for(pilot, lambda: shown(pilot)[:2] == ["step 00099 loss 0.5", "step 00199 loss 0.5"])
        await press(pilot, "plus")
        await wait_for(pilot, lambda: shown(pilot)[:3] == [f"step {n:05d} loss 0.5" for n in (97, 98, 99)])
        await press(pilot, "escape")
        await wait_for(pilot, lambda: shown(pilot)[1] == "step 00098 loss 0.5" or "step 00001" in shown(pilot)[1])
        assert "&" not in screen_text(pilot).splitlines()[0]


async def test_noise_is_hidden_one_pattern_after_the_other_and_new_lines_are_too(tmp_path):
    run = run_with_log(tmp_path / "run", b"noise A\nnews 1\nchatter B\nnews 2\nnoise C\n")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        for word in ("noise", "chatter"):
            await enter(pilot, "minus", word)
        await wait_for(pilot, lambda: filled(pilot) == ["news 1", "news 2"])
        at(run, 0).output(b"noise D\nnews 3\n")
        await wait_for(pilot, lambda: filled(pilot) == ["news 1", "news 2", "news 3"])
        await enter(pilot, "minus", "")
        await wait_for(pilot, lambda: "noise D" in screen_text(pilot))


async def test_a_line_that_grows_is_shown_whole_also_when_filtered(tmp_path):
    run = run_with_log(tmp_path / "run", b"loss 0.1\nloss 0.")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await enter(pilot, "ampersand", "loss")
        await wait_for(pilot, lambda: filled(pilot) == ["loss 0.1", "loss 0."])
        at(run, 0).output(b"25\nloss 9\n")
        await wait_for(pilot, lambda: filled(pilot) == ["loss 0.1", "loss 0.25", "loss 9"])


async def test_errors_and_phases_are_a_key_away(tmp_path):
    boom = b"Traceback (most recent call last):\n  File x\nValueError: boom\n"
    run = RunBuilder(tmp_path / "run", world_size=1)
    rank = run.rank(0).start().output(LINES[:40_000])
    rank.phase("Train", NOW - 90).output(b"=== [Phase] Train ===\n" + LINES + boom + LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE_80) as pilot:
        await settle(pilot)
        await press(pilot, "l", "left_square_bracket")
        await wait_for(pilot, lambda: marked(pilot) == "ValueError: boom")
        await press(pilot, "left_square_bracket")
        await wait_for(pilot, lambda: marked(pilot).startswith("Traceback"))
        await press(pilot, "left_square_bracket")
        await wait_for(pilot, lambda: "No error further up" in notes(pilot))
        await press(pilot, "right_square_bracket")
        await wait_for(pilot, lambda: marked(pilot) == "ValueError: boom")
        await press(pilot, "left_curly_bracket")
        await wait_for(pilot, lambda: marked(pilot) == "=== [Phase] Train ===")
        await press(pilot, "left_curly_bracket")
        await wait_for(pilot, lambda: "No phase further up" in notes(pilot))


async def test_lines_and_times_are_gone_to(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    rank = run.rank(0).start()
    for minute in range(60):
        rank.output(b"".join(b"minute %d line %d\n" % (minute, n) for n in range(100)), NOW - 3600 + 60 * minute)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await enter(pilot, "T", "-10m")
        await wait_for(pilot, lambda: shown(pilot)[0] == "minute 49 line 0")
        clock = time.strftime("%H:%M", time.localtime(NOW - 3600 + 60 * 20))
        await enter(pilot, "T", clock)
        await wait_for(pilot, lambda: shown(pilot)[0] == "minute 20 line 0")
        await enter(pilot, "colon", "1,234")
        await wait_for(pilot, lambda: marked(pilot) == "minute 12 line 33")
        await press(pilot, "number_sign")
        await wait_for(pilot, lambda: marked(pilot).split() == ["1,234", "minute", "12", "line", "33"])
        await press(pilot, "number_sign")
        clock = time.strftime("%H:%M:%S.00", time.localtime(NOW - 3600 + 60 * 12))
        await wait_for(pilot, lambda: marked(pilot).split() == [clock, "minute", "12", "line", "33"])
        await enter(pilot, "T", "soon")
        await wait_for(pilot, lambda: "no moment; write -10m" in screen_text(pilot))


async def test_a_bar_shows_its_last_state_and_on_a_key_all_of_them(tmp_path):
    bar = b"\r".join(b"epoch 1 %d%%" % n for n in range(101)) + b"\n"
    endless = b"\r".join(b"step %06d" % n for n in range(100_000)) + b"\n"
    run_with_log(tmp_path / "run", b"before\n" + bar + endless + b"after\n")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        rows = filled(pilot)
        assert rows[:2] == ["before", "epoch 1 100%"]
        assert rows[-2:] == ["step 099999", "after"]
        assert len(rows) <= 8  # of a line of a megabyte a state every half megabyte
        await press(pilot, "R", "w", "g")
        await wait_for(pilot, lambda: "epoch 1 99%␍epoch 1 100%" in "".join(shown(pilot)))


class Wishes:
    """What the app was asked for."""

    def __init__(self) -> None:
        self.copied: list[str] = []
        self.opened: list[wishes.OpenLog] = []


@pytest.fixture
def asked(monkeypatch):
    """What screens wish for, noted and not done."""
    noted = Wishes()
    monkeypatch.setattr(TrainwatchApp, "on_copy", lambda _, wish: noted.copied.append(wish.text))
    monkeypatch.setattr(TrainwatchApp, "on_open_log", lambda _, wish: noted.opened.append(wish))
    return noted


async def test_selected_lines_are_copied_and_saved_as_they_are(tmp_path, asked):
    run_with_log(tmp_path / "run", b"one\n\x1b[31mtwo\x1b[0m\nthree\n" * 30)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "v", "k", "k", "c")
        await wait_for(pilot, lambda: asked.copied == ["one\ntwo\nthree"])
        assert view(pilot).cursor is None
        await press(pilot, "v", "k")
        await enter(pilot, "ctrl+s", str(tmp_path / "out.log"))
        await wait_for(pilot, lambda: "Saved" in notes(pilot))
        assert (tmp_path / "out.log").read_bytes() == b"\x1b[31mtwo\x1b[0m\nthree\n"
        await enter(pilot, "ctrl+s", str(tmp_path / "out.log"))
        await wait_for(pilot, lambda: "there is one already" in screen_text(pilot))


async def test_what_the_filter_shows_is_saved_whole(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await enter(pilot, "ampersand", "9 loss")
        await enter(pilot, "ctrl+s", str(tmp_path / "out.log"))
        await wait_for(pilot, lambda: "Saved" in notes(pilot))
        assert (tmp_path / "out.log").read_bytes() == b"".join(
            line for line in LINES.splitlines(keepends=True) if b"9 loss" in line)


async def test_a_place_is_named_and_opened_elsewhere(tmp_path, asked):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await enter(pilot, "slash", "step 01234")
        await wait_for(pilot, lambda: marked(pilot) == "step 01234 loss 0.5")
        await press(pilot, "C")
        await wait_for(pilot, lambda: asked.copied)
        assert asked.copied[0].endswith("output.log:1235")
        await press(pilot, "o", "O")
        await wait_for(pilot, lambda: len(asked.opened) == 2)
        assert [(wish.offset, wish.line, wish.editor) for wish in asked.opened] == [
            (20 * 1234, 1235, False), (20 * 1234, 1235, True)]


async def test_a_search_for_ever_can_be_left(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    app = app_on(tmp_path / "run")

    async def never(*_args, **_facts):
        await asyncio.sleep(3600)
        yield {}, b""

    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        app._source.ask_logs = never
        await type_in(pilot, "slash", "loss")
        await pilot.press("enter")
        await wait_for(pilot, lambda: "search" in screen_text(pilot))
        await press(pilot, "escape", "g")
        assert shown(pilot)[0] == "step 00000 loss 0.5"
        assert not pilot.app.screen.query_one(LogPane).finder.is_busy


async def test_keys_that_come_all_at_once_go_where_they_would_go_one_by_one(tmp_path):
    run_with_log(tmp_path / "run", LINES + b"needle x\n" + LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        for key in ("l", "slash", *"nex", "backspace", *"edle", "enter"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else "/" if key == "slash" else None))
        await wait_for(pilot, lambda: marked(pilot) == "needle x")
        await wait_for(pilot, lambda: "1 of 1 line" in screen_text(pilot))
        for key in ("slash", *"0042", "enter"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else "/" if key == "slash" else None))
        await wait_for(pilot, lambda: "of 22 lines" in screen_text(pilot))
        assert isinstance(pilot.app.screen, LogScreen)
