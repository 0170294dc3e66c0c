"""Where lines are: counts the newlines of the output and makes the records of output.index.

Counting is the dearest thing that a pump could do (as much as half of the copying). So it counts along while output
comes in small pieces, as training logs do, and in a flood leaves it to the recorder, who reads the log back when there
is time.
"""
from __future__ import annotations

import time

from trainwatch_launcher.quick import Lock, deque
from trainwatch_launcher.rundir.records import LINE_UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

INTERVAL = 0.1
"""Shortest time between two index records, in seconds."""
FLOOD = 120 << 10
"""A chunk of this many bytes, about all that is read at once, shows that output comes faster than we read."""
SLICE = 256 << 10
MAX_RECORDS = 100_000
"""Index records kept while they cannot be written: some hours of steady output."""


class LineCounter:
    """Keeps (bytes, newlines) of a stream, and index records (time, offset, newlines before that offset).

    `note` is called by the pump for each chunk, `take` by the recorder, the rest by any thread. `read(offset, length)`
    gives bytes of the stream that were noted before, and fewer or none when they cannot be had.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self.size = 0
        """Bytes noted."""
        self.lines = 0
        """Newlines in the first `counted` bytes."""
        self.counted = 0
        self._read = read
        self._lock = Lock()
        self._counting = Lock()
        """Held by the one who catches up: what two count at once they count twice."""
        self._incomplete = False
        """Bytes were lost: what has not been counted by then never can be."""
        self._records: deque[tuple[float, int, int]] = deque(maxlen=MAX_RECORDS)
        self._recorded = 0.0

    def note(self, now: float, data: bytes, lost: int = 0) -> None:
        """A chunk came at `now` (Unix seconds); so many bytes before it never came to the log."""
        with self._lock:
            self._incomplete = lost > 0
            behind = self._incomplete or self.counted < self.size
            if not self._recorded <= now < self._recorded + INTERVAL:
                self._recorded = now
                self._records.append((now, self.size - lost, LINE_UNKNOWN if behind else self.lines))
            self.size += len(data)
            if not behind and len(data) < FLOOD:
                self.lines += data.count(b"\n")
                self.counted = self.size

    def total(self) -> int | None:
        """Newlines in all that was noted; None while they are not all counted."""
        with self._lock:
            return self.lines if self.counted == self.size else None

    def catch_up(self, seconds: float) -> bool:
        """Count what was left, for so long at most; whether all is counted."""
        deadline = time.monotonic() + seconds
        if not self._counting.acquire(True, seconds):
            return False
        try:
            return self._count(deadline)
        finally:
            self._counting.release()

    def _count(self, deadline: float) -> bool:
        while self.counted < self.size:
            if time.monotonic() >= deadline:
                return False
            goal = self._next_goal()
            data = self._read(self.counted, min(SLICE, goal - self.counted))
            if not data:
                return False
            with self._lock:
                self.lines += data.count(b"\n")
                self.counted += len(data)
                self._fill_in()
        return True

    def take(self, all_of_them: bool = False) -> list[tuple[float, int, int]]:
        """Records that are complete, in order; at the end, or when bytes were lost, all, some with LINE_UNKNOWN."""
        with self._lock:
            ready = []
            while self._records and (all_of_them or self._incomplete or self._records[0][2] != LINE_UNKNOWN):
                ready.append(self._records.popleft())
            return ready

    def give_back(self, records: list[tuple[float, int, int]]) -> None:
        """Records that could not be written."""
        with self._lock:
            self._records.extendleft(reversed(records))

    def _next_goal(self) -> int:
        """Where the next record waits for its line number, or the end of what was noted."""
        with self._lock:
            return next((offset for _, offset, line in self._records if line == LINE_UNKNOWN), self.size) or self.size

    def _fill_in(self) -> None:
        """Give the record that begins where we are its line number. The lock is held."""
        for number, (when, offset, line) in enumerate(self._records):
            if line == LINE_UNKNOWN:
                if offset == self.counted:
                    self._records[number] = (when, offset, self.lines)
                return
