"""Logs on screen: the end first, following, scrolling, searching, and bytes that mean harm."""
from __future__ import annotations

import unicodedata

from textual import events

from builders import RunBuilder, at, crashed_run
from support.logs import LINES, SIZE, run_with_log, view
from support.screens import app_on, press, screen_text, settle, wait_for
from trainwatch.widgets.log_pane import LogPane
from trainwatch.widgets.log_view import LogView
from trainwatch_launcher.reader.changes import AttemptKey


async def test_a_log_opens_at_its_end_and_reads_little(tmp_path):
    run_with_log(tmp_path / "run", LINES * 200)
    app = app_on(tmp_path / "run")
    read = []
    original = app._source.read_log

    async def counted(key, offset, length):
        read.append(length)
        return await original(key, offset, length)

    app._source.read_log = counted
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "step 04999" in screen_text(pilot).splitlines()[-2]
        assert sum(read) < 300_000


async def test_new_lines_are_followed_until_one_scrolls_up(tmp_path):
    run = run_with_log(tmp_path / "run", LINES)
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        at(run, 0).output(b"a new line\n")
        app._source.look()
        await wait_for(pilot, lambda: "a new line" in screen_text(pilot) and "5,001 lines" in screen_text(pilot))
        await press(pilot, "k", "k")
        assert "a new line" not in screen_text(pilot)
        assert "paused" in screen_text(pilot)
        at(run, 0).output(b"one\ntwo\nthree\n")
        app._source.look()
        await wait_for(pilot, lambda: "↓ 3 new lines" in screen_text(pilot))
        assert "three" not in screen_text(pilot)
        await press(pilot, "f")
        await wait_for(pilot, lambda: "three" in screen_text(pilot))
        assert "following" in screen_text(pilot)


async def test_scrolling_down_to_the_end_follows_again(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "k")
        assert not view(pilot).following
        await press(pilot, "j")
        assert view(pilot).following


async def test_top_bottom_and_pages(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "g")
        assert "step 00000" in screen_text(pilot)
        await press(pilot, "pagedown")
        assert "step 00027" in screen_text(pilot).splitlines()[1]
        await press(pilot, "pageup")
        assert "step 00000" in screen_text(pilot)
        await press(pilot, "G")
        assert "step 04999" in screen_text(pilot)


async def test_the_wheel_and_the_scroll_bar_move(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        await pilot._post_mouse_events([events.MouseScrollUp], LogView)
        await settle(pilot)
        assert "step 04999" not in screen_text(pilot)
        await pilot.click(LogView, offset=(99, 0))
        await settle(pilot)
        assert "step 00000" in screen_text(pilot)


async def test_search_goes_up_from_the_end_and_around(tmp_path):
    run_with_log(tmp_path / "run", b"needle first\n" + LINES + b"needle last\n" + LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "slash", *"needle", "enter")
        await wait_for(pilot, lambda: "needle last" in screen_text(pilot))
        await wait_for(pilot, lambda: "2 of 2 lines" in screen_text(pilot))
        await press(pilot, "N")
        await wait_for(pilot, lambda: "needle first" in screen_text(pilot))
        await press(pilot, "N")
        await wait_for(pilot, lambda: "needle last" in screen_text(pilot) and "around the end" in screen_text(pilot))
        await press(pilot, "n")
        await wait_for(pilot, lambda: "needle first" in screen_text(pilot))
        await press(pilot, "escape")
        assert pilot.app.screen.query_one(LogPane).view.pattern is None


async def test_search_says_when_there_is_nothing_and_when_it_is_no_expression(tmp_path):
    run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "slash", *"nosuch", "enter")
        await wait_for(pilot, lambda: "no match for nosuch" in screen_text(pilot))
        await press(pilot, "slash", "ctrl+r", "(", "enter")
        await wait_for(pilot, lambda: "no regular expression" in screen_text(pilot))


async def test_a_hit_at_the_very_end_stays_when_n_is_pressed_again(tmp_path):
    run_with_log(tmp_path / "run", LINES + b"only needle\n")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "slash", *"needle", "enter")
        await wait_for(pilot, lambda: view(pilot).hit == (0, len(LINES)))
        await press(pilot, "n")
        await wait_for(pilot, lambda: "around the end" in screen_text(pilot))
        assert view(pilot).hit == (0, len(LINES))


