"""A shell in the terminal that this runs in. As a program it is what tmux's new window runs, with a socket's path.

It gets there, as one line of JSON, what to run: `argv`, `env`, `cwd` or null, `note`, `kept` (whether a hold is kept by
whoever listens). The other end learns of the shell's end by that of the socket. Stands alone: standard library only.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import termios
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE")
"""Facts of the window's terminal, which whoever asked for it does not know."""
AT_ONCE = 3.0
"""A shell that fails within so many seconds has not been used: it could not start, and its last words matter."""
LOST = 255
"""The exit code of ssh when there is no connection, or none any more."""


def failed(argv: Sequence[str], code: int, seconds: float) -> str:
    """What is to be said of a shell that has ended like this; empty when it ended as shells do."""
    if code == 0 or (seconds > AT_ONCE and code != LOST):
        return ""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    when = "at once, " if seconds <= AT_ONCE else ""
    return f"{Path(argv[0]).name} ended {when}with {how}"


def between_words(note: str) -> str:
    """A note whose lines break between words where the terminal ends."""
    columns = max(20, shutil.get_terminal_size().columns)
    lines = (textwrap.wrap(line, columns, break_on_hyphens=False) or [""] for line in note.split("\n"))
    return "\n".join(part for parts in lines for part in parts)


def run(argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> tuple[int, float]:
    """Run a command in our terminal to its end; returns its exit code, negative for a signal, and how long it took.

    What is typed is for the command alone: it gets the signals of the keyboard, we do not. Raises OSError.
    """
    started = time.monotonic()
    process = subprocess.Popen(argv, env=env, cwd=cwd)
    # only now: what is ignored here would be ignored there too
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        return process.wait(), time.monotonic() - started
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_terminal_back() -> None:
    """An interactive shell makes itself the terminal's foreground group; unless we take that back, reading stops us."""
    stdin = sys.__stdin__
    if stdin is None or not stdin.isatty():
        return
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(stdin.fileno(), os.getpgrp())
    except OSError:
        pass
    finally:
        signal.signal(signal.SIGTTOU, ignored)


def wait_for_enter(said: str) -> None:
    """Leave what stands on the terminal there until it has been read."""
    sys.stdout.write(f"\ntrainwatch: {said}; Enter goes back ")
    sys.stdout.flush()
    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        sys.stdin.readline()
    except (OSError, ValueError, termios.error):
        pass  # nobody is there to read it


def main(path: str) -> int:
    """Run what the socket at `path` says."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        with line.makefile("rb") as words:
            plan = json.loads(words.readline())
        own = {name: os.environ[name] for name in TERMINAL if name in os.environ}
        env = {**{name: value for name, value in plan["env"].items() if name not in TERMINAL}, **own}
        print(f"{between_words(plan['note'])}\n", flush=True)
        over = threading.Event()
        if plan["kept"]:
            threading.Thread(target=_listen, args=(line, over), daemon=True).start()
        try:
            code, seconds = run(plan["argv"], env, plan["cwd"])
            said = failed(plan["argv"], code, seconds)
        except OSError as error:
            said = f"cannot run {plan['argv'][0]}: {error.strerror or error}"
        over.set()
        line.shutdown(socket.SHUT_RDWR)
    if said:
        take_terminal_back()
        wait_for_enter(said)
    return 0


def _listen(line: socket.socket, over: threading.Event) -> None:
    """Say it when the viewer leaves before the shell does: nobody keeps the hold any more."""
    try:
        while line.recv(64):
            pass
    except OSError:
        pass
    if not over.is_set():
        sys.stderr.write("\r\ntrainwatch: the viewer has left: the hold is not kept any more\r\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
