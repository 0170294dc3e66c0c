"""Log bytes made safe to draw: colours stay, nothing else that a terminal would obey."""
from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color

from trainwatch.widgets.logtext import clean, highlight, last_state, parse, plain, strip_of, wrap_cuts

ESCAPES = st.sampled_from([
    b"\x1b[31m", b"\x1b[0m", b"\x1b[38;5;200m", b"\x1b[38;2;1;2;3m", b"\x1b[2J", b"\x1b[10;10H", b"\x1b[?1049h",
    b"\x1b]0;title\x07", b"\x1b]52;c;aGk=\x07", b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"\x1bPq#0\x1b\\",
    b"\x1b_G\x1b\\",
    b"\x1b", b"\x1b[", b"\x1b]", b"\x9b31m", "\x9b2J".encode(), "\x9dx\x9c".encode(), b"\x07", b"\x00", b"\xff\xfe",
    b"[bold red]x[/]", b"[link=evil]", "\u202e".encode(), "\u2066".encode(), "e\u0301".encode(), "训练".encode(),
    "👩‍👩‍👧".encode(), b"\t", b"\r", b"\x7f", b"\x0e", b"\x1bc", b"\x1b#8", b"\x1b(0",
])  # fmt: skip
LOG_BYTES = st.lists(st.one_of(ESCAPES, st.binary(max_size=20), st.text(max_size=10).map(
    lambda text: text.encode("utf-8", "surrogatepass"))), max_size=30).map(b"".join)  # fmt: skip


@given(LOG_BYTES)
@settings(max_examples=400)
def test_no_control_character_ever_comes_out(data):
    for segment in strip_of(parse(data)):
        assert segment.control is None
        for character in segment.text:
            assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp"), repr(character)
            assert not unicodedata.bidirectional(character).startswith(("LR", "RL", "PD", "FS")), repr(character)


@given(LOG_BYTES)
def test_the_width_of_a_line_is_the_sum_of_its_characters(data):
    pieces = parse(data)
    assert strip_of(pieces).cell_length == cell_len("".join(text for text, _ in pieces))


@given(LOG_BYTES, st.integers(2, 40))
def test_wrapped_rows_are_no_wider_than_the_screen_and_lose_nothing(data, width):
    pieces = parse(data)
    text = "".join(part for part, _ in pieces)
    cuts = wrap_cuts(text, width)
    rows = strip_of(pieces).divide(cuts)
    assert cuts == sorted(cuts)
    assert all(row.cell_length <= width for row in rows)
    assert "".join(row.text for row in rows) == text


def styles_of(data: bytes):
    return [(text, style) for text, style in parse(data)]


def test_colours_and_text_styles_are_shown():
    (red, style), (plain_text, none) = styles_of(b"\x1b[1;3;4;31mred\x1b[0m plain")
    assert (red, plain_text) == ("red", " plain")
    assert style.color == Color.from_ansi(1)
    assert (style.bold, style.italic, style.underline) == (True, True, True)
    assert none.color is None
    assert not none.bold


@pytest.mark.parametrize(("codes", "color"), [
    ("38;5;208", Color.from_ansi(208)), ("38;2;10;20;30", Color.from_rgb(10, 20, 30)), ("93", Color.from_ansi(11)),
    ("38:5:208", Color.from_ansi(208)),
])  # fmt: skip
def test_all_kinds_of_colour_are_known(codes, color):
    (_, style), = styles_of(f"\x1b[{codes}mx".encode())
    assert style.color == color


def test_reverse_dim_and_background_are_known_and_switched_off_again():
    (_, on), (_, off) = styles_of(b"\x1b[7;2;44mx\x1b[27;22;49my")
    assert (on.reverse, on.dim, on.bgcolor) == (True, True, Color.from_ansi(4))
    assert (off.reverse, off.dim, off.bgcolor) == (None, None, None)


