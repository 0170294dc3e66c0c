"""A real terminal: a tmux server of its own with one pane, to type into and to read."""
from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.waiting import wait_until


class Terminal:
    """One tmux pane. `start` runs a program in it; its last screen and exit code stay readable after its end."""

    def __init__(self) -> None:
        # not below the test's directory: the path of a socket has room for 107 bytes
        self._directory = Path(tempfile.mkdtemp(prefix="tw-tmux-"))
        self._code = self._directory / "exit"

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command on this server and return what it prints."""
        done = subprocess.run(["tmux", "-S", str(self._directory / "s"), "-f", "/dev/null", *arguments],
                              capture_output=True, encoding="utf-8", check=True, timeout=30)
        return done.stdout

    @property
    def inside(self) -> str:
        """What TMUX is in the environment of a program that runs in this tmux: `env` may be told."""
        return f"{self._directory / 's'},0,0"

    def windows(self) -> list[str]:
        """The names of all windows, the one that is seen first."""
        lines = self.tmux("list-windows", "-F", "#{window_active} #{window_name}").splitlines()
        return [line[2:] for line in sorted(lines, reverse=True)]

    def start(self, argv: Sequence[str], *, columns: int = 120, lines: int = 36, cwd: Path | None = None,
              env: Mapping[str, str] | None = None) -> None:
        """Run a program in a pane of the given size, in a clean environment and what `env` adds."""
        seen = {
            "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", "SHELL": "/bin/sh",
            "TERM": "tmux-256color", "COLORTERM": "truecolor", **(env or {}),
        }
        program = ["env", "-i", *(f"{name}={value}" for name, value in seen.items()), *argv]
        # tmux at times misses the end of a pane's process and never learns its exit code, so a shell notes it for us
        noted = f"echo $? >{self._code}.new; mv {self._code}.new {self._code}"
        command = shlex.join(["sh", "-c", f'"$@"; {noted}', "sh", *program])
        self.tmux(
            "set-option", "-g", "default-terminal", "tmux-256color", ";",
            "set-option", "-g", "remain-on-exit", "on", ";",
            "set-option", "-g", "remain-on-exit-format", "", ";",
            "set-option", "-g", "status", "off", ";",
            "new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", str(cwd or Path.cwd()), f"exec {command}",
        )

    def send(self, *keys: str) -> None:
        """Press keys, by tmux's names: `Enter`, `C-c`, `j`. After `Escape` wait for its effect: with what comes at
        once behind it, it would be one key (alt and that)."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self.tmux("send-keys", "-l", "--", text)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self, *, colours: bool = False) -> str:
        """What is on the screen now, a line each, with its colours as escape sequences when asked for."""
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def wait_for(self, *texts: str, timeout: float = 20.0) -> str:
        """Wait until all texts are on the screen at once, and return it."""
        seen = ""

        def all_there() -> bool:
            nonlocal seen
            seen = self.screen()
            return all(text in seen for text in texts)

        try:
            wait_until(all_there, timeout)
        except AssertionError:
            raise AssertionError(f"not on the screen within {timeout} s: {texts}\n{seen}") from None
        return seen

    def wait_for_exit(self, timeout: float = 20.0) -> int:
        """Wait for the program's end and return its exit code as a shell gives it."""
        wait_until(self._code.exists, timeout, "the program's end")
        return int(self._code.read_text())

    def close(self) -> None:
        """End the program and the tmux server."""
        subprocess.run(["tmux", "-S", str(self._directory / "s"), "kill-server"], capture_output=True, check=False)
        shutil.rmtree(self._directory, ignore_errors=True)
