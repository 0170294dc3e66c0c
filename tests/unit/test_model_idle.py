"""Idle GPUs beside the phases of their ranks."""
from __future__ import annotations

import pytest

from builders import NOW, STARTED, RunBuilder
from trainwatch.model import idle
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.timeline import timeline
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader

SPANS = ((0.0, 20.0, 1.0), (20.0, 40.0, 0.0), (60.0, 70.0, 0.5))


def test_a_column_says_how_idle_its_time_was_and_nothing_where_nobody_knows():
    assert idle.columns(SPANS, 0.0, 10.0, 8) == [1.0, 1.0, 0.0, 0.0, None, None, 0.5, None]
    assert idle.columns(SPANS, 10.0, 20.0, 2) == [0.5, 0.0]
    assert idle.columns(SPANS, -5.0, 0.5, 4) == [None] * 4


def test_what_is_idle_at_a_moment():
    assert [idle.at(SPANS, moment) for moment in (-1, 0, 19, 30, 50, 65, 71)] == [None, 1.0, 1.0, 0.0, None, 0.5, None]


def test_all_attempts_of_a_rank_count_on_the_clock_of_its_phases(tmp_path):
    run = RunBuilder(tmp_path, world_size=1)
    run.rank(0).start(STARTED).phase("Load", NOW - 290).fail(1, NOW - 200, hold=None)
    run.rank(0, attempt=2, clock_offset=-50.0, time=NOW + 50).start(NOW - 50).phase("Load", NOW - 40)
    known = apply(EMPTY, Reader(str(tmp_path)).poll())
    line = timeline(known, NOW)
    told = {AttemptKey(0): [(NOW - 290, NOW - 210, 1.0)], AttemptKey(0, 2): [(NOW - 40, NOW, 0.0)]}
    spans = idle.of_lane(line.lanes[0], told)
    assert spans == ((NOW - 290, NOW - 210, 1.0), (NOW - 90, NOW - 50, 0.0))
    assert idle.of_phases(line, {line.lanes[0].key: spans})["Load"] == pytest.approx(80 / 120)


def test_what_comes_later_is_added_and_bounded():
    known = idle.grown((), [(10.0 * n, 10.0 * n + 10, n % 2) for n in range(100)])
    later = idle.grown(known, [(1000.0, 1010.0, 1.0)])
    assert later[:-1] == known[:-1]
    assert later[-1] == (990.0, 1010.0, 1.0)
    for number in range(2000):
        later = idle.grown(later, [(2000.0 + 10 * number, 2010.0 + 10 * number, number % 2)])
    assert len(later) <= 400
    assert later[-1][1] == 2000.0 + 19990 + 10
