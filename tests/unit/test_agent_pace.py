"""How often the agent looks, and what it learns of clocks from what it sees."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.agent import clocks, pace


def test_a_small_run_on_a_local_disk_is_looked_at_four_times_a_second_while_it_changes():
    assert pace.pause(False, 0.0005, 0.0005, pace.operations(8, 0)) == pace.LOCAL
    assert pace.pause(False, 0.0005, 0.0005, pace.operations(8, 0), quiet=60.0) == pace.IDLE


@given(st.integers(0, 100_000), st.integers(0, 100_000))
def test_a_file_server_is_asked_no_more_than_the_budget_until_ranks_would_look_lost(live, ended):
    asked = pace.operations(live, ended)
    pause = pace.pause(True, 0.0, 0.0, asked)
    assert asked / pause <= max(pace.OPERATIONS, asked / pace.SLOWEST) + 0.01
    assert pause >= pace.SHARED


def test_a_slow_server_is_busy_with_us_for_half_of_the_time_at_most():
    assert pace.pause(True, 0.01, 30.0, 100) == 30.0


def test_looking_costs_at_most_a_hundredth_of_a_core_while_that_is_soon_enough():
    assert pace.pause(False, 0.05, 0.05, 0) == pytest.approx(5.0)
    assert pace.pause(False, 5.0, 5.0, 0) == pace.SLOWEST


@given(st.floats(-1000, 1000), st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=20))
def test_a_clock_is_never_estimated_further_off_than_it_is(truth, trips):
    bounds = clocks.Bounds()
    for at, (there, back) in enumerate(trips):
        asked = 1000.0 + at * 10
        bounds.note(*clocks.of_host(asked, asked + there + truth, asked + there + back))
    ahead = bounds.ahead()
    assert ahead is not None
    assert abs(ahead) <= abs(truth) + 1e-6
    assert abs(ahead - truth) <= min(there + back for there, back in trips) + 1e-6


def test_clocks_that_may_agree_do_agree():
    bounds = clocks.Bounds()
    assert bounds.ahead() is None
    bounds.note(*clocks.of_host(100.0, 100.4, 101.0))
    assert bounds.ahead() == 0.0


def test_a_clock_that_was_set_is_believed_at_once():
    bounds = clocks.Bounds()
    bounds.note(*clocks.of_host(100.0, 400.0, 100.1))
    bounds.note(*clocks.of_host(110.0, 110.05, 110.1))
    assert bounds.ahead() == 0.0


@pytest.mark.parametrize(("stamp", "ahead"), [(1299.5, 298.5), (699.5, -295.5), (999.5, 0.0), (1000.9, 0.0)])
def test_a_file_servers_clock_is_learned_from_what_others_write(stamp, ahead):
    bounds = clocks.Bounds()
    bounds.note(*clocks.of_server(stamp, 999.0, 1001.0))
    assert bounds.ahead() == pytest.approx(ahead)
