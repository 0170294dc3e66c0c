"""A wall clock that is set while a training runs: nothing that the launcher measures may follow it."""
from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from support.waiting import wait_until
from trainwatch_launcher.hold import Hold

CLOCK = """
import os, runpy, sys, time
real = time.time
def shifted():
    try:
        with open({file!r}) as file:
            return real() + float(file.read() or 0)
    except OSError:
        return real()
time.time = shifted
sys.argv = sys.argv[sys.argv.index("utf8") + 1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def clock(tmp_path):
    """What a launcher is started by whose wall clock is shifted by as many seconds as `tmp_path/shift` says."""
    (tmp_path / "clock.py").write_text(CLOCK.format(file=str(tmp_path / "shift")))
    return [sys.executable, str(tmp_path / "clock.py")]


@pytest.mark.parametrize("shift", [-7200, 7200])
def test_heartbeats_and_the_duration_go_on_when_the_clock_is_set(launch, clock, tmp_path, shift):
    launched = launch.start("sh", "-c", "echo up; read word; exit 3", options=["--heartbeat=0.5"], before=clock,
                            stdin=subprocess.PIPE)
    wait_until(lambda: launched.status() and launched.status().pid, what="a status")
    (tmp_path / "shift").write_text(str(shift))
    for _ in range(2):
        before = wait_until(lambda: launched.status().time if on_new_clock(launched, shift) else 0, what="a heartbeat")
        wait_until(lambda was=before: launched.status().time > was, what="another heartbeat")
    launched.process.stdin.close()
    launched.process.stdin = None
    assert launched.wait(timeout=15).code == 3
    assert 0 < launched.events("exit")[0].number("duration") < 60


def on_new_clock(launched, shift: int) -> bool:
    return abs(launched.status().time - time.time() - shift) < 60


@pytest.mark.parametrize("shift", [-7200, 7200])
def test_a_hold_goes_on_and_says_its_new_deadline_when_the_clock_is_set(launch, clock, tmp_path, shift):
    launched = launch.start("sh", "-c", "exit 3", options=["--hold=600"], before=clock)
    launched.wait_for_event("hold")
    (tmp_path / "shift").write_text(str(shift))
    wait_until(lambda: 500 < (launched.status().hold_until or 0) - time.time() - shift < 660, what="the new deadline")
    assert launched.process.poll() is None
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 3
    assert launched.events("release")[0].text("why") == "signal"


@pytest.mark.parametrize("shift", [-7200, 0, 7200])
def test_a_hold_is_as_long_as_it_was_when_the_clock_is_set(shift):
    hold = Hold(100.0, 3, 1_800_000_000.0, 50.0)
    assert hold.until == 1_800_000_100.0
    hold.tick(1_800_000_090.0 + shift, 140.0)
    assert hold.left(140.0) == 10.0
    assert hold.until == 1_800_000_100.0 + shift
    hold.extend(20.0, 1_800_000_095.0 + shift, 145.0)
    assert (hold.left(145.0), hold.until) == (25.0, 1_800_000_120.0 + shift)
    hold.tick(1_800_000_119.0 + shift, 169.0)
    assert not hold.why
    hold.tick(1_800_000_120.0 + shift, 170.0)
    assert hold.why == "deadline"
