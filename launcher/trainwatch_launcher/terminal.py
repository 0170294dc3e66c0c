"""Terminals: lending ours to the command as a shell does, or giving it a new one (--pty)."""
from __future__ import annotations

import fcntl
import os
import struct
import termios
import tty

from trainwatch_launcher.quick import signal
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

    @property
    def there(self) -> bool:
        """Whether we have a controlling terminal."""
        return self._fd >= 0

    def is_ours(self) -> bool:
        """Whether we are its foreground group now."""
        try:
            return self.there and os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    def give(self, group: int) -> bool:
        """Make the command the foreground group, if we are it now; whether it is that now."""
        try:
            if self.there and os.tcgetpgrp(self._fd) in (os.getpgrp(), group):
                os.tcsetpgrp(self._fd, group)
                os.killpg(group, signal.SIGCONT)  # it may have read before it was allowed to, and stopped
                self._group, self.lent = group, True
                return True
        except OSError:
            pass  # not our terminal after all
        return False

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
        self.typing = False
        """Whether our input is read; not while we are in the background of our terminal."""
        self._helpers, self._group = helpers, 0
        self.reader, self._slave = os.openpty()
        os.set_inheritable(self.reader, False)
        os.set_inheritable(self._slave, False)
        self.path = os.ttyname(self._slave)
        self._saved: list[Any] | None = None
        self.resize()

    def started(self, group: int) -> None:
        """The command has its side open: close ours, make our terminal raw, and begin to type."""
        self._group = group
        os.close(self._slave)
        self.resume()

    def resume(self) -> None:
        """Make our terminal raw and type what comes, if we have it now: at the start, after a stop, after `fg`."""
        try:
            if os.isatty(0):
                if os.tcgetpgrp(0) != os.getpgrp():
                    return  # in the background
                self._saved = self._saved or termios.tcgetattr(0)
                tty.setraw(0, termios.TCSANOW)  # the default would drop what was typed ahead
        except (termios.error, OSError):
            pass  # not our terminal
        if not self.typing:
            self.typing = self._helpers.run(self._type)

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
                termios.tcsetattr(0, termios.TCSANOW, self._saved)  # never waits for a terminal that hangs
            except termios.error:
                pass
            self._saved = None

    def _type(self) -> None:
        """Copy standard input to the terminal until its end, which becomes an end of input there."""
        line_open = False
        while True:
            try:
                data = os.read(0, 4096)
            except OSError:
                self.typing = False  # in the background we may not read; `resume` begins again
                return
            try:
                # in the middle of a line the first ^D only ends the line (termios(3), VEOF)
                self._send(data or END_OF_INPUT * (2 if line_open else 1))
            except OSError:
                return  # the command has gone
            if not data:
                return
            line_open = not data.endswith((b"\n", b"\r"))
            if self._is_suspended_by(data):
                os.kill(os.getpid(), signal.SIGTSTP)  # taken and forwarded as if our own terminal had sent it

    def _is_suspended_by(self, data: bytes) -> bool:
        """Whether this is Ctrl-Z for the command itself, and one that does not care for it.

        The kernel stops nobody then: a group whose leader has its parent in another session would never be continued
        (POSIX, "orphaned process group"). But we are here and do that. A shell in there has jobs of its own.
        """
        try:
            settings = termios.tcgetattr(self.reader)
            ours = os.tcgetpgrp(self.reader) == self._group
        except (termios.error, OSError):
            return False
        typed = bool(settings[3] & termios.ISIG) and settings[6][termios.VSUSP] in data
        return ours and typed and not minds(self._group, signal.SIGTSTP)

    def _send(self, data: bytes) -> None:
        """Write to the terminal, which the pump made non-blocking. Raises OSError when the command has gone."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.reader, view) :]
            except BlockingIOError:
                wait_writable(self.reader)


def minds(pid: int, number: int) -> bool:
    """Whether a process ignores a signal or has a handler for it, or is unknown (proc(5), status: SigIgn, SigCgt)."""
    try:
        with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return True
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigIgn:", "SigCgt:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)
