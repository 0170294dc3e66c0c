"""Lines over offsets: the same lines from above and from below, in bounded work, whatever is known of the file."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.widgets.log_lines import (
    CHUNK,
    PIECE,
    Anchor,
    Line,
    LogLines,
    Missing,
    end_anchor,
    moved,
    rows_from,
)

LENGTHS = st.lists(st.one_of(st.integers(0, 200), st.sampled_from(
    [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7, CHUNK, CHUNK + 1])), min_size=1, max_size=12)  # fmt: skip


class File:
    """A file in memory, and lines that load what they miss from it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = LogLines()
        self.lines.resize(len(data))
        self.loaded = 0

    def call(self, work):
        while True:
            try:
                return work()
            except Missing as missing:
                at = missing.index * CHUNK
                self.loaded += CHUNK
                self.lines.put(missing.index, self.data[at:at + CHUNK])

    def all_forward(self) -> list[Line]:
        found: list[Line] = []
        start = 0 if self.data else None
        while start is not None:
            found.append(self.call(lambda at=start: self.lines.line_at(at)))
            start = self.call(lambda: self.lines.after(found[-1]))
        return found

    def all_backward(self) -> list[Line]:
        found: list[Line] = []
        line = self.call(lambda: self.lines.before(len(self.data)))
        while line is not None:
            found.append(line)
            line = self.call(lambda at=line.start: self.lines.before(at))
        return found[::-1]


def one(_: Line) -> int:
    return 1


@given(LENGTHS, st.booleans())
def test_lines_are_the_same_from_above_and_from_below(lengths, ended):
    data = b"\n".join(b"x" * length for length in lengths) + (b"\n" if ended else b"")
    file = File(data)
    forward = file.all_forward()
    assert forward == file.all_backward()
    assert all(line.end - line.start <= 2 * PIECE for line in forward)
    joined = b"".join(data[line.start:line.end] for line in forward)
    assert joined == data.replace(b"\n", b"")


@given(LENGTHS, st.floats(0, 1))
def test_any_byte_leads_to_its_line(lengths, share):
    file = File(b"\n".join(b"x" * length for length in lengths) + b"\n")
    offset = min(int(len(file.data) * share), len(file.data) - 1)
    start = file.call(lambda: file.lines.start_of(offset))
    # the last that begins before it: where a long line is cut, one piece ends at the byte that the next begins with
    line = [line for line in file.all_forward() if line.start <= offset][-1]
    assert start == line.start


def test_short_lines_are_what_lies_between_line_feeds():
    file = File(b"one\n\nthree")
    assert [file.data[line.start:line.end] for line in file.all_forward()] == [b"one", b"", b"three"]


def test_opening_at_the_end_of_a_big_file_reads_little():
    file = File(b"0123456789abcdef\n" * 400_000)
    top = file.call(lambda: end_anchor(file.lines, 45, one))
    rows = file.call(lambda: rows_from(file.lines, top, 45, one))
    assert len(rows) == 45
    assert rows[-1].line.end == len(file.data) - 1
    assert file.loaded <= 2 * CHUNK


def test_memory_is_bounded_whatever_is_scrolled_through():
    file = File(b"x" * 99 + b"\n" * 1 + (b"y" * 99 + b"\n") * 100_000)
    anchor = Anchor(0)
    for _ in range(60):
        anchor = file.call(lambda at=anchor: moved(file.lines, at, 1500, one))
    assert len(file.lines._chunks) <= 48


def test_moving_stops_at_both_ends():
    file = File(b"a\nb\nc\n")
    assert file.call(lambda: moved(file.lines, Anchor(2), -5, one)) == Anchor(0)
    assert file.call(lambda: moved(file.lines, Anchor(0), 99, one)) == Anchor(4)
    assert file.call(lambda: end_anchor(file.lines, 2, one)) == Anchor(2)


def test_wrapped_lines_are_scrolled_row_by_row():
    file = File(b"a" * 25 + b"\nb\n")

    def rows_of(line: Line) -> int:
        return max(1, -(-(line.end - line.start) // 10))

    assert file.call(lambda: moved(file.lines, Anchor(0), 2, rows_of)) == Anchor(0, 2)
    assert file.call(lambda: moved(file.lines, Anchor(0, 2), 1, rows_of)) == Anchor(26)
    assert file.call(lambda: moved(file.lines, Anchor(26), -2, rows_of)) == Anchor(0, 1)
    rows = file.call(lambda: rows_from(file.lines, Anchor(0, 1), 10, rows_of))
    assert [(row.line.start, row.row) for row in rows] == [(0, 1), (0, 2), (26, 0)]


def test_an_empty_file_has_no_rows():
    lines = LogLines()
    assert rows_from(lines, Anchor(0), 10, one) == []
    assert end_anchor(lines, 10, one) == Anchor(0)
    assert moved(lines, Anchor(0), 3, one) == Anchor(0)


def test_a_file_that_shrank_is_another_file():
    file = File(b"old\n" * 10)
    file.all_forward()
    file.lines.resize(4)
    with pytest.raises(Missing):
        file.lines.line_at(0)


def test_a_chunk_that_has_grown_is_missed_again():
    file = File(b"one\n")
    file.all_forward()
    file.data += b"two\n"
    file.lines.resize(8)
    assert [file.data[line.start:line.end] for line in file.all_forward()] == [b"one", b"two"]
