"""A log of any size as a stream of points: lines that may say something are found without looking at the others."""
from __future__ import annotations

from bisect import bisect_left

from trainwatch_launcher.progress import blocks
from trainwatch_launcher.progress.context import Context
from trainwatch_launcher.progress.lines import LONGEST_LINE, plain, read_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Sequence

    from trainwatch_launcher.progress.explicit import Pattern
    from trainwatch_launcher.progress.values import Values

LITERALS = (
    b"loss", b"Loss", b"LOSS", b"%|", b"it/s", b"s/it", b"::trainwatch ", b"[batch=", b"step=", b"Epoch ", b"step_avg",
    b"= Step ",
    b"samples/s/p", b"SamplesPerSec", b"Running training", "损失".encode(),
)  # fmt: skip
"""Every line that a format knows has one of these."""
MAX_CARRY = 4 * LONGEST_LINE


class Point:
    """One sample: the line where it stands (from 1), its values, and the format that it is in."""

    __slots__ = ("format", "line", "values")

    def __init__(self, line: int, values: Values, format: str) -> None:
        self.line, self.values, self.format = line, values, format

    def __repr__(self) -> str:
        return "Point(%d, %r, %r)" % (self.line, self.values, self.format)


class Reader:
    """Reads a log piece by piece. Its memory is bounded, whatever the log holds."""

    def __init__(self, own: Sequence[Pattern] = (), context: Context | None = None) -> None:
        self.context = context or Context()
        self.lines = 0
        """Newlines before the next byte that is looked at."""
        self._own = own
        self._carry: list[bytes] = []
        """The unfinished last line."""
        self._carried = 0
        self._cut = False

    def feed(self, data: bytes) -> list[Point]:
        """The points that the lines completed by this piece hold."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return []
        first = data.find(b"\n") + 1
        points = []
        if self._carry:
            line = b"".join(self._carry) + data[:first]
            points = self._read(line)
            self._carry, self._carried = [], 0
            points += self._read(data[first:end])
        else:
            points = self._read(data[:end])
        self._keep(data[end:])
        return points

    def finish(self) -> list[Point]:
        """The points of a last line that no newline ended, and of a sample that was not complete."""
        points = self._read(b"".join(self._carry) + b"\n") if self._carry else []
        self._carry, self._carried = [], 0
        return points + self._close()

    def _keep(self, data: bytes) -> None:
        """Hold on to the end of an unfinished line; what the beginning of a very long one says is old."""
        if not data:
            return
        self._carry.append(data)
        self._carried += len(data)
        if self._carried > MAX_CARRY:
            rest = b"".join(self._carry)[-2 * LONGEST_LINE :]
            self._carry, self._carried = [rest], len(rest)

    def _read(self, body: bytes) -> list[Point]:
        """Points of whole lines."""
        points: list[Point] = []
        starts = [0] if self._own else candidates(body)
        at, counted, number = 0, 0, self.lines
        while True:
            if self.context.block is None and not self._own:
                place = bisect_left(starts, at)
                at = starts[place] if place < len(starts) else len(body)
            if at >= len(body):
                break
            number += body.count(b"\n", counted, at)
            counted = at
            end = body.find(b"\n", at)
            self._line(body[at:end], number + 1, points)
            at = end + 1
        self.lines = number + body.count(b"\n", counted)
        return points

    def _line(self, line: bytes, number: int, points: list[Point]) -> None:
        context = self.context
        if context.block is not None or b"[batch=" in line or b"[step=" in line or b"= Step " in line:
            text = plain(line[:LONGEST_LINE])
            begun = blocks.header(text, number)
            if begun is not None:
                points += self._close()
                context.block = begun
                return
            if context.block is not None:
                taken = context.block.take(text)
                if context.block.ended:
                    points += self._close()
                if taken:
                    return
        found = read_line(line, context, self._own)
        if found is not None:
            points.append(Point(number, found[1], found[0]))

    def _close(self) -> list[Point]:
        block, self.context.block = self.context.block, None
        return [Point(block.line, block.values, block.name)] if block is not None and block.is_training() else []


def candidates(body: bytes) -> list[int]:
    """Where the lines begin that hold one of LITERALS: searching for all of them costs less than splitting lines."""
    found = set()
    for literal in LITERALS:
        at = body.find(literal)
        while at >= 0:
            found.add(body.rfind(b"\n", 0, at) + 1)
            end = body.find(b"\n", at)
            at = body.find(literal, end) if end >= 0 else -1
    return sorted(found)


def points(text: bytes | str | Iterable[bytes | str], own: Sequence[Pattern] = ()) -> Iterator[Point]:
    """The points of a log: of all its text, or of an iterable of pieces or lines (with their newlines)."""
    reader = Reader(own)
    pieces: Iterable[bytes | str] = [text] if isinstance(text, (bytes, str)) else text
    for piece in pieces:
        yield from reader.feed(piece.encode("utf-8", "replace") if isinstance(piece, str) else piece)
    yield from reader.finish()
