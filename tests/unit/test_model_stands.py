"""A hang named by stacks: who is elsewhere while all others wait, and when that may be said."""
from __future__ import annotations

import time

import pytest

from builders import NOW, RunBuilder, at
from trainwatch import cli
from trainwatch.model import findings, rows
from trainwatch.model.cause import find_cause
from trainwatch.model.failure import cause_of, parties_of
from trainwatch.model.parties import Party
from trainwatch.model.stands import Stand, elsewhere
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.diagnosis import places
from trainwatch_launcher.diagnosis.answer import Diagnosis
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir.stacks import Dump, Frame, Process, Thread

WAITS, LOADS = Stand(True, "in all_reduce at comm.py:80"), Stand(False, "in data_loader.py:41 (__getitem__)")
IN_SYNC, IN_LOADER = ({"where": stand.where, "waits": stand.waits} for stand in (WAITS, LOADS))
TORCH = "/opt/lib/python3.11/site-packages/torch"


def test_the_few_that_do_not_wait_are_elsewhere():
    found = elsewhere({rank: LOADS if rank == 12 else WAITS for rank in range(64)})
    assert (found.who, found.where, found.count, found.wait) == ((12,), LOADS.where, 63, WAITS.where)


@pytest.mark.parametrize("stands", [
    {0: WAITS, 1: LOADS}, {0: WAITS, 1: WAITS, 2: WAITS}, {0: LOADS, 1: LOADS, 2: LOADS},
    {0: WAITS, 1: WAITS, 2: LOADS, 3: LOADS}, {0: WAITS, 1: WAITS, 2: None, 3: LOADS}, {},
], ids=["two", "all wait", "none waits", "two sides", "one unknown", "nobody"])  # fmt: skip
def test_nobody_is_named_where_it_is_not_sure(stands):
    assert elsewhere(stands) is None


def stalled(directory, taken=NOW - 100, by="stall", stepped=NOW - 900):
    run = RunBuilder(directory / "run", world_size=4)
    for rank, place in enumerate((IN_SYNC, IN_SYNC, IN_LOADER, IN_SYNC)):
        attempt = run.rank(rank).start(NOW - 2000).phase("Train", NOW - 1900)
        attempt.set(step=100, progress_since=stepped, stalled_since=NOW - 900, stacks=1, time=NOW)
        attempt.event("stall", NOW - 101, since=NOW - 900, seconds=800.0, after=800.0, stacks="stacks-1.txt")
        attempt.event("stacks", taken, file="stacks-1.txt", number=1, by=by, places=[place])
    return run


def state_of(run):
    return apply(EMPTY, Reader(run.directory).poll())


def test_a_run_that_hangs_is_named_by_its_stacks(tmp_path):
    run = stalled(tmp_path)
    cause = cause_of(state_of(run), NOW)
    assert (cause.rank, cause.kind, cause.collateral) == (2, "hang", ())
    assert cause.why == "rank 2 is in data_loader.py:41 (__getitem__), while 3 wait in all_reduce at comm.py:80"
    assert cause.clear
    said = [sentence for sentence, _ in findings.told(findings.find(rows.rows(state_of(run), NOW), NOW))]
    assert said[1] == "ranks 0-3: no progress for 15m00s, since 10:38:20; stacks: stacks-1.txt"
    others = "the other 3 ranks wait in all_reduce at comm.py:80 (stacks)"
    assert said[0] == f"rank 2 is in data_loader.py:41 (__getitem__), {others}"


@pytest.mark.parametrize(("facts", "sure"), [
    ({"by": "me@here"}, True),
    ({"by": "me@here", "stepped": NOW - 110}, False),
    ({"by": "me@here", "stepped": None}, False),
    ({"by": "me@here", "stepped": NOW - 50}, False),
    ({"by": "stall", "stepped": None}, True),
], ids=["long in its step", "just stepped", "no steps", "stepped since", "a stall"])  # fmt: skip
def test_stacks_count_only_where_the_ranks_stood_still(tmp_path, facts, sure):
    run = state_of(stalled(tmp_path, **facts))
    assert all((party.stand is not None) is sure for party in parties_of(run, NOW))


def test_after_it_moved_again_they_say_nothing(tmp_path):
    run = stalled(tmp_path)
    at(run, 1).event("recovered", NOW - 50, kind="stall", message="it moves again")
    assert [party.stand is not None for party in parties_of(state_of(run), NOW)] == [True, False, True, True]


def test_the_watchdogs_that_fire_later_do_not_hide_it():
    lost = Diagnosis("nccl_timeout", "comm", "watchdog timed out", confidence=0.8, collateral=True)
    parties = [Party(lost, rank, str(rank), time=float(rank), failed=True, stand=LOADS if rank == 3 else WAITS)
               for rank in range(8)]  # fmt: skip
    cause = find_cause(parties)
    assert (cause.rank, cause.collateral) == (3, (0, 1, 2, 4, 5, 6, 7))
    assert "data_loader.py:41" in cause.why


def test_why_says_so_too(tmp_path, capsys):
    run = stalled(tmp_path)
    for rank in range(4):
        at(run, rank).set(time=time.time(), interval=1e6)
    assert cli.main(["why", str(run.directory)]) == 0
    assert "rank 2 is in data_loader.py:41 (__getitem__)" in capsys.readouterr().out


# -- on the worker


def process(*frames):
    made = Process(1, "S", "python train.py")
    made.threads.append(Thread(1, "MainThread"))
    made.threads[0].frames = list(frames)
    return made


@pytest.mark.parametrize(("function", "file", "waits"), [
    ("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", True),
    ("_all_gather_base", f"{TORCH}/distributed/distributed_c10d.py", True),
    ("all_to_all_single", f"{TORCH}/distributed/distributed_c10d.py", True),
    ("broadcast_object_list", f"{TORCH}/distributed/distributed_c10d.py", True),
    ("monitored_barrier", f"{TORCH}/distributed/distributed_c10d.py", True),
    ("synchronize", f"{TORCH}/cuda/__init__.py", True), ("Event.synchronize", f"{TORCH}/cuda/streams.py", True),
    ("get_rank", f"{TORCH}/distributed/distributed_c10d.py", False),
    ("init_process_group", f"{TORCH}/distributed/distributed_c10d.py", False),
    ("all_reduce", "/job/comm.py", False), ("wait", "/usr/lib/python3.11/threading.py", False),
])
def test_what_waits_for_others_is_known_by_whose_function_it_is(function, file, waits):
    dump = Dump(NOW)
    dump.processes = [process(Frame(function, file, 7), Frame("step", "/job/train.py", 80))]
    (told,) = places.told(dump)
    assert told == {"where": f"in {function} at train.py:80" if file.startswith(("/opt", "/usr"))
                    else "in comm.py:7 (all_reduce)", "waits": waits}  # fmt: skip
