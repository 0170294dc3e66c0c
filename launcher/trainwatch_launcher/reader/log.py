"""Reads any place of an output.log of any size, and tells bytes, lines and times apart by its index.

Lines are counted from 0: the line number of a byte is the number of newlines before it. Times are Unix seconds on the
worker's clock. Memory stays bounded, whatever the size of the log or of its index.
"""
from __future__ import annotations

import os
import stat
from _thread import RLock  # what `threading` has of it costs an agent its start
from bisect import bisect_left, bisect_right

from trainwatch_launcher.reader.records import RECORD, IndexRecords
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import READ_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

CHUNK = 1 << 20
CHECKPOINT = 16 << 20
"""Where there is no index near, a count is remembered every so many bytes."""
LOAD_AT_ONCE = RECORD.size << 13
HAND = 1 << 16
"""From the place that was asked for last one counts on, when the next one is that near."""


def size(path: str) -> int:
    """Bytes in a log now; 0 when there is none. Raises OSError when that cannot be seen."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def number(path: str) -> int:
    """The number of the file that is a log now; 0 when there is none, or when that cannot be seen."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def opened(path: str) -> int | None:
    """A descriptor for reading a log; None when there is none. Raises OSError."""
    try:
        return os.open(path, READ_FLAGS)
    except FileNotFoundError:
        return None


def read(path: str, offset: int, length: int) -> bytes:
    """Up to `length` bytes from `offset` on; fewer at the end, none when there is no log. Raises OSError."""
    if length <= 0 or offset < 0:
        return b""
    fd = opened(path)
    if fd is None:
        return b""
    try:
        data = os.pread(fd, length, offset)
        while len(data) < length:  # a network file system may give less than there is
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(fd)


