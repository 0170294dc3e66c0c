"""Searching a log of any size in chunks: what to look for, and where the next hit is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import AnyStr

from trainwatch.widgets.limited import TooSlowError, limited

STEP = 1 << 18
"""Bytes searched between two looks at the keyboard."""
OVERLAP = 1 << 12
"""Bytes of a line that is longer than a step which are looked at again with the next step."""

Read = Callable[[int, int], Awaitable[bytes]]

_SGR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
STEP_SECONDS = 0.1
"""Processor time for one step. A linear expression needs a few milliseconds."""
LINE_SECONDS = 0.02
"""Processor time for the highlights of one line."""
TOO_SLOW = "this expression takes too long here; write it with fewer repeats"


class PatternError(ValueError):
    """What was typed is no expression; the message is one line for the person who typed it."""


@dataclass(frozen=True)
class Pattern:
    """What to look for: `text` as typed, and the same for bytes and for text.

    Bytes are for plain ASCII words only, which are the same in both and are found faster; whatever else was typed means
    letters, and a `.` or a `\\w` is a letter and not a byte.
    """

    text: str
    in_bytes: re.Pattern[bytes] | None
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
    source = text if regex else re.escape(text)
    flags = re.MULTILINE | (0 if any(character.isupper() for character in text) else re.IGNORECASE)
    try:
        in_text = re.compile(source, flags)
        return Pattern(text, None if regex or not text.isascii() else re.compile(source.encode(), flags), in_text)
    except (re.error, OverflowError, RecursionError, UnicodeError) as error:
        raise PatternError(f"no regular expression: {error}") from None


def spans(pattern: Pattern, text: str) -> list[tuple[int, int]]:
    """Where a pattern is in a line on screen, for highlighting; empty matches are left out. Raises TooSlowError."""
    with limited(LINE_SECONDS):
        return [found.span() for found in pattern.in_text.finditer(text) if found.end() > found.start()]


def hits(pattern: Pattern, data: bytes, last: bool) -> int | None:
    """The offset in `data` of the first (or last) line with a hit; colours do not hide text from a search.

    Raises PatternError when the expression takes too long.
    """
    plain = _SGR.sub(b"", data) if b"\x1b" in data else data
    try:
        with limited(STEP_SECONDS):
            number = _hit_line(pattern, plain, last)
    except TooSlowError:
        raise PatternError(TOO_SLOW) from None
    # line feeds survive cleaning and decoding, so that the line's number tells where it is in the original
    return None if number is None else _offset_of_line(data, number)


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


def _hit_line(pattern: Pattern, data: bytes, last: bool) -> int | None:
    """The number of the first (or last) line with a hit."""
    if pattern.in_bytes is not None:
        at = _start([found.start() for found in _found(pattern.in_bytes.finditer(data), last)], last)
        return None if at is None else data.count(b"\n", 0, at)
    text = data.decode("utf-8", "replace")
    at = _start([found.start() for found in _found(pattern.in_text.finditer(text), last)], last)
    return None if at is None else text.count("\n", 0, at)


def _found(matches: Iterator[re.Match[AnyStr]], last: bool) -> Iterator[re.Match[AnyStr]]:
    return matches if last else islice(matches, 1)


def _start(starts: list[int], last: bool) -> int | None:
    return (starts[-1] if last else starts[0]) if starts else None


def _offset_of_line(data: bytes, number: int) -> int:
    offset = 0
    for _ in range(number):
        offset = data.find(b"\n", offset) + 1
    return offset
