"""How often many logs are looked at: less often when a look takes long, and a long way there does not count."""
from __future__ import annotations

import pytest

from trainwatch.widgets import page_loader
from trainwatch.widgets.page_loader import LONGEST_PAUSE, SHARE, Pace


class Clock:
    """Time as a test tells it: what passes, and what of it we work."""

    def __init__(self) -> None:
        self.passed = self.worked = 100.0

    def monotonic(self) -> float:
        return self.passed

    def process_time(self) -> float:
        return self.worked


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(page_loader, "time", made)
    return made


def look(pace, clock, took, worked):
    pace.begin()
    clock.passed += took
    clock.worked += worked
    pace.end()


def pause(pace, clock):
    """Seconds until the next look."""
    began = clock.passed
    while not pace.is_due:
        clock.passed += 0.001
    return clock.passed - began


def test_looks_that_keep_a_core_busy_take_a_share_of_it(clock):
    pace = Pace()
    for took in (0.2, 0.2, 0.001, 0.15):
        look(pace, clock, took, took)
        assert pause(pace, clock) >= (SHARE - 1) * took - 0.001
    look(pace, clock, 30.0, 30.0)
    assert pause(pace, clock) == pytest.approx(LONGEST_PAUSE, abs=0.01)


def test_the_way_to_another_host_is_no_reason_to_look_less_often(clock):
    pace = Pace()
    for _ in range(5):
        look(pace, clock, 0.3, 0.001)
        assert pause(pace, clock) < 0.01
    look(pace, clock, 0.9, 0.001)  # the agent had to work for that
    assert pause(pace, clock) > 0.3
