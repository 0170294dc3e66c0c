"""One log as the engine reads it: lines, and the time of each, by its index or by what its lines say.

A line's time is that of the newest index record at or before its first byte; without an index the time that the line
states, or the last line above it that states one. Times never run backwards within a log.
"""
from __future__ import annotations

import os

from trainwatch_launcher.reader import log
from trainwatch_launcher.reader.log import LogIndex
from trainwatch_launcher.reader.stamps import HEAD, Stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.reader.query import Query

BLOCK = 1 << 12
"""Bytes read at first where an end of a line is looked for."""
LONGEST = 16 << 20
"""A line that is longer is cut."""
NEAR = 1 << 16
"""Bytes that are read line by line to find a time."""
FAR = 1 << 20
"""Bytes in which no line states a time, after which none is expected."""


class TimedLog:
    """A log of any size. `shift` seconds are added to its times: they lead to the clock that all logs are compared on.

    Of a file that holds several ranks' lines, the lines that match `only` are this log.

    Methods raise OSError when the log is there and cannot be read.
    """

    def __init__(self, index: LogIndex, shift: float = 0.0, only: Query | None = None) -> None:
        self.only = only
        self.index = index
        self.path = index.log_path
        self.shift = shift
        self._stamps: Stamps | None = None
        self._flat: float | None = None
        self._end: int | None = None
        self._looked_at = 0

    def size(self) -> int:
        """Bytes now. What is said of lines and times from then on is as of this moment."""
        self._end = self.index.size()
        return self._end

    @property
    def end(self) -> int:
        """Bytes when `size` was asked for last."""
        return self._end if self._end is not None else self.size()

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the log."""
        return log.read(self.path, offset, length)

    # Lines

    def line(self, start: int) -> bytes:
        """The line that begins at `start`."""
        return self.read(start, self.next_start(start, self.end) - start)

    def line_start(self, offset: int) -> int:
        """Where the line begins that holds the byte at `offset`, or that the next one will belong to at the end."""
        high, step = offset, BLOCK
        while high > max(0, offset - LONGEST):
            low = max(0, high - step)
            found = self.read(low, high - low).rfind(b"\n")
            if found >= 0:
                return low + found + 1
            high, step = low, min(step * 4, 1 << 20)
        return high

    def next_start(self, offset: int, end: int) -> int:
        """Where the line after the one with the byte at `offset` begins; `end` when there is none before it."""
        at, step = offset, BLOCK
        while at < min(end, offset + LONGEST):
            data = self.read(at, min(step, end - at))
            found = data.find(b"\n")
            if found >= 0:
                return min(end, at + found + 1)
            if not data:
                return end
            at, step = at + len(data), min(step * 4, 1 << 20)
        return min(at, end)

    def first_start(self, offset: int, end: int) -> int:
        """The first line's beginning at or after `offset`; `end` when there is none before it."""
        if offset <= 0:
            return 0
        if offset >= end:
            return end
        return offset if self.read(offset - 1, 1) == b"\n" else self.next_start(offset, end)

    def lines_before(self, offset: int, count: int) -> int:
        """Where the line `count` lines above the one that begins at `offset` begins."""
        for _ in range(count):
            if offset <= 0:
                break
            offset = self.line_start(offset - 1)
        return offset

    def lines_after(self, offset: int, count: int, end: int) -> int:
        """The same for `count` lines below."""
        for _ in range(count):
            offset = self.next_start(offset, end)
        return offset

    # Times

    def time_of(self, start: int) -> float:
        """When the line that begins at `start` was written."""
        if self.index.has_times:
            return self.times_of([start], start + 1)[0]
        return self._stated_before(start) + self.shift

    def times_of(self, starts: list[int], end: int, data: bytes | None = None) -> list[float]:
        """The same for lines that follow each other up to `end`; `data` may hold the bytes from the first one on."""
        if not starts:
            return []
        if self.index.has_times:
            return self._recorded(starts, end)
        return self._stated(starts, end, data)

    def first_with(self, time: float, inclusive: bool, end: int) -> int:
        """Where the first line begins that was written after `time` (or at it); `end` when there is none before it."""
        time -= self.shift
        if self.index.has_times:
            known = self.index.times_in(0, 1)
            if known and (time < known[0][1] or (inclusive and time <= known[0][1])):
                return 0  # what comes before the first record is as old as that says
            return self.first_start(min(end, self.index.first_after(time, inclusive)), end)
        return self._search(time, inclusive, end)

    def _recorded(self, starts: list[int], end: int) -> list[float]:
        known = self.index.times_in(starts[0], max(end, starts[-1] + 1))
        times, at = [], 0
        for start in starts:
            while at + 1 < len(known) and known[at + 1][0] <= start:
                at += 1
            times.append(known[at][1] + self.shift)
        return times

    def _stated(self, starts: list[int], end: int, data: bytes | None) -> list[float]:
        stamps = self._stamps_or_flat()
        if stamps is None:
            return [(self._flat or 0.0) + self.shift] * len(starts)
        times, newest = [], None
        for start in starts:
            place = start - starts[0]
            head = self.read(start, HEAD) if data is None else data[place:place + HEAD]
            own = stamps.of(head.partition(b"\n")[0])
            if newest is None:
                newest = own if own is not None else self._stated_before(start)
            elif own is not None:
                newest = max(newest, own)
            times.append(newest + self.shift)
        return times

    def _stated_before(self, start: int) -> float:
        """The time that the line at `start` states, or the nearest one above; of the first ones, the one below."""
        stamps = self._stamps_or_flat()
        if stamps is None:
            return self._flat or 0.0
        found = stamps.of(self.read(start, HEAD).partition(b"\n")[0])
        high = start
        while found is None and high > max(0, start - FAR):
            low = self.line_start(max(0, high - NEAR))
            for line in reversed(self.read(low, high - low).split(b"\n")):
                found = stamps.of(line)
                if found is not None:
                    break
            high = low
        if found is None:
            found = next((time for _, time in self._times_from(0, self.end)), None)
        return found if found is not None else 0.0

    def _times_from(self, start: int, end: int) -> list[tuple[int, float]]:
        """(line's beginning, time) of the first line at or after `start` that states one; empty when none does soon."""
        stamps = self._stamps
        assert stamps is not None
        at = self.first_start(start, end)
        while at < min(end, start + FAR):
            data = self.read(at, min(NEAR, end - at))
            if not data:
                break
            whole = data.rfind(b"\n") + 1 or len(data)
            place = at
            for line in data[:whole].split(b"\n"):
                found = stamps.of(line)
                if found is not None:
                    return [(place, found)]
                place += len(line) + 1
            at += whole
        return []

    def _search(self, time: float, inclusive: bool, end: int) -> int:
        """Halve what is left until little is; then look line by line."""
        if self._stamps_or_flat() is None:
            flat = self._flat or 0.0
            return 0 if flat > time or (inclusive and flat == time) else end
        low, high = 0, end
        while high - low > NEAR:
            middle = (low + high) // 2
            found = self._times_from(middle, high)
            if found and not (found[0][1] > time or (inclusive and found[0][1] == time)):
                low = found[0][0]
            else:
                high = middle
        low = self.line_start(low)
        data = self.read(low, min(end, high + NEAR) - low)
        starts = [low]
        at = data.find(b"\n")
        while 0 <= at < len(data) - 1:
            starts.append(low + at + 1)
            at = data.find(b"\n", at + 1)
        for start, when in zip(starts, self._stated(starts, low + len(data), data)):
            when -= self.shift
            if when > time or (inclusive and when == time):
                return min(start, end)
        return end if low + len(data) >= end else self.first_start(low + len(data), end)

    def _stamps_or_flat(self) -> Stamps | None:
        """How lines state their times; None when they state none: then all are as old as the file."""
        if self._stamps is not None and self._flat is None:
            return self._stamps
        try:
            facts = os.stat(self.path)
        except OSError:
            return None
        if self._stamps is None or facts.st_size >= 2 * self._looked_at:
            self._stamps, self._looked_at = Stamps(facts.st_mtime), facts.st_size
            end = facts.st_size
            if self._times_from(0, min(end, FAR)) or self._times_from(max(0, end - FAR), end):
                self._flat = None
                return self._stamps
        self._flat = facts.st_mtime
        return None
