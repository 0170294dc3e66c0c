"""Where a query is in a line on screen. What is not on screen is searched where the log is, see the engine."""

from __future__ import annotations

from trainwatch.widgets.limited import limited
from trainwatch_launcher.reader.query import Query

LINE_SECONDS = 0.02
"""Processor time for the highlights of one line."""


def spans(query: Query, text: str) -> list[tuple[int, int]]:
    """Where a query is in a line, for highlighting; empty matches are left out. Raises TooSlowError."""
    with limited(LINE_SECONDS):
        return [found.span() for found in query.pattern.finditer(text) if found.end() > found.start()]
