"""Threads in reserve, made before the command starts: it may use up all processes that the container allows."""
from __future__ import annotations

from trainwatch_launcher.quick import Condition, deque, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

RESERVE = 6
"""Pump, recorder, a drainer for each of three sinks, and one that takes over from a thread that hangs."""
LEAST = 2
"""Without a pump and a recorder there is nothing that we could do."""


class Helpers:
    """Runs jobs in threads of its own; a thread that has done its job waits for the next."""

    def __init__(self, reserve: int = RESERVE) -> None:
        self._wake = Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._idle = 0
        self.size = 0
        """Threads that there are."""
        for _ in range(reserve):
            if not self._add():
                break

    def run(self, job: Callable[[], None]) -> bool:
        """Have a job done soon; False when no thread is free and none can be made."""
        with self._wake:
            if self._idle > len(self._jobs):
                self._jobs.append(job)
                self._wake.notify()
                return True
        if not self._add():
            return False
        with self._wake:
            self._jobs.append(job)
            self._wake.notify()
        return True

    def _add(self) -> bool:
        try:
            start(self._work)
        except (RuntimeError, MemoryError):
            return False
        with self._wake:
            self._idle += 1
            self.size += 1
        return True

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._jobs:
                    self._wake.wait()
                job = self._jobs.popleft()
                self._idle -= 1
            job()
            with self._wake:
                self._idle += 1
