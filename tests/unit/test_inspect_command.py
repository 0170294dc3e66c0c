"""`trainwatch inspect`: what any log says."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest

from trainwatch.cli import main

LOG = (
    "=== [Phase] Load Data ===\nhello \xff\n=== [Phase] Train ===\n"
    "step 1/100 | loss: 2.5 | lr 1e-4\nstep 2/100 | loss: 2.25 | lr 1e-4 | ETA: 1:02:03\nno more"
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(LOG, encoding="latin-1")
    return str(path)


def test_a_log_is_told_as_json(log, capsys):
    assert main(["inspect", "--json", log]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "file": log,
            "format": "generic",
            "progress": {"step": 2, "total": 100, "loss": 2.25, "lr": 0.0001, "eta_s": 3723},
            "samples": 2,
            "phases": [{"name": "Load Data", "line": 1}, {"name": "Train", "line": 3}],
            "diagnosis": None,
        }
    ]


def test_every_sample_is_printed_as_json(log, capsys):
    assert main(["inspect", "--points", "--json", log]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"line": 4, "step": 1, "total": 100, "loss": 2.5, "lr": 0.0001},
        {"line": 5, "step": 2, "total": 100, "loss": 2.25, "lr": 0.0001, "eta_s": 3723},
    ]


def test_with_several_logs_each_sample_says_which(log, capsys):
    assert main(["inspect", "--points", "--json", log, log]) == 0
    assert [point["file"] for point in json.loads(capsys.readouterr().out)] == [log] * 4


def test_people_read_sentences(log, capsys):
    assert main(["inspect", log]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{log}: generic, 2 samples",
        "  step 2/100, loss 2.25, lr 0.0001, 1h02m left",
        "  phase Load Data, line 1",
        "  phase Train, line 3",
    ]
    assert main(["inspect", "--points", log]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "4: step 1/100, loss 2.5, lr 0.0001"


def test_a_log_without_training_says_so(tmp_path, capsys):
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert main(["inspect", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: no training steps found\n"
    assert main(["inspect", "--points", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_log_that_cannot_be_read_is_named_and_the_others_are_told(log, tmp_path, capsys):
    assert main(["inspect", "--json", str(tmp_path / "none.log"), str(tmp_path), log]) == 2
    said = capsys.readouterr()
    assert [found["samples"] for found in json.loads(said.out)] == [2]
    assert "none.log: No such file or directory" in said.err
    assert f"{tmp_path}: Is a directory" in said.err


def test_a_failure_in_a_log_is_told(tmp_path, capsys):
    path = tmp_path / "train.log"
    raised = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'x'\n"
    path.write_text("step 1/100 | loss: 2.5\n" + raised)
    assert main(["inspect", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)[0]["diagnosis"]
    assert (told["kind"], told["summary"], told["line"], told["frame"]) == (
        "python_error", "KeyError: 'x'", 4, "a.py:3 in f")
    assert main(["inspect", str(path)]) == 0
    assert "  python error: KeyError: 'x', line 4" in capsys.readouterr().out


def test_phases_are_found_whatever_the_size_of_what_is_read_at_once(tmp_path, capsys):
    path = tmp_path / "big.log"
    line = b"x" * 99 + b"\n"
    across = b"y" * 40 + b"=== [Phase] Across ===\n"
    path.write_bytes(line * 10485 + b"== no\n" + across + line * 10 + b"=== [Phase] End ===")
    assert main(["inspect", "--json", str(path)]) == 0
    phases = json.loads(capsys.readouterr().out)[0]["phases"]
    assert phases == [{"name": "Across", "line": 10487}, {"name": "End", "line": 10498}]


def test_a_pattern_of_ones_own_is_used_and_a_wrong_one_refused(tmp_path, capsys):
    path = tmp_path / "own.log"
    path.write_text("it 5 L=0.5\n")
    own = ["--progress-pattern", r"it (?P<step>\d+) L=(?P<loss>\S+)"]
    assert main(["inspect", "--points", "--json", *own, str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == [{"line": 1, "step": 5, "loss": 0.5}]
    assert main(["inspect", "--progress-pattern", r"it (\d+)", str(path)]) == 2
    assert "no named group" in capsys.readouterr().err


def test_it_reads_its_standard_input_and_ends_quietly_when_its_reader_leaves():
    text = ("step 1/100 | loss: 2.5 | lr 1e-4\n" * 100_000).encode()
    command = [sys.executable, "-m", "trainwatch", "inspect", "--points", "-"]
    shell = ["bash", "-c", '"$@" | head -n 1; echo "${PIPESTATUS[0]}"', "bash", *command]
    done = subprocess.run(shell, input=text, capture_output=True, check=True)
    assert done.stdout.splitlines() == [b"1: step 1/100, loss 2.5, lr 0.0001", b"141"]
    assert done.stderr == b""


def test_names_and_phases_from_a_log_do_not_act_on_the_terminal(tmp_path, capsys):
    path = tmp_path / "a\x1b[31mb.log"
    path.write_bytes(b"=== [Phase] Bad\x1b]0;x\x07 name ===\n")
    assert main(["inspect", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
