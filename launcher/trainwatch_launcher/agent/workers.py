"""Threads that touch files for requests. Any of them may hang in a dead mount; the others and the answering go on."""
from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

THREADS = 4
WAITING = 64


class Workers:
    """A few threads, started when needed, that do one thing after another."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0

    def do(self, job: Callable[[], None]) -> bool:
        """Have something done, as soon as a thread is free; False when too much is waiting already."""
        with self._changed:
            if len(self._jobs) >= WAITING:
                return False
            self._jobs.append(job)
            if self._idle:
                self._changed.notify()
            elif self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._run, name="files", daemon=True).start()
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                job = self._jobs.popleft()
            job()
