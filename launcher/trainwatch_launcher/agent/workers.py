"""Threads that touch files for requests. Any of them may hang in a dead mount; the others and the answering go on."""
from __future__ import annotations

from trainwatch_launcher.agent.waiting import Lock, Signal, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

THREADS = 4
WAITING = 64


class Workers:
    """A few threads, started when needed, that do one thing after another."""

    def __init__(self, most: int = THREADS) -> None:
        self._most = most
        self._guard = Lock()
        self._jobs: list[Callable[[], None]] = []
        self._idle: list[Signal] = []
        """What wakes each thread that has nothing to do."""
        self._threads = 0

    def do(self, job: Callable[[], None]) -> bool:
        """Have something done, as soon as a thread is free; False when too much is waiting already."""
        with self._guard:
            if len(self._jobs) >= WAITING:
                return False
            self._jobs.append(job)
            if self._idle:
                self._idle.pop().set()
            elif self._threads < self._most:
                self._threads += 1
                start(self._run)
        return True

    def _run(self) -> None:
        called = Signal()
        while True:
            called.clear()
            with self._guard:
                job = self._jobs.pop(0) if self._jobs else None
                if job is None:
                    self._idle.append(called)
            if job is None:
                called.wait()
            else:
                job()
