"""Searching a log in chunks: the same hits as reading it whole, in any direction, around the end."""
from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.widgets import log_search
from trainwatch.widgets.limited import TooSlowError
from trainwatch.widgets.log_search import PatternError, compile_pattern, find, line_after, spans


async def search(data: bytes, text: str, start: int, down: bool, regex: bool = False):
    async def read(offset: int, length: int) -> bytes:
        return data[offset:offset + length]

    steps = [step async for step in find(compile_pattern(text, regex), read, len(data), start, down)]
    return steps[-1] if steps else None


def line_starts(data: bytes) -> list[int]:
    return [0, *(found.end() for found in re.finditer(b"\n", data) if found.end() < len(data))]


@given(st.lists(st.sampled_from([b"step", b"loss", b"needle", b"x" * 40, b""]), min_size=1, max_size=40),
       st.integers(0, 39), st.booleans())  # fmt: skip
async def test_hits_are_those_of_a_reader_who_sees_all(lines, at, down):
    log_search_step, log_search.STEP = log_search.STEP, 64
    try:
        data = b"\n".join(lines) + b"\n"
        starts = line_starts(data)
        start = starts[min(at, len(starts) - 1)]
        progress = await search(data, "needle", start, down)
    finally:
        log_search.STEP = log_search_step
    hits = [offset for offset in starts if data[offset:].split(b"\n", 1)[0] == b"needle"]
    below, above = [hit for hit in hits if hit >= start], [hit for hit in hits if hit < start]
    expected = (below or above)[:1] if down else (above or below)[-1:]
    assert ([] if progress is None or progress.hit is None else [progress.hit]) == expected
    if expected:
        assert progress.wrapped == (expected[0] not in (below if down else above))


async def test_case_matters_once_a_capital_is_typed():
    data = b"Error here\nerror there\n"
    assert (await search(data, "error", 0, down=True)).hit == 0
    assert (await search(data, "Error", 11, down=True)).hit == 0
    assert (await search(data, "ERROR", 0, down=True)).hit is None


async def test_colours_do_not_hide_text():
    data = b"first\nlo\x1b[31mss=\x1b[1m0.3\x1b[0m\nlast\n"
    assert (await search(data, "loss=0.3", 0, down=True)).hit == 6


async def test_regular_expressions_see_lines():
    data = b"step 1\nstep 22\nstep 333\n"
    assert (await search(data, r"^step \d{2}$", 0, down=True, regex=True)).hit == 7
    assert (await search(data, "step (1", 0, down=True)).hit is None


async def test_a_hit_is_found_in_a_line_longer_than_a_step():
    data = b"x" * (3 * log_search.STEP) + b"needle" + b"x" * log_search.STEP + b"\n"
    assert (await search(data, "needle", 0, down=True)).hit is not None
    assert (await search(data, "needle", len(data), down=False)).hit is not None


async def test_chinese_text_is_found():
    data = "开始\n训练损失 0.3\n".encode()
    assert (await search(data, "损失", 0, down=True)).hit == 7


def test_a_broken_expression_is_said_in_one_line():
    with pytest.raises(PatternError, match="no regular expression"):
        compile_pattern("(", regex=True)


def test_matches_on_screen_leave_out_empty_ones():
    assert spans(compile_pattern("o", False), "foo") == [(1, 2), (2, 3)]
    assert spans(compile_pattern("x*", True), "axb") == [(1, 2)]


async def test_the_next_line_is_found_also_far_away():
    data = b"x" * (log_search.STEP + 5) + b"\nnext\n"

    async def read(offset: int, length: int) -> bytes:
        return data[offset:offset + length]

    assert await line_after(read, 0, len(data)) == log_search.STEP + 6
    assert await line_after(read, len(data) - 5, len(data)) == len(data)


@pytest.mark.parametrize("text", ["(a|a)*$x", r"(\w+\s?)*!", ".*.*.*.*.*!", "(a|aa)+!", "(a*)*b", "([a-z]+)*!"])
async def test_an_expression_that_would_never_end_is_given_up(text):
    data = b"a" * 200_000 + b"\n"
    with pytest.raises(PatternError, match="takes too long"):
        await search(data, text, 0, down=True, regex=True)
    with pytest.raises(TooSlowError):
        spans(compile_pattern(text, True), "a" * 16_000)


@pytest.mark.parametrize("text", ["a{99999999999}", "(" * 3000 + ")" * 3000, "(", "[z-a]"])
def test_what_is_no_expression_is_said(text):
    with pytest.raises(PatternError, match="no regular expression"):
        compile_pattern(text, True)


@pytest.mark.parametrize(
    ("text", "regex"), [("ошибка", False), ("步骤", False), (r"步骤 .完", True), (r"\w+误", True), ("^.{4}$", True)]
)
async def test_letters_are_letters_in_every_script(text, regex):
    data = "first line\nОшибка\n步骤 已完\n有错误\n四个字母\n".encode()
    progress = await search(data, text, 0, down=True, regex=regex)
    assert progress.hit is not None
    line = data[progress.hit :].split(b"\n", 1)[0].decode()
    assert re.search(text if regex else re.escape(text), line, re.IGNORECASE)
