"""A table row: what it says of an attempt at one moment."""
from __future__ import annotations

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, RunBuilder, crashed_run
from trainwatch.model.clock import age, left, server_time, worker_time
from trainwatch.model.rows import Row, rows
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.changes import AttemptFound, AttemptKey, StatusChanged, Unreadable
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir.records import Status

KEY = AttemptKey(3)


def row(now=NOW, **facts):
    return rows(apply(EMPTY, [StatusChanged(KEY, Status(**{"time": NOW, **facts}))]), now)[0]


def test_a_running_rank_says_what_it_does_and_for_how_long():
    found = row(pid=7, host="gpu-3", started=NOW - 300, phase="Train", phase_since=NOW - 60, last_output=NOW - 2,
                output_bytes=5000, output_lines=40, last_line="step 9")
    assert (found.label, found.host, found.state, found.phase) == ("3", "gpu-3", "running", "Train")
    assert (found.phase_age, found.elapsed, found.last_output_age, found.heartbeat_age) == (60, 300, 2, 0)
    assert (found.output_bytes, found.output_lines, found.last_line, found.pid) == (5000, 40, "step 9", 7)
    assert (found.exit_code, found.exit_text, found.hold_left, found.live) == (None, "", None, True)


def test_the_hold_counts_down_and_never_below_zero():
    facts = {"pid": 7, "exit_code": 1, "exited": NOW, "hold_until": NOW + 600}
    assert row(**facts).hold_left == 600
    assert row(NOW + 10, **facts).hold_left == 590
    assert row(NOW + 700, time=NOW + 700, **facts).hold_left == 0


def test_a_hold_that_is_over_is_no_hold():
    found = row(pid=7, exit_code=1, exited=NOW - 9, hold_until=NOW + 600, ended=NOW - 1)
    assert (found.state, found.hold_left, found.hold_until, found.live) == ("ended", None, None, False)


@pytest.mark.parametrize(("code", "signal", "said", "name"), [
    (1, None, "1", None), (0, None, "0", None), (137, 9, "137 SIGKILL", "SIGKILL"),
    (143, None, "143 SIGTERM", "SIGTERM"), (255, None, "255", None), (None, None, "", None),
])  # fmt: skip
def test_an_exit_code_names_its_signal(code, signal, said, name):
    found = row(exit_code=code, exit_signal=signal)
    assert (found.exit_text, found.signal) == (said, name)


def test_time_stands_still_for_a_command_that_has_ended():
    facts = {"started": NOW - 100, "phase": "Train", "phase_since": NOW - 50, "exited": NOW - 20, "exit_code": 0,
             "ended": NOW - 19}
    for now in (NOW, NOW + 5000):
        found = row(now, **facts)
        assert (found.elapsed, found.phase_age, found.exited) == (80, 30, NOW - 20)


def test_a_clock_that_is_wrong_on_the_worker_does_not_show():
    found = row(time=NOW - 3600, clock_offset=3600.0, pid=7, started=NOW - 3700, last_output=NOW - 3605)
    assert (found.state, found.elapsed, found.last_output_age, found.started) == ("running", 100, 5, NOW - 100)


def test_moments_that_lie_ahead_are_no_negative_ages():
    found = row(NOW - 5, pid=7, started=NOW, phase="x", phase_since=NOW, last_output=NOW)
    assert (found.elapsed, found.phase_age, found.last_output_age, found.heartbeat_age) == (0, 0, 0, 0)


def test_a_silent_launcher_is_lost():
    assert row(NOW + 15, pid=7).state == "running"
    assert row(NOW + 16, pid=7).state == "lost"


def test_an_attempt_that_wrote_nothing_starts_and_is_lost_later():
    run = apply(EMPTY, [AttemptFound(KEY, "d", NOW)])
    assert rows(run, NOW + 3)[0].state == "starting"
    assert rows(run, NOW + 16)[0].state == "lost"
    assert rows(run, NOW + 16)[0].output_bytes is None


def test_what_cannot_be_read_is_said_in_the_row():
    run = apply(EMPTY, [AttemptFound(KEY, "d", NOW), Unreadable("x", "not understood", KEY)])
    assert rows(run, NOW)[0].warning == "not understood"
    assert row(warning="log disk full").warning == "log disk full"


def test_labels_tell_attempts_and_local_ranks_apart(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(3).start()
    run.rank(3, attempt=2).start()
    run.local(3, 0, attempt=2)
    run.local(3, 1, attempt=2, local_attempt=2)
    found = rows(apply(EMPTY, Reader(str(run.directory)).poll()), NOW)
    assert [(r.label, r.superseded, r.nested) for r in found] == [
        ("3#1", True, False), ("3#2", False, False), ("3#2.0", False, True), ("3#2.1#2", False, True)]


def test_a_crashed_run_reads_as_it_happened(tmp_path):
    run = apply(EMPTY, Reader(str(crashed_run(tmp_path / "run").directory)).poll())
    assert [(r.label, r.state, r.exit_text, r.reason) for r in rows(run, NOW)] == [
        ("0", "held", "143 SIGTERM", ""), ("1", "ended", "143 SIGTERM", ""),
        ("2", "held", "1", "ValueError: loss is nan"), ("3", "held", "137 SIGKILL", "")]


NUMBERS = st.floats() | st.integers(min_value=-(2**70), max_value=2**70) | st.none()


FACTS = st.sampled_from(sorted({*Status._fields} - {"format"}))


@given(st.dictionaries(FACTS, NUMBERS | st.text(max_size=4), max_size=10), NUMBERS)
def test_no_status_whatever_stands_in_it_stops_a_row(facts, clock_offset):
    data = {"time": NOW, "clock_offset": clock_offset, **facts}
    if not isinstance(data["time"], int | float) or not abs(data["time"]) < 2**63:
        data["time"] = NOW
    status = Status.from_json(data)
    found = rows(apply(EMPTY, [StatusChanged(KEY, status)]), NOW)[0]
    for field in fields(Row):
        value = getattr(found, field.name)
        if field.name.endswith(("_age", "_left", "elapsed")) and value is not None:
            assert value >= 0
            assert not math.isnan(value)


def test_all_clocks_meet_in_one_place():
    status = Status(time=100.0, clock_offset=-50.0)
    assert server_time(status, 100.0) == 50.0
    assert worker_time(status, 50.0) == 100.0
    assert (age(status, 100.0, 60.0), age(status, None, 60.0), left(status, 120.0, 60.0)) == (10.0, None, 10.0)
    assert (server_time(None, 7.0), worker_time(None, 7.0)) == (7.0, 7.0)


def test_a_time_beyond_all_calendars_stays_finite():
    for offset in (1e308, -1e308, 1e17, None):
        found = row(pid=7, exit_code=1, exited=NOW, hold_until=1e308, clock_offset=offset)
        assert math.isfinite(found.hold_until)
        assert math.isfinite(found.hold_left)
