"""Reads any place of an output.log of any size, and tells bytes, lines and times apart by its index.

Lines are counted from 0: the line number of a byte is the number of newlines before it. Times are Unix seconds on the
worker's clock. Memory stays bounded, whatever the size of the log or of its index.
"""
from __future__ import annotations

import os
import stat
import struct
from array import array
from bisect import bisect_left, bisect_right

from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import READ_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

RECORD = struct.Struct("<dQQ")
CHUNK = 1 << 20
MAX_RECORDS = 1 << 19
"""More index records than this are thinned: every second one is dropped."""
CHECKPOINT = 16 << 20
"""Where there is no index near, a count is remembered every so many bytes."""
LOAD_AT_ONCE = RECORD.size << 15


def size(path: str) -> int:
    """Bytes in a log now; 0 when there is none. Raises OSError when that cannot be seen."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def read(path: str, offset: int, length: int) -> bytes:
    """Up to `length` bytes from `offset` on; fewer at the end, none when there is no log. Raises OSError."""
    if length <= 0 or offset < 0:
        return b""
    try:
        fd = os.open(path, READ_FLAGS)
    except FileNotFoundError:
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
    are counted from the start, once. Methods raise OSError when the log is there and cannot be read.
    """

    def __init__(self, directory: str) -> None:
        self.log_path = os.path.join(directory, paths.OUTPUT)
        self.index_path = os.path.join(directory, paths.INDEX)
        self._read_to = 0
        self._log_size = 0
        self._stride = 1
        self._accepted = 0
        self._times = array("d")
        self._offsets = array("Q")
        self._lines = array("Q")
        # counted by us where the index has gaps: (offset, line), sorted both ways
        self._counted: list[tuple[int, int]] = []

    def line_to_offset(self, line: int) -> int | None:
        """Where line `line` begins, in bytes; None when the log has no such line (yet)."""
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
        target = max(0, min(offset, self._refresh()))
        position, line = self._before_offset(target)
        for start, data in self._chunks(position, target):
            line += data.count(b"\n")
            self._remember(start + len(data), line)
        return line

    def line_count(self) -> int:
        """Lines in the log now; a last line without a newline counts."""
        end = self._refresh()
        if end == 0:
            return 0
        unfinished = read(self.log_path, end - 1, 1) != b"\n"
        return self.offset_to_line(end) + (1 if unfinished else 0)

    def time_to_offset(self, time: float) -> int | None:
        """Up to where the log was written at `time`; 0 before its first byte, None when there is no index."""
        self._refresh()
        if not self._times:
            return None
        at = bisect_right(self._times, time) - 1
        return self._offsets[at] if at >= 0 else 0

    def offset_to_time(self, offset: int) -> float | None:
        """When the byte at `offset` was written, to a quarter of a second; None when there is no index before it."""
        self._refresh()
        at = bisect_right(self._offsets, max(0, offset)) - 1
        return self._times[at] if at >= 0 else None

    def _refresh(self) -> int:
        """Load what the index has got since the last call; returns the log's size."""
        index_size = self._index_size()
        if size(self.log_path) < self._log_size or index_size < self._read_to:
            self._forget()
        while index_size - self._read_to >= RECORD.size:
            try:
                data = read(self.index_path, self._read_to, min(LOAD_AT_ONCE, index_size - self._read_to))
            except OSError:
                break  # lines are counted then
            self._log_size = size(self.log_path)  # after the index, so that no true record lies beyond it
            whole = len(data) - len(data) % RECORD.size
            if not whole:
                break
            for record in RECORD.iter_unpack(data[:whole]):
                self._accept(*record)
            self._read_to += whole
        self._log_size = size(self.log_path)
        return self._log_size

    def _index_size(self) -> int:
        """Bytes in the index now; an index that cannot be seen is none: lines are counted then."""
        try:
            return size(self.index_path)
        except OSError:
            return 0

    def _forget(self) -> None:
        self._read_to, self._log_size, self._stride, self._accepted = 0, 0, 1, 0
        self._times, self._offsets, self._lines = array("d"), array("Q"), array("Q")
        self._counted = []

    def _accept(self, time: float, offset: int, line: int) -> None:
        """Keep a record that can be true: nothing runs backwards, and a newline takes a byte."""
        last_offset = self._offsets[-1] if self._offsets else 0
        last_line = self._lines[-1] if self._lines else 0
        if not last_offset <= offset <= self._log_size or not last_line <= line <= last_line + offset - last_offset:
            return
        if not 0 < time < float("inf"):
            return
        self._accepted += 1
        if (self._accepted - 1) % self._stride:
            return
        if self._times and time < self._times[-1]:
            time = self._times[-1]  # the worker's clock was set back; times must stay searchable
        self._times.append(time)
        self._offsets.append(offset)
        self._lines.append(line)
        if len(self._times) >= MAX_RECORDS:
            self._times, self._offsets, self._lines = self._times[::2], self._offsets[::2], self._lines[::2]
            self._stride *= 2

    def _before_offset(self, offset: int) -> tuple[int, int]:
        """The nearest known place at or before a byte: (offset, line)."""
        best = (0, 0)
        at = bisect_right(self._offsets, offset) - 1
        if at >= 0:
            best = (self._offsets[at], self._lines[at])
        near = bisect_right(self._counted, (offset, 1 << 64)) - 1
        return max(best, self._counted[near]) if near >= 0 else best

    def _before_line(self, line: int) -> tuple[int, int]:
        """The nearest known place before the newline that ends line `line - 1`: (offset, line)."""
        best = (0, 0)
        at = bisect_left(self._lines, line) - 1
        if at >= 0:
            best = (self._offsets[at], self._lines[at])
        near = bisect_left([counted for _, counted in self._counted], line) - 1
        return max(best, self._counted[near]) if near >= 0 else best

    def _remember(self, offset: int, line: int) -> None:
        if offset - self._before_offset(offset)[0] >= CHECKPOINT:
            self._counted.insert(bisect_right(self._counted, (offset, line)), (offset, line))

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
