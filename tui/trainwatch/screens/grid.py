"""All ranks at once: a cell each, coloured by what one wants to know."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult

from trainwatch import actions
from trainwatch.model import lens as lenses
from trainwatch.model.hues import Hues, hues_of
from trainwatch.screens.feed import Feed
from trainwatch.screens.run_screen import RunScreen
from trainwatch.widgets import header
from trainwatch.widgets.header import Bar, Part
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.rank_grid import RankGrid, symbol, variable
from trainwatch_launcher.reader.changes import AttemptKey

HUES_EVERY, SOON = 20.0, 2.0
"""Seconds after which phases may get other colours; when one has none yet."""


class GridScreen(RunScreen):
    """Header, cells, what their colours mean, and the selected rank in a line."""

    BINDINGS = actions.bindings(actions.GRID)
    SCOPES = (actions.GRID, actions.CELLS)

    def __init__(self, feed: Feed, key: AttemptKey | None) -> None:
        super().__init__(feed)
        self._first = key
        self._lens = lenses.STATE
        self._hues, self._hues_at = Hues(), float("-inf")

    @property
    def key(self) -> AttemptKey | None:
        """The selected attempt."""
        return self.grid.selected

    @property
    def grid(self) -> RankGrid:
        """The cells."""
        return self.query_one(RankGrid)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Bar(id="header")
        yield Bar(id="banner")
        yield RankGrid(id="grid")
        yield Bar(id="legend")
        yield Bar(id="selected", classes="pane-title")
        yield KeyBar(actions.GRID, actions.APP)

    def on_mount(self) -> None:
        """Keys go to the cells."""
        self.grid.focus()
        if self._first is not None:
            self.call_after_refresh(self.grid.select, self._first)

    def run_changed(self) -> None:
        """Cells whose rank looks different are painted again."""
        run, now = self.feed.run, self.feed.now()
        keys = [key for key in run.order if key not in run.superseded]
        failed = self.show_header(now).first
        root = failed.root if failed is not None else None
        view = lenses.look(run, keys, self._lens, now, self._hues_of(keys, now), root)
        groups: dict[str, list[AttemptKey]] = {}
        for key in keys:
            groups.setdefault(run.attempts[key].host, []).append(key)
        labels = {key: run.label(key) for key in keys}
        self.grid.show([(name, tuple(found)) for name, found in groups.items()], view.shades, labels)
        self.grid.name_cells(lambda key: f"rank {run.label(key)} {clean(run.attempts[key].host)}".strip())
        self.query_one(KeyBar).need(*(["why"] if failed is not None else []))
        self.query_one("#legend", Bar).show(legend_parts(self._lens, view, self.size.width))
        self._show_selected()

    def _hues_of(self, keys: Sequence[AttemptKey], now: float) -> Hues:
        """The colours of phases, where they are shown; found anew when there is another phase, and now and then."""
        if self._lens is lenses.PHASE:
            new = not self._hues.known.issuperset(lenses.phases_now(self.feed.run, keys))
            if not 0 <= now - self._hues_at < (SOON if new else HUES_EVERY):
                self._hues, self._hues_at = hues_of(self.feed.run), now
        return self._hues

    @on(RankGrid.Selected)
    def _show_selected(self) -> None:
        row = self.row
        self.query_one("#selected", Bar).show(self.title_of(row) if row is not None else [])

    def action_lens_next(self) -> None:
        """Colour by the next fact."""
        self._turn(1)

    def action_lens_previous(self) -> None:
        """Colour by the fact before it."""
        self._turn(-1)

    def _turn(self, by: int) -> None:
        at = lenses.LENSES.index(self._lens)
        self._lens = lenses.LENSES[(at + by) % len(lenses.LENSES)]
        self.run_changed()

    def action_timeline(self) -> None:
        """Phases over time."""
        from trainwatch.screens.timeline import TimelineScreen

        self.app.push_screen(TimelineScreen(self.feed, self.key))

    @on(RankGrid.Opened)
    def _opened(self) -> None:
        self.action_open()


def legend_parts(lens: lenses.Lens, view: lenses.View, width: int) -> list[Part]:
    """What the colours mean, and how many ranks have each."""
    parts: list[Part] = [(f" {lens.title}", "bold"), ("  ", "")]
    used = sum(cell_len(part) for part, _ in parts)
    for shade, meaning, count in view.legend:
        said = f" {header.fit_most(clean(meaning), 24)} {count}"
        if used + cell_len(said) + 4 > width:
            return [*parts, ("…", "$tw-muted")]
        parts += [(symbol(shade), variable(shade)), (said, ""), ("   ", "")]
        used += cell_len(said) + 4
    return parts