class LogIndex:
    """Finds lines and times in one attempt's output.log. Every answer is for the log as it is at the call.

    Line numbers are exact: the nearest index record, and the newlines between it and the place. Without an index they
    are counted from the start, once; `count` does that step by step. Any thread may ask. Methods raise OSError when the
    log is there and cannot be read.
    """

    def __init__(self, directory: str) -> None:
        self._set_up(os.path.join(directory, paths.OUTPUT), os.path.join(directory, paths.INDEX))

    @classmethod
    def of_file(cls, path: str) -> LogIndex:
        """The same for a log that has no index file."""
        found = cls.__new__(cls)
        found._set_up(path, "")
        return found

    def _set_up(self, log_path: str, index_path: str) -> None:
        self.log_path, self.index_path = log_path, index_path
        self._lock = RLock()
        self._log_size = self._number = 0
        self._records = IndexRecords(self._read_index)
        # counted by us where the index has gaps: (offset, line), sorted both ways
        self._counted: list[tuple[int, int]] = []
        self._hand = (0, 0)

    # Lines

    def line_to_offset(self, line: int) -> int | None:
        """Where line `line` begins, in bytes; None when the log has no such line (yet)."""
        with self._lock:
            end = self._refresh()
            if line <= 0:
                return 0 if line == 0 and end > 0 else None
            offset, before = self._before_line(line)
            for start, data in self._chunks(offset, end):
                found = data.count(b"\n")
                if before + found >= line:
                    begin = start + _nth_newline(data, line - before) + 1
                    return begin if begin < end else None
                before += found
                self._remember(start + len(data), before)
            return None

    def offset_to_line(self, offset: int) -> int:
        """The number of the line that holds the byte at `offset`, or that the next byte will belong to at the end."""
        with self._lock:
            target = max(0, min(offset, self._refresh()))
            position, line = self._before_offset(target)
            for start, data in self._chunks(position, target):
                line += data.count(b"\n")
                self._remember(start + len(data), line)
            self._hand = (target, line)
            return line

    def line_count(self) -> int:
        """Lines in the log now; a last line without a newline counts."""
        with self._lock:
            end = self._refresh()
            if end == 0:
                return 0
            unfinished = read(self.log_path, end - 1, 1) != b"\n"
            return self.offset_to_line(end) + (1 if unfinished else 0)

    def count(self) -> Iterator[tuple[int, int]]:
        """Count what no index tells, a checkpoint at a time: (bytes of which lines are known, bytes in the log).

        One may stop at any time; what has been counted stays known.
        """
        at = 0
        while True:
            with self._lock:
                end = self._refresh()
                known = self._before_offset(min(at + CHECKPOINT, end))[0]
                if known <= at < end:
                    known = min(at + CHECKPOINT, end)
                    line = self.offset_to_line(known)
                    if known - at == CHECKPOINT:
                        self._remember(known, line)
                at = max(at, known) if known > at else end
            yield at, end
            if at >= end:
                return

    def is_near(self, offset: int) -> bool:
        """Whether a line's number can be told without counting much."""
        with self._lock:
            offset = min(offset, self._refresh())
            return offset - self._before_offset(offset)[0] <= 2 * CHECKPOINT

    # Times

    @property
    def has_times(self) -> bool:
        """Whether there are index records; as known when `size` was asked for last, as `first_after` and `times_in`."""
        return bool(self._records)

    def time_to_offset(self, time: float) -> int | None:
        """Up to where the log was written at `time`; 0 before its first byte, None when there is no index."""
        with self._lock:
            self._refresh()
            return self._records.offset_at(time) if self._records else None

    def offset_to_time(self, offset: int) -> float | None:
        """When the byte at `offset` was written, to a quarter of a second; None when there is no index before it."""
        with self._lock:
            self._refresh()
            return self._records.time_at(max(0, offset))

    def first_after(self, time: float, inclusive: bool) -> int:
        """Where the first byte lies that was written after `time` (or at it); the log's size when there is none."""
        with self._lock:
            found = self._records.first_after(time, inclusive)
            return self._log_size if found is None else min(found, self._log_size)

    def times_in(self, start: int, end: int) -> list[tuple[int, float]]:
        """Since which offset which time holds, for the bytes from `start` to `end`: the first entry is for `start`."""
        with self._lock:
            return self._records.between(start, end)

    def size(self) -> int:
        """Bytes in the log now."""
        with self._lock:
            return self._refresh()

    def _read_index(self, offset: int, length: int) -> bytes:
        try:
            return read(self.index_path, offset, length)
        except OSError:
            return b""  # lines are counted then

    def _refresh(self) -> int:
        """Load what the index has got since the last call; returns the log's size."""
        index_size = self._index_size()
        if self._is_another() or size(self.log_path) < self._log_size or index_size < self._records.read_to:
            self._records = IndexRecords(self._read_index)
            self._counted, self._hand = [], (0, 0)
        while index_size - self._records.read_to >= RECORD.size:
            data = self._read_index(self._records.read_to, min(LOAD_AT_ONCE, index_size - self._records.read_to))
            self._log_size = size(self.log_path)  # after the index, so that no true record lies beyond it
            if not self._records.take(data, self._log_size):
                break
        self._log_size = size(self.log_path)
        return self._log_size

    def _is_another(self) -> bool:
        """Whether another file is in the place of one that no launcher wrote: those are rotated."""
        if self.index_path:
            return False
        found = number(self.log_path)
        if not found:
            return False
        before, self._number = self._number, found
        return before not in (0, found)

    def _index_size(self) -> int:
        """Bytes in the index now; an index that cannot be seen is none: lines are counted then."""
        try:
            return size(self.index_path) if self.index_path else 0
        except OSError:
            return 0

    def _before_offset(self, offset: int) -> tuple[int, int]:
        """The nearest known place at or before a byte: (offset, line)."""
        best = self._records.line_before_offset(offset)
        near = bisect_right(self._counted, (offset, 1 << 64)) - 1
        best = max(best, self._counted[near]) if near >= 0 else best
        return max(best, self._hand) if self._hand[0] <= offset <= self._hand[0] + HAND else best

    def _before_line(self, line: int) -> tuple[int, int]:
        """The nearest known place before the newline that ends line `line - 1`: (offset, line)."""
        best = self._records.line_before_line(line)
        near = bisect_left([counted for _, counted in self._counted], line) - 1
        return max(best, self._counted[near]) if near >= 0 else best

    def _remember(self, offset: int, line: int) -> None:
        near = bisect_right(self._counted, (offset, 1 << 64)) - 1
        known = max(self._records.line_before_offset(offset)[0], self._counted[near][0] if near >= 0 else 0)
        if offset - known >= CHECKPOINT:
            self._counted.insert(near + 1, (offset, line))

    def _chunks(self, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
        while offset < end:
            data = read(self.log_path, offset, min(CHUNK, end - offset))
            if not data:
                return
            yield offset, data
            offset += len(data)


def _nth_newline(data: bytes, count: int) -> int:
    """Where the newline number `count` (from 1) is in `data`, which has that many; looks at half as much each time."""
    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        found = data.count(b"\n", low, middle)
        if found >= count:
            high = middle
        else:
            low, count = middle, count - found
    return low
