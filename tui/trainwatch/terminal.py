"""The person's terminal, beside what is drawn on it: that it may go away, what is copied in it, what is typed in it.

When it goes away (a dropped connection, a killed tmux) this process must go too, whatever hangs: Textual's input thread
spins on a terminal that has hung up, and with SIGHUP ignored (nohup) nothing else would end it.
"""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import shutil
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path

EVERY = 0.5
"""Seconds between two looks at the terminal."""
GRACE = 1.0
"""Seconds that an orderly end may take before the process is ended the hard way."""
HUNG_UP = 128 + signal.SIGHUP
COPY_WITHIN = 3.0
"""Seconds that tmux has to take what is copied."""


def program() -> str:
    """How `trainwatch` is started in this terminal as it stands here: by its name, or by the path to ours."""
    if shutil.which("trainwatch") is not None:
        return "trainwatch"
    script = Path(sys.executable).parent / "trainwatch"
    if not os.access(script, os.X_OK):
        return f"{shlex.quote(sys.executable)} -m trainwatch"
    try:
        near = os.path.relpath(script)
    except OSError:  # where we stand is gone
        near = str(script)
    return shlex.quote(str(script) if near.startswith(os.pardir) else near)


async def copied(text: str, environ: Mapping[str, str]) -> str:
    """Give tmux a text to paste, and through it the terminal around it; returns where it went.

    Empty outside tmux, or when that does not take it: then the terminal itself has to be asked, by OSC 52.
    """
    if not environ.get("TMUX"):
        return ""
    try:
        tmux = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", "-w", "-", env=dict(environ), stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return ""
    try:
        await asyncio.wait_for(tmux.communicate(text.encode()), COPY_WITHIN)
    except asyncio.TimeoutError:
        tmux.kill()
        return ""
    paste = "Copied to tmux (its prefix, then ] pastes), and to your terminal's clipboard where that is allowed."
    return paste if tmux.returncode == 0 else ""


def drawn_on() -> TextIOWrapper | None:
    """The stream to draw on: stderr as Textual would, else stdout (`2>log`); None when neither is a terminal."""
    for stream in (sys.__stderr__, sys.__stdout__):
        if stream is not None and not stream.closed and stream.isatty():
            return stream
    return None


def no_screen() -> str:
    """Why there is no terminal here that can show the screen; empty when there is."""
    if sys.__stdin__ is None or not sys.__stdin__.isatty() or drawn_on() is None:
        return "the screen needs a terminal"
    return "TERM=dumb: this terminal cannot show the screen" if os.environ.get("TERM") == "dumb" else ""


def is_gone(fd: int) -> bool:
    """Whether the terminal behind a descriptor has hung up."""
    try:
        poll = select.poll()
        poll.register(fd, 0)  # errors and hang-ups are always reported
        # POLLNVAL says nothing: macOS gives it for every terminal; a closed descriptor fails below
        if any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0)):
            return True
        termios.tcgetattr(fd)
    except (OSError, termios.error):
        return True
    return False


class Watchdog:
    """A thread that looks at the terminal, asks for an orderly end when it is gone, and makes sure of one."""

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave
        self._stop = threading.Event()
        self._asked = False

    def start(self) -> None:
        """Watch, where there is a terminal; from the main thread, because of the signals."""
        signal.signal(signal.SIGTERM, lambda number, frame: self.end(128 + number))
        for stopping in (signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(stopping) != signal.SIG_IGN:
                signal.signal(stopping, lambda number, frame: self.end(128 + number))
        streams = (sys.__stdin__, sys.__stderr__, sys.__stdout__)
        fds = [stream.fileno() for stream in streams if stream is not None and not stream.closed and stream.isatty()]
        if fds:
            threading.Thread(target=self._watch, args=(fds,), name="terminal-watchdog", daemon=True).start()

    def stop(self) -> None:
        """The app has ended by itself."""
        self._stop.set()

    def end(self, code: int) -> None:
        """End with this code: in an orderly way, and after `GRACE` in any way."""
        if not self._asked:
            self._asked = True
            threading.Thread(target=self._end, args=(code,), name="terminal-end", daemon=True).start()

    def _watch(self, fds: list[int]) -> None:
        while not self._stop.wait(EVERY):
            if any(is_gone(fd) for fd in fds):
                self.end(HUNG_UP)
                return

    def _end(self, code: int) -> None:
        # In a thread of its own: an event loop that hangs must not keep us from the deadline.
        threading.Thread(target=self._ask, args=(code,), name="terminal-leave", daemon=True).start()
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and not self._stop.is_set():
            time.sleep(0.05)
        # Also after an orderly end: threads that hang on the dead terminal must not keep the interpreter from ending.
        os._exit(code)

    def _ask(self, code: int) -> None:
        try:
            self._leave(code)
        except RuntimeError:
            pass  # the event loop has ended already
