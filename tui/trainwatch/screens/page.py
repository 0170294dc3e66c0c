"""A page of text over the screen: help, problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from trainwatch.screens.once import Dialog
from trainwatch.widgets.header import Part

Draw = Callable[[int], list[Part]]
"""Makes a text for lines of so many cells."""


class Flowing(Widget):
    """Text that is laid out anew for the width that it gets."""

    DEFAULT_CSS = "Flowing { height: auto; }"

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self._draw = draw

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Lines at this width."""
        return len("".join(text for text, _ in self._draw(width)).rstrip("\n").split("\n"))

    def render(self) -> Content:
        """The text for the width that it has."""
        return Content.assemble(*self._draw(self.content_size.width)).rstrip("\n")


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

    def __init__(self, title: str, draw: Draw = lambda _: []) -> None:
        super().__init__()
        self._title, self._text = title, draw

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with VerticalScroll(classes="page") as scroll:
            scroll.border_title = self._title
            scroll.border_subtitle = self.SUBTITLE
            yield self.content()

    def content(self) -> Widget:
        """What is in the frame."""
        return Flowing(self._text)

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
