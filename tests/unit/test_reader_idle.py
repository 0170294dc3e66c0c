"""When GPUs were idle, read from histories of any length at a bounded cost."""
from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, RunBuilder
from trainwatch_launcher.reader import spans
from trainwatch_launcher.reader.idle import idle_spans
from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.gpus import metrics


@pytest.fixture
def rank(tmp_path):
    return RunBuilder(tmp_path).rank(0)


def gpus(*utils: float | None):
    return {"gpus": [{"index": n} if util is None else {"index": n, "util": [util, 100]}
                     for n, util in enumerate(utils)]}  # fmt: skip


def test_lines_that_say_the_same_are_one_span(rank):
    for number, util in enumerate((0, 0, 96, 96, 96, 2)):
        rank.metrics(NOW + 10 * number, 9.0, **gpus(util, util))
    found = [(begin - NOW, end - NOW, share) for begin, end, share in idle_spans(rank.directory)]
    assert found == [(-9, 10, 1.0), (10, 40, 0.0), (40, 50, 1.0)]


def test_a_part_of_the_gpus_may_be_idle_and_a_lost_one_does_not_work(rank):
    rank.metrics(NOW, **gpus(0, 90, 90, 90))
    rank.metrics(NOW + 10, gpus=[{"index": 0, "lost": True}, {"index": 1, "util": [90, 99]}])
    assert [share for *_, share in idle_spans(rank.directory)] == [0.25, 0.5]


def test_of_times_without_a_word_nothing_is_said(rank):
    rank.metrics(NOW, **gpus(0)).metrics(NOW + 600, **gpus(0)).metrics(NOW + 610, progress={"step": 3})
    rank.metrics(NOW + 620, **gpus(None))
    assert [(end - NOW) for _, end, _ in idle_spans(rank.directory)] == [0, 600]


def test_what_is_no_history_says_nothing(rank, tmp_path):
    assert idle_spans(rank.directory) == []
    assert idle_spans(str(tmp_path / "nowhere")) == []
    history = rank.directory / paths.METRICS
    history.write_bytes(b'{"v":1}\nnonsense\n\xff\n[1]\n{"v":1,"time":1e999,"gpus":7}\n{"v":1,"time":3,"gpus":[7,{}]}')
    assert idle_spans(rank.directory) == []
    history.unlink()
    history.mkdir()
    assert idle_spans(rank.directory) == []


def test_only_what_is_new_is_told_again(rank):
    for number in range(2000):
        rank_line = metrics(NOW + 10 * number, 10.0, **gpus(*[0 if number % 2 else 90] * 8))
        with (rank.directory / paths.METRICS).open("ab") as out:
            out.write(files.encode(rank_line))
    newest = NOW + 10 * 1999
    found = idle_spans(rank.directory, since=newest - 25)
    assert [(begin - newest, end - newest, share) for begin, end, share in found] == [
        (-30, -20, 1.0), (-20, -10, 0.0), (-10, 0, 1.0)]  # fmt: skip


def test_of_a_long_history_a_bounded_part_is_read_and_all_of_it_is_known(rank, monkeypatch):
    with (rank.directory / paths.METRICS).open("ab") as out:
        for number in range(20_000):
            idle = 5_000 <= number < 10_000
            out.write(files.encode(metrics(NOW + 10 * number, 10.0, **gpus(*[0 if idle else 90] * 8))))
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *what: read.append(what[1]) or real(*what))
    found = idle_spans(rank.directory, lines=128)
    assert sum(read) < 128 * (5 << 10)
    assert [share for *_, share in found] == [0.0, 1.0, 0.0]
    assert found[1][0] == pytest.approx(NOW + 50_000, abs=2_000)
    assert found[1][1] == pytest.approx(NOW + 100_000, abs=2_000)


times = st.floats(0, 1e6, allow_nan=False)
some = st.lists(st.tuples(times, times, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(
    lambda one: (min(one[:2]), max(one[:2]), one[2])), max_size=60).map(sorted)  # fmt: skip


@given(some, st.integers(1, 20))
def test_spans_never_overlap_and_are_never_too_many(given, most):
    found = spans.fewer(given, most)
    assert len(found) <= most
    assert all(begin < end for begin, end, _ in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    assert spans.decode(spans.encode(found)) == spans.joined(
        [(round(begin, 1), round(end, 1), share) for begin, end, share in found])


@given(st.binary(max_size=60))
def test_what_comes_over_the_wire_may_be_anything(line):
    spans.decode(line)
