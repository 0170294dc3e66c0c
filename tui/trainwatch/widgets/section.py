"""A titled part of a page."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from trainwatch.widgets.header import Part


class Section(Static):
    """Text under a title and a thin rule."""

    DEFAULT_CSS = """
    Section { height: auto; padding: 0 1; margin-bottom: 1; }
    Section { border-top: solid $tw-rule; border-title-color: $tw-header; }
    """

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self.border_title = title
        self._parts: list[Part] = []

    def show(self, parts: list[Part]) -> None:
        """Say this; nothing is repainted when it is what is there."""
        if parts != self._parts:
            self._parts = parts
            self.update(Content.assemble(*parts).rstrip())
