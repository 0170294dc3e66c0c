"""History as series to draw."""
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainwatch.model import history
from trainwatch.model.history import LOSS, MEASURES, POWER, RATE, STEP_TIME, UTIL, Series, merged, of_gpu, samples
from trainwatch_launcher.rundir.gpus import Metrics, metrics


def line(at, gpus=(), **progress):
    return metrics(NOW + at, 10.0, gpus=list(gpus), progress=progress)


def gpu(index, util, power=500.0, **facts):
    return {"index": index, "util": [util, util + 3], "power": [power, power + 90], **facts}


TRAINING = samples(
    line(10 * at, step=at * 8, loss=2.5 - at / 10, ms_per_iter=1250.0, tokens_per_s=412_000.0,
         gpus=[gpu(0, 90.0), gpu(1, 50.0, 300.0)]) for at in range(10)
)  # fmt: skip


def test_each_measure_is_a_series_over_time():
    assert LOSS.of(TRAINING).values[:2] == (2.5, 2.4)
    assert STEP_TIME.of(TRAINING).values[0] == 1.25
    assert RATE.of(TRAINING).values[0] == 412_000
    assert history.rate_unit(TRAINING) == "tok/s"
    assert UTIL.of(TRAINING).values[0] == 70
    assert POWER.of(TRAINING).values[0] == 400
    assert of_gpu(TRAINING, (1, None), "util").values == (50.0,) * 10
    assert of_gpu(TRAINING, (7, None), "util") == Series()
    assert LOSS.of(TRAINING).times[-1] == NOW + 90


def test_without_a_printed_time_steps_are_timed_by_how_far_they_came():
    bare = samples([line(0, step=0), line(10, step=8), line(20, step=8), line(30, step=18), line(40, step=2)])
    assert STEP_TIME.of(bare).values == (1.25, 1.0)
    assert RATE.of(bare).values == (0.8, 1.0)
    assert history.rate_unit(bare) == "steps/s"


def test_newer_lines_are_added_once():
    known = merged((), TRAINING[:6])
    assert merged(known, TRAINING[3:]) == TRAINING
    assert merged(known, TRAINING[:2]) == known


def test_a_thinned_series_keeps_its_span_and_its_mean():
    series = Series(tuple(map(float, range(1000))), tuple(float(value % 7) for value in range(1000)))
    thin = series.thinned(50)
    assert len(thin.times) == len(thin.values) == 50
    assert thin.times == tuple(sorted(thin.times))
    assert sum(thin.values) / 50 == pytest.approx(sum(series.values) / 1000)
    assert series.thinned(2000) is series
    assert series.since(990).times == tuple(map(float, range(990, 1000)))
    assert series.shifted(5).times[0] == 5


FACTS = st.none() | st.booleans() | st.integers() | st.floats() | st.lists(
    st.dictionaries(
        st.sampled_from(["index", "util", "power", "mig"]), st.floats() | st.lists(st.floats(), max_size=3)))


VALUES = FACTS | st.dictionaries(st.sampled_from(["step", "loss", "ms_per_iter", "tokens_per_s"]), FACTS)


@given(st.lists(st.dictionaries(st.sampled_from(["progress", "gpus"]), VALUES)))
def test_whatever_a_line_says_can_be_drawn(lines):
    known = samples(Metrics.from_json({"time": NOW, **one}) for one in lines)
    for measure in MEASURES:
        series = measure.of(known)
        assert len(series.times) == len(series.values)
        assert all(map(math.isfinite, series.values))
        assert all(isinstance(measure.say(value), str) for value in series.values)
