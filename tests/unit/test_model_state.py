"""The run's state: changes in, the next state out, the one before untouched."""
from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, RunBuilder, crashed_run
from trainwatch.model.state import EMPTY, LEAST, MAX_MILESTONES, MAX_PROBLEMS, MOST, apply
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir.records import RunInfo, Status, event

KEY = AttemptKey(0)


def told(*events, key=KEY):
    return EventsAppended(key, events)


def test_nothing_is_known_of_a_run_before_the_first_change():
    assert (EMPTY.info, dict(EMPTY.attempts), EMPTY.world_size, EMPTY.run_id) == (None, {}, None, "")


def test_changes_make_a_new_state_and_leave_the_old_one(tmp_path):
    changes = Reader(str(crashed_run(tmp_path / "run").directory)).poll()
    run = apply(EMPTY, changes)
    assert (run.run_id, run.world_size, len(run.attempts)) == ("run-1", 4, 4)
    later = apply(run, [StatusChanged(KEY, Status(time=NOW, host="new"))])
    assert later.attempts[KEY].host == "new"
    assert run.attempts[KEY].host == "gpu-00"
    assert later.attempts[AttemptKey(1)] is run.attempts[AttemptKey(1)]
    assert dict(EMPTY.attempts) == {}


def test_a_world_of_no_ranks_is_nobody_s_size():
    sized = [RunFound(RunInfo(run_id="r", created=NOW, world_size=0)), StatusChanged(KEY, Status(time=NOW))]
    assert apply(EMPTY, sized).world_size is None
    assert apply(EMPTY, [*sized, StatusChanged(KEY, Status(time=NOW, world_size=4))]).world_size == 4


def test_attempts_come_in_the_order_of_ranks_with_nested_ones_after_their_container():
    keys = [AttemptKey(2), AttemptKey(0, 1, 1, 1), AttemptKey(10), AttemptKey(0, 2), AttemptKey(0)]
    run = apply(EMPTY, [AttemptFound(key, "d") for key in keys])
    assert run.order == (AttemptKey(0), AttemptKey(0, 1, 1, 1), AttemptKey(0, 2), AttemptKey(2), AttemptKey(10))


def test_an_older_attempt_and_all_that_is_nested_in_it_is_superseded():
    old, inner, new = AttemptKey(0), AttemptKey(0, 1, 3, 1), AttemptKey(0, 2)
    first, second = AttemptKey(1, 1, 0, 1), AttemptKey(1, 1, 0, 2)
    run = apply(EMPTY, [AttemptFound(key, "d") for key in (old, inner, new, AttemptKey(1), first, second)])
    assert run.superseded == {old, inner, first}
    assert [attempt.key for attempt in run.current()] == [new, AttemptKey(1), second]


def test_phases_follow_each_other_and_end_with_the_command():
    run = apply(EMPTY, [told(
        event("phase", 10.0, name="Start", offset=0, source="launcher"),
        event("phase", 12.0, name="Load", offset=100, source="marker"))])
    assert run.attempts[KEY].phases[-1].ended is None
    run = apply(run, [told(event("phase", 20.0, name="Train", offset=900, source="marker")), told(event("exit", 50.0))])
    phases = run.attempts[KEY].phases
    assert [(p.name, p.started, p.ended, p.offset, p.source) for p in phases] == [
        ("Start", 10.0, 12.0, 0, "launcher"), ("Load", 12.0, 20.0, 100, "marker"), ("Train", 20.0, 50.0, 900, "marker")]
    assert [p.duration for p in phases] == [2.0, 8.0, 30.0]


def test_a_phase_without_a_usable_offset_lies_at_the_start():
    run = apply(EMPTY, [told(event("phase", 10.0, name="A", offset=-5), event("phase", 11.0, name=7))])
    assert [(p.name, p.offset) for p in run.attempts[KEY].phases] == [("A", 0), ("", 0)]


def test_old_events_go_but_the_milestones_stay():
    run = apply(EMPTY, [told(event("start", 1.0, argv=["a", "b"], cwd="/job"))])
    for n in range(5):
        run = apply(run, [told(*[event("warning", 2.0 + n)] * 700)])
    attempt = run.attempts[KEY]
    assert len(attempt.events) == MOST + 1
    assert (attempt.argv, attempt.cwd) == (("a", "b"), "/job")


def test_a_file_full_of_milestones_does_not_fill_the_memory():
    run = apply(EMPTY, [told(*[event("hold", 1.0)] * 5000)])
    assert len(run.attempts[KEY].events) <= MOST + MAX_MILESTONES


def test_after_weeks_of_thousands_of_ranks_the_first_and_the_newest_phases_are_kept():
    keys = [AttemptKey(rank) for rank in range(4096)]
    run = apply(EMPTY, [AttemptFound(key, "") for key in keys])
    for week in range(3):
        changes = [event("phase", float(1000 * week + n), name=f"{week}/{n}", source="marker") for n in range(1000)]
        run = apply(run, [EventsAppended(KEY, (*changes, event("warning", 1000.0 * week + 999.5, message="full")))])
    attempt = run.attempts[KEY]
    phases = attempt.phases
    assert len(phases) == LEAST
    assert (phases[0].name, phases[-1].name, phases[-1].ended) == ("0/0", "2/999", None)
    (gap,) = (phase for phase in phases if phase.source == "omitted")
    assert sum(phase.count for phase in phases) == 3000
    assert gap.name == f"… {gap.count} phases"
    assert all(one.ended == other.started for one, other in itertools.pairwise(phases))
    assert len(attempt.events) == 5  # the warnings, and the newest phases
    assert apply(run, [StatusChanged(KEY, Status(time=1.0))]).attempts[KEY].status.phase == "2/999"


