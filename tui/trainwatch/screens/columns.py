"""Which columns the table of ranks has, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from trainwatch.screens.once import Dialog
from trainwatch.widgets.columns import COLUMNS, RANK

MEANINGS = {
    "host": "where it runs", "state": "how it stands", "phase": "what it does", "age": "since when it does",
    "step": "training step", "rate": "tokens, samples or steps a second", "eta": "time left", "loss": "and its course",
    "gpu": "how busy its GPUs are", "mem": "memory of its fullest GPU", "exit": "exit code", "hold": "time left of it",
    "quiet": "since its last output", "last line": "of its output",
}  # fmt: skip


class ChooseColumns(Dialog[tuple[str, ...]]):
    """A list to tick and to reorder; dismissed with titles, with none for those that the width allows, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
        Binding("space", "tick", "show or hide", show=False),
        Binding("J,shift+down,plus", "move(1)", show=False),
        Binding("K,shift+up,minus", "move(-1)", show=False),
        Binding("a", "automatic", "as the width allows", show=False),
        Binding("enter", "done", "done", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ChooseColumns OptionList { height: auto; max-height: 100%; border: none; background: transparent; padding: 0; }
    ChooseColumns .hint { color: $tw-muted; margin-top: 1; }
    """

    def __init__(self, chosen: Sequence[str], shown: Sequence[str]) -> None:
        super().__init__()
        titles = [column.title for column in COLUMNS if column is not RANK]
        ticked = [title for title in (chosen or shown) if title in titles]
        self._order = [*ticked, *(title for title in titles if title not in ticked)]
        self._ticked = set(ticked)

    def compose(self) -> ComposeResult:
        """The list, and the keys."""
        with Vertical(classes="dialog"):
            yield Static("Columns behind the rank", classes="question", markup=False)
            yield OptionList(*map(Option, self._lines()), markup=False, compact=True)
            yield Static("space shows or hides · J K move · a automatic · ⏎ done", classes="hint", markup=False)

    def on_mount(self) -> None:
        """Keys go to the list."""
        self.query_one(OptionList).focus()

    def _lines(self) -> list[str]:
        return [f"{'●' if title in self._ticked else '○'} {title:<10} {MEANINGS[title]}" for title in self._order]

    def _renew(self, at: int) -> None:
        found = self.query_one(OptionList)
        for index, line in enumerate(self._lines()):
            found.replace_option_prompt_at_index(index, line)
        found.highlighted = at

    @property
    def _at(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def action_cursor(self, by: int) -> None:
        """Up or down."""
        self.query_one(OptionList).highlighted = max(0, min(len(self._order) - 1, self._at + by))

    def action_tick(self) -> None:
        """Show the column, or hide it."""
        self._ticked ^= {self._order[self._at]}
        self._renew(self._at)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_tick()

    def action_move(self, by: int) -> None:
        """The column a place further, or back."""
        at, to = self._at, self._at + by
        if 0 <= to < len(self._order):
            self._order[at], self._order[to] = self._order[to], self._order[at]
            self._renew(to)

    def action_automatic(self) -> None:
        """Those that the width allows."""
        self.dismiss(())

    def action_done(self) -> None:
        """The ticked ones, in this order; with none ticked, nothing was chosen."""
        self.dismiss(tuple(title for title in self._order if title in self._ticked))
