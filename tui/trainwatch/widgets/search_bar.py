"""One line to type in below a log: what to look for, which lines to show or hide, where to go, where to save."""

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

FIND, SHOW, HIDE, LINE, TIME, SAVE = "find", "show", "hide", "line", "time", "save"


@dataclass(frozen=True)
class Mode:
    """What a line is typed for."""

    sign: str
    """What stands before it."""
    placeholder: str
    note: str
    """What one may do, until there is something else to say."""
    takes_regex: bool = False


MODES = {
    FIND: Mode("/", "text to find", "⏎ find · ctrl+r regex · esc close", True),
    SHOW: Mode("&", "show only lines with", "⏎ show only these · empty shows all · ctrl+r regex · esc close", True),
    HIDE: Mode("-", "hide lines with", "⏎ hide · empty hides none · ctrl+r regex · esc close", True),
    LINE: Mode(": line", "number", "⏎ go there · esc close"),
    TIME: Mode("T time", "-10m or 12:31:05", "⏎ go there: -10m from the end, 12:31:05, 2025-11-30 12:31 · esc close"),
    SAVE: Mode("save", "file", "⏎ write · esc close"),
}


class SearchBar(Horizontal):
    """What is typed, what it is for, and what became of it."""

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
    class Typed(Message):
        """This stands there now; nobody has said that it is all."""

        mode: str
        text: str
        regex: bool

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, SearchBar.Typed)

    @dataclass
    class Wanted(Message):
        """This is what was typed."""

        mode: str
        text: str
        regex: bool

    @dataclass
    class Closed(Message):
        """It was left without an answer."""

        mode: str

    def __init__(self) -> None:
        super().__init__()
        self.regex = False
        self.mode = FIND

    def compose(self) -> ComposeResult:
        """Mode, input, note."""
        mode = MODES[FIND]
        yield Static(f"{mode.sign} text", classes="label", markup=False)
        yield Input(placeholder=mode.placeholder, compact=True)
        yield Static(mode.note, classes="note", markup=False)

    def begin(self, mode: str = FIND, text: str | None = None) -> None:
        """Take the keys. What was looked for before is offered again; `text` otherwise."""
        field = self.query_one(Input)
        if mode != self.mode or text is not None:
            with field.prevent(Input.Changed):
                field.value = text or ""
        self.mode = mode
        field.placeholder = MODES[mode].placeholder
        self._label()
        self.say(MODES[mode].note)
        self.display = True
        self.screen.set_focus(field)  # now, not a moment later: the next key is the line's
        field.action_select_all()

    def say(self, note: str) -> None:
        """What became of it, in a few words."""
        note = clean(note)
        self.query_one(".note", Static).update(Content(note))

    def action_close(self) -> None:
        """Leave."""
        self.post_message(self.Closed(self.mode))

    def action_regex(self) -> None:
        """Text or a regular expression."""
        if MODES[self.mode].takes_regex:
            self.regex = not self.regex
            self._label()
            self._tell_typed(self.query_one(Input).value)

    def _label(self) -> None:
        mode = MODES[self.mode]
        kind = "" if not mode.takes_regex else " regex" if self.regex else " text"
        self.query_one(".label", Static).update(Content(mode.sign + kind))

    @on(Click, ".label")
    def _label_clicked(self) -> None:
        self.action_regex()

    def _tell_typed(self, text: str) -> None:
        self.post_message(self.Typed(self.mode, text, self.regex))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell_typed(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value or self.mode in (SHOW, HIDE):
            self.post_message(self.Wanted(self.mode, event.value, self.regex))
        else:
            self.action_close()
