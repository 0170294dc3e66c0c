"""Keys that come faster than screens go: what closes a screen closes that one only, and nothing fails."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, crashed_run
from support.screens import app_on, opened, post, press, screen_text, settle, wait_for
from trainwatch.app import TrainwatchApp
from trainwatch.screens.overview import Overview
from trainwatch.screens.runs import RunsScreen
from trainwatch_launcher.reader.changes import AttemptKey

SIZE = (120, 40)
SCREENS = {
    "extend": ("e",), "release": ("x",), "help": ("question_mark",), "commands": ("y",), "problems": ("p",),
    "palette": ("colon",), "rank": ("enter",), "log": ("l",), "log of rank": ("enter", "l"),
    "help over log": ("l", "question_mark"), "release over rank": ("enter", "x"), "extend over log": ("l", "e"),
}  # fmt: skip


def names(app) -> list[str]:
    return [type(screen).__name__ for screen in app.screen_stack]


async def quiet(pilot) -> None:
    """Wait until every key has been handled, and what each has begun."""
    for _ in range(3):
        await settle(pilot)


@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
async def test_a_key_that_comes_twice_closes_nothing_below(tmp_path, keys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        for closing in ("escape", "enter", "y", "n"):
            before = len(app._source.requests)
            await press(pilot, *keys)
            post(pilot, closing, closing)
            await quiet(pilot)
            assert names(app)[:2] == ["Screen", "Overview"]
            assert len(app._source.requests) - before <= 1
            while not isinstance(app.screen, Overview):
                await press(pilot, "escape")
            app.screen.table.select(AttemptKey(2))


@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
async def test_what_is_dismissed_twice_closes_nothing_below(tmp_path, keys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        before = names(app)
        top = app.screen
        top.dismiss()
        top.dismiss()
        await quiet(pilot)
        assert names(app) == before[:-1]


@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
async def test_a_storm_of_escapes_ends_at_the_overview(tmp_path, keys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, *keys, *["escape"] * 12)
        await quiet(pilot)
        post(pilot, *["escape"] * 4)  # those before may have come while a screen was still being made
        await quiet(pilot)
        assert names(app) == ["Screen", "Overview"]
        assert "failed first" in screen_text(pilot)


@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS)
async def test_a_storm_of_q_leaves(tmp_path, keys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, *keys)
        await quiet(pilot)
        post(pilot, "escape", "q", "q", "escape", "q")
        await quiet(pilot)
        post(pilot, "escape", "q")  # a line that was typed has taken those before
        await quiet(pilot)
        post(pilot, "q")
        await wait_for(pilot, lambda: not app.is_running or app._exit)


@pytest.mark.parametrize("storm", [
    "llll", "eeee", "xxxx", "yyyy", "????", "pppp", "::::", "lleexx", "elxy?p:", "l/n/N/fwG", "sssss", "T?T?", "/lq/x",
], ids=str)  # fmt: skip
async def test_no_keys_however_fast_make_it_fail(tmp_path, storm):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    special = {"?": "question_mark", ":": "colon", "/": "slash"}
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, *(special.get(key, key) for key in storm))
        await quiet(pilot)
        assert names(app)[:2] == ["Screen", "Overview"]


async def test_nothing_is_done_with_a_screen_that_is_still_being_made(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        steps = (("log", "scroll_right"), ("app.help", "line(1)"), ("commands", "copy"), ("open", "page_top"))
        for opening, action in steps:
            await app.run_action(opening, app.screen)
            assert not app.screen.is_mounted
            await app.run_action(action, app.screen)
            await quiet(pilot)
            await press(pilot, "escape")
            assert isinstance(app.screen, Overview)


async def test_enter_that_comes_twice_opens_a_run_once_and_two_escapes_leave_it_once(tmp_path):
    crashed_run(tmp_path / "crashed")
    RunBuilder(tmp_path / "fresh", run_id="fresh", world_size=2).rank(0).start().phase("Train")
    app = TrainwatchApp(root=tmp_path, open_source=opened, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.is_complete)
        post(pilot, "enter", "enter", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, Overview))
        await quiet(pilot)
        assert names(app).count("Overview") == 1
        post(pilot, *["escape"] * 6)
        await wait_for(pilot, lambda: isinstance(app.screen, RunsScreen))
        await quiet(pilot)
        assert names(app) == ["Screen", "RunsScreen"]


async def test_one_shell_at_a_time(tmp_path, monkeypatch):
    import asyncio

    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    asked, free = [], asyncio.Event()

    async def shell(key, label=""):
        asked.append(key)
        await free.wait()
        return await type(app._source).shell(app._source, key)

    monkeypatch.setattr(app._source, "shell", shell)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, "s", "s", "s")
        await wait_for(pilot, lambda: asked)
        await quiet(pilot)
        assert len(asked) == 1
        free.set()
        await wait_for(pilot, lambda: app._notifications)
        post(pilot, "s")
        await wait_for(pilot, lambda: len(asked) == 2)


@pytest.mark.parametrize(("keys", "left"), [
    ((), None), (("enter",), None), (("l",), None), (("slash", "a"), "Overview"), (("l", "slash", "a"), "LogScreen"),
    (("e", "1"), "Overview"), (("x",), "Overview"), (("question_mark",), "Overview"), (("y",), "Overview"),
    (("colon",), "Overview"),
])  # fmt: skip
async def test_ctrl_c_leaves_the_line_the_dialog_or_the_viewer(tmp_path, keys, left):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        await pilot.press("ctrl+c")
        if left is None:
            await wait_for(pilot, lambda: app._exit)
            return
        await wait_for(pilot, lambda: type(app.screen).__name__ == left)
        await quiet(pilot)
        assert not app._exit
        assert not any("quit" in note.message.lower() for note in app._notifications)
        assert not app.screen.has_class("filtering")
        assert not app.screen.query(".searching")


async def test_ctrl_c_copies_what_is_selected_and_stays(tmp_path, monkeypatch):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    monkeypatch.delenv("TMUX", raising=False)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        app.screen.text_select_all()
        await press(pilot, "ctrl+c")
        await wait_for(pilot, lambda: app.clipboard)
        assert not app._exit
