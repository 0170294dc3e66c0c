"""Holds that are kept: who is asked for how much more, and when nobody is asked."""
from __future__ import annotations

from builders import NOW, RunBuilder
from trainwatch.model.keeping import AGAIN, GLANCE, LEAST, STEP, Keeping
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader

KEY = AttemptKey(2)


def held(tmp_path, left, **more):
    """A run with one rank whose hold has so many seconds left at NOW."""
    attempt = RunBuilder(tmp_path / "run").rank(2, time=NOW + 10_000).start().fail(3, NOW - 60, hold=60 + left)
    attempt.set(**more)
    return apply(EMPTY, Reader(str(tmp_path / "run")).poll())


def open_since(moment=NOW - GLANCE, key=KEY):
    keeping = Keeping()
    keeping.opened(key, moment)
    return keeping


def test_a_hold_that_would_run_out_is_extended_to_the_least_and_a_step(tmp_path):
    assert open_since().due(held(tmp_path, 100.0), NOW) == [(KEY, LEAST + STEP - 100.0)]


def test_a_hold_with_time_left_is_left_alone(tmp_path):
    assert open_since().due(held(tmp_path, LEAST), NOW) == []


def test_a_glance_costs_nothing_unless_the_hold_is_about_to_end(tmp_path):
    assert open_since(NOW).due(held(tmp_path, 100.0), NOW) == []
    assert open_since(NOW).due(held(tmp_path / "urgent", 10.0), NOW) == [(KEY, LEAST + STEP - 10.0)]


def test_who_has_been_asked_is_asked_again_only_after_a_while(tmp_path):
    run, keeping = held(tmp_path, 100.0), open_since()
    assert keeping.due(run, NOW)
    assert keeping.due(run, NOW + AGAIN - 1) == []
    assert keeping.due(run, NOW + AGAIN) == [(KEY, LEAST + STEP - 100.0 + AGAIN)]


def test_it_ends_with_the_last_shell(tmp_path):
    run, keeping = held(tmp_path, 100.0), open_since()
    keeping.opened(KEY, NOW)
    keeping.closed(KEY)
    assert keeping.kept == {KEY}
    keeping.closed(KEY)
    assert (keeping.kept, keeping.due(run, NOW)) == (frozenset(), [])


def test_beside_a_local_rank_the_containers_hold_is_kept(tmp_path):
    inner = AttemptKey(2, 1, 0, 1)
    assert open_since(key=inner).due(held(tmp_path, 100.0), NOW) == [(KEY, LEAST + STEP - 100.0)]


def test_what_runs_or_has_ended_is_asked_nothing(tmp_path):
    assert open_since().due(held(tmp_path, 100.0, ended=NOW, end_code=3), NOW) == []
    assert open_since().due(held(tmp_path / "runs", 100.0, exit_code=None, hold_until=None, exited=None), NOW) == []
    assert open_since(key=AttemptKey(77)).due(held(tmp_path / "other", 100.0), NOW) == []
