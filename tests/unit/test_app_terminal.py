"""The terminal goes away: the viewer ends within five seconds and does not spin, whoever ignores SIGHUP."""
from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from builders import RunBuilder
from support.waiting import wait_until
from trainwatch.terminal import is_gone, program

HANGING = """
import sys, time
from pathlib import Path
from trainwatch.app import TrainwatchApp
from trainwatch.showing import run_directory
TrainwatchApp._tick = lambda self: time.sleep(600)
run_directory(Path(sys.argv[1]))
"""


def start(run: Path, hup_ignored: bool, program: str) -> tuple[subprocess.Popen[bytes], int]:
    """The viewer on a terminal of its own; returns it and the terminal's other end."""
    ours, theirs = pty.openpty()
    code = ["-m", "trainwatch", str(run)] if program == "viewer" else ["-c", HANGING, str(run)]

    def before() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its controlling terminal, as a terminal program makes it
        signal.signal(signal.SIGHUP, signal.SIG_IGN if hup_ignored else signal.SIG_DFL)

    process = subprocess.Popen([sys.executable, *code], stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=before,
                               env={**os.environ, "TERM": "xterm-256color", "SHELL": "/bin/sh"})
    os.close(theirs)
    return process, ours


def read_until(fd: int, text: bytes) -> None:
    seen = b""
    deadline = time.monotonic() + 30
    while text not in seen:
        assert time.monotonic() < deadline, seen[-2000:]
        seen += os.read(fd, 65536)


@pytest.mark.parametrize(("hup_ignored", "program"), [(True, "viewer"), (False, "viewer"), (True, "hanging")])
def test_the_viewer_ends_soon_after_its_terminal(tmp_path, hup_ignored, program):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    process, terminal = start(tmp_path / "run", hup_ignored, program)
    try:
        read_until(terminal, b"rank")
        if program == "hanging":
            time.sleep(1.5)  # until the first tick has made it hang: nothing on screen tells
        os.close(terminal)
        closed = time.monotonic()
        process.wait(timeout=10)
        assert time.monotonic() - closed < 5
        assert process.returncode in (128 + signal.SIGHUP, -signal.SIGHUP)
    finally:
        process.kill()
        process.wait()


def test_sigterm_ends_it_in_order(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    process, terminal = start(tmp_path / "run", False, "viewer")
    try:
        read_until(terminal, b"rank")
        process.terminate()
        read_until(terminal, b"\x1b[?1049l")  # the screen that was there before is back
        assert process.wait(timeout=10) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_sigint_from_outside_ends_it_in_order_and_says_so_in_its_code(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    process, terminal = start(tmp_path / "run", False, "viewer")
    try:
        read_until(terminal, b"rank")
        process.send_signal(signal.SIGINT)
        read_until(terminal, b"\x1b[?1049l")
        assert process.wait(timeout=10) == 128 + signal.SIGINT
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_bytes_that_are_no_utf_8_may_be_typed(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    process, terminal = start(tmp_path / "run", False, "viewer")
    try:
        read_until(terminal, b"rank")
        os.write(terminal, b"/caf\xe9 \xff\xfe\xc3")  # as a terminal set to Latin-1 sends them
        read_until(terminal, "caf\ufffd".encode())
        process.terminate()
        read_until(terminal, b"\x1b[?1049l")
        assert process.wait(timeout=10) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.parametrize("lost", ["stderr", "stdout"])
def test_the_screen_needs_one_stream_to_draw_on_and_has_its_size(tmp_path, lost):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 133, 0, 0))
    streams = {"stdout": theirs, "stderr": theirs, lost: subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", "trainwatch", str(tmp_path / "run")], stdin=theirs, **streams,
                               env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True)
    os.close(theirs)
    try:
        read_until(ours, b"\x1b[30;1H")  # what it draws first goes down to the last line
        os.write(ours, b"q")
        read_until(ours, b"\x1b[?1049l")
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_shell_opens_beside_the_rank_and_the_screen_comes_back(tmp_path):
    (tmp_path / "work").mkdir()
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host=socket.gethostname()).start(cwd=str(tmp_path / "work")).output(b"hello\n").fail(1)
    process, terminal = start(tmp_path / "run", False, "viewer")
    try:
        read_until(terminal, b"failed first")
        os.write(terminal, b"s")
        read_until(terminal, b"exit or ctrl+d comes back")
        os.write(terminal, b"echo here-$PWD-$((40 + 2))\n")
        read_until(terminal, f"here-{tmp_path / 'work'}-42".encode())
        os.write(terminal, b"exit\n")
        read_until(terminal, b"failed first")
        os.write(terminal, b"q")
        read_until(terminal, b"\x1b[?1049l")
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_without_a_terminal_one_is_told_what_to_do(tmp_path):
    RunBuilder(tmp_path / "run").rank(0)
    done = subprocess.run([sys.executable, "-m", "trainwatch", str(tmp_path / "run")], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "trainwatch: the screen needs a terminal; scripts use: trainwatch status TARGET\n"


def test_a_dumb_terminal_is_told_what_to_do(tmp_path):
    RunBuilder(tmp_path / "run").rank(0)
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-m", "trainwatch", str(tmp_path / "run")], stdin=theirs, stdout=theirs,
                          stderr=theirs, env={**os.environ, "TERM": "dumb"}, check=False)
    said = os.read(ours, 4096)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert b"TERM=dumb" in said
    assert b"scripts use: trainwatch status TARGET" in said
    assert b"\x1b" not in said


@pytest.mark.parametrize(("on_path", "beside", "below", "expected"), [
    (True, True, True, "trainwatch"), (False, True, True, "venv/bin/trainwatch"),
    (False, True, False, "{place}/venv/bin/trainwatch"), (False, False, True, "{place}/venv/bin/python -m trainwatch"),
])  # fmt: skip
def test_our_program_is_named_as_it_can_be_typed(tmp_path, monkeypatch, on_path, beside, below, expected):
    place = tmp_path / "venv" / "bin"
    place.mkdir(parents=True)
    (tmp_path / "other").mkdir()
    if beside:
        (place / "trainwatch").write_text("#!/bin/sh\n")
        (place / "trainwatch").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    monkeypatch.setenv("PATH", str(place) if on_path else "/nonexistent")
    monkeypatch.chdir(tmp_path if below else tmp_path / "other")
    assert program() == expected.format(place=tmp_path)


def test_a_closed_terminal_is_noticed():
    ours, theirs = pty.openpty()
    assert not is_gone(theirs)
    os.close(ours)
    wait_until(lambda: is_gone(theirs))
    os.close(theirs)


STUCK = """
import sys, time
from pathlib import Path
from trainwatch_launcher.reader import log
log.size = lambda path: time.sleep(600)
from trainwatch.showing import run_directory
sys.exit(run_directory(Path(sys.argv[1])))
"""


def test_q_gives_the_prompt_back_although_the_storage_hangs(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"hello\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", STUCK, str(tmp_path / "run")], stdin=theirs, stdout=theirs,
                               stderr=theirs, env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True)
    os.close(theirs)
    try:
        read_until(ours, b"rank")
        os.write(ours, b"q")
        deadline = time.monotonic() + 15
        while process.poll() is None:
            assert time.monotonic() < deadline, "the prompt does not come back"
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    os.read(ours, 65536)
                except OSError:
                    break
        assert process.wait(timeout=5) == 0
    finally:
        process.kill()
        os.close(ours)
