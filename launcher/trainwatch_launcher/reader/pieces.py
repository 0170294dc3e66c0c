"""Whole lines of a log as a program gets them: read to be looked at, given from file to pipe without a copy."""
from __future__ import annotations

import errno
import os

from trainwatch_launcher.reader import log as logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from trainwatch_launcher.reader.timeline import TimedLog

PIECE = 1 << 20
"""Bytes that are looked through between two looks at whether somebody still wants to know."""
WORTH_SENDING = 1 << 16
"""A shorter piece is written: sending it costs more."""

_can_send = hasattr(os, "sendfile") and os.uname().sysname == "Linux"  # elsewhere it sends to sockets alone


class Piece:
    """Whole lines of the log with the number `log`, from its byte `start` on. Good until the next one is asked for."""

    def __init__(self, log: int, start: int, data: bytes | bytearray, length: int, file: int = -1) -> None:
        self.log, self.start, self.length = log, start, length
        self._data, self._file = data, file

    @classmethod
    def of(cls, log: int, start: int, data: bytes) -> Piece:
        """One that is in memory only."""
        return cls(log, start, data, len(data))

    @property
    def content(self) -> bytes:
        """What it holds."""
        return bytes(memoryview(self._data)[:self.length])

    @property
    def is_ascii(self) -> bool:
        """Whether it holds no byte above 127."""
        return self._data.isascii() if self.length == len(self._data) else self.content.isascii()

    @property
    def is_whole(self) -> bool:
        """Whether it ends with a line feed."""
        return self._data[self.length - 1] == 10

    def holds(self, what: bytes) -> bool:
        """Whether these bytes are among its own."""
        return self._data.find(what, 0, self.length) >= 0

    def give(self, sink: int, done: int) -> int:
        """Give a pipe what is left after `done` bytes, as far as it takes it; returns how much it has then."""
        global _can_send
        if _can_send and self._file >= 0 and self.length >= WORTH_SENDING:
            try:
                sent = os.sendfile(sink, self._file, self.start + done, self.length - done)
                if sent:
                    return done + sent
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                    raise
                _can_send = False
        # also what the file has lost meanwhile
        return done + os.write(sink, memoryview(self._data)[done:self.length])


def blocks(log: TimedLog, number: int, low: int, high: int) -> Iterator[Piece]:
    """The bytes between two beginnings of lines as pieces. Raises OSError."""
    file = logs.opened(log.path)
    if file is None:
        return
    try:
        buffer, at = bytearray(min(PIECE, high - low)), low
        while at < high:
            length = _fill(file, memoryview(buffer)[:high - at], at)
            if at + length < high:
                length = buffer.rfind(b"\n", 0, length) + 1
            if not length:  # a line that is longer, or a log that is shorter by now
                data = logs.read(log.path, at, log.next_start(at, high) - at)
                if not data:
                    return
                yield Piece.of(number, at, data)
                at += len(data)
                continue
            yield Piece(number, at, buffer, length, file)
            at += length
    finally:
        os.close(file)


def _fill(file: int, buffer: memoryview, offset: int) -> int:
    """Read as much as there is room for; a network file system may give less than there is."""
    done = 0
    while done < len(buffer):
        if hasattr(os, "preadv"):
            more = os.preadv(file, [buffer[done:]], offset + done)
        else:
            data = os.pread(file, len(buffer) - done, offset + done)
            more = len(data)
            buffer[done:done + more] = data
        if not more:
            break
        done += more
    return done
