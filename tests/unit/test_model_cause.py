"""The root cause across ranks: causes before effects, then time, then position; hangs by who did not come."""
from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, RunBuilder
from trainwatch.model.cause import find_cause
from trainwatch.model.failure import cause_of, first_failure
from trainwatch.model.parties import Party
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.answer import Collective, Diagnosis, Evidence, Inner
from trainwatch_launcher.reader.directory import Reader


def state_of(run):
    return apply(EMPTY, Reader(run.directory).poll())


def said(kind, summary="", **facts):
    row = table.kind(kind)
    role = row.role == table.COLLATERAL
    return Diagnosis(kind, row.family, summary or kind, confidence=0.9, collateral=role, hint=row.hint, **facts)


TOLD = ("summary", "line", "collective", "before", "pid", "inner")


def party(rank, kind="none", time=None, **facts):
    told = {name: facts.pop(name) for name in TOLD if name in facts}
    return Party(said(kind, **told), rank, str(rank), time=time, **facts)


def waits(op="ALLREDUCE", sequence=80, size=4, enqueued=80, completed=79, **facts):
    return Collective(op, sequence, size, enqueued, completed, **facts)


def test_a_cause_beats_whatever_came_before_it():
    ranks = [party(0, "nccl_timeout", 10.0), party(1, "peer_lost", 5.0), party(2, "cuda_oom", 20.0)]
    cause = find_cause([*ranks, party(3, "network", 4.0)])
    assert (cause.rank, cause.kind, cause.collateral) == (2, "cuda_oom", (0, 1, 3))
    assert cause.clear
    assert dict(cause.kinds) == {0: "nccl_timeout", 1: "peer_lost", 2: "cuda_oom", 3: "network"}


def test_of_two_causes_the_earlier_is_it_and_the_other_is_named():
    cause = find_cause([party(0, "python_error", 20.0, summary="KeyError: 'x'"), party(1, "disk_full", 10.0)])
    assert (cause.rank, cause.runner_up) == (1, "rank 0: python_error: KeyError: 'x'")
    assert cause.clear
    close = find_cause([party(0, "python_error", 10.2), party(1, "disk_full", 10.0)])
    assert close.rank == 1
    assert not close.clear


def test_the_same_fault_on_all_ranks_is_nobodys_and_nobodys_fault():
    ranks = [party(rank, "dependency", rank, summary=f"no module (pid {rank})") for rank in range(4)]
    cause = find_cause(ranks)
    assert (cause.rank, cause.collateral, cause.same) == (None, (), (1, 2, 3))
    some = find_cause([*ranks, party(9, "nccl_timeout", 1.0)])
    assert (some.rank, some.collateral, some.same) == (0, (9,), (1, 2, 3))


def test_who_was_asked_to_end_after_another_had_failed_is_a_victim():
    ranks = [party(0, "killed", 11.0, exit_code=143), party(1, "killed", 10.0, exit_code=137)]
    cause = find_cause([*ranks, party(2, "cancelled", 10.5)])
    assert (cause.rank, cause.kind, cause.collateral) == (1, "killed", (0, 2))


def test_everybody_who_was_stopped_is_the_jobs_end():
    cause = find_cause([party(0, "cancelled", 10.0, exit_code=130), party(1, "cancelled", 10.0, exit_code=130)])
    assert (cause.kind, cause.rank, cause.collateral) == ("cancelled", None, (0, 1))


def test_a_rank_without_work_pending_never_came():
    before = Evidence(12, "evaluating")
    away = party(3, "nccl_timeout", collective=Collective(enqueued=79, completed=79, told=True), before=before)
    cause = find_cause([*(party(rank, "nccl_timeout", collective=waits()) for rank in range(2)), away])
    assert (cause.rank, cause.line, cause.collateral) == (3, 12, (0, 1))
    assert "had no work pending while the others waited in ALLREDUCE" in cause.why
    assert "evaluating" in cause.summary


def test_another_operation_under_the_same_number_is_the_odd_one():
    ranks = [party(rank, "nccl_timeout", collective=waits()) for rank in range(3)]
    odd = party(3, "nccl_timeout", collective=waits("BROADCAST", size=1))
    assert find_cause([*ranks, odd]).rank == 3
    other_size = party(3, "nccl_timeout", collective=waits(size=8))
    assert find_cause([*ranks, other_size]).rank == 3


def test_who_is_behind_is_told_by_what_it_enqueued_or_by_its_step():
    ranks = [party(rank, "nccl_timeout", collective=waits(enqueued=82)) for rank in range(3)]
    assert find_cause([*ranks, party(3, "nccl_timeout", collective=waits(enqueued=80))]).rank == 3
    steps = [party(rank, "nccl_timeout", collective=waits(), step=10) for rank in range(3)]
    assert find_cause([*steps, party(3, "nccl_timeout", collective=waits(), step=9)]).rank == 3


def test_a_message_that_names_who_did_not_come_is_believed():
    blame = party(0, "nccl_timeout", collective=Collective(blames=(2,)))
    cause = find_cause([blame, party(1, "peer_lost"), party(2)])
    assert (cause.rank, cause.collateral) == (2, (0, 1))


def test_all_waiting_for_the_same_is_nobody_and_not_clear():
    cause = find_cause([party(rank, "nccl_timeout", collective=waits()) for rank in range(4)])
    assert (cause.rank, cause.collateral) == (None, ())
    assert not cause.clear


