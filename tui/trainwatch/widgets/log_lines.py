"""Lines of a file of any size, known only in part: chunks of it are put in, lines by offset come out.

Pure. A call that needs bytes which are not there raises `Missing`; its caller loads that chunk and calls again. A line
is what lies between two line feeds; a longer one than `PIECE` is cut into pieces at multiples of `PIECE`, so that the
work for a line is bounded and that the cuts are the same whether one comes from above or from below.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol

CHUNK = 1 << 16
PIECE = 1 << 14
KEEP = 48
"""Chunks kept: 3 MiB, whatever is scrolled through."""
SHOWN_EVERY = 32
"""Of a `\\r` bar that is one endless line, every so many pieces one is shown, so that passing it is bounded work."""


class Missing(Exception):
    """Something is needed that is not there: a chunk by its number, or a page that way."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class Line(NamedTuple):
    """One line: the offset of its first byte, and of the byte after its last one (its line feed not included)."""

    start: int
    end: int


class Anchor(NamedTuple):
    """A place in the log: a line's offset, and which of the rows that it wraps into."""

    offset: int
    row: int = 0


class Row(NamedTuple):
    """One row on the screen: a line and which of its rows."""

    line: Line
    row: int


RowsOf = Callable[[Line], int]
"""How many rows a line takes; 1 when lines are not wrapped, 0 when it is not shown."""


class Document(Protocol):
    """Lines in an order, of which some are known. A line is named by a number, `start`; later ones have higher ones.

    Methods raise Missing.
    """

    size: int
    """0 when there is no line; else how much there is, in bytes."""

    def first(self) -> int:
        """The first line."""
        ...

    def last(self) -> Line | None:
        """The last line; None when there is none."""
        ...

    def holds(self, start: int) -> bool:
        """Whether there is such a line, or something to load there."""
        ...

    def is_first(self, start: int) -> bool:
        """Whether this is known to be the first line."""
        ...

    def line_at(self, start: int) -> Line:
        """A line by its number."""
        ...

    def after(self, line: Line) -> int | None:
        """The next line; None when there is none."""
        ...

    def before(self, start: int) -> Line | None:
        """The line above; None at the top."""
        ...

    def text(self, line: Line) -> bytes:
        """A line's bytes."""
        ...

    def start_of(self, offset: int) -> int:
        """The line that a number belongs to, when it is not one itself."""
        ...

    def is_passing(self, line: Line) -> bool:
        """Whether what follows overwrites it: a state of a `\\r` bar that is not the last one."""
        ...

    def share(self, start: int) -> float:
        """How far down a line is, 0 to 1."""
        ...

    def place(self, start: int) -> tuple[int, int]:
        """Which log a line is of, and at which offset it begins there."""
        ...


