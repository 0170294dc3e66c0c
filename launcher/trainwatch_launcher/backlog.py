"""Bytes that wait for a slow file, in order: in memory first, then in a spool on a local disk."""
from __future__ import annotations

import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

MEMORY = 64 << 20
"""Bytes that a backlog holds in memory."""
PIECE = 128 << 10
"""Small chunks are joined up to this size: a line each would cost more in bookkeeping than in bytes."""


class Piece:
    """Some bytes of the stream: in memory (`data`), or at `position` in the spool."""

    def __init__(self, offset: int, length: int, data: bytes | bytearray | None, position: int = 0) -> None:
        self.offset, self.length, self.data, self.position = offset, length, data, position


class Backlog:
    """A queue of bytes with their offsets in the stream. Not thread-safe: its sink's lock guards it.

    `open_spool()` gives a descriptor for at most `spool_max` bytes, or -1 when there is no place for one.
    """

    def __init__(self, memory: int = MEMORY, spool_max: int = 0, open_spool: Callable[[], int] | None = None) -> None:
        self.size = 0
        """Bytes in it."""
        self._memory, self._spool_max, self._open_spool = memory, spool_max, open_spool
        self._pieces: deque[Piece] = deque()
        self._in_memory = 0
        self._spool = -1
        self._spooled = 0
        self._spool_end = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def has_room(self, length: int) -> bool:
        """Whether so many bytes fit."""
        if not self._spooled and self._in_memory + length <= self._memory:
            return True
        return self._open_spool is not None and self._spool_end + length <= self._spool_max

    def append(self, offset: int, data: bytes) -> bool:
        """Put bytes at the end; False when they do not fit."""
        if not self.has_room(len(data)):
            return False
        if self._spooled or self._in_memory + len(data) > self._memory:
            if not self._append_spooled(offset, data):
                return False
        else:
            self._append_in_memory(offset, data)
        self.size += len(data)
        return True

    def push_front(self, offset: int, data: bytes) -> None:
        """Put bytes before all others; they always fit."""
        self._pieces.appendleft(Piece(offset, len(data), data))
        self._in_memory += len(data)
        self.size += len(data)

    def first(self) -> tuple[int, bytes | bytearray]:
        """(offset, bytes) of the first piece, PIECE bytes at most of a spooled one."""
        piece = self._pieces[0]
        if piece.data is not None:
            return piece.offset, piece.data
        return piece.offset, os.pread(self._spool, min(piece.length, PIECE), piece.position)

    def consume(self, count: int) -> None:
        """So many bytes of the first piece have been written."""
        piece = self._pieces[0]
        self.size -= count
        if piece.data is None:
            self._spooled -= count
            piece.position += count
        else:
            self._in_memory -= count
            piece.data = piece.data[count:]
        piece.offset += count
        piece.length -= count
        if piece.length == 0:
            self._pieces.popleft()
        if not self._spooled:
            self._drop_spool()

    def clear(self) -> list[tuple[int, int]]:
        """Drop everything; the [from, to) offsets of what was dropped."""
        dropped = [(piece.offset, piece.offset + piece.length) for piece in self._pieces]
        self._pieces.clear()
        self.size = self._in_memory = self._spooled = 0
        self._drop_spool()
        return dropped

    def _append_in_memory(self, offset: int, data: bytes) -> None:
        last = self._pieces[-1] if len(self._pieces) > 1 else None  # the first is being written: it must not move
        joins = last is not None and last.offset + last.length == offset and last.length + len(data) <= PIECE
        if joins and last is not None and isinstance(last.data, bytearray):
            last.data += data
            last.length += len(data)
        else:
            self._pieces.append(Piece(offset, len(data), bytearray(data)))
        self._in_memory += len(data)

    def _append_spooled(self, offset: int, data: bytes) -> bool:
        if self._spool < 0:
            self._spool = self._open_spool() if self._open_spool is not None else -1
        if self._spool < 0:
            self._open_spool = None
            return False
        try:
            written = os.pwrite(self._spool, data, self._spool_end)
        except OSError:
            written = 0
        if written < len(data):
            self._spool_max = self._spool_end  # the spool's own disk is full: what is there is kept
            return False
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.data is None and last.offset + last.length == offset:
            last.length += len(data)
        else:
            self._pieces.append(Piece(offset, len(data), None, self._spool_end))
        self._spool_end += len(data)
        self._spooled += len(data)
        return True

    def _drop_spool(self) -> None:
        self._spool_end = 0
        if self._spool >= 0:
            os.close(self._spool)
            self._spool = -1


def open_spool() -> int:
    """A file without a name on a local disk: nothing is left behind, whatever happens to us. -1 when there is no place.

    Not in a file system that lives in memory: the container's limit counts that, and the training would pay for it.
    """
    for directory in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):
        if not os.path.isdir(directory) or in_memory(directory):
            continue
        try:
            return os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
    return -1


def in_memory(directory: str) -> bool:
    """Whether a directory lies in a tmpfs or ramfs, by its device's line in /proc/self/mountinfo (proc(5))."""
    try:
        device = os.stat(directory).st_dev
        name = "%d:%d" % (os.major(device), os.minor(device))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                mount, _, kind = line.partition(" - ")
                if mount.split()[2] == name:
                    return kind.split()[0] in ("tmpfs", "ramfs")
    except (OSError, IndexError):
        pass
    return False