def test_a_rank_that_says_nothing_is_known_by_what_its_launcher_says():
    table_ = (Inner(1, exit_code=137, line=9, pid=4102), Inner(0, exit_code=143))
    launcher = Party(said("killed", "Signal 9", rank=1, line=9, inner=table_), source="launcher.log")
    cause = find_cause([party(0), party(1), launcher])
    assert (cause.rank, cause.kind, cause.source, cause.line, cause.exit_code) == (1, "killed", "launcher.log", 9, 137)
    kernel = Party(said("host_oom", pid=4102), source="dmesg.log")
    cause = find_cause([party(0, "peer_lost"), party(1), launcher, kernel])
    assert (cause.rank, cause.kind, cause.source, cause.collateral) == (1, "host_oom", "dmesg.log", (0,))


def test_what_a_scheduler_ended_is_no_ranks_fault():
    limit = Party(said("time_limit"), source="slurm.log")
    cause = find_cause([party(0, "peer_lost"), party(1), limit])
    assert (cause.kind, cause.rank, cause.collateral, cause.source) == ("time_limit", None, (0, 1), "slurm.log")


def test_one_console_of_many_ranks_that_hung_names_who_did_not_come():
    inner = (Inner(0, "nccl_timeout", collective=waits()), Inner(1, "nccl_timeout", collective=waits()),
             Inner(2, "nccl_timeout", collective=Collective(enqueued=79, completed=79, told=True)))  # fmt: skip
    cause = find_cause([Party(said("nccl_timeout", inner=inner), source="console.log")])
    assert (cause.rank, cause.collateral) == (2, (0, 1))


def test_nothing_failed_is_no_cause():
    assert find_cause([]) is None
    assert find_cause([party(0), party(1)]) is None


KINDS = st.sampled_from([row.name for row in table.KINDS] + ["none", "unknown"])
PARTIES = st.lists(
    st.builds(lambda rank, kind, time, code: party(rank, kind, time, exit_code=code), st.integers(0, 7) | st.none(),
              KINDS, st.none() | st.floats(0, 100), st.sampled_from([None, 1, 137, 143])),
    max_size=9, unique_by=lambda one: object() if one.rank is None else one.rank,
)  # fmt: skip


@given(PARTIES, st.randoms())
def test_the_answer_does_not_depend_on_who_is_asked_first(parties, random):
    cause = find_cause(parties)
    shuffled = list(parties)
    random.shuffle(shuffled)
    again = find_cause(shuffled)
    assert (cause is None) == (again is None) == all(one.kind == "none" for one in parties)
    if cause is not None:
        assert (cause.kind, cause.rank, cause.collateral) == (again.kind, again.rank, again.collateral)
        assert cause.rank not in cause.collateral
        assert cause.rank not in cause.same
        assert not set(cause.same) & set(cause.collateral)


# -- runs


def diagnosed(run, rank, kind, time, code=1, clock_offset=0.0, **facts):
    told = replace(said(kind), **facts)
    attempt = run.rank(rank, clock_offset=clock_offset).start()
    attempt.fail(code, time, diagnosis=told.as_json(), reason=told.summary)


def test_a_run_is_judged_by_what_its_launchers_found_out(tmp_path):
    run = RunBuilder(tmp_path / "run")
    diagnosed(run, 0, "nccl_timeout", NOW - 90)
    diagnosed(run, 1, "host_oom", NOW - 60, 137, summary="out of memory", line=71, offset=900, frame="a.py:3 in f")
    first = first_failure(state_of(run), NOW)
    assert (first.label, first.reason, first.others, first.exit_text) == ("1", "out of memory", 1, "137 SIGKILL")
    cause = first.cause
    assert (cause.kind, cause.line, cause.offset, cause.frame, cause.exit_code) == (
        "host_oom", 71, 900, "a.py:3 in f", 137)
    assert [key.rank for key in cause.collateral_keys] == [0]


def test_clocks_are_set_right_before_times_are_compared(tmp_path):
    run = RunBuilder(tmp_path / "run")
    diagnosed(run, 0, "python_error", NOW - 60, clock_offset=0.0, summary="a")
    diagnosed(run, 1, "disk_full", NOW - 10, clock_offset=-100.0, summary="b")
    cause = cause_of(state_of(run), NOW)
    assert (cause.rank, cause.kind) == (1, "disk_full")


def test_a_local_rank_is_named_rather_than_its_container(tmp_path):
    run = RunBuilder(tmp_path / "run")
    diagnosed(run, 0, "unknown", NOW - 20, summary="exit code 1")
    run.local(0, 1).start().fail(1, NOW - 25, diagnosis=said("cuda_oom", "CUDA out of memory").as_json())
    first = first_failure(state_of(run), NOW)
    assert (first.label, first.cause.kind) == ("0.1", "cuda_oom")


def test_stalled_ranks_are_a_hang_of_the_one_that_is_behind(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(3):
        run.rank(rank).start().set(stalled_since=NOW - 100, step=9 if rank == 1 else 10)
    cause = cause_of(state_of(run), NOW)
    assert (cause.kind, cause.rank) == ("hang", 1)
    assert first_failure(state_of(run), NOW) is None
