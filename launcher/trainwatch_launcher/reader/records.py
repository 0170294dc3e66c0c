"""The records of an output.index in bounded memory: some are kept, the others are read again where asked for."""
from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right

from trainwatch_launcher.rundir.records import LINE_UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator

    Known = tuple[float, int, int, int]
    """A record that counts: time, offset, and the newest counted place at or before it (offset, line)."""

RECORD = struct.Struct("<dQQ")
MAX_RECORDS = 1 << 11
"""More records than this are thinned: every second one is dropped from memory."""


class IndexRecords:
    """What an index says: at which time the byte at which offset came, and how many newlines are before it.

    Records that cannot be true are left out: nothing runs backwards, and a newline takes a byte. A time that does run
    backwards (the worker's clock was set back) counts as the one before, so that times stay searchable. `read` gives
    bytes of the index file, fewer or none when they cannot be had.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self.read_to = 0
        """Bytes of the index file that have been taken."""
        self._read = read
        self._stride = 1
        self._accepted = 0
        self._last: Known = (0.0, 0, 0, 0)
        self._times = array("d")
        self._offsets = array("Q")
        self._places = array("Q")
        """Where each kept record lies in the index file."""
        self._line_offsets = array("Q")
        self._lines = array("Q")
        self._fine: tuple[int, int, list[tuple[int, float]]] = (-1, -1, [])

    def __len__(self) -> int:
        return len(self._times)

    def take(self, data: bytes, log_size: int) -> int:
        """Take what follows what was taken before; returns how many bytes of it are whole records."""
        whole = len(data) - len(data) % RECORD.size
        if self._take_all(data[:whole], log_size):
            self.read_to += whole
            return whole
        for number, record in enumerate(RECORD.iter_unpack(data[:whole])):
            true = _accepted(self._last, record, log_size)
            if true is not None:
                self._last = true
                self._keep(true, record[2] != LINE_UNKNOWN, self.read_to + number * RECORD.size)
        self.read_to += whole
        return whole

    def _take_all(self, data: bytes, log_size: int) -> bool:
        """Take records that are all true and all kept, as they usually are; False when one may not be."""
        times, numbers = array("d", data)[::3], array("Q", data)
        offsets, lines = numbers[1::3], numbers[2::3]
        if not times or self._stride > 1 or len(self._times) + len(times) >= MAX_RECORDS or sys.byteorder != "little":
            return False
        spare = [offset - line for offset, line in zip(offsets, lines)]
        first = (times[0], offsets[0], offsets[0] - self._last[2], lines[0])
        known = (self._last[0], self._last[1], 0, self._last[3])
        ordered = all(new >= old for new, old in zip(first, known)) and lines[0] - self._last[3] <= first[2]
        rising = all(list(column) == sorted(column) for column in (times, offsets, lines, spare))
        if not (ordered and rising and times[0] > 0 and sum(times) < float("inf") and offsets[-1] <= log_size):
            return False
        self._times.extend(times)
        self._offsets.extend(offsets)
        self._places.extend(range(self.read_to, self.read_to + len(data), RECORD.size))
        self._line_offsets.extend(offsets)
        self._lines.extend(lines)
        self._accepted += len(times)
        self._last = (times[-1], offsets[-1], offsets[-1], lines[-1])
        return True

    def _keep(self, record: Known, counted: bool, place: int) -> None:
        self._accepted += 1
        if (self._accepted - 1) % self._stride:
            return
        self._times.append(record[0])
        self._offsets.append(record[1])
        self._places.append(place)
        if counted:
            self._line_offsets.append(record[1])
            self._lines.append(record[3])
        if len(self._times) >= MAX_RECORDS:
            self._stride *= 2
            self._times, self._offsets, self._places = self._times[::2], self._offsets[::2], self._places[::2]
            if len(self._lines) > len(self._times):
                self._line_offsets, self._lines = self._line_offsets[::2], self._lines[::2]

    # Times

    def time_at(self, offset: int) -> float | None:
        """When the byte at `offset` came; None before the first record."""
        at = bisect_right(self._offsets, offset) - 1
        if at < 0:
            return None
        fine = self._between(at)
        return fine[bisect_right(fine, (offset, float("inf"))) - 1][1]

    def offset_at(self, time: float) -> int:
        """Up to where was written at `time`; 0 before the first record."""
        at = bisect_right(self._times, time) - 1
        if at < 0:
            return 0
        return max(offset for offset, when in self._between(at) if when <= time)

    def first_after(self, time: float, inclusive: bool) -> int | None:
        """The offset of the first record after `time` (or at it); None when there is none."""
        at = (bisect_left if inclusive else bisect_right)(self._times, time) - 1
        later = (when_offset for when_offset in self._between(at) if at >= 0)
        for offset, when in later:
            if when > time or (inclusive and when == time):
                return offset
        return self._offsets[at + 1] if at + 1 < len(self._offsets) else None

    def between(self, start: int, end: int) -> list[tuple[int, float]]:
        """(offset, time) of the records from the one that holds for `start` to the last one before `end`."""
        first = max(0, bisect_right(self._offsets, start) - 1)
        last = bisect_left(self._offsets, max(end, start + 1))
        found = [pair for at in range(first, max(last, first + 1)) for pair in self._between(at)]
        if not found:
            return []
        begin = max(0, bisect_right(found, (start, float("inf"))) - 1)
        stop = bisect_left(found, (max(end, start + 1), float("-inf")))
        chosen = found[begin:max(stop, begin + 1)]
        return [(start, chosen[0][1]), *chosen[1:]]

    def _between(self, at: int) -> list[tuple[int, float]]:
        """(offset, time) of a kept record and of those after it that were not kept."""
        if not 0 <= at < len(self._times):
            return []
        own = (self._offsets[at], self._times[at])
        if self._stride == 1:
            return [own]
        start = self._places[at]
        end = self._places[at + 1] if at + 1 < len(self._places) else self.read_to
        if self._fine[:2] != (start, end):
            self._fine = (start, end, [own, *self._reread(own, start + RECORD.size, end)])
        return self._fine[2]

    def _reread(self, own: tuple[int, float], start: int, end: int) -> Iterator[tuple[int, float]]:
        last: Known = (own[1], own[0], 0, 0)
        data = self._read(start, end - start)
        for time, offset, _ in RECORD.iter_unpack(data[: len(data) - len(data) % RECORD.size]):
            true = _accepted(last, (time, offset, LINE_UNKNOWN), self._last[1])
            if true is not None:
                last = true
                yield true[1], true[0]

    # Lines

    def line_before_offset(self, offset: int) -> tuple[int, int]:
        """The nearest counted place at or before a byte: (offset, line)."""
        at = bisect_right(self._line_offsets, offset) - 1
        return (self._line_offsets[at], self._lines[at]) if at >= 0 else (0, 0)

    def line_before_line(self, line: int) -> tuple[int, int]:
        """The nearest counted place before the newline that ends line `line - 1`: (offset, line)."""
        at = bisect_left(self._lines, line) - 1
        return (self._line_offsets[at], self._lines[at]) if at >= 0 else (0, 0)


def _accepted(last: Known, record: tuple[float, int, int], log_size: int) -> Known | None:
    """A record as it counts after the one before it; None when it cannot be true."""
    time, offset, line = record
    if not last[1] <= offset <= log_size or not 0 < time < float("inf"):
        return None
    if line == LINE_UNKNOWN:
        return (max(time, last[0]), offset, *last[2:])
    if not last[3] <= line <= last[3] + offset - last[2]:
        return None
    return max(time, last[0]), offset, offset, line
