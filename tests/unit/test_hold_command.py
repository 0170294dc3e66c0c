"""`trainwatch hold` and `trainwatch shell`: who is asked, what comes back, and the exit codes."""
from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from builders import RunBuilder, at, crashed_run
from trainwatch import cli
from trainwatch.commands import hold
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import read_record
from trainwatch_launcher.rundir.records import Request


def held_run(tmp_path):
    """A crashed run whose ranks still give signs of life."""
    run = crashed_run(tmp_path / "run")
    now = time.time()
    for rank in (0, 2, 3):
        at(run, rank).set(time=now, hold_until=now + 600, interval=1000.0)
    return run


class Worker(threading.Thread):
    """Answers a rank's requests as its launcher would."""

    def __init__(self, run, rank, result="done"):
        super().__init__(daemon=True)
        self.attempt, self.result, self.asked = at(run, rank), result, []
        self.start()

    def run(self):
        control = self.attempt.directory / paths.CONTROL
        while True:
            for path in control.glob("[!.]*"):
                request = read_record(Request, str(path))
                path.unlink()
                self.asked.append(request)
                if request.command == "extend" and request.seconds is not None:
                    self.attempt.set(hold_until=self.attempt.status.hold_until + request.seconds)
                self.attempt.event("control", time.time(), id=request.id, command=request.command, by=request.by,
                                   result=self.result)
                return
            time.sleep(0.01)


def run_cli(capsys, *argv):
    code = cli.main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_hold_is_extended_and_the_answer_printed(tmp_path, capsys):
    run = held_run(tmp_path)
    worker = Worker(run, 2)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", "2", "--extend", "2h")
    assert (code, err) == (0, "")
    assert out.startswith("rank 2: held for 2h")
    assert [(request.command, request.seconds) for request in worker.asked] == [("extend", 7200)]


def test_all_holds_are_released_and_each_says_what_it_exits_with(tmp_path, capsys):
    run = held_run(tmp_path)
    workers = [Worker(run, rank) for rank in (0, 2, 3)]
    code, out, _ = run_cli(capsys, "hold", run.directory, "--all", "--release")
    assert code == 0
    assert sorted(out.splitlines()) == [
        "rank 0: released; it exits with 143 SIGTERM", "rank 2: released; it exits with 1",
        "rank 3: released; it exits with 137 SIGKILL"]
    assert [worker.asked[0].command for worker in workers] == ["release"] * 3


def test_collateral_is_released_and_the_rank_that_failed_first_is_left_alone(tmp_path, capsys):
    run = held_run(tmp_path)
    for rank in (0, 3):
        Worker(run, rank)
    code, out, err = run_cli(capsys, "hold", run.directory, "--collateral", "--release")
    assert (code, err) == (0, "trainwatch: rank 2 is left alone: it failed first\n")
    assert sorted(out.splitlines()) == [
        "rank 0: released; it exits with 143 SIGTERM", "rank 3: released; it exits with 137 SIGKILL"]
    assert list((at(run, 2).directory / paths.CONTROL).iterdir()) == []


def test_a_run_with_nothing_but_its_first_failure_held_has_no_collateral(tmp_path, capsys):
    run = held_run(tmp_path)
    for rank in (0, 3):
        at(run, rank).end(time.time())
    code, out, err = run_cli(capsys, "hold", run.directory, "--collateral", "--extend", "2h")
    assert (code, out) == (1, "")
    assert err == "trainwatch: no other rank than 2, which failed first, is held\n"


def test_a_run_without_a_failure_has_no_collateral(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, time=time.time() + 60).start(time.time())
    code, _, err = run_cli(capsys, "hold", run.directory, "--collateral", "--release")
    assert (code, err) == (1, "trainwatch: no rank has failed\n")


def test_a_worker_that_says_no_makes_code_1(tmp_path, capsys):
    run = held_run(tmp_path)
    Worker(run, 2, result="the hold is over")
    code, out, _ = run_cli(capsys, "hold", run.directory, "--rank", "2", "--release")
    assert (code, out) == (1, "rank 2: the hold is over\n")


def test_a_worker_that_does_not_answer_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(hold, "ANSWER_WITHIN", 0.2)
    run = held_run(tmp_path)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", "0,2", "--release")
    assert (code, out) == (1, "")
    assert "rank 0 has not answered; the request is taken back" in err
    assert "rank 2 has not answered; the request is taken back" in err
    assert [list((at(run, rank).directory / paths.CONTROL).iterdir()) for rank in (0, 2)] == [[], []]


