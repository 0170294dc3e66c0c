"""Moments as people type them."""
from __future__ import annotations

import time
from datetime import datetime

import pytest

from trainwatch.model import moments

END = datetime(2025, 11, 30, 12, 0, 0).timestamp()


@pytest.mark.parametrize(("typed", "when"), [
    ("-10m", datetime(2025, 11, 30, 11, 50)), ("1h30m", datetime(2025, 11, 30, 10, 30)),
    ("11:59:58", datetime(2025, 11, 30, 11, 59, 58)), ("9:05", datetime(2025, 11, 30, 9, 5)),
    ("12:00:30", datetime(2025, 11, 30, 12, 0, 30)), ("12:31:05", datetime(2025, 11, 29, 12, 31, 5)),
    ("11:59:58.25", datetime(2025, 11, 30, 11, 59, 58, 250_000)), ("2025-11-28", datetime(2025, 11, 28)),
    ("2025-11-28 7:05", datetime(2025, 11, 28, 7, 5)), ("2025-11-28T07:05:01", datetime(2025, 11, 28, 7, 5, 1)),
])  # fmt: skip
def test_moments_are_what_people_mean(typed, when):
    assert moments.parse(typed, END) == pytest.approx(when.timestamp())


def test_unix_seconds_are_taken_as_they_are():
    assert moments.parse("@1764500000.5", time.time()) == 1764500000.5


@pytest.mark.parametrize("typed", ["", "x", "25:00", "12:61", "2025-13-01", "2025-11-30 x", "-", "@x", "9 moons"])
def test_what_is_no_moment_is_none(typed):
    assert moments.parse(typed, END) is None
