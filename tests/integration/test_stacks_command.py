"""`trainwatch stacks` on launchers that run: it asks, folds, and says what could not be had; also after the fact."""
from __future__ import annotations

import json
import sys

import pytest

from builders import RunBuilder, at
from support.stacks import BARE_PYTHON, NO_PY_SPY, PY_SPY
from support.waiting import wait_until
from trainwatch import cli
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.stacks import Dump, Frame, Process, Thread, as_bytes

TRAIN = """
import os, time

def load():
    time.sleep(1000)

def sync():
    time.sleep(1000)

print("ready", flush=True)
load() if os.environ["TRAINWATCH_RANK"] == "1" else sync()
"""


def run_cli(capsys, *argv):
    code = cli.main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def hung(launch, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    env = {"PATH": f"{PY_SPY.parent}:/usr/bin:/bin"}
    started = [launch.start(sys.executable, "train.py", rank=rank, env=env) for rank in range(3)]
    for one in started:
        one.wait_for_output(b"ready")
        wait_until(lambda one=one: one.status() is not None and one.status().pid, what="its status")
    return started


def test_a_hung_run_is_folded_and_read_again_when_it_has_ended(launch, hung, capsys):
    code, out, err = run_cli(capsys, "stacks", launch.run, "--full")
    assert (code, err) == (0, "")
    first, *_ = out.splitlines()
    assert first.startswith("2 ranks in train.py:8 (sync)")
    assert "[0, 2]" in first
    (odd,) = [line for line in out.splitlines() if line.startswith("rank 1 ")]
    assert "in train.py:5 (load)" in odd
    assert "not where most ranks are" in odd
    assert "    <module> (" in out
    code, out, err = run_cli(capsys, "stacks", launch.run, "--rank", "1", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["ranks"]["1"]["number"] == 2
    assert [frame["function"] for frame in told["groups"][0]["frames"]] == ["load", "<module>"]
    assert told["groups"][0]["processes"][0]["rank"] == "1"
    for one in hung:
        one.kill()
    code, out, _ = run_cli(capsys, "stacks", launch.run, "--last")
    assert code == 0
    assert "2 ranks in train.py:8 (sync)" in out


def test_one_that_cannot_be_looked_into_is_told_with_what_would_help(launch, tmp_path, capsys):
    (tmp_path / "train.py").write_text(TRAIN)
    launched = launch.start(BARE_PYTHON, "train.py", python=BARE_PYTHON, env=NO_PY_SPY)
    launched.wait_for_output(b"ready")
    wait_until(lambda: launched.status() is not None and launched.status().pid, what="its status")
    code, out, err = run_cli(capsys, "stacks", launch.run)
    assert code == 0  # what there is to know is shown
    assert "train.py in clock_nanosleep" in out or "train.py in select" in out
    assert "no py-spy here" in err
    assert "--faulthandler" in err


def test_who_is_not_there_or_has_ended_is_said(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().finish()
    code, out, err = run_cli(capsys, "stacks", run.directory)
    assert (code, out) == (1, "")
    assert "no rank runs; --last shows" in err
    code, _, err = run_cli(capsys, "stacks", run.directory, "--rank", "7")
    assert code == 1
    assert "no rank 7 in this run" in err
    code, _, err = run_cli(capsys, "stacks", run.directory, "--last")
    assert code == 1
    assert "no stacks were taken" in err
    assert cli.main(["stacks", str(tmp_path / "nothing")]) == 2


def test_a_launcher_that_does_not_answer_is_said_and_the_request_taken_back(tmp_path, capsys, monkeypatch):
    from trainwatch.commands import stacks

    monkeypatch.setattr(stacks, "ANSWER_WITHIN", 0.5)
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    code, _, err = run_cli(capsys, "stacks", run.directory, "--rank", "0")
    assert code == 1
    assert "rank 0: no answer; the request is taken back" in err
    assert not list((at(run, 0).directory / paths.CONTROL).iterdir())


def test_hostile_names_do_not_act_on_the_terminal(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    dump, process = Dump(1.0, 0, "gpu\x1b[2J"), Process(1, "S", "python \x1b]0;x\x07")
    process.threads.append(Thread(1, "\x1b[31m"))
    process.threads[0].frames = [Frame("f\x1b[2J", "/job/\x1b[31m.py", 1)]
    dump.processes.append(process)
    run.rank(0).start().set(stacks=1)
    # as another writer might: with the bytes as they are
    data = as_bytes(dump).replace(b"\\x1b", b"\x1b")
    (at(run, 0).directory / paths.stacks_name(1)).write_bytes(data)
    code, out, err = run_cli(capsys, "stacks", run.directory, "--last", "--full")
    assert code == 0
    assert "f" in out
    assert "\x1b" not in out + err
