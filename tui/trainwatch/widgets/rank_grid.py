"""A cell for each rank, drawn line by line: only lines of which a cell has another colour are painted again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from trainwatch import actions
from trainwatch.model import grid
from trainwatch.model.hues import HUES
from trainwatch.model.lens import ROOT, UNKNOWN
from trainwatch.widgets import states
from trainwatch.widgets.fit import fit
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

BLOCK, UPPER, LOWER, CURSOR, STAR = "■", "▀", "▄", "◆", "★"
SHADES = frozenset([*(f"heat-{n}" for n in range(5)), *(f"phase-{n}" for n in range(HUES)), ROOT, UNKNOWN])
Shades = Mapping[AttemptKey, str]
Line = tuple[tuple[str, str], ...]
"""(upper, lower) shade of each column; empty for nothing, and the lower one too where rows are not halved."""


def component(shade: str) -> str:
    """The component class that colours a shade."""
    return f"shade--{shade}" if shade in SHADES else states.component(shade)


def variable(shade: str) -> str:
    """The theme variable of a shade's colour."""
    return f"$shade-{shade}" if shade in SHADES else states.variable(shade)


def symbol(shade: str) -> str:
    """What stands for a shade where there is room for a shape: states have their own."""
    return states.symbol(shade) if shade in states.SYMBOLS else STAR if shade == ROOT else BLOCK


