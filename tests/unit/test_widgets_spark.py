"""Bars and lines of block characters."""
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.widgets.spark import LEVELS, bar, level, line


@pytest.mark.parametrize(("values", "width", "drawn"), [
    ([0, 50, 100], 3, "▁▅█"), ([0, 100] * 4, 4, "▅▅▅▅"), ([None, 100], 2, "·█"), ([None], 3, "·"),
    ([], 5, ""), ([1, 2], 0, ""), ([math.nan, 0], 2, "·▁"), ([-5, 200], 2, "▁█"),
])  # fmt: skip
def test_a_line_shows_the_mean_of_each_part(values, width, drawn):
    assert line(values, width, 0, 100) == drawn


def test_a_line_is_scaled_to_what_there_is():
    assert line([7, 7], 8) == "▅▅"
    assert line([1.7e308, -9e291], 2) == "█▁"


@given(st.lists(st.none() | st.floats(), max_size=60), st.integers(0, 20))
def test_a_line_never_outgrows_its_cells(values, width):
    assert len(line(values, width)) <= width
    assert len(line(values, width, 0, 1)) <= width


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 30))
def test_a_bar_never_outgrows_its_cells(share, width):
    assert len(bar(share, width)) <= width
    assert bool(bar(share, width)) == (share > 0)


def test_levels_stay_in_their_range():
    assert (level(-1, 0, 1), level(9, 0, 1), level(5, 5, 5)) == (LEVELS[0], LEVELS[-1], LEVELS[4])
