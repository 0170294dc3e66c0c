"""Hosts five minutes off: ages, holds and the order of failures are right all the same."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder
from trainwatch.model.failure import first_failure
from trainwatch.model.rows import rows
from trainwatch.model.skew import OurClock
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.summary import summary
from trainwatch_launcher.reader.directory import Reader

OFF = {0: 300.0, 1: -300.0, 2: 0.0}


@pytest.fixture
def run(tmp_path):
    """Three hosts with a disk each, whose clocks are ahead of ours by `OFF`; rank 1 failed first, rank 0 last."""
    run = RunBuilder(tmp_path / "run", world_size=3)
    for rank, failed in ((0, -10), (1, -30), (2, -20)):
        theirs = NOW + OFF[rank]
        attempt = run.rank(rank, time=theirs).start(theirs - 100)
        attempt.phase("Train", theirs - 90).output(b"x\n", theirs - 40).fail(1, theirs + failed, hold=600)
    return apply(EMPTY, Reader(str(run.directory)).poll())


def test_without_knowing_better_everything_is_wrong(run):
    assert [row.state for row in rows(run, NOW)] == ["held", "lost", "held"]


def test_ages_holds_and_order_are_right_on_our_clock(run):
    ours = OurClock().of(run, lambda key: OFF[key.rank])
    found = rows(ours, NOW)
    assert [row.state for row in found] == ["held", "held", "held"]
    assert [row.heartbeat_age for row in found] == [0.0, 0.0, 0.0]
    assert [row.last_output_age for row in found] == [40.0, 40.0, 40.0]
    assert [row.hold_left for row in found] == [590.0, 570.0, 580.0]
    assert [row.exited for row in found] == [NOW - 10, NOW - 30, NOW - 20]
    assert [row.phase_age for row in found] == [80.0, 60.0, 70.0]
    first = first_failure(ours, NOW)
    assert first is not None
    assert (first.key.rank, first.time, first.others) == (1, NOW - 30, 2)
    assert summary(ours, NOW).elapsed == pytest.approx(90.0)


def test_what_agrees_is_left_as_it_is(run):
    clock = OurClock()
    assert clock.of(run, lambda _: 0.2) is run
    assert clock.of(run, lambda key: OFF[key.rank]).attempts[run.order[2]] is run.attempts[run.order[2]]


def test_only_what_changed_is_worked_out_again(run):
    clock = OurClock()
    before = clock.of(run, lambda key: OFF[key.rank])
    after = clock.of(run, lambda key: OFF[key.rank])
    assert all(after.attempts[key] is before.attempts[key] for key in run.order)
    moved = clock.of(run, lambda key: OFF[key.rank] + 10)
    assert moved.attempts[run.order[0]] is not before.attempts[run.order[0]]
