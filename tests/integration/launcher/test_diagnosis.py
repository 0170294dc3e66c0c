"""The launcher says why its command failed: on its console, in the `exit` event and in the status."""
from __future__ import annotations

import subprocess
import sys

import pytest

from builders import read_events
from support.launching import ROOT
from support.pythons import every_python
from support.waiting import wait_until
from trainwatch_launcher.diagnosis.answer import from_json
from trainwatch_launcher.rundir import paths

BROKEN = "def forward(batch):\n    return batch['tokens']\nprint('step 1', flush=True)\nforward({})\n"


def diagnosis_of(launched):
    return from_json(launched.events("exit")[0].extra["diagnosis"])


def failed(launch, *command, **how):
    """A command that has failed, with its diagnosis; on a machine too busy for one within a second, once more."""
    for rank in range(5):
        launched = launch(*command, rank=rank, **how)
        if diagnosis_of(launched) is not None:
            return launched
    return pytest.fail("five times there was no diagnosis in time")


@every_python
def test_an_exception_is_told_with_its_line_its_frame_and_what_to_do(launch, python, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(BROKEN)
    launched = failed(launch, sys.executable, str(script), python=python)
    assert launched.code == 1
    found = diagnosis_of(launched)
    line = launched.log().decode().split("\n").index("KeyError: 'tokens'") + 1
    assert (found.kind, found.summary, found.frame, found.line, found.exit_code) == (
        "python_error", "KeyError: 'tokens'", "train.py:2 in forward", line, 1)
    assert launched.log()[found.offset:].startswith(b"KeyError")
    assert launched.status().reason == "KeyError: 'tokens'"
    said = launched.err.decode()
    assert "why      KeyError: 'tokens'" in said
    assert f"python error   at train.py:2 in forward, line {line} of the log" in said
    assert "try      Go to the frame" in said


@pytest.mark.parametrize(
    ("script", "code", "kind"),
    [
        ("kill -9 $$", 137, "killed"),
        ("kill -SEGV $$", 139, "native_crash"),
        ("exit 3", 3, "unknown"),
        ("torchrunn x", 127, "command_error"),
        ("echo 'loss: nan'; echo 'Loss is nan, stopping training'; exit 1", 1, "nan_loss"),
    ],
)
def test_other_ends_have_their_kind(launch, script, code, kind):
    launched = failed(launch, "bash", "-c", script)
    assert launched.code == code
    assert diagnosis_of(launched).kind == kind


def test_who_asked_it_to_stop_is_told(launch):
    """The stop comes from a child of the launcher's own: the command itself."""
    launched = failed(launch, "sh", "-c", "kill $PPID; sleep 60")
    found = diagnosis_of(launched)
    assert "asked to stop with SIGTERM by PID" in found.summary
    assert found.kind in ("cancelled", "killed")


def test_a_command_that_ends_well_has_no_diagnosis(launch):
    launched = launch("sh", "-c", "echo 'RuntimeError: CUDA out of memory'; exit 0")
    assert launched.events("exit")[0].extra["diagnosis"] is None
    assert launched.status().reason == ""


def test_a_fault_of_the_diagnosis_costs_nothing_but_itself(tmp_path):
    """A module of it that cannot be imported stands for any fault of ours in it."""
    package = ROOT / "launcher" / "trainwatch_launcher"
    for path in package.rglob("*.py"):
        copy = tmp_path / "broken" / path.relative_to(package.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(b"1/0\n" if path.name == "judge.py" else path.read_bytes())
    entry = tmp_path / "broken" / "trainwatch_launcher" / "__main__.py"
    options = [f"--run-dir={tmp_path / 'run'}", "--hold=0", "--rank=0"]
    command = [sys.executable, "-I", str(entry), *options, "--", "sh", "-c", "echo last words; exit 3"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 3
    events = read_events(tmp_path / "run" / paths.rank_name(0) / paths.attempt_name(1))
    told = {event.event: event for event in events}
    assert told["warning"].text("kind") == "diagnosis"
    assert told["exit"].text("reason") == "last line: last words"


def test_a_diagnosis_that_comes_late_is_told_to_those_who_look_at_what_is_held(tmp_path):
    """A log of which the end is slow to read stands for a machine that is too busy."""
    package = ROOT / "launcher" / "trainwatch_launcher"
    for path in package.rglob("*.py"):
        copy = tmp_path / "slow" / path.relative_to(package.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        slow = b"import time\ntime.sleep(2)\n" if path.name == "judge.py" else b""
        text = path.read_bytes()
        head, future, rest = text.partition(b"from __future__ import annotations\n")
        copy.write_bytes(head + future + slow + rest if future else text)
    entry = tmp_path / "slow" / "trainwatch_launcher" / "__main__.py"
    options = [f"--run-dir={tmp_path / 'run'}", "--hold=600", "--rank=0"]
    command = [sys.executable, "-I", str(entry), *options, "--", sys.executable, "-c", "{}['tokens']"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    attempt = tmp_path / "run" / paths.rank_name(0) / paths.attempt_name(1)
    try:
        wait_until(lambda: attempt.exists() and any(e.event == "diagnosis" for e in read_events(attempt)), 30, "it")
        process.terminate()
        said = process.communicate(timeout=30)[1].decode()
    finally:
        process.kill()
    events = {event.event: event for event in read_events(attempt)}
    assert events["exit"].extra["diagnosis"] is None
    assert from_json(events["diagnosis"].extra["diagnosis"]).summary == "KeyError: 'tokens'"
    assert process.returncode == 1
    assert "why      KeyError: 'tokens'" in said
