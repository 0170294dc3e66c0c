"""What both ends speak: frames of a JSON header and raw bytes, after a preamble that nothing else on a host prints.

A frame is the header's length and the body's (uint32 each, big-endian), then both. What comes before the preamble is
what a login shell's start-up files print; it is skipped, up to `MAX_GARBAGE` bytes.
"""
from __future__ import annotations

import struct

from trainwatch_launcher.rundir import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Header = dict[str, Any]

PROTOCOL = 1
"""The version that this code speaks; the `hello` frame carries it."""
PREAMBLE = b"\x00\xfftrainwatch-agent\xff\x00"
MAX_GARBAGE = 64 << 10
MAX_HEADER = 1 << 20
MAX_BODY = 8 << 20
"""No part is longer than so many bytes: whatever claims to be is not a frame of ours."""
LENGTHS = struct.Struct(">II")


class FrameError(Exception):
    """What came is no frame of ours; the message is one line for a person."""


def encode(header: Header, body: bytes = b"") -> bytes:
    """One frame as bytes."""
    head = jsontext.dumps(header).encode("ascii")
    return LENGTHS.pack(len(head), len(body)) + head + body


class Decoder:
    """Takes bytes as they come, cut anywhere, and gives whole frames.

    With `preamble` everything before it is skipped and kept in `garbage`, for the person who must find out what it was.
    """

    def __init__(self, preamble: bool = False) -> None:
        self.garbage = b""
        self.started = not preamble
        """Whether the preamble has come."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[Header, bytes]]:
        """The frames that `data` completes, in order. Raises FrameError; nothing can be read after that."""
        self._buffer += data
        if not self.started and not self._skip():
            return []
        frames = []
        at = 0
        while len(self._buffer) - at >= LENGTHS.size:
            head, body = LENGTHS.unpack_from(self._buffer, at)
            if head > MAX_HEADER or body > MAX_BODY:
                raise FrameError("its agent's output is damaged (a frame of %d bytes)" % (head + body))
            end = at + LENGTHS.size + head + body
            if len(self._buffer) < end:
                break
            start = at + LENGTHS.size
            frames.append((_header(self._buffer[start : start + head]), bytes(self._buffer[start + head : end])))
            at = end
        del self._buffer[:at]
        return frames

    def _skip(self) -> bool:
        at = self._buffer.find(PREAMBLE)
        if at < 0:
            if len(self._buffer) > MAX_GARBAGE:
                raise FrameError("it prints without end before the agent starts: see its shell's start-up files")
            return False
        self.garbage = bytes(self._buffer[:at])
        del self._buffer[: at + len(PREAMBLE)]
        self.started = True
        return True

    @property
    def unread(self) -> bytes:
        """What came and is no whole frame; before the preamble, all that was printed instead of it."""
        return bytes(self._buffer)


def _header(data: bytes | bytearray) -> Header:
    try:
        header = jsontext.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise FrameError("its agent's output is damaged (a header that is no JSON)") from None
    if not isinstance(header, dict):
        raise FrameError("its agent's output is damaged (a header that is no object)")
    return header
