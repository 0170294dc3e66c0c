"""What the launcher's own facts add to what a log says; hostile logs; the way through the run directory."""
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.failures import samples
from trainwatch_launcher.diagnosis.answer import Diagnosis, from_json
from trainwatch_launcher.diagnosis.diagnose import MOST_TEXT, diagnose
from trainwatch_launcher.diagnosis.facts import Facts

TRACEBACK = b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: boom\n'
WORKER = TRACEBACK.replace(b"ValueError: boom", b"RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.")
XID = ("gpu", "GPU 2: Xid 79: the GPU has fallen off the bus: the node must be restarted")
SAMPLES = [sample.text for sample in samples()]


@pytest.mark.parametrize(
    ("text", "facts", "kind", "words"),
    [
        (b"step 1\n", Facts(137, 9, oom_kills=2), "host_oom", "the kernel killed 2 processes"),
        (b"step 1\n", Facts(137, 9, oom_kills=0), "killed", "not counted as out of memory"),
        (b"step 1\n", Facts(137, 9), "killed", "killed by SIGKILL"),
        (b"step 1\n", Facts(137, oom_kills=1), "host_oom", "the kernel killed 1 process in"),
        (WORKER, Facts(1, oom_kills=1), "host_oom", "the kernel killed 1 process in"),
        (WORKER, Facts(1, oom_kills=0), "dataloader", "is killed by signal"),
        (TRACEBACK, Facts(1, oom_kills=3), "python_error", "ValueError: boom"),
        (b"step 1\n", Facts(139, 11, core_dumped=True), "native_crash", "killed by SIGSEGV, core dumped"),
        (b"step 1\n", Facts(143, 15, stop_signal=15), "killed", "asked to stop with SIGTERM"),
        (b"step 1\n", Facts(143, 15, stop_signal=15, stop_pid=7, stop_by="slurmstepd: [9.0]"), "killed", "slurmstepd"),
        (b"step 1\n", Facts(143, 15, stop_signal=15, stop_pid=7, stop_by="python torchrun x"), "peer_lost", "PID 7"),
        (b"step 1\n", Facts(143, stop_signal=15, stopped_for="rank 3 on n1 failed"), "peer_lost", "rank 3 on n1"),
        (b"step 1\n", Facts(130, 2, stop_signal=2), "cancelled", "SIGINT"),
        (TRACEBACK, Facts(1, stop_signal=15), "python_error", "ValueError: boom"),
        (TRACEBACK, Facts(1, gpu_events=(XID,)), "gpu_hardware", "fallen off the bus"),
        (TRACEBACK, Facts(1, gpu_events=(("notice", "Xid 45"), ("application", "Xid 31"))), "python_error", "boom"),
        (b"", Facts(127, spawn_error="x: command not found in PATH"), "command_error", "command not found in PATH"),
        (b"hello\n", Facts(3), "unknown", "exit code 3 without a word why; the last line: hello"),
        (b"", Facts(1), "unknown", "exit code 1"),
        (TRACEBACK, Facts(0), "none", ""),
    ],
)
def test_what_the_launcher_knows_counts(text, facts, kind, words):
    found = diagnose(text, facts)
    assert found.kind == kind
    assert words in found.summary
    assert found.exit_code == facts.exit_code


def test_a_guess_is_not_sold_as_knowledge():
    assert diagnose(TRACEBACK, Facts(1)).clear
    assert not diagnose(b"hello\n", Facts(3)).clear
    assert diagnose(b"hello\n", Facts(3)).silent


def test_only_the_end_of_a_log_is_looked_at_and_lines_are_those_of_the_whole():
    before = b"step 1 loss 2.0\n" * 200_000
    assert len(before) > MOST_TEXT
    found = diagnose(before + TRACEBACK, Facts(1))
    assert (found.line, found.offset) == (200_004, len(before) + TRACEBACK.index(b"ValueError"))
    assert found.at(1000, 5).line == 201_004
    assert found.at(None, 5).line is None
    assert found.at(None, 5).offset == found.offset + 5


def test_a_traceback_whose_beginning_is_cut_off_is_still_one():
    found = diagnose(b'es/x.py", line 1, in y\n  File "/w/a.py", line 3, in f\n    g()\nValueError: boom\n', Facts(1))
    assert (found.kind, found.line, found.frame) == ("python_error", 4, "a.py:3 in f")


@given(st.binary(max_size=2000), st.sampled_from([None, 0, 1, 137, 139]), st.sampled_from([None, 3]))
def test_no_bytes_can_hurt_it(data, code, rank):
    found = diagnose(data, Facts(code), rank)
    assert found.failed or not code
    assert found.line is None or 1 <= found.line <= data.count(b"\n") + 1


@given(st.sampled_from(SAMPLES), st.data())
def test_no_cut_and_no_dirt_in_a_real_log_can_hurt_it(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    dirt = data.draw(st.sampled_from([b"", b"\x1b[31m", b"\r", b"\xff\x00", b"\n\n", b'"', b"[rank1]: ", b"7: "]))
    at = data.draw(st.integers(start, end))
    found = diagnose(text[start:at] + dirt + text[at:end], Facts(1))
    assert found.failed
    assert from_json(json.loads(json.dumps(found.as_json()))) == found


HOSTILE = (b"a", b"1/", b" ", b"(", b"[1", b"::", b"/", b"error: ", b"\x1b[", b"\x1b]", b"\r", b'File "', b"a.")


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.timeout(60)
def test_ten_megabytes_of_one_line_are_no_matter(piece):
    """They take a fraction of a second; an expression that goes back and forth would take hours."""
    diagnose(piece * (10_000_000 // len(piece)), Facts(1))
    diagnose((piece * (4000 // len(piece)) + b"\n") * 250, Facts(1))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["kind", "line", "inner", "evidence", "collective", "rank", "text", "before"]),
                        inner, max_size=6)))  # fmt: skip
def test_whatever_a_run_directory_holds_is_a_diagnosis_or_none(value):
    found = from_json(value)
    assert found is None or isinstance(found, Diagnosis)
    if found is not None:
        assert from_json(json.loads(json.dumps(found.as_json()))) == found
