"""Searching a log of any size in chunks: what to look for, and where the next hit is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

STEP = 1 << 18
"""Bytes searched between two looks at the keyboard."""
OVERLAP = 1 << 12
"""Bytes of a line that is longer than a step which are looked at again with the next step."""

Read = Callable[[int, int], Awaitable[bytes]]

_SGR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_NESTED_REPEAT = re.compile(r"[+*}][^()\\]*\)[+*{]")


class PatternError(ValueError):
    """What was typed is no expression; the message is one line for the person who typed it."""


@dataclass(frozen=True)
class Pattern:
    """What to look for: `text` as typed, and the same for bytes (in the file) and for text (on screen)."""

    text: str
    in_bytes: re.Pattern[bytes]
    in_text: re.Pattern[str]


@dataclass(frozen=True)
class Progress:
    """How far a search is, and where the hit's line starts once there is one."""

    done: float
    """The share of the log that has been searched, 0 to 1."""
    hit: int | None = None
    wrapped: bool = False


def compile_pattern(text: str, regex: bool) -> Pattern:
    """A pattern from what was typed; case matters once a capital was typed. Raises PatternError."""
    if regex and _NESTED_REPEAT.search(text):
        # re never lets go of the interpreter while it backtracks, so this would stop the keys for ever
        raise PatternError("a repeat inside a repeated group may never end; write it without")
    source = text if regex else re.escape(text)
    flags = re.MULTILINE | (0 if any(character.isupper() for character in text) else re.IGNORECASE)
    try:
        return Pattern(text, re.compile(source.encode(), flags), re.compile(source, flags))
    except re.error as error:
        raise PatternError(f"no regular expression: {error}") from None


def spans(pattern: Pattern, text: str) -> list[tuple[int, int]]:
    """Where a pattern is in a line on screen, for highlighting; empty matches are left out."""
    return [found.span() for found in pattern.in_text.finditer(text) if found.end() > found.start()]


def hits(pattern: Pattern, data: bytes, last: bool) -> int | None:
    """The offset in `data` of the first (or last) line with a hit; colours do not hide text from a search."""
    if b"\x1b" in data:
        # line feeds survive the cleaning, so that the line's number tells where it is in the original
        number = _hit_line(pattern, _SGR.sub(b"", data), last)
        return None if number is None else _offset_of_line(data, number)
    found = _find(pattern, data, last)
    return None if found is None else data.rfind(b"\n", 0, found) + 1


async def find(pattern: Pattern, read: Read, size: int, start: int, down: bool) -> AsyncIterator[Progress]:
    """Search from the line at `start` down to the end, or from just above it up, then around; yields often.

    `start` is a line's start; a search down begins at `start` itself, a search up with what ends before it.
    """
    legs = [(start, size), (0, start)] if down else [(0, start), (start, size)]
    before = 0
    for wrapped, (low, high) in zip((False, True), legs, strict=True):
        walk = _down(pattern, read, low, high) if down else _up(pattern, read, low, high)
        async for at, hit in walk:
            yield Progress((before + (at - low if down else high - at)) / max(1, size), hit, wrapped)
            if hit is not None:
                return
            await asyncio.sleep(0)
        before += high - low


async def line_after(read: Read, start: int, size: int) -> int:
    """Where the next line starts after the one at `start`; `size` when there is none."""
    while start < size:
        data = await read(start, min(STEP, size - start))
        end = data.find(b"\n")
        if end >= 0:
            return start + end + 1
        if not data:
            break
        start += len(data)
    return size


async def _down(pattern: Pattern, read: Read, low: int, high: int) -> AsyncIterator[tuple[int, int | None]]:
    at = low
    while at < high:
        data = await read(at, min(STEP, high - at))
        if not data:
            return
        if at + len(data) < high:
            data = data[:_whole(data)]
        hit = hits(pattern, data, last=False)
        yield at + len(data), None if hit is None else at + hit
        at += len(data) if data.endswith(b"\n") or at + len(data) >= high else max(1, len(data) - OVERLAP)


async def _up(pattern: Pattern, read: Read, low: int, high: int) -> AsyncIterator[tuple[int, int | None]]:
    at = high
    while at > low:
        first = max(low, at - STEP)
        data = await read(first, at - first)
        if not data:
            return
        if first > low:
            begin = data.find(b"\n", 0, len(data) - 1) + 1
            first, data = first + begin, data[begin:]
        hit = hits(pattern, data, last=True)
        yield first, None if hit is None else first + hit
        at = first + OVERLAP if first > low and len(data) >= STEP else first


def _whole(data: bytes) -> int:
    """How much of a chunk is whole lines; all of it when it holds no line feed."""
    return data.rfind(b"\n") + 1 or len(data)


def _find(pattern: Pattern, data: bytes, last: bool) -> int | None:
    if not last:
        found = pattern.in_bytes.search(data)
        return None if found is None else found.start()
    start = None
    for match in pattern.in_bytes.finditer(data):
        start = match.start()
    return start


def _hit_line(pattern: Pattern, data: bytes, last: bool) -> int | None:
    found = _find(pattern, data, last)
    return None if found is None else data.count(b"\n", 0, found)


def _offset_of_line(data: bytes, number: int) -> int:
    offset = 0
    for _ in range(number):
        offset = data.find(b"\n", offset) + 1
    return offset
