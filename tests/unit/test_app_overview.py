"""The overview: what it says of a run, and what keys and mouse do."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, at, crashed_run
from support.screens import app_on, notes, press, screen_text, settle, wait_for
from trainwatch.model import text
from trainwatch.model.query import EXAMPLES
from trainwatch.screens.overview import Overview
from trainwatch.sources.base import ShellPlan
from trainwatch.widgets.rank_table import RankTable
from trainwatch_launcher.reader.changes import AttemptKey

SIZE = (140, 40)


def table(pilot) -> RankTable:
    return pilot.app.screen.query_one(RankTable)


async def test_a_crash_says_which_rank_failed_first_and_selects_it(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        shown = screen_text(pilot)
        assert "rank 2 on gpu-02 failed first: exit 1 in Train · ValueError: loss is nan" in shown
        assert "held 9:00 more" in shown
        assert table(pilot).selected == AttemptKey(2)
        assert "ValueError: loss is nan" in shown.splitlines()[-2]


async def test_the_bell_rings_once_for_the_first_failure(tmp_path, monkeypatch):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    rung = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(1))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app._source.look()
        await settle(pilot)
        assert rung == [1]


async def test_selection_stays_with_the_rank_while_rows_are_sorted_and_filtered(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "G")
        assert table(pilot).selected == AttemptKey(3)
        await press(pilot, "r")
        assert [row.label for row in table(pilot).rows] == ["3", "2", "1", "0"]
        assert table(pilot).selected == AttemptKey(3)
        await press(pilot, "full_stop", "slash", *"state:held", "enter")
        assert table(pilot).selected == AttemptKey(3)
        assert {row.state for row in table(pilot).rows} == {"held"}
        await press(pilot, "escape")
        assert len(table(pilot).rows) == 4


async def test_a_filter_that_matches_nothing_says_so(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"nosuch", "enter")
        assert "No rank matches “nosuch”." in screen_text(pilot)
        await press(pilot, "escape")
        assert "No rank matches" not in screen_text(pilot)


async def test_why_goes_to_the_first_failure_from_anywhere(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "g")
        assert table(pilot).selected == AttemptKey(0)
        await press(pilot, "w", "escape")
        assert table(pilot).selected == AttemptKey(2)
        await press(pilot, "g")
        await pilot.click("#banner")
        await wait_for(pilot, lambda: "root cause" in screen_text(pilot))
        await press(pilot, "escape")
        assert table(pilot).selected == AttemptKey(2)


async def test_whoever_has_moved_is_not_led_away_by_a_later_failure(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(4):
        run.rank(rank).start().phase("Train").output(b"x\n")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "j")
        at(run, 3).fail(1, NOW - 1, reason="boom")
        app._source.look()
        await wait_for(pilot, lambda: "failed first" in screen_text(pilot))
        assert table(pilot).selected == AttemptKey(1)


async def test_the_mouse_selects_sorts_and_opens(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.click(RankTable, offset=(20, 2))
        await settle(pilot)
        assert table(pilot).selected == AttemptKey(1)
        await pilot.click(RankTable, offset=(3, 0))
        await settle(pilot)
        assert [row.label for row in table(pilot).rows] == ["3", "2", "1", "0"]
        await pilot.click(RankTable, offset=(20, 1), times=2)
        await settle(pilot)
        assert type(pilot.app.screen).__name__ == "RankScreen"
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, Overview)


async def test_the_footer_is_clickable(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.click("KeyBar", offset=(2, 0))
        await settle(pilot)
        assert type(pilot.app.screen).__name__ == "RankScreen"


async def test_extend_asks_shows_and_waits_for_the_workers_answer(tmp_path):
    run = crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e", *"2h", "enter")
        await wait_for(pilot, lambda: app._source.requests)
        assert app._source.requests == [(AttemptKey(2), "extend", 7200.0)]
        assert "Asked rank 2 to extend its hold" in notes(pilot)
        at(run, 2).set(hold_until=NOW + 540 + 7200)
        app._source.look()
        app._source.answer(0, "done")
        until = text.time_of_day(NOW + 540 + 7200, NOW)
        await wait_for(pilot, lambda: f"Rank 2 is held until {until}, 2h09m more." in notes(pilot))


@pytest.mark.parametrize(("key", "asked"), [("y", 1), ("enter", 0), ("escape", 0), ("n", 0)])
async def test_release_needs_a_clear_yes(tmp_path, key, asked):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "x", key)
        assert len(app._source.requests) == asked
        assert isinstance(app.screen, Overview)


async def test_a_worker_that_refuses_is_quoted(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "x", "y")
        await wait_for(pilot, lambda: app._source.requests)
        app._source.answer(0, "the hold is [b]over[/b]")
        await wait_for(pilot, lambda: "Rank 2 says to release: the hold is [b]over[/b]" in notes(pilot))


async def test_a_worker_that_does_not_answer_is_said(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    now = [NOW]
    app._clock = lambda: now[0]
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "x", "y")
        await wait_for(pilot, lambda: app._source.requests)
        for _ in range(6):
            now[0] += 2
            app.following.answers()
        app._source.look()
        await wait_for(
            pilot, lambda: "Rank 2: no answer to release after 10 s. The request is taken back." in notes(pilot))
        assert app._source.withdrawn == ["request-0"]


async def test_only_a_held_rank_can_be_released(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "g", "j", "x")
        assert "Rank 1 is not held any more. Only a held rank" in notes(pilot)
        assert isinstance(app.screen, Overview)


async def test_no_shell_is_explained(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "s")
        await wait_for(pilot, lambda: "ssh gpu-02" in notes(pilot))


async def test_both_attempts_of_a_rank_are_shown(tmp_path):
    run = crashed_run(tmp_path / "run")
    run.rank(2, attempt=2).start(NOW - 5).phase("Train", NOW - 3).output(b"again\n", NOW - 1)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert [row.label for row in table(pilot).rows] == ["0", "1", "2#1", "2#2", "3"]
        assert [row.superseded for row in table(pilot).rows] == [False, False, True, False, False]


async def test_what_cannot_be_read_is_counted_and_told(tmp_path):
    run = crashed_run(tmp_path / "run")
    (run.directory / "rank-00001" / "attempt-1" / "status.json").write_bytes(b"{torn")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "! 1 unreadable" in screen_text(pilot)
        await press(pilot, "p")
        assert "rank-00001/attempt-1/status.json" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, Overview)


async def test_a_run_without_ranks_says_what_it_waits_for(tmp_path):
    RunBuilder(tmp_path / "run", world_size=8)
    async with app_on(tmp_path / "run").run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        shown = screen_text(pilot)
        assert "No rank has reported yet." in shown
        assert "8 expected; looking in /shared/runs/run-1" in shown


async def test_a_source_that_fails_says_why_and_keeps_what_is_known(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run", problem="the host is gone")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await app._source.close()
        await wait_for(pilot, lambda: "source lost" in screen_text(pilot))
        assert len(table(pilot).rows) == 4


async def test_help_and_palette_offer_the_registry(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(120, 60)) as pilot:
        await settle(pilot)
        await press(pilot, "question_mark")
        shown = screen_text(pilot)
        assert "Hold a failed rank for longer" in shown
        assert "End the hold of a failed rank now" in shown
        await press(pilot, "escape", "colon")
        await wait_for(pilot, lambda: "extend  (e)" in screen_text(pilot))
        await press(pilot, *"release", "enter")
        await wait_for(pilot, lambda: "Release rank 2?" in screen_text(pilot))


async def test_the_theme_toggles(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "T")
        assert pilot.app.theme == "trainwatch-light"
        await press(pilot, "T")
        assert pilot.app.theme == "trainwatch-dark"


async def test_why_stays_in_the_footer_at_80_columns_once_something_has_failed(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().output(b"x\n")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "w why" not in screen_text(pilot).splitlines()[-1]
        at(run, 0).fail(1)
        app._source.look()
        await wait_for(pilot, lambda: "w why" in screen_text(pilot).splitlines()[-1])
        assert "q quit" in screen_text(pilot).splitlines()[-1]
        await press(pilot, "tab")
        assert "w why" in screen_text(pilot).splitlines()[-1]


@pytest.mark.parametrize("width", [80, 160])
async def test_a_sorted_columns_title_is_whole_and_has_its_arrow(tmp_path, width):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0, host="n0").start().phase("Up").output(b"x\n").fail(1, hold=None)
    async with app_on(tmp_path / "run").run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        header = table(pilot).render_line(0).text
        places = {column.title: header.index(column.title) for column, _ in table(pilot)._layout if column.sort}
        for key in table(pilot).sort_keys:
            pilot.app.screen._look(sort=key)
            title = next(column.title for column, _ in table(pilot)._layout if column.sort == key)
            shown = table(pilot).render_line(0).text
            assert f"{title}▲" in shown
            assert len(shown) == width
            others = {name for name in places if name not in (title, "rank")}  # that one had the arrow before
            assert {name: shown.index(name) for name in others} == {name: places[name] for name in others}


@pytest.mark.parametrize("width", [80, 100, 120])
async def test_the_hints_of_typed_lines_are_whole(tmp_path, width):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "slash")
        assert EXAMPLES in screen_text(pilot)
        await press(pilot, "escape", "l", "slash")
        assert "⏎ find · ctrl+r regex · esc close" in screen_text(pilot)


@pytest.mark.parametrize("keys", [("slash",), ("l", "slash"), ("e",)])
async def test_messages_never_cover_the_line_that_is_typed(tmp_path, keys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        line = app.focused.region
        app.notify("a message that is long enough for a second line in the box that it is shown in")
        app.notify("another one")
        await wait_for(pilot, lambda: len(app.screen.query("Toast")) == 2)
        await settle(pilot)
        for toast in app.screen.query("Toast"):
            assert toast.region.area
            assert not toast.region.overlaps(line)
        await press(pilot, "escape")
        toast = app.screen.query("Toast").last()
        await wait_for(pilot, lambda: toast.region.y > 12 or not toast.is_attached)


async def test_a_run_directory_that_goes_is_said_in_the_header_and_once_aloud(tmp_path):
    run = crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "is gone" not in screen_text(pilot)
        run.directory.rename(tmp_path / "moved")
        app._source.look()
        await wait_for(pilot, lambda: "run directory is gone" in screen_text(pilot).splitlines()[0])
        assert "unreadable" not in screen_text(pilot)
        app._source.look()
        await settle(pilot)
        assert notes(pilot).count("The run directory /shared/runs/run-1: it is gone.") == 1
        assert len(table(pilot).rows) == 4
        for keys in ("enter", "l"):
            await press(pilot, keys)
            assert "run directory is gone" in screen_text(pilot).splitlines()[0]
            await press(pilot, "escape")
        (tmp_path / "moved").rename(run.directory)
        app._source.look()
        await wait_for(pilot, lambda: "is gone" not in screen_text(pilot).splitlines()[0])


async def test_a_shell_whose_directory_is_gone_names_it(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    app._source.plan = ShellPlan(("/bin/bash", "-i"), {}, "/no/such/directory", "rank 2")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "s")
        await wait_for(pilot, lambda: "its directory /no/such/directory is gone" in notes(pilot))


@pytest.mark.parametrize("width", [80, 160])
async def test_a_rank_that_cannot_be_read_is_marked_and_says_why(tmp_path, width):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start()
    garbage = run.rank(1)
    (garbage.directory / "status.json").write_bytes(b"\x00\xff garbage")
    (garbage.directory / "events.jsonl").write_bytes(b"\x00\xff garbage\n")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        assert " 0  gpu" in table(pilot).render_line(1).text
        assert " 1! " in table(pilot).render_line(2).text
        await press(pilot, "j")
        assert "! not understood" in screen_text(pilot)


@pytest.mark.parametrize(("state", "said"), [
    ("finished", "Rank 0 has finished."), ("failed", "Rank 0 has failed and is not held."),
    ("ended", "Rank 0 is not held any more."), ("lost", "Rank 0 is lost: its launcher gives no sign of life."),
    ("running", "Rank 0 is running."), ("stalled", "Rank 0 has stalled."),
])  # fmt: skip
async def test_why_a_rank_cannot_be_released_is_said_in_words(tmp_path, state, said):
    run = RunBuilder(tmp_path / "run", world_size=1)
    rank = run.rank(0).start()
    make = {
        "finished": rank.finish, "failed": lambda: rank.fail(1, hold=None), "ended": lambda: rank.fail(1).end(),
        "lost": lambda: rank.set(time=NOW - 99), "running": lambda: None,
        "stalled": lambda: rank.set(stalled_since=NOW - 9),
    }  # fmt: skip
    make[state]()
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        assert f"{said} Only a held rank can be released" in notes(pilot)