def test_problems_are_kept_by_path_taken_back_and_bounded():
    run = apply(EMPTY, [Unreadable("a", "bad"), Unreadable("b", "bad"), Unreadable("a", "worse")])
    assert [(p.path, p.message) for p in run.problems] == [("b", "bad"), ("a", "worse")]
    run = apply(run, [Unreadable("a", "")])
    assert [p.path for p in run.problems] == ["b"]
    run = apply(run, [Unreadable(str(n), "bad") for n in range(1000)])
    assert len(run.problems) == MAX_PROBLEMS


def test_an_attempts_problem_is_said_at_the_attempt():
    run = apply(EMPTY, [Unreadable("s", "not understood", KEY)])
    assert run.attempts[KEY].problem == "not understood"
    assert apply(run, [Unreadable("s", "", KEY)]).attempts[KEY].problem == ""


def test_a_problem_stays_said_until_the_last_file_can_be_read_again():
    run = apply(EMPTY, [Unreadable("s", "bad", KEY), Unreadable("e", "worse", KEY), Unreadable("e", "", KEY)])
    assert run.attempts[KEY].problem == "bad"


def test_the_answer_to_a_request_is_found_by_its_id():
    run = apply(EMPTY, [told(event("control", 1.0, id="x", result="done"), event("control", 2.0, id="y", result="no"))])
    answer = run.attempts[KEY].answer("x")
    assert answer is not None
    assert answer.text("result") == "done"
    assert run.attempts[KEY].answer("z") is None


def test_the_world_size_is_that_of_the_run_file_else_of_the_launchers():
    statuses = [StatusChanged(AttemptKey(n), Status(time=NOW, world_size=8, run_id="r")) for n in range(2)]
    assert apply(EMPTY, statuses).world_size == 8
    assert apply(EMPTY, statuses).run_id == "r"
    assert apply(EMPTY, [*statuses, RunFound(RunInfo(run_id="x", created=1.0, world_size=4))]).world_size == 4


def test_an_attempt_whose_status_could_not_be_written_is_known_by_its_events():
    run = apply(EMPTY, [told(
        event("start", 10.0, host="h", pid=5, launcher_pid=4, run_id="r", clock_offset=2.0),
        event("phase", 11.0, name="Load"),
        event("exit", 20.0, code=137, signal="SIGKILL", reason="out of memory"),
        event("hold", 20.1, until=99.0))])
    status = run.attempts[KEY].status
    assert status is not None
    assert (status.host, status.pid, status.phase, status.exit_code, status.exit_signal, status.reason) == (
        "h", 5, "Load", 137, 9, "out of memory")
    assert (status.hold_until, status.ended, status.time, status.clock_offset) == (99.0, None, 20.1, 2.0)


def test_events_that_are_newer_than_the_status_complete_it():
    run = apply(EMPTY, [StatusChanged(KEY, Status(time=10.0, host="h", pid=5)), told(event("exit", 11.0, code=3))])
    assert run.attempts[KEY].status == Status(time=11.0, host="h", pid=5, exited=11.0, exit_code=3)
    assert run.attempts[KEY].snapshot == Status(time=10.0, host="h", pid=5)
    run = apply(run, [told(event("end", 12.0, code=3))])
    status = run.attempts[KEY].status
    assert status is not None
    assert (status.ended, status.end_code, status.exit_code) == (12.0, 3, 3)


def test_older_events_do_not_change_a_newer_status():
    run = apply(EMPTY, [
        told(event("phase", 5.0, name="Old")), StatusChanged(KEY, Status(time=10.0, phase="New", phase_since=9.0))])
    status = run.attempts[KEY].status
    assert status is not None
    assert status.phase == "New"


FACTS = st.dictionaries(
    st.sampled_from(["name", "offset", "code", "signal", "until", "host", "pid", "clock_offset", "reason"]),
    st.none() | st.integers() | st.floats() | st.text(max_size=3), max_size=4)
KINDS = st.sampled_from(["start", "phase", "exit", "hold", "end", "control", "signal", "new-kind"])


@given(st.lists(st.tuples(KINDS, st.floats(allow_nan=False, allow_infinity=False), FACTS), min_size=1, max_size=12))
def test_no_event_whatever_its_facts_stops_the_model(events):
    made = [event(kind, time, **facts) for kind, time, facts in events]
    run = apply(EMPTY, [told(e) for e in made])
    assert apply(EMPTY, [told(*made)]).attempts.get(KEY) == run.attempts.get(KEY)


def test_a_builder_run_with_a_restart_reads_back_whole(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().fail(1)
    run.rank(0, attempt=2).start()
    run.local(0, 0, attempt=2).start()
    state = apply(EMPTY, Reader(str(run.directory)).poll())
    assert state.order == (AttemptKey(0), AttemptKey(0, 2), AttemptKey(0, 2, 0, 1))
    assert state.superseded == {AttemptKey(0)}


def test_the_phase_in_which_a_command_ended_stays_although_the_launcher_drains():
    run = apply(EMPTY, [told(
        event("phase", 10.0, name="Train", offset=0, source="marker"),
        event("phase", 20.0, name="Drain", offset=9, source="launcher"),
        event("exit", 20.0, code=137, signal="SIGKILL"))])
    status = run.attempts[KEY].status
    assert status is not None
    assert (status.phase, status.exit_code, status.exit_signal) == ("Train", 137, 9)
