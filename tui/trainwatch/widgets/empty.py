"""What stands where rows would be while there are none."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from trainwatch.link import Link
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


SHOWN_HOSTS = 3


def waiting_parts(run: Run, name: str, problem: str, loaded: bool, links: Sequence[Link] = ()) -> list[Part]:
    """Why there is no rank to see yet, and what would change that."""
    if problem:
        return [("The run cannot be read.\n\n", "bold $error"), (clean(problem), "")]
    bad = [link for link in links if not link.up and link.reason]
    if bad:
        return unreached_parts(bad, len(links))
    if not loaded:
        return [(f"Reading {clean(name)} …", "$tw-muted")]
    expected = f"{run.world_size} expected; " if run.world_size else ""
    return [
        ("No rank has reported yet.\n\n", "bold"),
        (f"{expected}looking in {clean(name)}\n\n", ""),
        ("Ranks appear here as soon as their launchers start.", "$tw-muted"),
    ]


def unreached_parts(bad: Sequence[Link], hosts: int) -> list[Part]:
    """Which hosts cannot be reached, and why."""
    parts: list[Part] = [(f"{len(bad)} of {hosts} hosts cannot be reached.\n\n" if hosts > 1 else "", "bold")]
    parts += [(f"{clean(link.name)} is {link.state}: {clean(link.reason)}\n", "") for link in bad[:SHOWN_HOSTS]]
    if len(bad) > SHOWN_HOSTS:
        parts.append((f"and {len(bad) - SHOWN_HOSTS} more\n", "$tw-muted"))
    return [*parts, ("\nH shows all hosts.", "$tw-muted")]
