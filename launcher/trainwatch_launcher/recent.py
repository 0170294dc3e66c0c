"""The newest output, kept without copying it: what progress and the last line are read from."""
from __future__ import annotations

from trainwatch_launcher.quick import Lock, deque

KEPT = 64 << 10
"""Bytes that can be had."""
PIECE = 4 << 10
"""Chunks from this size on are kept as they are; smaller ones are gathered, so that few objects hold many lines."""


class Recent:
    """The last KEPT bytes of a stream. The pump adds to it; others may ask at any time."""

    def __init__(self) -> None:
        self._chunks: deque[bytes | bytearray] = deque()
        self._size = 0
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        """Take a chunk; its cost does not depend on its size."""
        with self._lock:
            chunks = self._chunks
            if len(data) >= PIECE:
                chunks.append(data)
            elif chunks and isinstance(chunks[-1], bytearray) and len(chunks[-1]) < PIECE:
                chunks[-1] += data
            else:
                chunks.append(bytearray(data))
            self._size += len(data)
            while self._size - len(chunks[0]) >= KEPT:
                self._size -= len(chunks.popleft())

    def last(self, size: int = KEPT) -> bytes:
        """The newest bytes, so many at most."""
        found: list[bytes | bytearray] = []
        with self._lock:
            missing = size
            for chunk in reversed(self._chunks):
                found.append(chunk[-missing:])
                missing -= len(found[-1])
                if missing <= 0:
                    break
            return b"".join(reversed(found))
