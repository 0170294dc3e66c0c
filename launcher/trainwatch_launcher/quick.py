"""What `threading`, `signal` and `collections` have of it, without what makes importing them slow.

They bring in `enum`, `functools` and more: a third of the time that the launcher takes to start, before every training.
The interpreter itself has their core; what is added to it here does what the module of the same name documents.
"""
from __future__ import annotations

import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections import deque
    from typing import Callable
else:
    import _signal as signal
    from _collections import deque

__all__ = ["Condition", "Flag", "Lock", "deque", "signal", "start"]

Lock = _thread.allocate_lock


def start(work: Callable[[], None]) -> None:
    """Run a function in a thread of its own, which ends with the process. Raises RuntimeError when none can be had."""
    _thread.start_new_thread(work, ())


class Condition:
    """As threading.Condition, on a lock that no thread takes twice."""

    def __init__(self, lock: _thread.LockType | None = None) -> None:
        self._lock = lock or Lock()
        self._waiters: deque[_thread.LockType] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Let the lock go until notified, or for so many seconds; whether it was notified."""
        waiter = Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        self._lock.release()
        try:
            notified = waiter.acquire(True, -1 if timeout is None else max(0, timeout))
        finally:
            self._lock.acquire()
        if not notified and waiter in self._waiters:
            self._waiters.remove(waiter)
        return notified

    def notify(self, count: int = 1) -> None:
        """Wake so many of those that wait. The lock is held."""
        for _ in range(min(count, len(self._waiters))):
            self._waiters.popleft().release()

    def notify_all(self) -> None:
        """Wake all that wait. The lock is held."""
        self.notify(len(self._waiters))


class Flag:
    """As threading.Event, for what happens once."""

    def __init__(self) -> None:
        self._happened = False
        self._changed = Condition()

    def is_set(self) -> bool:
        """Whether it happened."""
        return self._happened

    def set(self) -> None:
        """It happened."""
        with self._changed:
            self._happened = True
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it happens, or for so many seconds; whether it happened."""
        with self._changed:
            return self._happened or self._changed.wait(timeout)
