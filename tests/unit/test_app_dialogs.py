"""Dialogs: how long to hold, whether to release, what to copy."""
from __future__ import annotations

import os
import stat

import pytest
from textual.widgets import Input

from builders import NOW, RunBuilder, crashed_run
from support.screens import app_on, notes, post, press, screen_text, settle, wait_for
from trainwatch.screens.commands import Commands
from trainwatch.screens.dialogs import AskDuration
from trainwatch.screens.overview import Overview
from trainwatch.widgets.log_pane import LogPane
from trainwatch_launcher.reader.changes import AttemptKey

SIZE = (120, 40)


@pytest.mark.parametrize(("typed", "seconds"), [
    ("3h", 10_800.0), ("45m", 2700.0), ("1h30m", 5400.0), ("2", 2.0), ("", 1800.0),
])  # fmt: skip
async def test_a_length_of_time_is_typed_from_the_first_key_on(tmp_path, typed, seconds):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e", *typed)
        assert isinstance(app.screen, AskDuration)
        assert app.screen.query_one(Input).value == typed
        assert app._source.requests == []
        await press(pilot, "enter")
        await wait_for(pilot, lambda: app._source.requests)
        assert app._source.requests == [(AttemptKey(2), "extend", seconds)]
        assert isinstance(app.screen, Overview)


async def test_what_is_typed_before_the_dialog_is_there_is_not_lost(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, "e", *"45m")
        await wait_for(pilot, lambda: isinstance(app.screen, AskDuration) and app.screen.focused)
        await settle(pilot)
        assert app.screen.query_one(Input).value == "45m"


async def test_a_filter_typed_at_once_is_whole(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        post(pilot, "slash", *"state:held")
        await wait_for(pilot, lambda: app.screen.filter == "state:held")


async def test_a_choice_is_made_with_the_arrow_keys_and_typing_goes_back_to_the_line(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e", "down", "right")
        assert "+2h00m: held until " in screen_text(pilot)
        await press(pilot, "3")
        assert isinstance(app.screen.focused, Input)
        assert app.screen.query_one(Input).value == "3"
        await press(pilot, "backspace", "down", "down", "enter")
        await wait_for(pilot, lambda: app._source.requests)
        assert app._source.requests == [(AttemptKey(2), "extend", 7200.0)]


async def test_what_is_no_length_of_time_is_said_in_the_dialog(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "e", *"soon", "enter")
        assert isinstance(app.screen, AskDuration)
        assert "“soon” is no length of time" in screen_text(pilot)
        await press(pilot, "escape")
        assert app._source.requests == []


def nested_run(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start()
    run.rank(1).start().phase("Train").fail(3, NOW - 20, hold=600)
    run.local(1, 0).start().phase("Train").fail(3, NOW - 30, hold=None, reason="ValueError: boom")
    return run


@pytest.mark.parametrize(("keys", "asked"), [
    (("e", "1", "h", "enter"), "extend"), (("x", "y"), "release"),
])  # fmt: skip
async def test_a_local_rank_is_held_by_its_container_which_is_asked_and_named(tmp_path, keys, asked):
    nested_run(tmp_path)
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert app.screen.key == AttemptKey(1, 1, 0, 1)  # it failed first
        assert "held 9:40 more" in screen_text(pilot)  # the banner
        await press(pilot, keys[0])
        assert "rank 1's container" in screen_text(pilot)
        await press(pilot, *keys[1:])
        await wait_for(pilot, lambda: app._source.requests)
        assert [request[:2] for request in app._source.requests] == [(AttemptKey(1), asked)]
        assert f"Asked rank 1's container to {asked} its hold" in notes(pilot)


async def test_a_local_ranks_shell_is_opened_in_its_container(tmp_path, monkeypatch):
    nested_run(tmp_path)
    app = app_on(tmp_path / "run")
    asked = []

    async def shell(key, label=""):
        asked.append(key)
        return await type(app._source).shell(app._source, key)

    monkeypatch.setattr(app._source, "shell", shell)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "s")
        await wait_for(pilot, lambda: asked == [AttemptKey(1)])
        await wait_for(pilot, lambda: "rank 1.0 has ended; this is beside rank 1's container: " in notes(pilot))


async def test_commands_of_an_old_attempt_and_of_a_local_rank_name_the_one_they_act_on(tmp_path):
    run = nested_run(tmp_path)
    run.rank(0, attempt=2).start()
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "y")
        assert [command.line.partition("run-1")[2] for command in app.screen.commands[:3]] == [
            " --rank 1 --extend 2h", " --rank 1 --release", " --rank 1.0"]
        await press(pilot, "escape", "g", "y")
        assert " --rank '0#1' --release" in app.screen.commands[1].line


async def test_every_command_is_on_one_line_and_c_copies_it_whole(tmp_path, monkeypatch):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    app._source.name = "/shared/" + "a-long-name/" * 12
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("PATH", "")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "y", "j")
        line = app.screen.commands[1].line
        assert line.startswith(app.following.program + " hold ")
        shown = screen_text(pilot)
        assert shown.count(" hold /shared") == 2
        assert shown.count("a-long-name/…") + shown.count("…") >= 4
        await press(pilot, "c")
        await wait_for(pilot, lambda: "Sent to your terminal's clipboard" in notes(pilot))
        assert app.clipboard == line
        assert isinstance(app.screen, Commands)


async def test_inside_tmux_it_goes_to_tmux(tmp_path, monkeypatch):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    fake = tmp_path / "bin" / "tmux"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/words\ncat >{tmp_path}/text\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TMUX", "/tmp/none,1,0")
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "y", "enter")
        await wait_for(pilot, lambda: "Copied to tmux" in notes(pilot))
        assert (tmp_path / "text").read_text() == app.screen.commands[0].line
        assert (tmp_path / "words").read_text() == "load-buffer -w -\n"
        assert app.clipboard == ""


async def test_a_tmux_that_does_not_take_it_is_not_believed(tmp_path, monkeypatch):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    monkeypatch.setenv("TMUX", "/tmp/none,1,0")
    monkeypatch.setenv("PATH", "")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "y", "c")
        await wait_for(pilot, lambda: "Sent to your terminal's clipboard" in notes(pilot))


async def test_messages_hold_nothing_that_acts_on_the_terminal(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.notify("host \x1b]0;x\x07gpu\x1b[31m-1\x07", title="No\x1b[2J shell", markup=False)
        await wait_for(pilot, lambda: len(app._notifications) == 1)
        (note,) = app._notifications
        assert (note.message, note.title) == ("host gpu-1", "No shell")
        pane = app.screen.query_one(LogPane)
        pane.view._failed("read\x1b[2J error\x07")
        assert pane._facts(pane.view) == ["read error"]
