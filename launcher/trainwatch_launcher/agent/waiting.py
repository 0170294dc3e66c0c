"""What the agent's threads wait for, made of the interpreter's own locks.

The module `threading` has all of it, and takes half as long to import as a bare Python takes to start.
"""
from __future__ import annotations

import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

FOREVER = -1.0

Lock = _thread.allocate_lock
get_ident = _thread.get_ident


def start(function: Callable[..., Any], *arguments: object) -> None:
    """Run a function in a thread of its own, which ends with the process."""
    _thread.start_new_thread(function, arguments)


class Signal:
    """Something that has happened, or has not yet. One thread waits; any may say that it happened."""

    def __init__(self) -> None:
        self._closed = Lock()
        self._closed.acquire()

    def set(self) -> None:
        """It happened."""
        try:
            self._closed.release()
        except RuntimeError:
            pass  # it had happened already

    def clear(self) -> None:
        """Wait for the next time."""
        self._closed.acquire(False)

    def is_set(self) -> bool:
        """Whether it happened."""
        return not self._closed.locked()

    def wait(self, seconds: float = FOREVER) -> None:
        """Wait until it happens, no longer than so many seconds."""
        if self._closed.acquire(True, seconds):
            self.set()


class Credit:
    """So many times something may be done before somebody gives more. One thread takes; any may give."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._guard = Lock()
        self._more = Signal()

    def give(self) -> None:
        """Once more."""
        with self._guard:
            self._count += 1
            self._more.set()

    def take(self) -> None:
        """Wait until it may be done."""
        while True:
            with self._guard:
                if self._count > 0:
                    self._count -= 1
                    return
                self._more.clear()
            self._more.wait()