def test_a_rank_that_is_not_held_is_refused_with_those_that_are(tmp_path, capsys):
    run = held_run(tmp_path)
    code, _, err = run_cli(capsys, "hold", run.directory, "--rank", "1", "--release")
    assert (code, err) == (1, "trainwatch: rank 1 is not held any more\n")


@pytest.mark.parametrize(("rank", "said"), [
    ("1", "rank 1 is not held any more"), ("9", "no rank 9 in this run; there are 0-3"),
    ("2#2", "no rank 2#2 in this run; of rank 2 there is 2"),
])  # fmt: skip
def test_a_rank_that_is_not_there_and_one_that_is_not_held_are_told_apart(tmp_path, capsys, rank, said):
    run = held_run(tmp_path)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", rank, "--release")
    assert (code, out, err) == (1, "", f"trainwatch: {said}\n")


def test_the_only_attempt_that_is_held_is_asked_and_named(tmp_path, capsys):
    run = held_run(tmp_path)
    run.rank(2, attempt=2, time=time.time()).start()
    worker = Worker(run, 2)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", "2", "--release")
    assert (code, out) == (0, "rank 2#1: released; it exits with 1\n")
    assert "rank 2#2, the newest attempt, is running; this is rank 2#1" in err
    assert [request.command for request in worker.asked] == ["release"]


def test_the_label_of_an_old_attempt_can_be_typed(tmp_path, capsys):
    run = held_run(tmp_path)
    run.rank(2, attempt=2, time=time.time()).start().fail(1).set(interval=1000.0, hold_until=time.time() + 600)
    worker = Worker(run, 2)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", "2#1", "--extend", "1h")
    assert (code, err) == (0, "")
    assert out.startswith("rank 2#1: held for 1h")
    assert ", until " in out
    assert [request.command for request in worker.asked] == ["extend"]


def test_a_local_rank_is_released_by_its_container(tmp_path, capsys):
    run = held_run(tmp_path)
    run.local(2, 0).start().fail(1, hold=None)
    worker = Worker(run, 2)
    code, out, err = run_cli(capsys, "hold", run.directory, "--rank", "2.0", "--release")
    assert (code, out) == (0, "rank 2: released; it exits with 1\n")
    assert "a local rank is held by its container: this is rank 2" in err
    assert [request.command for request in worker.asked] == ["release"]


def test_a_rank_that_is_none_is_refused_in_ranks_own_words(tmp_path, capsys):
    with pytest.raises(SystemExit) as raised:
        cli.main(["hold", str(tmp_path), "--rank", "x", "--release"])
    assert raised.value.code == 2
    said = capsys.readouterr().err
    assert "argument --rank: 'x' is no rank; write 3, 0-7" in said
    assert "rank:" not in said.replace("--rank:", "")


@pytest.mark.parametrize("options", [
    ["--all"], ["--release"], ["--all", "--release", "--extend", "5"], ["--rank", "1", "--all", "--release"],
    ["--rank", "x", "--release"], ["--all", "--extend", "soon"], ["--all", "--extend", "-5"],
])  # fmt: skip
def test_options_that_make_no_sense_are_code_2(tmp_path, capsys, options):
    with pytest.raises(SystemExit) as raised:
        cli.main(["hold", str(tmp_path), *options])
    assert raised.value.code == 2


