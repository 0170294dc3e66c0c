"""Questions before something is asked of a worker."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key
from textual.widgets import Button, Input, Static

from trainwatch.model import text
from trainwatch.model.rows import Row
from trainwatch.screens.once import Dialog


class Confirm(Dialog[bool]):
    """Yes or no; Enter says what the focused button says, Esc says no. Enter alone must not end a hold."""

    AUTO_FOCUS = "#no"

    BINDINGS: ClassVar = [
        Binding("y", "yes", "yes", show=False),
        Binding("n", "close", "no", show=False),
        Binding("left,right,h,l", "app.focus_next", "other", show=False),
    ]

    def __init__(self, question: str, said: str, yes: str) -> None:
        super().__init__()
        self._question, self._said, self._yes = question, said, yes

    def compose(self) -> ComposeResult:
        """The question, what will happen, two buttons."""
        with Vertical(classes="dialog"):
            yield Static(self._question, classes="question", markup=False)
            yield Static(self._said, markup=False)
            with Horizontal(classes="buttons"):
                yield Button(f"{self._yes} (y)", id="yes", variant="error", compact=True)
                yield Button("Cancel (n)", id="no", compact=True)

    def action_yes(self) -> None:
        """Yes."""
        self.dismiss(True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")


class AskDuration(Dialog[float]):
    """How much longer to hold; dismissed with seconds, or with None.

    What is typed is a length of time from the first key on; nothing is done before Enter.
    """

    AUTO_FOCUS = "Input"
    CHOICES = ("30m", "2h", "8h")
    """The first one is what Enter alone means."""
    BINDINGS: ClassVar = [
        Binding("down,right", "app.focus_next", "next", show=False),
        Binding("up,left", "app.focus_previous", "previous", show=False),
    ]
    DEFAULT_CSS = """
    AskDuration .hint { width: auto; color: $tw-muted; margin-right: 2; }
    AskDuration .note { color: $tw-muted; margin-top: 1; }
    AskDuration.-error .note { color: $error; }
    """

    def __init__(self, name: str, row: Row) -> None:
        super().__init__()
        self._held, self._row = name, row
        self._ahead = ""

    def compose(self) -> ComposeResult:
        """What there is, a line to type, three choices, and what would come of it."""
        left = text.countdown(self._row.hold_left)
        with Vertical(classes="dialog"):
            yield Static(f"Hold {self._held} for longer", classes="question", markup=False)
            yield Static(f"{left} left now. The GPUs stay reserved as long as it is held.", markup=False)
            yield Input(placeholder=f"{self.CHOICES[0]}, or type 45m, 3h, 1h30m", compact=True)
            with Horizontal(classes="buttons"):
                yield Static("or ↓", classes="hint", markup=False)
                for choice in self.CHOICES:
                    yield Button(f"+{choice}", name=choice, compact=True)
            yield Static("", classes="note", markup=False)

    def on_mount(self) -> None:
        """The keys are the line's, those that came before it was there too."""
        for field in self.query(Input):
            field.insert_text_at_cursor(self._ahead)

    def type_ahead(self, character: str) -> None:
        """A character that was typed where it could not go to the line by itself."""
        if self.is_mounted:
            field = self.query_one(Input)
            self.set_focus(field)
            field.insert_text_at_cursor(character)
        else:
            self._ahead += character

    def on_key(self, event: Key) -> None:
        """Whoever types on a button means the line."""
        if event.is_printable and event.character is not None:
            event.stop()
            self.type_ahead(event.character)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._say(event.value.strip() or self.CHOICES[0])

    def on_descendant_focus(self) -> None:
        """Say what Enter would do now."""
        focused = self.focused
        if isinstance(focused, Button):
            self._say(focused.name or "")
        elif isinstance(focused, Input):
            self._say(focused.value.strip() or self.CHOICES[0])

    def _say(self, written: str) -> None:
        """What such an extension would mean; nothing while what is typed is no length of time yet."""
        seconds, row = text.parse_duration(written), self._row
        said = ""
        if seconds is not None and row.hold_left is not None and row.hold_until is not None:
            now = row.hold_until - row.hold_left
            until = text.time_of_day(row.hold_until + seconds, now)
            left = text.countdown(row.hold_left + seconds)
            said = f"⏎ +{text.duration(seconds)}: held until {until}, {left} from now"
        self._note(said)

    def _note(self, said: str, error: bool = False) -> None:
        self.set_class(error, "-error")
        self.query_one(".note", Static).update(said)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self._accept(event.button.name or "")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._accept(event.value.strip() or self.CHOICES[0])

    def _accept(self, written: str) -> None:
        seconds = text.parse_duration(written)
        if seconds is None:
            self._note(f"“{written}” is no length of time (up to 366 days); write 45m, 3h or 1h30m", error=True)
        else:
            self.dismiss(seconds)
