"""What the failure of one rank means for the launchers of the others."""
from __future__ import annotations

import os
import socket
import sys
import time

import pytest

from trainwatch_launcher.diagnosis.answer import Diagnosis, from_json
from trainwatch_launcher.diagnosis.levels import level_of
from trainwatch_launcher.diagnosis.ranks import fingerprint
from trainwatch_launcher.peers import MOST
from trainwatch_launcher.rundir import files, paths, records

CAUSE = "raise KeyError(1)"
EFFECT = "raise RuntimeError('[tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:99')"
PATIENT = "echo up; exec sleep 600"
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"
ROOT = ["--hold=600", "--hold-policy=root"]


def failed(launch, rank, kind="python_error", **facts):
    """A rank that has failed and told the others, as its launcher would."""
    found = Diagnosis(kind, summary="KeyError: 1")
    mark = f"{kind}: {fingerprint(found.summary)}"
    known = {"time": time.time(), "level": level_of(found), "host": "n1", "mark": mark}
    failure = records.PeerFailure(rank=rank, kind=kind, summary=found.summary, **{**known, **facts})
    directory = launch.run / paths.FAILURES
    directory.mkdir(parents=True, exist_ok=True)
    files.replace_file(str(directory / paths.failure_name(rank, failure.attempt)), failure)


def told(launch):
    """What the run directory says of failures."""
    written = sorted((launch.run / paths.FAILURES).glob("*"))
    return [files.read_record(records.PeerFailure, str(path)) for path in written]


def test_a_failure_is_told_to_the_others(launch):
    launched = launch(sys.executable, "-c", CAUSE, rank=3)
    [failure] = told(launch)
    assert (failure.rank, failure.attempt, failure.host) == (3, 1, socket.gethostname())
    assert failure.summary == launched.status().reason
    if from_json(launched.events("exit")[0].extra["diagnosis"]) is not None:  # there was time for it
        assert (failure.kind, failure.level, failure.summary) == ("python_error", 1.0, "KeyError: 1")
    assert (launch.run / paths.FAILURES).stat().st_mode & 0o777 == 0o700


def test_a_rank_that_died_of_anothers_failure_is_not_held(launch):
    failed(launch, 3)
    victim = launch(sys.executable, "-c", EFFECT, rank=1, options=ROOT)
    assert victim.code == 1
    assert victim.events("not-held")[0].text("by") == "rank 3"
    assert not victim.events("hold")
    assert "not held (--hold-policy root): rank 3 on" in victim.err.decode()


def test_the_one_that_began_it_is_held_whoever_failed_before_it(launch):
    failed(launch, 1, "peer_lost")
    root = launch.start(sys.executable, "-c", CAUSE, rank=3, options=ROOT)
    root.wait_for_event("hold")
    assert not root.events("not-held")


def test_of_the_same_fault_only_the_first_is_held(launch):
    failed(launch, 3)
    assert launch(sys.executable, "-c", CAUSE, rank=1, options=ROOT).events("not-held")


def test_a_hold_ends_when_the_cause_becomes_known_later(launch):
    victim = launch.start(sys.executable, "-c", EFFECT, rank=1, options=ROOT)
    victim.wait_for_event("hold")
    failed(launch, 3)
    assert victim.wait().code == 1
    release = victim.events("release")[0]
    assert (release.text("why"), release.text("by")) == ("policy", "rank 3")


@pytest.mark.parametrize("options", [["--hold-policy=none"], ["--hold=600", "--hold-policy=none"]])
def test_nobody_is_held_when_nobody_should_be(launch, options):
    launched = launch("sh", "-c", "exit 3", options=options)
    assert (launched.code, launched.events("hold")) == (3, [])


def test_what_cannot_be_trusted_or_read_holds_as_ever(launch):
    directory = launch.run / paths.FAILURES
    directory.mkdir(parents=True)
    (directory / paths.failure_name(3, 1)).write_bytes(b"{\xff")
    (directory / paths.failure_name(4, 1)).symlink_to("/dev/zero")
    os.mkfifo(directory / paths.failure_name(5, 1))
    victim = launch.start(sys.executable, "-c", EFFECT, rank=1, options=ROOT)
    victim.wait_for_event("hold")


def test_a_command_is_stopped_when_another_rank_has_failed(launch):
    options = ["--stop-on-peer-failure=0", "--hold=600"]
    waiting = launch.start("sh", "-c", PATIENT, rank=1, options=options)
    waiting.wait_for_output(b"up")
    failed(launch, 3)
    assert waiting.wait().code == 143
    assert "rank 3 on n1 failed: KeyError: 1: stopping (--stop-on-peer-failure)" in waiting.err.decode()
    assert not waiting.events("hold")
    assert [failure.rank for failure in told(launch)] == [3]


def test_one_that_does_not_obey_is_killed_after_the_grace(launch):
    options = ["--stop-on-peer-failure=0", "--grace=0.5"]
    stubborn = launch.start("sh", "-c", STUBBORN, rank=1, options=options)
    stubborn.wait_for_output(b"up")
    failed(launch, 3)
    assert stubborn.wait().code == 137


def test_failures_of_an_earlier_start_and_ranks_that_started_again_stop_nobody(launch):
    failed(launch, 3, time=time.time() - 60)
    waiting = launch.start("sh", "-c", PATIENT, rank=1, options=["--stop-on-peer-failure=0"])
    waiting.wait_for_output(b"up")
    (launch.run / paths.rank_name(4) / paths.attempt_name(2)).mkdir(parents=True)
    failed(launch, 4)
    failed(launch, 5)  # this one stops it: the others are there and do not
    assert waiting.wait().code == 143
    stops = [event for event in waiting.events("signal") if event.text("signal") == "SIGTERM"]
    assert stops[0].extra["received_from"] == {"peer": 5}


def test_many_failures_leave_few_files(launch):
    for rank in range(100, 100 + MOST):
        failed(launch, rank)
    launch(sys.executable, "-c", EFFECT, rank=3)
    assert len(told(launch)) == MOST