class LogLines:
    """A bounded window of chunks over a growing file, read as lines."""

    def __init__(self, keep: int = KEEP) -> None:
        self.size = 0
        self._keep = keep
        self._chunks: OrderedDict[int, bytes] = OrderedDict()

    def first(self) -> int:
        """The first line."""
        return 0

    def last(self) -> Line | None:
        """The last line; None when there is none. Raises Missing."""
        return self.before(self.size)

    def holds(self, start: int) -> bool:
        """Whether the file goes on there."""
        return start < self.size

    def is_first(self, start: int) -> bool:
        """Whether this is the first line."""
        return start == 0

    def share(self, start: int) -> float:
        """How far down a byte is, 0 to 1."""
        return min(1.0, start / self.size) if self.size else 1.0

    def place(self, start: int) -> tuple[int, int]:
        """The only log, and the offset itself."""
        return 0, start

    def resize(self, size: int) -> None:
        """The file has this size now. A file that shrank is another file: what was known of it is forgotten."""
        if size < self.size:
            self._chunks.clear()
        self.size = size

    def put(self, index: int, data: bytes) -> None:
        """Bytes of chunk `index`, from its beginning."""
        self._chunks[index] = data
        self._chunks.move_to_end(index)
        while len(self._chunks) > self._keep:
            self._chunks.popitem(last=False)

    def known(self, index: int) -> bytes:
        """What is there of a chunk; perhaps nothing, perhaps not all of it."""
        return self._chunks.get(index, b"")

    def wanted(self, index: int) -> int:
        """How many bytes chunk `index` has in the file."""
        return max(0, min(CHUNK, self.size - index * CHUNK))

    def get(self, start: int, end: int) -> bytes:
        """The bytes between two offsets, cut at the file's ends. Raises Missing."""
        start, end = max(0, start), min(end, self.size)
        if start >= end:
            return b""
        parts = []
        for index in range(start // CHUNK, (end - 1) // CHUNK + 1):
            data = self._chunks.get(index)
            first, last = max(0, start - index * CHUNK), min(CHUNK, end - index * CHUNK)
            if data is None or len(data) < last:
                raise Missing(index)
            self._chunks.move_to_end(index)
            parts.append(data[first:last])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def text(self, line: Line) -> bytes:
        """A line's bytes. Raises Missing."""
        return self.get(line.start, line.end)

    def start_of(self, offset: int) -> int:
        """Where the line starts that holds the byte at `offset`. Raises Missing."""
        offset = max(0, min(offset, self.size))
        low = max(0, offset - 2 * PIECE)
        found = self.get(low, offset).rfind(b"\n")
        base = low + found + 1 if found >= 0 or low == 0 else low
        cut = offset // PIECE * PIECE
        if cut == offset and cut < self.size and self.get(cut, cut + 1) == b"\n":
            cut -= PIECE  # this line feed ends the line before the cut
        return max(cut, base) if cut - PIECE >= base else base

    def line_at(self, start: int) -> Line:
        """The line that starts at `start`, which must be a line's start. Raises Missing."""
        cut = -(-(start + PIECE) // PIECE) * PIECE
        found = self.get(start, cut + 1).find(b"\n")
        return Line(start, start + found if found >= 0 else min(cut, self.size))

    def after(self, line: Line) -> int | None:
        """Where the next line starts; None when there is none. Raises Missing."""
        end = line.end
        if end < self.size and self.get(end, end + 1) == b"\n":
            end += 1
        return end if end < self.size else None

    def is_passing(self, line: Line) -> bool:
        """Whether the next piece of the same line returns to its start, and so overwrites this one. Raises Missing."""
        end = line.end
        if end - line.start < PIECE // 2 or end >= self.size or end // PIECE % SHOWN_EVERY == 0:
            return False
        following = self.get(end, end + PIECE)
        return not following.startswith(b"\n") and b"\r" in following.partition(b"\n")[0][:-1]

    def before(self, start: int) -> Line | None:
        """The line above the one that starts at `start`, or at the file's end; None at the top. Raises Missing."""
        if start <= 0:
            return None
        return self.line_at(self.start_of(start - 1))


def rows_from(lines: Document, top: Anchor, height: int, rows_of: RowsOf) -> list[Row]:
    """The rows that fill `height` from `top` down; fewer at the end of the log. Raises Missing."""
    rows: list[Row] = []
    start: int | None = top.offset if lines.holds(top.offset) else None
    skip = top.row
    while start is not None and len(rows) < height:
        line = lines.line_at(start)
        count = rows_of(line)
        rows += [Row(line, row) for row in range(max(0, min(skip, count - 1)), count)][: height - len(rows)]
        skip = 0
        start = lines.after(line)
    return rows


def moved(lines: Document, top: Anchor, by: int, rows_of: RowsOf) -> Anchor:
    """The anchor `by` rows further down (or up, when negative), stopping at the ends. Raises Missing."""
    if lines.size == 0:
        return Anchor(0)
    offset, row = top
    line = lines.line_at(offset)
    row = max(0, min(row, rows_of(line) - 1)) + by
    while row < 0:
        above = lines.before(line.start)
        if above is None:
            return Anchor(line.start)
        line = above
        row += rows_of(line)
    while row >= rows_of(line):
        following = lines.after(line)
        if following is None:
            return Anchor(line.start, max(0, rows_of(line) - 1))
        row -= rows_of(line)
        line = lines.line_at(following)
    return Anchor(line.start, row)


def end_anchor(lines: Document, height: int, rows_of: RowsOf) -> Anchor:
    """The top row when the last row of the log is the last one on the screen. Raises Missing."""
    line = lines.last()
    if line is None:
        return Anchor(0)
    return moved(lines, Anchor(line.start, max(0, rows_of(line) - 1)), 1 - max(1, height), rows_of)
