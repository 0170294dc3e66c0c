"""A page of text over the screen: help, problems."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from trainwatch.screens.once import Dialog
from trainwatch.widgets.header import Part


class Page(Dialog[None]):
    """A title and text that scrolls; Esc or q closes it."""

    SUBTITLE = "esc closes"
    BINDINGS: ClassVar = [
        Binding("q,question_mark", "close", "close", show=False),
        Binding("j", "line(1)", "down", show=False),
        Binding("k", "line(-1)", "up", show=False),
        Binding("g", "end(-1)", "top", show=False),
        Binding("G", "end(1)", "bottom", show=False),
    ]

    def __init__(self, title: str, parts: list[Part]) -> None:
        super().__init__()
        self._title, self._parts = title, parts

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with VerticalScroll(classes="page") as scroll:
            scroll.border_title = self._title
            scroll.border_subtitle = self.SUBTITLE
            yield self.content()

    def content(self) -> Widget:
        """What is in the frame."""
        return Static(Content.assemble(*self._parts), markup=False)

    def on_click(self, event: object) -> None:
        """A click outside closes it."""
        if getattr(event, "widget", None) is self:
            self.dismiss()

    def action_line(self, direction: int) -> None:
        """Scroll a line."""
        self.query_one(VerticalScroll).scroll_relative(y=direction, animate=False)

    def action_end(self, direction: int) -> None:
        """To the top or the bottom."""
        scroll = self.query_one(VerticalScroll)
        scroll.scroll_to(y=0 if direction < 0 else scroll.max_scroll_y, animate=False)