def shell(*argv):
    command = [sys.executable, "-m", "trainwatch", "shell", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def two_ranks(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(2):
        run.rank(rank, host=socket.gethostname()).start(cwd=str(tmp_path))
    return run


def test_a_command_runs_beside_the_rank_with_its_own_exit_code(tmp_path):
    run = two_ranks(tmp_path)
    script = "pwd; echo $TRAINWATCH_RANK $0 -- $1; exit 7"
    done = shell(run.directory, "--rank", "1", "--", "sh", "-c", script, "--", "x")
    assert (done.returncode, done.stdout) == (7, f"{tmp_path}\n1 -- -- x\n")
    assert done.stderr.startswith("trainwatch: rank 1 · ")


def test_a_shell_that_cannot_start_is_not_silent(tmp_path):
    broken = tmp_path / "broken-shell"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host=socket.gethostname(), time=time.time() + 3600).start(cwd=str(tmp_path))
    command = [sys.executable, "-m", "trainwatch", "shell", str(run.directory)]
    env = {**os.environ, "SHELL": str(broken)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 9
    assert "broken-shell ended at once, with exit code 9" in done.stderr


def test_a_path_to_a_rank_says_which(tmp_path):
    run = two_ranks(tmp_path)
    done = shell(run.directory / paths.rank_name(1), "--", "sh", "-c", "echo $TRAINWATCH_RANK")
    assert done.stdout == "1\n"


def test_a_command_that_is_not_there_is_code_127(tmp_path):
    done = shell(two_ranks(tmp_path).directory, "--rank", "0", "--", "no-such-command")
    assert done.returncode == 127
    assert "cannot run no-such-command" in done.stderr


@pytest.mark.parametrize(("options", "said"), [
    ([], "which rank? Name one with --rank: 0-1"), (["--rank", "7"], "no rank 7 in this run; there are 0-1"),
])  # fmt: skip
def test_a_rank_must_be_named_and_be_there(tmp_path, capsys, options, said):
    code, _, err = run_cli(capsys, "shell", two_ranks(tmp_path).directory, *options)
    assert code == 2
    assert said in err


def test_a_shell_is_beside_the_attempt_that_was_named_or_the_newest_which_is_said(tmp_path):
    run = two_ranks(tmp_path)
    (tmp_path / "again").mkdir()
    run.rank(1, attempt=2, host=socket.gethostname()).start(cwd=str(tmp_path / "again"))
    newest = shell(run.directory, "--rank", "1", "--", "pwd")
    assert newest.stdout == f"{tmp_path / 'again'}\n"
    assert "this is rank 1#2, the newest attempt" in newest.stderr
    assert shell(run.directory, "--rank", "1#1", "--", "pwd").stdout == f"{tmp_path}\n"
    by_path = run.directory / paths.rank_name(1) / paths.attempt_name(1)
    assert shell(by_path, "--", "pwd").stdout == f"{tmp_path}\n"


@pytest.mark.parametrize(("rank", "said"), [
    ("x", "--rank: 'x' is no rank; write 3, 0-7"), ("0-1", "a shell is beside one rank"),
    ("1#7", "no rank 1#7 in this run; of rank 1 there is 1"),
])  # fmt: skip
def test_a_shell_needs_one_rank_that_is_there(tmp_path, capsys, rank, said):
    code, _, err = run_cli(capsys, "shell", two_ranks(tmp_path).directory, "--rank", rank)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err


def test_a_rank_of_another_host_is_code_1_with_what_to_type(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host="gpu-77").start()
    code, _, err = run_cli(capsys, "shell", run.directory)
    assert code == 1
    assert "type: ssh gpu-77" in err


def test_all_of_a_ranks_directory_is_that_rank_only(tmp_path, capsys):
    run = held_run(tmp_path)
    worker = Worker(run, 2)
    code, out, _ = run_cli(capsys, "hold", run.directory / paths.rank_name(2), "--all", "--release")
    assert (code, len(worker.asked)) == (0, 1)
    assert not list((at(run, 0).directory / paths.CONTROL).iterdir())
    assert out.startswith("rank 2: released")


def test_all_of_a_rank_that_is_not_held_is_code_1(tmp_path, capsys):
    run = held_run(tmp_path)
    directory = run.directory / paths.rank_name(1)
    assert run_cli(capsys, "hold", directory, "--all", "--release") == (1, "", "trainwatch: rank 1 is not held\n")


@pytest.mark.parametrize("words", [
    ["hold", "", "--all", "--release"], ["shell", "", "--rank", "0"], ["status", ""], [""],
])  # fmt: skip
def test_an_empty_target_is_no_target(capsys, words):
    assert run_cli(capsys, *words) == (2, "", "trainwatch: TARGET is empty\n")


def test_nothing_from_a_run_acts_on_the_terminal(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host="gpu\x1b]0;x\x07-77").start(cwd="/a\x1b[31mb\x07")
    code, _, err = run_cli(capsys, "shell", run.directory)
    assert (code, "type: ssh gpu" in err) == (1, True)
    assert not set(err) & set("\x1b\x07")


def test_the_note_of_a_shell_does_not_act_on_the_terminal(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host=socket.gethostname()).start(cwd="/gone\x1b[31m\x07")
    argv = [sys.executable, "-m", "trainwatch", "shell", str(run.directory), "--", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, "is gone" in done.stderr) == (0, True)
    assert not set(done.stderr) & set("\x1b\x07")
