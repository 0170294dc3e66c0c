"""Events as sentences for a person."""
from __future__ import annotations

import pytest

from trainwatch.model.telling import BAD, GOOD, PLAIN, WARNING, Told, tell
from trainwatch_launcher.rundir.records import event


@pytest.mark.parametrize(("kind", "facts", "told"), [
    ("start", {"argv": ["python", "a b.py"], "pid": 7}, Told("start", "python 'a b.py'  (pid 7)")),
    ("phase", {"name": "Train", "source": "marker"}, Told("phase", "Train")),
    ("phase", {"name": "Drain", "source": "launcher"}, Told("phase", "Drain  (launcher)")),
    ("signal", {"signal": 15, "received_from": {"pid": 1, "uid": None}, "forwarded": True},
     Told("signal", "SIGTERM, from pid 1, forwarded to the command", WARNING)),
    ("signal", {"signal": "SIGUSR1", "forwarded": False, "why": "held"},
     Told("signal", "SIGUSR1, not forwarded: held", WARNING)),
    ("warning", {"kind": "log", "message": "disk full", "lost": [[0, 2000]]},
     Told("warning", "log: disk full (2.0 kB of output lost)", WARNING)),
    ("warning", {"lost": "nonsense"}, Told("warning", "", WARNING)),
    ("recovered", {"kind": "log", "message": "writes again"}, Told("recovered", "log: writes again", GOOD)),
    ("stall", {}, Told("stall", "no progress", WARNING)),
    ("stall", {"stacks": "stacks-1.txt"}, Told("stall", "no progress; stacks: stacks-1.txt", WARNING)),
    ("stacks", {"file": "stacks-2.txt", "processes": 9, "method": "py-spy"},
     Told("stacks", "stacks-2.txt: 9 processes, py-spy", PLAIN)),
    ("stacks", {"file": None, "note": "no process of the command is left"},
     Told("stacks", "not taken; no process of the command is left", WARNING)),
    ("exit", {"code": 137, "signal": 9, "duration": 90, "reason": "killed"},
     Told("exit", "code 137 SIGKILL after 1m30s · killed", BAD)),
    ("exit", {"code": 0, "duration": 1}, Told("exit", "code 0 after 1s", GOOD)),
    ("hold", {"seconds": 600, "code": 1}, Told("hold", "kept for 10m00s with code 1", WARNING)),
    ("hold-extended", {"by": "me@here"}, Told("hold extended", "by me@here", GOOD)),
    ("control", {"command": "release", "by": "me@here", "result": "done"},
     Told("asked", "release by me@here: done", PLAIN)),
    ("control", {"command": "extend", "result": "no hold"}, Told("asked", "extend: no hold", WARNING)),
    ("release", {"why": "deadline"}, Told("release", "the hold ran out")),
    ("release", {"why": "command", "by": "me"}, Told("release", "on request by me")),
    ("end", {"code": 3}, Told("end", "the launcher exits with 3", BAD)),
    ("something-new", {"b": 2, "a": 1}, Told("something-new", "a=1  b=2")),
])  # fmt: skip
def test_every_event_is_told(kind, facts, told):
    assert tell(event(kind, 1.0, **facts)) == told


def test_more_lost_output_than_there_can_be_is_still_told():
    assert "of output lost" in tell(event("warning", 0.0, kind="disk", lost=[[0, 10**400]])).detail
