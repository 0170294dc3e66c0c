"""A launcher typed into a real shell: Ctrl-Z, bg and fg do with it what they do with any program."""
from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest

from support.launching import MAIN
from support.waiting import wait_until
from trainwatch_launcher.rundir import files, paths, records

both = pytest.mark.parametrize("options", [[], ["--pty"]], ids=["pipe", "pty"])


@pytest.fixture
def shell(tmux, launch, tmp_path):
    """A shell with job control, and `run`, which types a launcher's command line into it."""
    tmux.start(["bash", "--norc", "-i"], columns=150, lines=40, cwd=tmp_path)
    tmux.send("PS1='$ '; ", "Enter")
    return Shell(tmux, launch.run)


class Shell:
    def __init__(self, tmux, run) -> None:
        self.tmux, self.run_directory = tmux, run

    def run(self, script: str, *options: str, background: bool = False) -> None:
        command = [sys.executable, "-I", str(MAIN), f"--run-dir={self.run_directory}", "--hold=0", *options, "--",
                   "sh", "-c", script]
        self.type(shlex.join(command) + (" &" if background else ""))

    def type(self, line: str) -> None:
        self.tmux.type(line)
        self.tmux.send("Enter")

    def log(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.run_directory.rglob(paths.OUTPUT))

    def launcher_pid(self) -> int:
        events = files.LineFile(str(next(self.run_directory.rglob(paths.EVENTS)))).read(records.Event)
        return events[0].integer("launcher_pid")

    def wait_for_output(self, text: bytes) -> None:
        try:
            wait_until(lambda: text in self.log())
        except AssertionError:
            raise AssertionError(f"{text!r} not in the log\n{self.log()!r}\n{self.tmux.screen()}") from None

    def wait_for_code(self, code: int) -> None:
        """Ask the shell for the exit code after the launcher's end; also shows that its terminal still takes a line."""
        wait_until(lambda: not Path(f"/proc/{self.launcher_pid()}").exists(), what="the launcher's end")
        self.type("echo code=$?")
        self.tmux.wait_for(f"code={code}")


@both
def test_ctrl_z_stops_it_and_fg_continues_it_with_its_input(shell, options):
    shell.run("echo up; read first; echo read; read second; echo got $first-$second; exit 4", *options)
    shell.wait_for_output(b"up")
    shell.type("one")
    shell.wait_for_output(b"read")  # Ctrl-Z throws away what was typed and not read yet, in every terminal
    shell.tmux.send("C-z")
    shell.tmux.wait_for("Stopped")
    shell.type("echo shell $((40+2))")
    shell.tmux.wait_for("shell 42")
    shell.type("fg")
    shell.tmux.wait_for("fg\n")
    wait_until(lambda: "State:\tT" not in Path(f"/proc/{shell.launcher_pid()}/status").read_text(), what="it to go on")
    shell.type("two")
    shell.wait_for_output(b"got one-two")
    shell.wait_for_code(4)


@both
def test_one_that_was_started_in_the_background_gets_its_input_after_fg(shell, options):
    shell.run("echo up; read word; echo got $word; exit 4", *options, background=True)
    shell.wait_for_output(b"up")  # without --pty it wants to read now, and is stopped as any program in the background
    shell.type("echo shell $((40+2))")
    shell.tmux.wait_for("shell 42")
    shell.type("fg")
    shell.tmux.wait_for("fg\n")
    shell.type("hello")
    shell.wait_for_output(b"got hello")
    shell.wait_for_code(4)


@both
def test_after_bg_it_goes_on_and_leaves_the_terminal_to_the_shell(shell, options):
    shell.run("echo up; i=0; while [ ! -e go ]; do sleep 0.1; done; echo done; exit 4", *options)
    shell.wait_for_output(b"up")
    shell.tmux.send("C-z")
    shell.tmux.wait_for("Stopped")
    shell.type("bg; touch go")
    shell.wait_for_output(b"done")
    wait_until(lambda: not Path(f"/proc/{shell.launcher_pid()}").exists(), what="the launcher's end")
    shell.type("wait %1; echo code=$?; stty -a | tr ';' '\\n' | grep -c -e '^ *-icanon' -e '^ *-echo '")
    shell.tmux.wait_for("code=4\n0")


def test_ctrl_z_in_a_shell_inside_a_pty_is_that_shell_s(shell):
    shell.run("exec bash --norc -i", "--pty")
    shell.type("PS1='inner '; sh -c 'echo $((40+2)) up; exec sleep 300'")
    shell.tmux.wait_for("42 up")
    shell.tmux.send("C-z")
    shell.tmux.wait_for("Stopped", "inner")
    shell.type("kill -9 %1; wait %1; echo still $((40+2)) inside")
    shell.tmux.wait_for("still 42 inside")
    shell.type("exit 4")
    shell.tmux.wait_for("failed with exit code 4")
    shell.wait_for_code(4)


def test_a_command_that_catches_tstp_and_runs_on_is_not_without_its_launcher(launch):
    script = "import os, signal; signal.signal(20, lambda *_: os.write(1, b'saved')); os.write(1, b'up')"
    launched = launch.start(sys.executable, "-c", script + "\nwhile True: signal.pause()")
    launched.wait_for_output(b"up")
    launched.signal(signal.SIGTSTP)
    launched.wait_for_output(b"saved")  # it would come only after CONT, and the command block on a full pipe
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=15).code == 143
