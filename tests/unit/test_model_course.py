"""What progress was like lately: step times, trends, and losses that are none."""
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainwatch.model.course import MAX_POINTS, NO_COURSE, after, trend
from trainwatch.model.progress import (
    Progress,
    loss_text,
    progress_of,
    quantity,
    rate_text,
    step_text,
    step_time_text,
    trouble_text,
)
from trainwatch_launcher.rundir.records import Status


def status(step=None, loss=None, at=0.0, **facts):
    text = loss if isinstance(loss, str) else ""
    number = None if text else loss
    return Status(time=NOW + at, step=step, loss=number, loss_text=text, progress_since=NOW + at, **facts)


def course_of(*statuses):
    course = NO_COURSE
    for each in statuses:
        course = after(course, each)
    return course


def losses(*values, first=0):
    return course_of(*(status(first + step, loss, step * 2.0) for step, loss in enumerate(values)))


def test_a_step_time_is_seen_from_several_steps():
    course = course_of(*(status(step * 10, 2.0, step * 31.0) for step in range(8)))
    assert course.step_time == pytest.approx(3.1)
    assert course.stride == 10
    assert losses(2.0, 2.0, 2.0).step_time is None


def test_a_status_without_news_changes_nothing():
    course = losses(2.0, 1.9)
    assert after(course, Status(time=NOW)) is course
    assert after(course, status(1, 1.9, 99.0)) is course
    nan = after(course, status(2, "nan", 6.0))
    assert after(nan, status(2, "nan", 8.0)) is nan


def test_steps_that_begin_anew_are_not_compared_with_older_ones():
    course = course_of(*(status(100 + step, 2.0, step) for step in range(8)), status(3, 2.0, 20.0))
    assert course.steps == (3,)
    assert course.step_time is None


@given(st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from([None, 2.5, -1.0, 1e17, "nan", "inf", "-inf", "x"]))))
def test_whatever_comes_is_kept_in_bounds(said):
    course = course_of(*(status(step, loss, at) for at, (step, loss) in enumerate(said)))
    assert len(course.said) <= MAX_POINTS
    assert all(math.isfinite(loss) for loss in course.losses)
    progress = progress_of(status(1, 2.0), course)
    assert isinstance(step_text(progress) + rate_text(progress) + trouble_text(progress), str)


@pytest.mark.parametrize(("values", "direction"), [
    ([2.5, 2.4, 2.3, 2.2, 2.1, 2.0], -1), ([2.0, 2.1, 2.2, 2.3, 2.4], 1), ([2.0] * 9, 0), ([2.0, 1.0], 0),
    ([2.0, 2.4, 1.9, 2.5, 2.1, 2.3, 2.0, 2.4], 0), ([0.0, 0.0, 0.0, 0.0], 0), ([], 0),
])  # fmt: skip
def test_a_trend_is_more_than_noise(values, direction):
    assert trend(values) == direction


def test_a_loss_that_is_no_number_is_said_with_the_step_where_that_began():
    good = [status(step, 2.0, step) for step in range(1195, 1200)]
    bad = [status(step, "nan", step) for step in range(1200, 1240)]
    for upto in (1, len(bad)):
        now = bad[:upto][-1]
        assert trouble_text(progress_of(now, course_of(*good, *bad[:upto]))) == "loss is nan since step 1200"
    # a viewer that came later has not seen when it began
    assert trouble_text(progress_of(bad[5], course_of(*bad[3:6]))) == "loss is nan at step 1205"
    told = [one.replace(loss_bad_since=1200) for one in bad[3:6]]
    assert trouble_text(progress_of(told[2], course_of(*told))) == "loss is nan since step 1200"
    assert trouble_text(progress_of(good[0], course_of(*told, good[0]))) == ""
    better = status(1300, 2.0)
    assert trouble_text(progress_of(better, course_of(*good, *bad, better))) == ""
    assert trouble_text(progress_of(status(7, "-inf"), NO_COURSE)) == "loss is -inf at step 7"


def test_a_loss_that_explodes_is_said_for_as_long_as_it_is_high():
    usual = [2.0, 2.1, 1.9, 2.0, 2.05, 1.95, 2.0, 2.0]
    for high in (1, 30):
        values = [*usual, *([35.0] * high)]
        progress = progress_of(status(9, 35.0), losses(*(value + place * 1e-6 for place, value in enumerate(values))))
        assert trouble_text(progress) == "loss explodes: 35.00 at step 9, it was 2.000"
    again = losses(*usual, 35.0, 2.1)
    assert again.usual_loss is None


@pytest.mark.parametrize("values", [
    [11.0, 9.0, 7.0, 6.0, 5.5, 5.0, 4.8, 4.6, 4.4, 4.3], [0.01, 0.02, 0.008, 0.01, 0.01, 0.02, 0.01, 0.01, 0.4],
    [-3.0, -3.1, -3.2, -3.0, -3.1, -3.0, -3.2, -3.1, -2.0], [2.0, 2.0, 40.0],
])  # fmt: skip
def test_an_ordinary_loss_does_not_explode(values):
    assert losses(*values).usual_loss is None


def test_time_left_is_as_printed_else_by_the_steps():
    course = course_of(*(status(step, 2.0, step * 2.0) for step in range(8)))
    assert progress_of(status(8, 2.0, total=108), course).eta == pytest.approx(200.0)
    assert progress_of(status(8, 2.0, total=108, eta_s=50.0), course).eta == 50.0
    assert progress_of(status(8, 2.0, total=108, ms_per_iter=500.0), course).eta == pytest.approx(50.0)
    assert progress_of(status(8, 2.0), course).eta is None


@pytest.mark.parametrize(("facts", "said"), [
    ({"tokens_per_s": 412_000.0, "ms_per_iter": 310.0}, "412k tok/s"),
    ({"tokens_per_s_per_gpu": 9_950.0}, "9.95k tok/s/gpu"),
    ({"samples_per_s": 31.42, "tokens_per_s_per_gpu": 1.0}, "31.4 smp/s"),
    ({"ms_per_iter": 310.0}, "310 ms/step"), ({"ms_per_iter": 1240.0}, "1.24 s/step"), ({}, ""),
])  # fmt: skip
def test_the_most_telling_rate_is_shown(facts, said):
    assert rate_text(progress_of(status(1, 2.0, **facts), NO_COURSE)) == said


@pytest.mark.parametrize(("loss", "said"), [
    (2.31415, "2.314"), (1.88, "1.880"), (0.01234, "0.01234"), (1.2e-5, "1.2e-05"), (0.0, "0"), (math.nan, "nan"),
    (-math.inf, "-inf"), (123456.0, "1.235e+05"), (None, ""),
])  # fmt: skip
def test_a_loss_is_short(loss, said):
    assert loss_text(loss) == said


def test_numbers_are_short_and_steps_are_whole():
    numbers = (0.52, 31.4, 812, 12_345, 3.4e6, 2e9)
    assert [quantity(value) for value in numbers] == ["0.52", "31.4", "812", "12.3k", "3.4M", "2B"]
    assert [step_time_text(value) for value in (0.0031, 0.31, 1.0, 125)] == ["3.1 ms", "310 ms", "1.00 s", "2m05s"]
    assert step_text(Progress(step=4120, total=48000)) == "4120/48000"
    assert step_text(Progress(step=4120)) == "4120"
    assert step_text(Progress(epoch=1.25, epochs=3)) == "epoch 1.25/3"
    assert Progress(step=12, total=48).share == 0.25
    assert Progress(epoch=1.5, epochs=3).share == 0.5
    assert Progress(step=60, total=48).share == 1.0
