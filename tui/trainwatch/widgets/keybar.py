"""The footer: the keys that matter here, as many as fit, each clickable."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from trainwatch import actions

ALWAYS = 80
"""Places in the footer from which on an action is never left out."""


def chosen(offered: list[actions.Action], width: int, needed: Collection[str] = ()) -> list[actions.Action]:
    """The actions that fit: the first ones, and always those that are needed now and those that lead out."""
    must = [action for action in offered if action.footer >= ALWAYS or action.name in needed]
    room = width - sum(_width(action) for action in must) - 2
    shown = list(must)
    for action in offered:
        if action not in must:
            room -= _width(action)
            if room < 0:
                break
            shown.append(action)
    return [action for action in offered if action in shown]


def _width(action: actions.Action) -> int:
    return cell_len(action.key) + 1 + cell_len(action.label) + 2


class KeyBar(Widget):
    """One line of keys and their words, from the action registry."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-bar--key", "key-bar--label"}
    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; }"

    def __init__(self, *scopes: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self._scopes = scopes
        self._needed: tuple[str, ...] = ()
        self._spans: list[tuple[int, int, actions.Action]] = []

    def show(self, *scopes: str, needed: tuple[str, ...] = ()) -> None:
        """Offer the actions of these scopes, those that are needed now also where room is short."""
        if (scopes, needed) != (self._scopes, self._needed):
            self._scopes, self._needed = scopes, needed
            self.refresh()

    def need(self, *names: str) -> None:
        """Offer these also where room is short."""
        self.show(*self._scopes, needed=names)

    def render_line(self, y: int) -> Strip:
        """The keys; where each is gets remembered for the mouse."""
        base = self.rich_style
        key = base + self.get_component_rich_style("key-bar--key", partial=True)
        label = base + self.get_component_rich_style("key-bar--label", partial=True)
        segments, self._spans, x = [Segment(" ", base)], [], 1
        for action in chosen(actions.footer(*self._scopes), self.size.width, self._needed):
            self._spans.append((x, x + _width(action) - 2, action))
            segments += [Segment(action.key, key), Segment(f" {action.label}  ", label)]
            x += _width(action)
        return Strip(segments).adjust_cell_length(self.size.width, base)

    async def on_click(self, event: events.Click) -> None:
        """Do what was clicked."""
        for first, last, action in self._spans:
            if first <= event.x < last:
                focused = self.screen.focused
                await perform(action, focused if focused is not None else self)
                return


async def perform(action: actions.Action, origin: Widget) -> bool:
    """Do an action as its key would: by the innermost of `origin`, what is around it, its screen and the app."""
    for node in origin.ancestors_with_self:
        if callable(getattr(node, f"action_{action.name}", None)):
            return bool(await origin.app.run_action(action.name, default_namespace=node))
    return False
