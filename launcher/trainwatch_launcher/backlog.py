"""Bytes that wait for a slow file, in order: in memory first, then in a spool on a local disk."""
from __future__ import annotations

import os

from trainwatch_launcher.quick import deque

MEMORY = 48 << 20
"""Bytes that a backlog holds in memory; with what surrounds them less than 64 MiB."""
PIECE = 128 << 10
"""Small chunks are joined up to this size: a line each would cost more in bookkeeping than in bytes."""

LOCAL_DISKS = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay", "f2fs", "jfs", "bcachefs"))


class Piece:
    """Some bytes of the stream: in memory (`data`), or at `position` in the spool."""

    def __init__(self, offset: int, length: int, data: bytes | bytearray | None, position: int = 0) -> None:
        self.offset, self.length, self.data, self.position = offset, length, data, position


class Backlog:
    """A queue of bytes with their offsets in the stream. Not thread-safe: its sink's lock guards it.

    It grows beyond `memory` when it was given a spool in time: `wants_spool` says when it should get one.
    """

    def __init__(self, memory: int = MEMORY, spool_max: int = 0) -> None:
        self.size = 0
        """Bytes in it."""
        self._memory, self._spool_max = memory, spool_max
        self._pieces: deque[Piece] = deque()
        self._in_memory = 0
        self._spool = -1
        self._spooled = 0
        self._spool_end = 0

    @property
    def wants_spool(self) -> bool:
        """Whether memory is filling and there is no spool yet."""
        return self._spool < 0 < self._spool_max and self._in_memory > self._memory // 2

    def give_spool(self, fd: int) -> None:
        """Take a file to spool to; a negative one says that there is none to be had."""
        self._spool = fd
        if fd < 0:
            self._spool_max = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def has_room(self, length: int) -> bool:
        """Whether so many bytes fit."""
        if not self._spooled and self._in_memory + length <= self._memory:
            return True
        return self._spool >= 0 and self._spool_end + length <= self._spool_max

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
        """(offset, bytes) of the first piece, PIECE bytes at most of a spooled one; none when the disk lost them."""
        piece = self._pieces[0]
        if piece.data is not None:
            return piece.offset, piece.data
        try:
            return piece.offset, os.pread(self._spool, min(piece.length, PIECE), piece.position)
        except OSError:
            return piece.offset, b""

    def drop_first(self) -> tuple[int, int]:
        """Drop the first piece; its [from, to) offsets."""
        piece = self._pieces[0]
        dropped = (piece.offset, piece.offset + piece.length)
        self.consume(piece.length)
        return dropped

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
        """Nothing is spooled any more: free the disk, but keep the file for the next time."""
        if self._spool_end:
            self._spool_end = 0
            try:
                os.ftruncate(self._spool, 0)
            except OSError:
                pass  # its disk has failed: the next write will tell


def open_spool() -> int:
    """A file without a name on a local disk: nothing is left behind, whatever happens to us. -1 when there is no place.

    Not in a file system that lives in memory: the container's limit counts that, and the training would pay for it. Not
    on a network: what hangs may be that network. May take as long as a directory's file system does.
    """
    for directory in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):
        if not os.path.isabs(directory) or not is_local_disk(directory):
            continue
        try:
            return os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
    return -1


def is_local_disk(directory: str) -> bool:
    """Whether a directory lies on a disk of this machine, by its mount's type in /proc/self/mountinfo (proc(5)).

    Decided by the longest mount point above it, because asking a hung file system about itself hangs.
    """
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                mount, _, rest = line.partition(" - ")
                point = mount.split()[4]
                if len(point) >= len(best) and (directory + "/").startswith(point.rstrip("/") + "/"):
                    best, kind = point, rest.split()[0]
    except (OSError, IndexError):
        return False
    return kind in LOCAL_DISKS
