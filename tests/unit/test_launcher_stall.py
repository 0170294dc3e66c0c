"""When the launcher says that a command stalls."""
from __future__ import annotations

import pytest

from trainwatch_launcher.stall import BEFORE_STEPS, LONGEST, SHORTEST, Stall


def steps(stall, every, count, begin=0.0):
    """A command that shows a step every so many seconds; when the last one was."""
    tick = begin
    for number in range(1, count + 1):
        tick = begin + number * every
        assert not stall.look(tick, int(tick) + 1, True, None)
    return tick


def silent(stall, begin, seconds, size, busy=False):
    """Seconds of silence after which it is said to stall; None when it is not."""
    for second in range(int(seconds) + 1):
        tick = begin + second
        if stall.look(tick, size, False, tick if busy else None):
            return second
    return None


@pytest.mark.parametrize(("every", "limit"), [
    (2, SHORTEST),        # quick steps: never under five minutes
    (60, 600),            # ten times the usual
    (900, LONGEST),       # no more than an hour
    (3000, 9000),         # but three steps
])
def test_how_long_is_too_long_follows_the_steps(every, limit):
    stall = Stall(None, True, 0.0)
    end = steps(stall, every, 20)
    assert silent(stall, end, 10_000, int(end) + 1) == limit


def test_it_moves_again_with_output_or_a_step():
    stall = Stall(None, True, 0.0)
    end = steps(stall, 1, 10)
    assert silent(stall, end, 1000, 11) == SHORTEST
    assert (stall.stalled, stall.moved) == (True, end)
    assert stall.look(end + 500, 12, False, None)
    assert (stall.stalled, stall.moved) == (False, end + 500)


def test_a_silence_that_ended_by_itself_is_usual_from_then_on():
    stall = Stall(None, True, 0.0)
    end = steps(stall, 1, 10) + 280  # a checkpoint, say
    stall.look(end, 100, True, None)
    assert silent(stall, end, 2000, 100) == 3 * 280


def test_before_the_first_step_it_takes_longer():
    assert silent(Stall(None, True, 0.0), 0.0, 4000, 0) == BEFORE_STEPS


def test_a_gpu_that_works_is_a_sign_of_life_before_the_first_step_and_none_after():
    stall = Stall(None, False, 0.0)
    assert silent(stall, 0.0, 4000, 0, busy=True) is None
    for second in range(4001, 8000):
        if stall.look(second, 0, False, 4000.0):
            break
    assert second == 4000 + BEFORE_STEPS
    stall = Stall(None, False, 0.0)
    end = steps(stall, 1, 10)
    assert silent(stall, end, 1000, 11, busy=True) == SHORTEST


def test_a_silent_rank_of_several_of_whose_gpus_nothing_is_known_does_not_stall():
    assert silent(Stall(None, False, 0.0), 0.0, 10_000, 0) is None


def test_the_user_s_limit_counts_whatever_is_usual():
    assert silent(Stall(20.0, False, 0.0), 0.0, 100, 0, busy=True) == 20
    stall = Stall(20.0, False, 0.0)
    assert silent(stall, steps(stall, 1, 5), 100, 6) == 20


def test_zero_is_never():
    assert silent(Stall(0.0, True, 0.0), 0.0, 10_000, 0) is None
