"""Questions before something is asked of a worker."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from trainwatch.model import text
from trainwatch.model.rows import Row


class Confirm(ModalScreen[bool]):
    """Yes or no; Enter says what the focused button says, Esc says no."""

    BINDINGS: ClassVar = [
        Binding("y", "yes", "yes", show=False),
        Binding("n,escape", "no", "no", show=False),
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

    def on_mount(self) -> None:
        """Enter alone must not end a hold."""
        self.query_one("#no").focus()

    def action_yes(self) -> None:
        """Yes."""
        self.dismiss(True)

    def action_no(self) -> None:
        """No."""
        self.dismiss(False)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")


class AskDuration(ModalScreen[float]):
    """How much longer to hold; dismissed with seconds, or with None."""

    BINDINGS: ClassVar = [Binding("escape", "cancel", "cancel", show=False)]
    CHOICES = (("30m", 1800.0), ("2h", 7200.0), ("8h", 28800.0))

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        """What there is, three choices, and a line for any other length."""
        left = text.countdown(self._row.hold_left)
        with Vertical(classes="dialog"):
            yield Static(f"Hold rank {self._row.label} for longer", classes="question", markup=False)
            yield Static(f"{left} left now. The GPUs stay reserved as long as it is held.", markup=False)
            with Horizontal(classes="buttons"):
                for number, (label, _) in enumerate(self.CHOICES, 1):
                    yield Button(f"+{label} ({number})", id=f"choice-{number}", compact=True)
            yield Input(placeholder="or type: 45m, 3h, 1h30m", compact=True)
            yield Static("", classes="note", markup=False)

    def on_mount(self) -> None:
        """The first choice has the keys."""
        self.query_one("#choice-1").focus()

    def on_key(self, event: object) -> None:
        """1, 2 and 3 choose; any other digit begins to type."""
        key = getattr(event, "key", "")
        if key in ("1", "2", "3") and not self.query_one(Input).has_focus:
            self.dismiss(self.CHOICES[int(key) - 1][1])

    def action_cancel(self) -> None:
        """Leave it as it is."""
        self.dismiss(None)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        number = int((event.button.id or "choice-1").removeprefix("choice-"))
        self.dismiss(self.CHOICES[number - 1][1])

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        seconds = text.parse_duration(event.value)
        if seconds is None:
            self.query_one(".note", Static).update("write a length of time such as 45m, 3h or 1h30m")
        else:
            self.dismiss(seconds)
