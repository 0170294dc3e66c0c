"""`trainwatch why`: for runs, for any log, for directories of logs; what it prints and what it exits with."""
from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time

import pytest

from builders import NOW, RunBuilder, crashed_run
from trainwatch.cli import main
from trainwatch_launcher.diagnosis.answer import Diagnosis

TRACEBACK = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nValueError: boom\n'
FIELDS = {
    "kind", "family", "summary", "file", "line", "frame", "exit_code", "root_cause_rank", "collateral_ranks", "ranks",
    "confidence", "hint", "evidence", "why", "runner_up", "same_fault_ranks", "inner_rank", "label", "time",
}  # fmt: skip


@pytest.fixture
def why(capsys):
    def run(*argv):
        code = main(["why", *map(str, argv)])
        said = capsys.readouterr()
        return code, json.loads(said.out) if "--json" in argv else said.out, said.err

    return run


@pytest.fixture
def logs(tmp_path):
    def write(**texts):
        for name, text in texts.items():
            path = tmp_path / (name.replace("__", "-") + ".log")
            path.write_text(text)
            os.utime(path, (time.time() - 9999,) * 2)
        return tmp_path

    return write


def test_a_log_is_explained_as_json(why, logs):
    path = logs(train="step 1\n" + TRACEBACK) / "train.log"
    code, told, _ = why("--json", path)
    assert code == 0
    assert set(told) == FIELDS
    assert (told["kind"], told["summary"], told["file"], told["line"], told["frame"], told["exit_code"]) == (
        "python_error", "ValueError: boom", str(path), 5, "a.py:3 in f", 1)
    assert told["evidence"][0] == {"file": str(path), "line": 5, "text": "ValueError: boom"}
    assert (told["root_cause_rank"], told["collateral_ranks"]) == (None, [])


def test_people_read_a_few_lines(why, logs):
    path = logs(train="step 1\n" + TRACEBACK) / "train.log"
    text = why(path)[1]
    lines = text.splitlines()
    assert lines[:3] == ["python error, exit 1", "  ValueError: boom", f"  {path}:5   at a.py:3 in f"]
    assert "Go to the frame" in text
    assert "\x1b" not in text


def test_a_log_in_which_nothing_failed_says_so(why, logs):
    path = logs(train="step 1\nTraining finished\n") / "train.log"
    assert why(path)[:2] == (0, "train.log: nothing failed\n")
    code, told, _ = why("--json", path)
    assert (code, told["kind"], told["line"], told["ranks"], set(told)) == (0, "none", None, {}, FIELDS)


def test_a_failure_without_a_reason_is_not_clear(why, logs):
    path = logs(train="step 1\njob exited with exit code 3\n") / "train.log"
    code, told, _ = why("--json", path)
    assert (code, told["kind"], told["exit_code"]) == (3, "unknown", 3)
    assert "not clear" in why(path)[1]


def test_a_directory_of_logs_names_the_rank(why, logs):
    where = logs(rank__0="step 1\nReceived signal 15\n", rank__1="step 1\n" + TRACEBACK, rank__2="step 1\n")
    code, told, _ = why("--json", where)
    assert (code, told["root_cause_rank"], told["collateral_ranks"], told["file"]) == (
        0, 1, [0, 2], str(where / "rank-1.log"))
    assert told["ranks"]["1"] == "python_error"
    assert why(*sorted(where.glob("*.log")), "--json")[1]["root_cause_rank"] == 1
    assert "rank 1: python error" in why(where)[1]
    assert "2 ranks died of it: 0,2" in why(where)[1]


def test_torchruns_own_log_directory_is_understood(why, tmp_path):
    for rank in range(3):
        place = tmp_path / "job" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        (place / "stdout.log").write_text("step 1\n")
        (place / "stderr.log").write_text(TRACEBACK if rank == 2 else "")
    code, told, _ = why("--json", tmp_path / "job")
    assert (code, told["root_cause_rank"], told["file"]) == (0, 2, str(tmp_path / "job/attempt_0/2/stderr.log"))


