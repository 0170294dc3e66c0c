"""A failed container stays for debugging, says so, and ends its hold in three ways; always with the original code."""
from __future__ import annotations

import json
import os
import signal
import time

import pytest

from support.pythons import every_python
from support.waiting import wait_until
from trainwatch_launcher.rundir import files, paths, records, state


def held(launch, *options: str, code: int = 3, **how):
    launched = launch.start("sh", "-c", f"echo training; exit {code}", options=["--hold=600", *options], **how)
    launched.wait_for_event("hold")
    return launched


def ask(launched, command: str, **facts) -> str:
    """Leave a request as the viewer does, and return the launcher's answer."""
    now = time.time()
    request = records.Request(id=f"{command}-{now}", command=command, by="ann@laptop", time=now, **facts)
    box = launched.attempt() / paths.CONTROL
    files.replace_file(str(box / ".request"), request)
    os.rename(box / ".request", box / f"{request.id}.json")


    def answers():
        return [event for event in launched.events("control") if event.text("id") == request.id]

    return wait_until(answers, 10, f"an answer to {command}")[0].text("result")


@every_python
def test_the_deadline_ends_it(launch, python):
    started = time.monotonic()
    launched = launch("sh", "-c", "exit 3", options=["--hold=1"], python=python)
    assert launched.code == 3
    assert time.monotonic() - started >= 1
    assert launched.events("release")[0].text("why") == "deadline"
    assert launched.status().end_code == 3


def test_a_release_command_ends_it(launch):
    launched = held(launch)
    assert ask(launched, "release") == "done"
    assert launched.wait(timeout=10).code == 3
    release = launched.events("release")[0]
    assert (release.text("why"), release.text("by")) == ("command", "ann@laptop")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(launch, number):
    launched = held(launch)
    started = time.monotonic()
    launched.signal(number)
    assert launched.wait(timeout=10).code == 3
    assert time.monotonic() - started < 8, "at once, on a busy machine; its deadline is far"


def test_an_extension_moves_the_deadline_and_is_answered(launch):
    launched = held(launch)
    before = launched.events("hold")[0].number("until")
    assert ask(launched, "extend", seconds=3600.0) == "done"
    assert launched.events("hold-extended")[0].number("until") == pytest.approx(before + 3600, abs=1)
    wait_until(lambda: launched.status().hold_until == pytest.approx(before + 3600, abs=1), what="status")
    assert "number of seconds" in ask(launched, "extend")
    assert ask(launched, "fly") == "this launcher does not know that command"
    assert launched.process.poll() is None


def test_requests_to_a_running_command(launch):
    script = "trap 'echo usr1' USR1; trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", script)
    launched.wait_for_output(b"up")
    assert ask(launched, "release") == "not held"
    assert ask(launched, "signal", signal="USR1") == "done"
    launched.wait_for_output(b"usr1")
    assert "no such signal" in ask(launched, "signal", signal="NOPE")
    assert ask(launched, "stop") == "done"
    assert launched.wait(timeout=10).code == 9


def test_requests_that_cannot_be_trusted_do_nothing(launch, tmp_path):
    launched = held(launch)
    box = launched.attempt() / paths.CONTROL
    forged = json.dumps({"format": 1, "id": "x", "command": "release"}).encode()
    (tmp_path / "elsewhere").write_bytes(forged)
    os.symlink(tmp_path / "elsewhere", box / "link.json")
    (box / "garbage.json").write_bytes(b"\xff{")
    (box / "huge.json").write_bytes(forged + b" " * 100_000)
    os.mkfifo(box / "fifo.json")
    if os.geteuid() == 0:
        (box / "other.json").write_bytes(forged)
        os.chown(box / "other.json", 12345, 12345)
    wait_until(lambda: not list(box.glob("*.json")), what="the box to be emptied")
    assert ask(launched, "extend", seconds=1.0) == "done"
    assert not launched.events("release")


def test_success_is_never_held(launch):
    assert launch("true", options=["--hold=600"], timeout=10).code == 0


@pytest.mark.parametrize(
    ("options", "code", "holds"),
    [
        (["--hold-on=1,3-5"], 4, True),
        (["--hold-on=1,3-5"], 2, False),
        (["--no-hold-on=4"], 4, False),
        (["--hold=0"], 4, False),
    ],
)
def test_codes_decide_whether_it_is_held(launch, options, code, holds):
    given = options if "--hold=0" in options else ["--hold=0.3", *options]
    launched = launch("sh", "-c", f"exit {code}", options=given)
    assert launched.code == code
    assert bool(launched.events("hold")) == holds


def test_the_variable_sets_the_hold_too(launch):
    launched = launch("sh", "-c", "exit 3", options=["--hold-on=3"], env={"TRAINWATCH_HOLD": "0.3"})
    assert launched.code == 3


def test_the_banner_tells_all_that_a_tired_person_needs(launch):
    launched = held(launch, code=3)
    launched.signal(signal.SIGTERM)
    text = launched.wait(timeout=10).err.decode()
    host = os.uname().nodename
    for word in ("rank 0", host, "exit code 3", "output.log", str(launched.run), "--release", "held", "GPUs"):
        assert word in text, word


def test_the_state_on_the_way(launch):
    launched = launch.start("sh", "-c", "echo up; sleep 0.5; exit 3", options=["--hold=600"])
    seen = []
    def note():
        status = launched.status()
        found = state.state_of(status, time.time()) if status else ""
        if found and (not seen or seen[-1] != found):
            seen.append(found)
        return state.HELD in seen
    wait_until(note, what="held")
    launched.signal(signal.SIGTERM)
    launched.wait(timeout=10)
    note()
    assert [s for s in seen if s != state.STARTING and s != state.FAILED] == [state.RUNNING, state.HELD, state.ENDED]


def test_a_second_launcher_of_the_same_rank_makes_the_next_attempt(launch):
    first = held(launch)
    second = launch("sh", "-c", "echo again; exit 0", timeout=20)
    assert second.code == 0
    assert second.log(2) == b"again\n"
    assert first.log(1) == b"training\n"
    assert first.status(1).attempt == 1
    assert second.status(2).attempt == 2
    assert first.process.poll() is None