async def test_long_lines_wrap_or_scroll_sideways(tmp_path):
    long = b"start " + b"-" * 200 + b" finish\n"
    run_with_log(tmp_path / "run", long)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        assert "finish" not in screen_text(pilot)
        await press(pilot, *["right"] * 16)
        assert "finish" in screen_text(pilot)
        await press(pilot, "w")
        assert "start" in screen_text(pilot)
        assert "finish" in screen_text(pilot)


async def test_a_rank_without_output_says_so(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start()
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "no output yet" in screen_text(pilot)


async def test_another_rank_shows_another_log(tmp_path):
    run = run_with_log(tmp_path / "run", b"log of rank zero\n")
    run.rank(1).start().output(b"log of rank one\n")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "j")
        await wait_for(pilot, lambda: "log of rank one" in screen_text(pilot).splitlines()[6])
        assert view(pilot).reader is not None
        assert pilot.app.screen.key == AttemptKey(1)


async def test_a_log_in_whose_place_a_larger_file_comes_is_shown_as_that_file(tmp_path):
    run = run_with_log(tmp_path / "run", b"".join(b"old %02d\n" % number for number in range(20)))
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        assert "old 19" in screen_text(pilot)
        other = tmp_path / "other"
        other.write_bytes(b"".join(b"new line %02d\n" % number for number in range(24)))
        other.replace(at(run, 0).log)
        await wait_for(pilot, lambda: "new line 23" in screen_text(pilot))
        await press(pilot, "g")
        await wait_for(pilot, lambda: "new line 00" in screen_text(pilot))
        assert "old" not in screen_text(pilot)


async def test_a_log_that_begins_anew_is_shown_from_its_end(tmp_path):
    run = run_with_log(tmp_path / "run", LINES)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l", "g")
        at(run, 0).log.write_bytes(b"another file\n")
        await wait_for(pilot, lambda: "another file" in screen_text(pilot))
        assert view(pilot).following


HOSTILE = (
    b"\x1b]0;owned\x07\x1b[2J\x1b[1;1Htitle\n"
    b"\x1b]52;c;aGFja2Vk\x07clip\n"
    b"[bold red]markup[/] [@click=app.quit]x[/]\n"
    b"nul\x00\x00\x00nul\n"
    b"bad \xff\xfe\xc3( utf8\n"
    b"beep\x07\x07\n"
    b"\x9b31mraw c1\x9d0;t\x9c\n"
    b"\x1bPq#0;2;0\x1b\\sixel\n"
    b"\x1b[31mred\x1b[0m\n"
    b"progress 1%\rprogress 100%\n"
    + "\u202eevil\u2066\n".encode() + b"y" * 10_000_000 + b"\nlast line\n"
)  # fmt: skip


async def test_hostile_bytes_never_reach_the_terminal_as_anything_but_text(tmp_path):
    run = run_with_log(tmp_path / "run", HOSTILE)
    at(run, 0).set(last_line="\x1b]0;evil\x07[bold]x", host="\x1b[31mhost\u202e", phase="\x9b2Jphase")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        for keys in ([], ["l"], ["g"], ["w"], ["G"], ["escape", "enter"], ["question_mark"]):
            await press(pilot, *keys)
            for strip in pilot.app.screen._compositor.render_strips():
                for segment in strip:
                    assert not segment.control
                    for character in segment.text:
                        assert unicodedata.category(character) not in ("Cc", "Cs"), (keys, segment)
                        assert character not in "\u202e\u2066"
        await press(pilot, "escape", "escape", "l")
        assert "last line" in screen_text(pilot)
        await press(pilot, "g")
        shown = screen_text(pilot)
        assert "[bold red]markup[/] [@click=app.quit]x[/]" in shown
        assert "nul␀×3nul" in shown
        assert "progress 100%" in shown
        assert "progress 1%" not in shown


async def test_selected_text_is_lines_without_what_the_screen_adds(tmp_path):
    from textual.geometry import Offset
    from textual.selection import Selection

    run_with_log(tmp_path / "run", b"first \x1b[31mline\x1b[0m\nsecond line\n")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        selection = Selection.from_offsets(Offset(0, 0), Offset(6, 1))
        assert view(pilot).get_selection(selection) == ("first line\nsecond", "\n")


async def test_the_footer_offers_the_next_hit_while_something_is_looked_for(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "l")
        assert "n next" not in screen_text(pilot).splitlines()[-1]
        await press(pilot, "slash", *"loss", "enter")
        footer = screen_text(pilot).splitlines()[-1]
        assert "n next  N previous" in footer
        assert "q quit" in footer
        await press(pilot, "escape")
        assert "n next" not in screen_text(pilot).splitlines()[-1]
