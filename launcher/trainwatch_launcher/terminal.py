"""Terminals: lending ours to the command as a shell does, or giving it a new one (--pty)."""
from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import tty

from trainwatch_launcher.sink import wait_writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.helpers import Helpers

DEFAULT_SIZE = (24, 80)
END_OF_INPUT = b"\x04"


class Lent:
    """Our controlling terminal, lent to the command's group while it runs: it may read, and Ctrl-C goes to it."""

    def __init__(self) -> None:
        self.lent = False
        self._group = 0
        try:
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            self._fd = -1  # there is none, as in most containers

    def give(self, group: int) -> None:
        """Make the command the foreground group, if we are it now."""
        try:
            if self._fd >= 0 and os.tcgetpgrp(self._fd) == os.getpgrp():
                os.tcsetpgrp(self._fd, group)
                os.killpg(group, signal.SIGCONT)  # it may have read before it was allowed to, and stopped
                self._group, self.lent = group, True
        except OSError:
            pass  # not our terminal after all

    def take_back(self) -> None:
        """Become the foreground group again, unless the shell has taken the terminal meanwhile (bg)."""
        try:
            if self.lent and os.tcgetpgrp(self._fd) == self._group:
                os.tcsetpgrp(self._fd, os.getpgrp())
        except OSError:
            pass


class Pty:
    """A new terminal for the command. `reader` is its output; what comes on our standard input is typed into it."""

    def __init__(self, helpers: Helpers) -> None:
        self._helpers, self._typing = helpers, False
        self.reader, self._slave = os.openpty()
        os.set_inheritable(self.reader, False)
        os.set_inheritable(self._slave, False)
        self.path = os.ttyname(self._slave)
        self._saved: list[Any] | None = None
        self.resize()

    def started(self) -> None:
        """The command has its side open: close ours, make our terminal raw, and begin to type."""
        os.close(self._slave)
        self.resume()

    def resume(self) -> None:
        """Make our terminal raw, if we have it now, and type what comes: at the start, and after a stop."""
        try:
            if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
                self._saved = self._saved or termios.tcgetattr(0)
                tty.setraw(0)
        except (termios.error, OSError):
            pass  # no terminal of ours to make raw
        if not self._typing:
            self._typing = self._helpers.run(self._type)

    def resize(self) -> None:
        """Give it our terminal's size, or a usual one; the kernel tells the command (SIGWINCH)."""
        for fd in (0, 1, 2):
            try:
                size = fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))
                break
            except OSError:
                size = struct.pack("HHHH", *DEFAULT_SIZE, 0, 0)
        try:
            fcntl.ioctl(self.reader, termios.TIOCSWINSZ, size)
        except OSError:
            pass  # the command has gone

    def restore(self) -> None:
        """Give our own terminal back its settings."""
        if self._saved is not None:
            try:
                termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
            except termios.error:
                pass
            self._saved = None

    def _type(self) -> None:
        """Copy standard input to the terminal until its end, which becomes an end of input there."""
        line_open = False
        while True:
            try:
                data = os.read(0, 4096)
                # in the middle of a line the first ^D only ends the line (termios(3), VEOF)
                self._send(data or END_OF_INPUT * (2 if line_open else 1))
            except OSError:
                self._typing = False  # in the background we may not read; `resume` begins again
                return
            if not data:
                return
            line_open = not data.endswith((b"\n", b"\r"))

    def _send(self, data: bytes) -> None:
        """Write to the terminal, which the pump made non-blocking. Raises OSError when the command has gone."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.reader, view) :]
            except BlockingIOError:
                wait_writable(self.reader)