def test_a_rank_whose_log_just_stops_is_explained_by_the_scheduler_beside_it(why, logs):
    limit = "slurmstepd: error: *** JOB 4 ON n CANCELLED AT 2026-06-12T22:48:26 DUE TO TIME LIMIT ***\n"
    where = logs(rank__0="step 1\n", rank__1="step 1\n", slurm=limit)
    code, told, _ = why("--json", where / "rank-1.log")
    assert (code, told["kind"], told["root_cause_rank"]) == (0, "peer_lost", 1)
    assert "TIME LIMIT" in told["summary"]
    assert why("--json", where)[1]["kind"] == "time_limit"


def test_logs_that_are_being_written_are_of_no_hang(why, logs):
    two_steps = "step 1 loss 2\nstep 2 loss 2\n"
    where = logs(rank__0=two_steps, rank__1="step 1 loss 2\n", rank__2=two_steps)
    assert why("--json", where)[1]["kind"] == "hang"
    for path in where.iterdir():
        os.utime(path)
    assert why("--json", where)[:1] == (0,)
    assert why("--json", where)[1]["kind"] == "none"


def test_the_line_is_that_of_the_whole_log_however_long(why, tmp_path):
    path = tmp_path / "big.log"
    path.write_text("step 1 loss 2.0\n" * 200_000 + TRACEBACK)
    assert why("--json", path)[1]["line"] == 200_004


def test_it_reads_its_standard_input(why, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TRACEBACK.encode())))
    assert why("--json", "-")[1]["kind"] == "python_error"


def test_what_cannot_be_read_is_named(why, logs, tmp_path):
    where = logs(a=TRACEBACK)
    assert why(tmp_path / "none.log")[0] == 2
    code, told, err = why("--json", where / "a.log", tmp_path / "none.log")
    assert (code, told["kind"]) == (0, "python_error")
    assert "none.log: No such file or directory" in err
    (tmp_path / "empty").mkdir()
    code, _, err = why(tmp_path / "empty")
    assert (code, "holds neither a run nor logs" in err) == (2, True)


# -- runs


def test_a_run_is_explained_from_what_its_launchers_found(why, tmp_path):
    run = RunBuilder(tmp_path / "run")
    found = Diagnosis("cuda_oom", "gpu", "CUDA out of memory", line=71, exit_code=1, confidence=0.9)
    lost = Diagnosis("peer_lost", "comm", "closed", collateral=True)
    run.rank(0).start().fail(1, NOW - 20, diagnosis=lost.as_json())
    run.rank(1).start().fail(1, NOW - 30, diagnosis=found.as_json())
    run.rank(2).start().finish()
    code, told, _ = why("--json", run.directory)
    assert (code, told["kind"], told["root_cause_rank"], told["line"]) == (0, "cuda_oom", 1, 71)
    assert told["collateral_ranks"] == [0]
    assert told["ranks"] == {"0": "peer_lost", "1": "cuda_oom", "2": "none"}
    assert told["file"].endswith("/rank-00001/attempt-1/output.log")
    assert "rank 1 on gpu-01: cuda oom, exit 1" in why(run.directory)[1]


def test_a_run_of_launchers_that_say_nothing_is_explained_from_its_logs(why, tmp_path):
    run = crashed_run(tmp_path / "run")
    code, told, _ = why("--json", run.directory)
    assert (code, told["kind"], told["root_cause_rank"], told["line"]) == (0, "python_error", 2, 203)
    assert told["summary"] == "ValueError: loss is nan"
    assert told["collateral_ranks"] == [0, 1, 3]


def test_a_run_in_which_nothing_failed(why, tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, time=time.time()).start()
    assert why("--json", run.directory)[:1] == (0,)
    assert why("--json", run.directory)[1]["ranks"] == {"0": "none"}


def test_names_and_lines_of_a_log_do_not_act_on_the_terminal(why, tmp_path):
    path = tmp_path / "a\x1b[31mb.log"
    path.write_text(TRACEBACK.replace("a.py", "x\x1b]0;t\x07.py").replace("boom", "\x1b[2J\u202eevil"))
    assert "\x1b" not in why(path)[1]
    assert "\u202e" not in why(path)[1]


def test_it_says_what_it_is_for():
    done = subprocess.run([sys.executable, "-m", "trainwatch", "why", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "exit codes:" in done.stdout
