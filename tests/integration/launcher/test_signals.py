"""Signals reach the training, keep their meaning, and say who sent them."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.launching import MAIN
from support.pythons import every_python
from support.waiting import wait_until

REPORTER = """
import os, signal, sys, time
names = sys.argv[1:]
def note(number, frame):
    os.write(1, (signal.Signals(number).name + "\\n").encode())
    if number == signal.SIGQUIT: os._exit(9)
for name in names: signal.signal(getattr(signal, name), note)
os.write(1, b"ready\\n")
while True: time.sleep(60)
"""

FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH", "SIGCONT", "SIGQUIT"]


@every_python
def test_each_signal_reaches_the_command(launch, python):
    launched = launch.start(sys.executable, "-c", REPORTER, *FORWARDED, python=python, options=["--hold=600"])
    launched.wait_for_output(b"ready\n")
    for name in FORWARDED:
        launched.signal(getattr(signal, name))
        launched.wait_for_output(name.encode() + b"\n")
    assert launched.wait(timeout=15).code == 9
    assert launched.log().split() == [b"ready", *(name.encode() for name in FORWARDED)]
    assert not launched.events("hold"), "asked to stop: not held"


def test_a_signal_s_sender_is_named(launch):
    launched = launch.start("sleep", "600")
    launched.wait_for_event("start")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 143
    event = launched.events("signal")[0]
    assert event.text("signal") == "SIGTERM"
    assert event.extra["received_from"]["pid"] == os.getpid()
    assert "pytest" in event.extra["received_from"]["command"] or "python" in event.extra["received_from"]["command"]


def test_a_signal_in_the_first_moment_is_not_lost(launch, tmp_path):
    for number in range(10):
        launched = launch.start("sh", "-c", "echo up; exec sleep 600", options=[f"--run-dir={tmp_path / str(number)}"])
        wait_until((tmp_path / str(number)).exists, what="the run directory, which is made before the command starts")
        launched.signal(signal.SIGTERM)
        assert launched.wait(timeout=15).code == 143


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_the_launcher_itself_is_loaded_waits_for_the_command(launch, tmp_path, name):
    # without: a traceback of ours on Ctrl-C, and as PID 1 a stop that nobody heard
    entry = copied_entry(tmp_path, f"import os\nos.kill(os.getpid(), {int(getattr(signal, name))})\n")
    command = [sys.executable, "-I", entry, f"--run-dir={launch.run}", "--hold=0", "--", "sleep", "600"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    launched = launch.adopt(process)
    assert launched.wait(timeout=30).code == 128 + getattr(signal, name)
    assert [event.text("signal") for event in launched.events("signal")] == [name]
    assert b"Traceback" not in launched.err


def test_a_command_that_runs_without_us_gets_its_signals(launch, tmp_path):
    entry = copied_entry(tmp_path, "raise OSError('gone')\n")
    show = ["grep", "SigBlk", "/proc/self/status"]
    found = subprocess.check_output([sys.executable, "-I", entry, "--hold=0", "--", *show], stderr=subprocess.DEVNULL)
    assert found == subprocess.check_output(show)


def copied_entry(tmp_path: Path, first: str) -> str:
    """The launcher's entry, copied, with a module that begins with `first`."""
    copy = tmp_path / "copied" / "trainwatch_launcher"
    shutil.copytree(MAIN.parent, copy)
    module = copy / "cli.py"
    module.write_text(module.read_text().replace("import os\n", first + "import os\n", 1))
    return str(copy)


def test_the_whole_group_gets_the_signal(launch):
    script = f"trap 'exit 7' TERM; {sys.executable} -c \"$0\" SIGTERM SIGQUIT & wait"
    launched = launch.start("sh", "-c", script, REPORTER)
    launched.wait_for_output(b"ready\n")
    launched.signal(signal.SIGTERM)
    launched.wait_for_output(b"SIGTERM\n")
    launched.signal(signal.SIGQUIT)
    assert launched.wait(timeout=15).code == 7


def test_after_a_stop_the_whole_group_is_awaited(launch, tmp_path):
    saved = tmp_path / "saved"
    saver = f"trap 'sleep 1; echo saved > {saved}; exit' TERM; echo ready; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", f"(exec >/dev/null 2>&1; {saver}) & echo ready; trap 'exit 5' TERM; wait")
    launched.wait_for_output(b"ready")
    wait_until(lambda: launched.status() is not None)
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=20).code == 5
    assert saved.read_text() == "saved\n"


def test_an_inherited_ignore_stays_an_ignore(launch):
    launched = launch.start("sh", "-c", "echo up; sleep 1; exit 6", before=["nohup"])
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGHUP)
    assert launched.wait(timeout=15).code == 6
    assert not launched.events("signal")


def test_the_command_inherits_a_clean_signal_state(launch):
    show = ["grep", "-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"]
    with_launcher, without = signal_masks(launch(*show).log()), signal_masks(subprocess.check_output(show))
    assert with_launcher == without


def signal_masks(status: bytes) -> list[int]:
    """The masks in lines of /proc/PID/status, less signals 32 and 33, which the C library keeps for itself."""
    return [int(line.split()[1], 16) & ~(3 << 31) for line in status.splitlines()]


def test_kill_after_ends_a_command_that_will_not_stop(launch):
    script = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    launched = launch.start("sh", "-c", script, options=["--kill-after=0.5"])
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 137
    assert [event.text("signal") for event in launched.events("signal")] == ["SIGTERM", "SIGKILL"]
    assert b"KILL" in launched.err


def test_as_pid_1_orphans_are_reaped_and_signals_arrive(launch):
    script = """
    for i in 1 2 3 4 5; do (sleep 0.2 &) ; done; sleep 0.8; ps -e -o stat= | grep -c Z || true
    trap 'exit 8' TERM; echo up; while :; do sleep 0.1; done
    """
    launched = launch.start("sh", "-c", script, before=["unshare", "--pid", "--fork", "--mount-proc"])
    launched.wait_for_output(b"up")
    assert launched.log().split()[0] == b"0"
    inside = int(Path(f"/proc/{launched.process.pid}/task/{launched.process.pid}/children").read_text().split()[0])
    os.kill(inside, signal.SIGTERM)
    assert launched.wait(timeout=15).code == 8


@pytest.mark.parametrize("name", ["SIGTSTP", "SIGTTIN"])
def test_a_pause_stops_the_whole_group_and_continue_continues_it(launch, name):
    launched = launch.start("sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done")
    launched.wait_for_output(b"3\n")
    pid = launched.wait_for_event("start").integer("pid")
    launched.signal(getattr(signal, name))
    wait_until(lambda: state_of(pid) == "T" and state_of(launched.process.pid) == "T", what="both stopped")
    launched.signal(signal.SIGCONT)
    wait_until(lambda: state_of(pid) != "T" and state_of(launched.process.pid) != "T", what="both continued")
    seen = len(launched.log())
    wait_until(lambda: len(launched.log()) > seen, what="more output")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 143


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
