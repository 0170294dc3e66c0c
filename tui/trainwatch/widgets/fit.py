"""Text in so many cells."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def fit(text: str, width: int, right: bool = False, keep_end: bool = False) -> str:
    """Text in exactly so many cells, cut with an ellipsis where it is longer."""
    length = cell_len(text)
    if length > width and keep_end:
        return "…" + set_cell_size(text[::-1], max(0, width - 1))[::-1]
    if length > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)
