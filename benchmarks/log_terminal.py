"""A program in a window of tmux, as benchmarks look at it: what is on its screen when, its memory and its CPU."""
from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LIMIT = 90.0
"""Seconds after which nothing is waited for any more."""
SOCKET = f"bench-{os.getpid()}"


class Terminal:
    """A program in a window of tmux of 200 x 50."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.started = time.perf_counter()
        words = ["exec", *command]
        _tmux("new-session", "-d", "-s", "bench", "-x", "200", "-y", "50", "-c", str(directory), " ".join(words))
        _tmux("set-option", "-t", "bench", "remain-on-exit", "on")
        self.pid = int(_tmux("list-panes", "-t", "bench", "-F", "#{pane_pid}"))

    def text(self) -> str:
        return _tmux("capture-pane", "-t", "bench", "-p")

    def keys(self, *keys: str) -> None:
        _tmux("send-keys", "-t", "bench", *keys)

    def until(self, condition: Callable[[str], object], since: float | None = None, again: str = "") -> float | None:
        """Seconds since the start, or `since`, until the screen shows something; `again` is a key pressed meanwhile."""
        began = self.started if since is None else since
        pressed = time.perf_counter()
        while time.perf_counter() - began < LIMIT:
            if condition(self.text()):
                return time.perf_counter() - began
            if again and time.perf_counter() - pressed > 0.5:
                pressed = time.perf_counter()
                self.keys(again)
            time.sleep(0.01)
        return None

    def cpu(self) -> float:
        """CPU seconds of the program and all that it has started."""
        return sum(cpu_of(pid) for pid in _family(self.pid))

    def memory(self, peak: bool = True) -> float:
        """Resident memory of the program alone, MiB: the most that it was, or what it is now."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        name = "VmHWM" if peak else "VmRSS"
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

    def close(self) -> None:
        subprocess.run(["tmux", "-L", SOCKET, "kill-server"], stderr=subprocess.DEVNULL, check=False)
        time.sleep(0.3)


def _tmux(*words: str) -> str:
    done = subprocess.run(["tmux", "-L", SOCKET, *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip("\n")


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [pid, *(one for child in children.read_text().split() for one in _family(int(child)))]
    except OSError:
        return [pid]


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(fields[at]) for at in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def terminal(command: list[str], directory: Path) -> Iterator[Terminal]:
    shown = Terminal(command, directory)
    try:
        yield shown
    finally:
        shown.close()
