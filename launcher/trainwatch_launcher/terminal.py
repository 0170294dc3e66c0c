"""Terminals: lending ours to the command as a shell does, or giving it a new one (--pty)."""
from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import threading
import tty

from trainwatch_launcher.sink import wait_writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_SIZE = (24, 80)
END_OF_INPUT = b"\x04"


class Lent:
    """Our terminal, lent to the command's group while it runs: it may read, and Ctrl-C and Ctrl-Z go to it."""

    def __init__(self) -> None:
        self.lent = False

    def give(self, group: int) -> None:
        """Make the command the foreground group, if we are it now."""
        try:
            if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
                os.tcsetpgrp(0, group)
                os.killpg(group, signal.SIGCONT)  # it may have read before it was allowed to, and stopped
                self.lent = True
        except OSError:
            pass  # not our terminal after all

    def take_back(self) -> None:
        """Become the foreground group again."""
        try:
            if self.lent:
                os.tcsetpgrp(0, os.getpgrp())
        except OSError:
            pass


class Pty:
    """A new terminal for the command. `reader` is its output; what comes on our standard input is typed into it."""

    def __init__(self) -> None:
        self.reader, self._slave = os.openpty()
        os.set_inheritable(self.reader, False)
        os.set_inheritable(self._slave, False)
        self.path = os.ttyname(self._slave)
        self._saved: list[Any] | None = None
        self.resize()

    def started(self) -> None:
        """The command has its side open: close ours, make our terminal raw, and begin to type."""
        os.close(self._slave)
        try:
            if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
                self._saved = termios.tcgetattr(0)
                tty.setraw(0)
        except (termios.error, OSError):
            pass  # no terminal of ours to make raw
        threading.Thread(target=self._type, daemon=True).start()

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
        while True:
            try:
                data = os.read(0, 4096)
                self._send(data or END_OF_INPUT)
            except OSError:
                return
            if not data:
                return

    def _send(self, data: bytes) -> None:
        """Write to the terminal, which the pump made non-blocking. Raises OSError when the command has gone."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.reader, view) :]
            except BlockingIOError:
                wait_writable(self.reader)