class RankGrid(ScrollView, can_focus=True):
    """Hosts and the cells of their ranks; one cell is selected."""

    BINDINGS = actions.bindings(actions.CELLS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rank-grid--name", "rank-grid--cursor", *(f"shade--{name}" for name in SHADES), *states.COMPONENTS,
    }  # fmt: skip
    DEFAULT_CSS = "RankGrid { overflow-x: hidden; scrollbar-size-vertical: 1; padding: 0; }"

    @dataclass
    class Selected(Message):
        """Another cell is selected."""

        key: AttemptKey | None

    @dataclass
    class Opened(Message):
        """A cell was clicked twice."""

        key: AttemptKey

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.selected: AttemptKey | None = None
        self._groups: tuple[tuple[str, tuple[AttemptKey, ...]], ...] = ()
        self._shades: Shades = {}
        self._title: Callable[[AttemptKey], str] = str
        self._labels: Mapping[AttemptKey, str] = {}
        self._layout = grid.Layout()
        self._arranged: tuple[object, Size, int] | None = None
        """What the cells were placed for."""
        self._rows: dict[int, list[AttemptKey]] = {}
        self._painted: dict[int, object] = {}
        self._styles: dict[tuple[str, str], Style] = {}

    # What is shown

    def show(
        self, groups: Sequence[tuple[str, tuple[AttemptKey, ...]]], shades: Shades, labels: Mapping[AttemptKey, str]
    ) -> None:
        """Show these hosts with the shades of their ranks, which are called as `labels` says."""
        self._shades, self._labels = shades, labels
        self._groups = tuple(groups)
        self._arrange()
        if self.selected not in self._layout.places:
            self._select(next(iter(self._layout.places), None))
        self._repaint_changed()

    def _arrange(self) -> None:
        """Place the cells, unless they stand where they should."""
        longest = max(map(len, self._labels.values()), default=1)
        wanted = (self._groups, self.size, longest)
        if wanted == self._arranged:
            return
        self._arranged = wanted
        layout = self._layout = grid.arrange(self._groups, self.size.width - 2, self.size.height, longest)
        self._rows = {}
        for key, (_, y) in layout.places.items():
            self._rows.setdefault(y, []).append(key)
        self.virtual_size = Size(self.size.width, layout.lines)
        self._painted.clear()
        self.refresh()
        self._into_view()

    def _repaint_changed(self) -> None:
        top = round(self.scroll_y)
        for y in range(self.size.height):
            if self._painted.get(y) != self._content(top + y):
                self.refresh(Region(0, y, self.size.width, 1))

    def _content(self, line: int) -> object:
        """All that decides what a line looks like."""
        return self._line(line), self._cursor_in(line)

    def _line(self, line: int) -> Line:
        columns = [["", ""] for _ in range(max(0, self.size.width - 1))]
        rows = (2 * line, 2 * line + 1) if self._layout.style.halves else (line,)
        for half, row in enumerate(rows):
            for key in self._rows.get(row, ()):
                x = self._layout.places[key][0] + 1
                if x < len(columns):
                    columns[x][half] = self._shades.get(key, UNKNOWN)
        return tuple((upper, lower) for upper, lower in columns)

    def _cursor_in(self, line: int) -> int | None:
        """The column of the selected cell, if it stands in this line."""
        if self.selected not in self._layout.places or self._layout.line_of(self.selected) != line:
            return None
        return self._layout.places[self.selected][0] + 1

    # Selection

    def select(self, key: AttemptKey) -> None:
        """Select a rank; one that is not shown is ignored."""
        if key in self._layout.places:
            self._select(key)

    def _select(self, key: AttemptKey | None) -> None:
        if key == self.selected:
            return
        self.selected = key
        self._into_view()
        self._repaint_changed()
        self.post_message(self.Selected(key))

    def _into_view(self) -> None:
        if self.selected not in self._layout.places:
            return
        line, top, height = self._layout.line_of(self.selected), round(self.scroll_y), max(1, self.size.height)
        if line < top:
            self.scroll_to(y=line, animate=False)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False)

    def _move(self, dx: int, dy: int) -> None:
        if self.selected in self._layout.places:
            self._select(self._layout.neighbour(self.selected, dx, dy))

    def action_cell_left(self) -> None:
        """To the cell at the left."""
        self._move(-1, 0)

    def action_cell_right(self) -> None:
        """To the cell at the right."""
        self._move(1, 0)

    def action_cell_up(self) -> None:
        """To the cell above."""
        self._move(0, -1)

    def action_cell_down(self) -> None:
        """To the cell below."""
        self._move(0, 1)

    def action_cell_first(self) -> None:
        """To the first rank."""
        self._select(next(iter(self._layout.places), None))

    def action_cell_last(self) -> None:
        """To the last rank."""
        self._select(next(reversed(self._layout.places), None))

    def _under(self, event: events.MouseEvent) -> AttemptKey | None:
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        line = offset.y + round(self.scroll_y)
        if not self._layout.style.halves:
            return self._layout.at(offset.x - 1, line)
        # a terminal's mouse knows whole lines: the upper cell, or the lower one when that is selected already
        cells = [key for key in (self._layout.at(offset.x - 1, 2 * line + half) for half in (0, 1)) if key is not None]
        others = [key for key in cells if key != self.selected]
        return others[0] if others else (cells[0] if cells else None)

    def on_click(self, event: events.Click) -> None:
        """Select a cell; open it on a double click."""
        event.stop()
        if event.chain == 2 and self.selected is not None:
            self.post_message(self.Opened(self.selected))
            return
        key = self._under(event)
        if key is not None:
            self._select(key)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Say which rank is under the mouse."""
        key = self._under(event)
        self.tooltip = None if key is None else self._title(key)

    def name_cells(self, title: Callable[[AttemptKey], str]) -> None:
        """What is said of a cell under the mouse."""
        self._title = title

    # Drawing

    def on_resize(self) -> None:
        """Larger or smaller cells."""
        self._arrange()

    def on_focus(self) -> None:
        """The cursor looks different."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor looks different."""
        self.refresh()

    def notify_style_update(self) -> None:
        """Colours changed."""
        super().notify_style_update()
        self._styles.clear()
        self._painted.clear()

    def render_line(self, y: int) -> Strip:
        """Names and cells of one line."""
        line = round(self.scroll_y) + y
        content, cursor = self._line(line), self._cursor_in(line)
        self._painted[y] = (content, cursor)
        halves = self._layout.style.halves
        segments: list[Segment] = []
        for upper, lower in content:
            segments.append(self._cell(upper, lower, halves))
        name_style = self.rich_style + self.get_component_rich_style("rank-grid--name", partial=True)
        if self._layout.style.numbered:
            self._number(segments, line)
        for name in self._layout.names:
            if name.y == line:
                segments[name.x + 1 : name.x + 1 + name.width] = [
                    Segment(character, name_style) for character in fit(clean(name.text), name.width)
                ]
        if cursor is not None and cursor < len(segments):
            mark = self.get_component_rich_style("rank-grid--cursor", partial=True)
            for at in range(cursor, min(len(segments), cursor + max(1, self._layout.style.pitch - 1))):
                shown = segments[at].text if not halves else CURSOR
                segments[at] = Segment(shown, (segments[at].style or Style.null()) + mark)
        return Strip(segments).simplify().adjust_cell_length(self.size.width, self.rich_style)

    def _number(self, segments: list[Segment], line: int) -> None:
        """Write the labels of a line's ranks into their cells."""
        for key in self._rows.get(line, ()):
            x = self._layout.places[key][0] + 2
            style = self._style(self._shades.get(key, UNKNOWN), "")
            for at, character in enumerate(self._labels.get(key, "").rjust(self._layout.style.pitch - 3), x):
                if at < len(segments):
                    segments[at] = Segment(character, style)

    def _cell(self, upper: str, lower: str, halves: bool) -> Segment:
        if not upper and not lower:
            return Segment(" ", self.rich_style)
        style = self._style(upper, lower)
        if not halves:
            return Segment(symbol(upper), style)
        return Segment(UPPER if upper else LOWER, style)

    def _style(self, upper: str, lower: str) -> Style:
        """The colours of one column: of both its halves where it has them."""
        style = self._styles.get((upper, lower))
        if style is None:
            style = self.rich_style + Style(color=self._colour(upper or lower))
            if upper and lower:
                style += Style(bgcolor=self._colour(lower))
            self._styles[upper, lower] = style
        return style

    def _colour(self, shade: str) -> Color | None:
        return self.get_component_rich_style(component(shade), partial=True).color
