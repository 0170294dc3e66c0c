"""One line to type which ranks to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from trainwatch.model.query import EXAMPLES
from trainwatch.widgets.logtext import clean

Complete = Callable[[str], str | None]


class _Completion(Suggester):
    """What may be meant stands behind what is typed; the right arrow takes it."""

    def __init__(self, complete: Complete) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The whole line, completed."""
        return self._complete(value)


class FilterBar(Horizontal):
    """A filter, applied as it is typed, and why it cannot be understood."""

    BINDINGS: ClassVar = [Binding("ctrl+c", "close", "close", show=False)]

    DEFAULT_CSS = """
    FilterBar { height: 1; }
    FilterBar .label { width: auto; padding: 0 1; }
    FilterBar Input { width: 1fr; max-width: 72; border: none; height: 1; padding: 0; }
    FilterBar .note { width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Typed(Message):
        """The filter is another one."""

        query: str

    @dataclass
    class Done(Message):
        """Enter was pressed: the keys go back to the table."""

        query: str

    @dataclass
    class Closed(Message):
        """No filter any more."""

    def compose(self) -> ComposeResult:
        """Label, input, note."""
        yield Static("/ ranks", classes="label", markup=False)
        yield Input(placeholder=EXAMPLES, compact=True, suggester=_Completion(lambda _: None))
        yield Static("", classes="note", markup=False)

    def begin(self, complete: Complete) -> None:
        """Take the keys; `complete` gives what is typed as it may be meant."""
        self.query_one(Input).suggester = _Completion(complete)
        self.display = True
        self.screen.set_focus(self.query_one(Input))  # now, not a moment later: the next key is the line's

    def set(self, query: str) -> None:
        """Put this filter there."""
        self.query_one(Input).value = query

    def say(self, note: str, error: bool = False) -> None:
        """How many ranks match, or what is wrong."""
        self.set_class(error, "-error")
        self.query_one(".note", Static).update(Content(clean(note)))

    def action_close(self) -> None:
        """Do without."""
        self.post_message(self.Closed())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Done(event.value))
