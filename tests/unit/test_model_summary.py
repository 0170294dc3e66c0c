"""The run in one line, and who failed first."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, crashed_run
from trainwatch.model.failure import first_failure
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.summary import summary
from trainwatch_launcher.reader.directory import Reader


def state_of(run):
    return apply(EMPTY, Reader(str(run.directory)).poll())


@pytest.fixture
def run(tmp_path):
    return RunBuilder(tmp_path / "run", world_size=2)


def test_a_run_without_ranks_waits(run):
    found = summary(state_of(run), NOW)
    assert (found.run_id, found.state, found.seen, found.missing, found.started, found.first) == (
        "run-1", "waiting", 0, 2, None, None)


def test_a_run_runs_while_one_rank_does_and_the_missing_are_counted(run):
    run.rank(0).start()
    found = summary(state_of(run), NOW)
    assert (found.state, found.seen, found.missing, dict(found.counts), found.elapsed) == (
        "running", 1, 1, {"running": 1}, 300)


def test_a_run_is_finished_when_all_ranks_have_finished(run):
    run.rank(0).start().finish(NOW - 100)
    assert summary(state_of(run), NOW).state == "waiting"
    run.rank(1).start().finish(NOW - 50)
    found = summary(state_of(run), NOW)
    assert (found.state, found.elapsed, found.bad) == ("finished", 250, 0)


def test_a_run_whose_size_nobody_knows_is_finished_with_its_last_rank(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=None)
    run.rank(0).start().finish()
    assert summary(state_of(run), NOW).state == "finished"


def test_a_held_rank_makes_the_run_held_then_failed(run):
    run.rank(0).start()
    run.rank(1).start().fail(1)
    assert summary(state_of(run), NOW).state == "held"
    run.rank(1).start().fail(1, hold=None)
    found = summary(state_of(run), NOW)
    assert (found.state, dict(found.counts)) == ("failed", {"running": 1, "failed": 1})


def test_a_lost_rank_makes_the_run_lost_and_is_the_first_failure(run):
    run.rank(0).start()
    run.rank(1, time=NOW - 100, host="gone").start()
    found = summary(state_of(run), NOW)
    assert (found.state, found.bad) == ("lost", 1)
    first = found.first
    assert first is not None
    assert (first.label, first.host, first.exit_text, first.time) == ("1", "gone", "lost", NOW - 100)


def test_stalled_and_starting_ranks_give_the_run_its_state_when_none_runs(run):
    run.rank(0).start().set(stalled_since=NOW - 10)
    run.rank(1)
    assert summary(state_of(run), NOW).state == "stalled"
    (run.rank(0)).set(pid=None)
    assert summary(state_of(run), NOW).state == "starting"


def test_a_restarted_rank_counts_with_its_newest_attempt(run):
    run.rank(0).start().fail(1)
    run.rank(0, attempt=2).start()
    run.rank(1).start()
    found = summary(state_of(run), NOW)
    assert (found.state, found.seen, found.first) == ("running", 2, None)


def test_local_ranks_belong_to_their_rank(run):
    run.rank(0).start()
    for local in range(4):
        run.local(0, local).start()
    found = summary(state_of(run), NOW)
    assert (found.seen, found.missing, dict(found.counts)) == (1, 1, {"running": 1})


def test_the_first_failure_of_a_crash_is_found_with_its_reason(tmp_path):
    first = first_failure(state_of(crashed_run(tmp_path / "run")))
    assert first is not None
    assert (first.label, first.host, first.exit_text, first.reason, first.time, first.others) == (
        "2", "gpu-02", "1", "ValueError: loss is nan", NOW - 60, 3)


def test_clocks_that_differ_do_not_change_who_was_first(run):
    run.rank(0, clock_offset=0.0).start().fail(1, NOW - 30)
    run.rank(1, clock_offset=-60.0).start().fail(1, NOW + 20)
    first = first_failure(state_of(run))
    assert first is not None
    assert (first.label, first.time) == ("1", NOW - 40)


def test_a_local_rank_that_failed_before_its_rank_is_the_first(run):
    run.rank(0).start().fail(1, NOW - 20)
    run.local(0, 1).start().fail(9, NOW - 25)
    first = first_failure(state_of(run))
    assert first is not None
    assert (first.label, first.exit_code, first.others) == ("0.1", 9, 0)


def test_without_a_reason_the_last_line_is_said(run):
    run.rank(0).start().output(b"Segmentation fault\n").fail(139, signal=11)
    first = first_failure(state_of(run))
    assert first is not None
    assert (first.exit_text, first.reason) == ("139 SIGSEGV", "Segmentation fault")


def test_nothing_failed_is_nobody():
    assert first_failure(EMPTY, NOW) is None
