"""A few lines of a log around a place, read once: safe to draw, whatever they are."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from trainwatch.widgets.log_loader import LogReader, ReadError
from trainwatch.widgets.logtext import plain

BEFORE, AFTER = 24 << 10, 8 << 10
"""Bytes that are read on either side of the place."""
LONGEST_LINE = 4000
"""Bytes of a line that are looked at."""


@dataclass(frozen=True)
class Excerpt:
    """Lines without what could act on a terminal."""

    lines: tuple[str, ...] = ()
    hit: int | None = None
    """Which of them is the one that was meant; None when that is not known."""
    offset: int | None = None
    """Where that line begins, in bytes."""
    problem: str = ""
    """Why there are none, in one line."""

    def around(self, count: int) -> Excerpt:
        """So many of the lines: those that led to the one that was meant, and a few after it; else the last ones."""
        if len(self.lines) <= count:
            return self
        if self.hit is None:
            return Excerpt(self.lines[-count:], None, self.offset)
        after = min(len(self.lines) - 1 - self.hit, count // 4)
        first = max(0, self.hit + after + 1 - count)
        return Excerpt(self.lines[first : first + count], self.hit - first, self.offset)


async def read(reader: LogReader, offset: int | None, line: int | None) -> Excerpt:
    """The lines around a line that begins at `offset`, or has the number `line` (from 1); without both, the last ones.

    Never raises: a log that cannot be read is told of in the excerpt.
    """
    try:
        [size] = await reader.ends()
        if offset is None and line is not None:
            offset = await _offset_of(reader, line)
        if offset is not None and offset >= size:
            offset = None  # the log is another one by now
        start = max(0, (size if offset is None else offset) - BEFORE)
        data = await reader.read(start, BEFORE + AFTER)
    except ReadError as error:
        return Excerpt(problem=str(error))
    return cut(data, start, offset)


async def _offset_of(reader: LogReader, line: int) -> int | None:
    async with contextlib.aclosing(reader.ask("count")) as steps:
        async for _ in steps:
            pass
    async with contextlib.aclosing(reader.ask("places", numbers=[line - 1])) as answer:
        async for facts, _ in answer:
            found = facts["offsets"][0]
            return None if found is None else int(found)
    return None


def cut(data: bytes, start: int, offset: int | None) -> Excerpt:
    """Bytes that begin at `start` in a log, as lines; without the first one when its beginning is not there."""
    lines: list[str] = []
    hit = None
    at = start
    pieces = data.split(b"\n")
    if pieces and not pieces[-1]:
        pieces.pop()
    for number, piece in enumerate(pieces):
        is_hit = offset is not None and at <= offset <= at + len(piece)
        if number or not start or is_hit:
            if is_hit:
                hit = len(lines)
            lines.append(plain(piece[-LONGEST_LINE:] if b"\r" in piece else piece[:LONGEST_LINE]))
        at += len(piece) + 1
    return Excerpt(tuple(lines), hit, offset)