@pytest.mark.parametrize("data", [
    b"\x1b[38;5m", b"\x1b[38;2;300;0;0m", b"\x1b[38m", b"\x1b[99999999999m", b"\x1b[?25m", b"\x1b[>4;2m",
    b"\x1b[" + b"1;" * 5000 + b"m",
])  # fmt: skip
def test_odd_colour_codes_change_nothing(data):
    assert plain(data + b"x") == "x"
    (_, style), = styles_of(data + b"x")
    assert style.color is None


def test_titles_links_clipboard_and_screens_are_removed():
    data = b"a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b]8;;\x1b\\d\x1b]52;c;aGk=\x07e\x1b[2Jf\x1bPq\x1b\\g\x1bch"
    assert plain(data) == "abcdefgh"


def test_an_unfinished_sequence_hides_nothing_of_the_line():
    assert "secret" in plain(b"\x1b]0;secret and the rest")
    assert plain(b"\x1b[") == ""


def test_markup_is_text():
    assert plain(b"[bold]x[/bold] [@click=app.quit]y[/]") == "[bold]x[/bold] [@click=app.quit]y[/]"


def test_nuls_and_other_controls_are_seen():
    assert plain(b"a\x00b") == "a␀b"
    assert plain(b"\x00" * 5000) == "␀×5000"
    assert plain(b"\x01\x7f") == "␁␡"
    assert plain(b"ding\x07") == "ding"


def test_bytes_that_are_no_utf8_are_replaced():
    assert plain(b"a\xff\xfeb") == "a\ufffd\ufffdb"
    assert plain("半".encode()[:2]) == "\ufffd"


def test_text_direction_cannot_be_turned():
    assert plain("user\u202egnp.exe".encode()) == "user\ufffdgnp.exe"


def test_progress_bars_collapse_to_their_last_state():
    assert plain(b" 10%|#   |\r 50%|##  |\r100%|####|") == "100%|####|"
    assert plain(b"done\r") == "done"
    assert plain(b" 50%|##  |\r\x1b[K\r") == " 50%|##  |"
    assert last_state(b"\r\r\r") == b""


def test_tabs_reach_the_next_stop_also_after_wide_characters():
    assert plain(b"a\tb") == "a       b"
    assert plain("训练\tx".encode()) == "训练    x"


def test_combining_marks_do_not_pile_up():
    assert len(plain(("e" + "\u0301" * 500).encode())) <= 6


def test_wide_characters_are_not_torn_by_wrapping():
    assert wrap_cuts("训练训练", 3) == [2, 4, 6, 8]
    assert wrap_cuts("", 10) == [0]
    assert wrap_cuts("abcdef", 4) == [4, 6]


def test_matches_are_laid_over_colours():
    from rich.style import Style

    marked = highlight(parse(b"ab\x1b[31mcd\x1b[0mef"), [(1, 3)], Style(bgcolor="yellow"))
    assert [text for text, _ in marked] == ["a", "b", "c", "d", "ef"]
    assert [style.bgcolor is not None for _, style in marked] == [False, True, True, False, False]
    assert marked[2][1].color == Color.from_ansi(1)


def test_facts_are_made_safe_for_one_line():
    assert clean("gpu\n\x1b[31m-1") == "gpu -1"


@pytest.mark.parametrize("data", [
    b"\x1b]" * 16000, b"\x1b[" * 16000, "\x9d".encode() * 8000, b"\x1b[31mx" * 5000, b"\r" * 32000, b"a\r" * 16000,
    b"\x1bP" + b"x" * 32000, ("e" + "\u0301").encode() * 10000, b"\x00a" * 16000, b"\x1b[" + b"1;" * 16000,
    "\x90\x9b".encode() * 8000, b"\x1b[K\r" * 8000,
])  # fmt: skip
def test_hostile_lines_cost_no_more_than_long_ones(data):
    started = time.process_time()
    parse(data)
    assert time.process_time() - started < 1.0
