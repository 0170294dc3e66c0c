"""What a hostile surrounding once broke: each of these cost a training, its output or its exit code."""
from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time

import pytest

from support.launching import MAIN
from support.waiting import wait_until
from trainwatch_launcher.rundir import files, paths, records

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_an_ignored_sigchld_does_not_lose_the_exit_code(launch):
    before = ["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash"]
    assert launch("sh", "-c", "exit 3", before=before, timeout=15).code == 3


def test_in_a_deleted_working_directory_the_command_runs(tmp_path, launch):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"{sys.executable} -I -S -c 'print(\"ran\"); raise SystemExit(3)'"
    script = f"cd {gone}; rmdir {gone}; exec {sys.executable} -I {MAIN} --hold 0 -- {command}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=launch.environment(), timeout=30)
    assert (done.returncode, done.stdout) == (3, b"ran\n")
    assert b"no run directory" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_stop_signal_that_is_rewritten_still_asks_to_stop(launch):
    script = "trap 'exit 5' USR1; echo up; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", script, options=["--rewrite=TERM:USR1", "--hold=600"])
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 5
    assert not launched.events("hold")


def test_input_that_ends_in_the_middle_of_a_line_ends_a_pty_command(launch):
    reader, writer = os.pipe()
    os.write(writer, b"abc")
    os.close(writer)
    launched = launch.start("sh", "-c", "stty -echo; cat", options=["--pty"], stdin=reader)
    os.close(reader)
    assert launched.wait(timeout=15).code == 0
    assert b"abc" in launched.log()


@as_root
def test_without_a_terminal_to_give_pty_becomes_a_pipe(launch):
    before = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/pts; exec "$@"', "sh"]
    launched = launch("sh", "-c", "echo ran; exit 3", options=["--pty"], before=before)
    assert (launched.code, launched.log()) == (3, b"ran\n")
    assert b"no terminal for --pty" in launched.err


def test_the_last_bytes_reach_a_console_that_pauses_at_the_end(launch):
    reader, console = os.pipe()
    launched = launch.start("sh", "-c", "head -c 100000 /dev/zero", stdout=console)
    os.close(console)
    wait_until(lambda: launched.events("warning"), what="the launcher to notice the pause")
    with os.fdopen(reader, "rb") as file:
        assert len(file.read()) == 100000
    assert launched.wait(timeout=15).code == 0


def test_term_ends_the_wait_for_a_slow_console(launch):
    reader, console = os.pipe()
    launched = launch.start("sh", "-c", "head -c 20000000 /dev/zero", stdout=console, stderr=subprocess.DEVNULL)
    os.close(console)
    wait_until(lambda: (launched.status() or records.Status(time=0)).exited, what="the command's end")
    for _ in range(5):
        os.read(reader, 65536)
        time.sleep(0.1)  # slow, but not hung
    launched.signal(signal.SIGTERM)
    started = time.monotonic()
    while launched.process.poll() is None and time.monotonic() - started < 15:
        os.read(reader, 4096)
        time.sleep(0.02)
    assert launched.process.wait(timeout=1) == 0
    assert time.monotonic() - started < 5
    os.close(reader)


def test_a_stopped_member_of_the_group_is_continued_so_that_it_can_obey(launch):
    script = "sh -c 'kill -STOP $$' & trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", script)
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 9


def test_after_a_stop_a_worker_in_its_own_session_is_told_and_may_save_as_long_as_it_needs(launch, tmp_path):
    saved = tmp_path / "saved"
    worker = f"trap 'sleep 2; echo saved > {saved}; exit' TERM; echo ready; while :; do sleep 0.05; done"
    script = f"setsid sh -c \"{worker}\" & trap 'exit 9' TERM; wait"
    launched = launch.start("sh", "-c", script, options=["--grace=0.5"])
    launched.wait_for_output(b"ready")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=20).code == 9
    assert saved.read_text() == "saved\n"
    assert [event.text("kind") for event in launched.events("warning")] == ["awaited"]


def test_what_others_run_beside_the_command_is_not_killed(launch, tmp_path):
    pid_file = tmp_path / "pid"
    daemon = f"env -u TRAINWATCH_ATTEMPT_DIR setsid sh -c 'echo $$ > {pid_file}; exec sleep 60' >/dev/null 2>&1"
    launched = launch("sh", "-c", f"{daemon} & while [ ! -s {pid_file} ]; do :; done; exit 3", timeout=15)
    assert launched.code == 3
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGKILL)  # fails when it is gone


@as_root
def test_a_full_disk_leaves_the_index_aligned(launch, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], check=True)
    try:
        script = "i=0; while [ $i -lt 40 ]; do head -c 20000 /dev/zero | tr '\\0' x; echo; sleep 0.05; i=$((i+1)); done"
        launched = launch.start("sh", "-c", script, options=[f"--run-dir={place / 'run'}"])
        launched.run = place / "run"
        launched.wait(timeout=40)
        data, log = (launched.attempt() / paths.INDEX).read_bytes(), launched.log()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
    assert len(data) % 24 == 0
    for when, offset, line in struct.iter_unpack(records.INDEX_RECORD, data):
        assert abs(when - time.time()) < 300
        if offset <= len(log) and line != records.LINE_UNKNOWN:
            assert log[:offset].count(b"\n") == line


def test_a_flood_of_phases_is_thinned_and_said(launch):
    script = "i=0; while [ $i -lt 30000 ]; do echo \"=== [Phase] P$i ===\"; i=$((i+1)); done; exit 3"
    launched = launch("bash", "-c", script)
    events = launched.events()
    assert events[0].event == "start"
    assert events[-1].event == "end"
    assert 9_000 < len(launched.phases()) < 12_000
    assert any("left out" in event.text("message") for event in launched.events("warning"))
    assert launched.status().phase == "P29999"


def test_requests_that_follow_each_other_at_once_are_all_answered(launch):
    launched = launch.start("sh", "-c", "exit 3", options=["--hold=600"])
    launched.wait_for_event("hold")
    box = launched.attempt() / paths.CONTROL
    (box / "directory.json").mkdir()
    for number in range(20):
        request = records.Request(id=str(number), command="extend", seconds=1.0)
        files.replace_file(str(box / ".request"), request)
        os.rename(box / ".request", box / f"{number}.json")
        os.utime(box, (1_800_000_000, 1_800_000_000))  # as a file system with coarse time stamps shows it
    wait_until(lambda: len(launched.events("control")) == 20, what="20 answers")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=10).code == 3


def test_ctrl_z_then_bg_leaves_the_shell_alive_when_the_command_ends(tmux, launch):
    tmux.start(["bash", "--norc", "-i"], columns=100, lines=30)
    tmux.send(f"PS1='$ '; {sys.executable} -I {MAIN} --run-dir {launch.run} --hold 0 -- sleep 2", "Enter")
    wait_until(lambda: launch.run.exists(), what="the launcher")
    wait_until(lambda: list(launch.run.rglob("events.jsonl")) and
               b'"start"' in next(launch.run.rglob("events.jsonl")).read_bytes(), what="the command")
    tmux.send("C-z")
    tmux.wait_for("Stopped")
    tmux.send("bg", "Enter")
    wait_until(lambda: b'"end"' in next(launch.run.rglob("events.jsonl")).read_bytes(), what="its end")
    tmux.send("echo still $((40+2)) here", "Enter")
    tmux.wait_for("still 42 here")
