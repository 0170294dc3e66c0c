"""What stands where rows would be while there are none."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from trainwatch.model.state import Run
from trainwatch.widgets.header import Part
from trainwatch.widgets.logtext import clean


class Empty(Static):
    """A few calm words in the middle."""

    DEFAULT_CSS = "Empty { display: none; content-align: center middle; text-align: center; height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._parts: list[Part] = []

    def show(self, parts: list[Part]) -> None:
        """Say this."""
        if parts != self._parts:
            self._parts = parts
            self.update(Content.assemble(*parts))


def waiting_parts(run: Run, name: str, problem: str, loaded: bool) -> list[Part]:
    """Why there is no rank to see yet, and what would change that."""
    if problem:
        return [("The run cannot be read.\n\n", "bold $error"), (clean(problem), "")]
    if not loaded:
        return [(f"Reading {clean(name)} …", "$tw-muted")]
    expected = f"{run.world_size} expected; " if run.world_size else ""
    return [
        ("No rank has reported yet.\n\n", "bold"),
        (f"{expected}looking in {clean(name)}\n\n", ""),
        ("Ranks appear here as soon as their launchers start.", "$tw-muted"),
    ]
