"""Ways to run a command: rewritten signals, a terminal of its own, prefixes on the console."""
from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys

import pytest

from support.pythons import every_python
from trainwatch_launcher.rundir import paths, records


def test_a_signal_is_forwarded_as_another(launch):
    script = "trap 'exit 7' TERM; trap 'exit 8' USR1; echo up; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", script, options=["--rewrite=USR1:TERM,HUP:0", "--hold=600"])
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGHUP)
    launched.wait_for_event("signal")
    launched.signal(signal.SIGUSR1)
    assert launched.wait(timeout=15).code == 7
    first, second = launched.events("signal")
    assert (first.text("signal"), first.extra["forwarded"]) == ("SIGHUP", False)
    assert (second.text("signal"), second.text("forwarded_as")) == ("SIGUSR1", "SIGTERM")
    assert not launched.events("hold"), "a rewritten TERM asks to stop too"


SHOW = "import os, sys; print([os.isatty(fd) for fd in (0, 1, 2)], os.get_terminal_size(), flush=True)"


@every_python
def test_with_pty_the_command_has_a_terminal(launch, python):
    launched = launch(sys.executable, "-c", SHOW + "; sys.exit(5)", options=["--pty"], python=python)
    assert launched.code == 5
    assert launched.log() == b"[True, True, True] os.terminal_size(columns=80, lines=24)\r\n"
    assert launched.out == launched.log()


def test_with_pty_input_passes_and_its_end_ends_it(launch):
    reader, writer = os.pipe()
    os.write(writer, "héllo 中文\n".encode())
    launched = launch.start("sh", "-c", "stty -echo; echo ready; cat; exit 4", options=["--pty"], stdin=reader)
    os.close(reader)
    launched.wait_for_output(b"ready")
    os.write(writer, b"second\n")
    os.close(writer)
    assert launched.wait(timeout=15).code == 4
    assert launched.log().endswith(b"second\r\n")
    assert "héllo 中文".encode() in launched.log()


def test_with_pty_signals_and_death_by_signal_are_the_same(launch):
    script = "trap 'echo usr1' USR1; echo up; while :; do sleep 0.05; done"
    launched = launch.start("sh", "-c", script, options=["--pty"])
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGUSR1)
    launched.wait_for_output(b"usr1")
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 143


def test_with_pty_many_bytes_arrive(launch):
    launched = launch("sh", "-c", "stty -opost; seq 1 200000", options=["--pty"])
    assert launched.log() == b"".join(b"%d\n" % i for i in range(1, 200001))


def test_in_a_terminal_the_window_s_size_is_passed_on_and_ctrl_c_reaches_the_command(tmux, launch, tmp_path):
    from support.launching import MAIN

    script = tmp_path / "show.sh"
    script.write_text("trap 'echo got int; exit 3' INT; stty size; while :; do sleep 0.1; done\n")
    command = [sys.executable, "-I", str(MAIN), f"--run-dir={launch.run}", "--hold=0", "--pty", "--", "sh", str(script)]
    tmux.start(command, columns=100, lines=30)
    tmux.wait_for("30 100")
    tmux.send("C-c")
    tmux.wait_for("got int")
    assert tmux.wait_for_exit() == 3


def test_without_pty_a_command_in_a_terminal_may_read_it_and_ctrl_c_reaches_it(tmux, launch):
    from support.launching import MAIN

    script = "head -n 1; trap 'echo got int; exit 3' INT; while :; do sleep 0.1; done"
    command = [sys.executable, "-I", str(MAIN), f"--run-dir={launch.run}", "--hold=600", "--", "sh", "-c", script]
    tmux.start(command, columns=100, lines=30)
    tmux.send("hello", "Enter")
    tmux.wait_for("hello\nhello")  # the terminal's echo, and the command's
    tmux.send("C-c")
    tmux.wait_for("got int")
    tmux.wait_for("exit code 3")


@pytest.mark.parametrize("rank", [0, 3])
def test_the_console_prefix_is_put_before_each_line_and_the_log_stays_raw(launch, rank):
    pieces = r"(b'one\n', b'two ', b'still two\r50%\nthree')"
    script = f"import os, time\nfor piece in {pieces}: os.write(1, piece); time.sleep(0.05)"
    launched = launch(sys.executable, "-c", script, options=["--console-prefix"], rank=rank)
    assert launched.log() == b"one\ntwo still two\r50%\nthree"
    stamp = rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \[worker-%d\] " % rank
    assert re.fullmatch(stamp + rb"one\n" + stamp + rb"two still two\r50%\n" + stamp + rb"three", launched.out)


def test_with_a_console_prefix_the_index_is_the_log_s_and_what_was_lost_is_counted_on_the_console(launch):
    reader, console = os.pipe()
    script = "echo first; read word; seq 1 3000; sleep 0.3; echo last"
    launched = launch.start("sh", "-c", script, options=["--console-prefix"], stdin=subprocess.PIPE, stdout=console)
    os.close(console)
    line = os.read(reader, 1000)
    prefix = len(line) - len(b"first\n")
    assert prefix > 20
    os.close(reader)
    launched.process.stdin.close()
    launched.process.stdin = None
    assert launched.wait().code == 0
    log = launched.log()
    assert log == b"first\n" + b"".join(b"%d\n" % i for i in range(1, 3001)) + b"last\n"
    lost = [event.extra["lost"] for event in launched.events("warning") if event.text("kind") == "console"]
    assert lost[-1] == [[len(line), len(log) + prefix * log.count(b"\n")]]
    index = list(struct.iter_unpack(records.INDEX_RECORD, (launched.attempt() / paths.INDEX).read_bytes()))
    assert len(index) >= 2
    assert all(log[:offset].count(b"\n") == newlines for _, offset, newlines in index)
    assert index[-1][1] == len(log) - len(b"last\n")
