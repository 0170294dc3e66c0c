"""One line to type what to look for in a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Input, Static

from trainwatch.widgets.logtext import clean


class SearchBar(Horizontal):
    """Text or a regular expression, and what became of the search."""

    BINDINGS: ClassVar = [
        Binding("escape,ctrl+c", "close", "close", show=False),
        Binding("ctrl+r", "regex", "text or expression", show=False),
    ]
    DEFAULT_CSS = """
    SearchBar { height: 1; }
    SearchBar .label { width: auto; padding: 0 1; }
    SearchBar Input { width: 1fr; max-width: 48; border: none; height: 1; padding: 0; }
    SearchBar .note { width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Wanted(Message):
        """Look for this."""

        text: str
        regex: bool

    @dataclass
    class Closed(Message):
        """No search any more."""

    def __init__(self) -> None:
        super().__init__()
        self.regex = False

    def compose(self) -> ComposeResult:
        """Mode, input, note."""
        yield Static("/ text", classes="label", markup=False)
        yield Input(placeholder="text to find", compact=True)
        yield Static("⏎ find · ctrl+r regex · esc close", classes="note", markup=False)

    def begin(self) -> None:
        """Take the keys."""
        field = self.query_one(Input)
        self.display = True
        self.screen.set_focus(field)  # now, not a moment later: the next key is the line's
        field.action_select_all()

    def say(self, note: str) -> None:
        """What became of the search, in a few words."""
        note = clean(note)
        self.query_one(".note", Static).update(Content(note))

    def action_close(self) -> None:
        """End the search."""
        self.post_message(self.Closed())

    def action_regex(self) -> None:
        """Text or a regular expression."""
        self.regex = not self.regex
        self.query_one(".label", Static).update(Content("/ regex" if self.regex else "/ text"))

    @on(Click, ".label")
    def _label_clicked(self) -> None:
        self.action_regex()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value:
            self.post_message(self.Wanted(event.value, self.regex))
        else:
            self.action_close()
