"""Text in so many cells."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

LEAST_PATH = 8
"""Cells of a path that are worth showing."""


def fit(text: str, width: int, right: bool = False, keep_end: bool = False) -> str:
    """Text in exactly so many cells, cut with an ellipsis where it is longer."""
    length = cell_len(text)
    if length > width and keep_end:
        return "…" + set_cell_size(text[::-1], max(0, width - 1))[::-1]
    if length > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)


def fit_frame(line: str, width: int) -> str:
    """A log's line in at most so many cells; in a frame of a traceback the path gives way, the line's number stays."""
    head, opened, rest = line.partition('File "')
    path, closed, where = rest.rpartition('", line ')
    room = width - cell_len(head + opened + closed + where)
    if closed and room >= LEAST_PATH and cell_len(line) > width:
        return head + opened + fit(path, room, keep_end=True) + closed + where
    return line if cell_len(line) <= width else fit(line, max(1, width)).rstrip()
