"""The table of ranks, drawn line by line: it repaints the rows that changed and costs the same for 4 ranks or 4,096."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from trainwatch import actions
from trainwatch.model.order import Entry, Group
from trainwatch.model.rows import Row
from trainwatch.widgets import columns, group_line, states
from trainwatch.widgets.fit import fit
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

MARK = "◆"
"""Before a row that is marked."""
Cells = tuple[columns.Cell, ...]
Place = AttemptKey | tuple[str, str]
"""What tells a line from all others: a rank's attempt, or what its group is by and called."""


class RankTable(ScrollView, can_focus=True):
    """Rows, and lines of their groups, in the order given; selection is by key and survives sorting and growth."""

    BINDINGS = actions.bindings(actions.TABLE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rank-table--header", "rank-table--sorted", "rank-table--cursor", "rank-table--label", "rank-table--plain",
        "rank-table--phase", "rank-table--muted", "rank-table--warning", "rank-table--bad", "rank-table--picture",
        *states.COMPONENTS,
    }  # fmt: skip
    DEFAULT_CSS = """
    RankTable { overflow-x: hidden; scrollbar-size-vertical: 1; padding: 0; }
    """

    @dataclass
    class Folding(Message):
        """A group is to be folded, or unfolded."""

        name: str

    @dataclass
    class Selected(Message):
        """Another row is selected, or none is left."""

        key: AttemptKey | None
        by_person: bool = False

        def can_replace(self, message: Message) -> bool:
            """Only the newest selection counts."""
            return isinstance(message, RankTable.Selected)

    @dataclass
    class Opened(Message):
        """A row was double-clicked."""

        key: AttemptKey

    @dataclass
    class HeaderClicked(Message):
        """A column that one can sort by was clicked."""

        sort: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[Row] = ()
        """The rows that are shown, without the lines of groups."""
        self._entries: Sequence[Entry] = ()
        self._index: dict[Place, int] = {}
        self._at: Place | None = None
        self._chosen: Place | None = None
        self._columns: tuple[str, ...] = ()
        self._layout: list[tuple[columns.Column, int]] = []
        self._content: dict[str, int] = columns.content_widths(())
        self._painted: dict[int, Cells] = {}
        self._strips: dict[tuple[Cells, bool, bool], Strip] = {}
        self._sort = ("rank", False)
        self._marked: set[AttemptKey] = set()

    # What is shown

    def show(
        self, entries: Sequence[Entry], rows: Sequence[Row], sort: str, reverse: bool, chosen: tuple[str, ...] = ()
    ) -> None:
        """Show these rows and groups, in this order, sorted as the header shall say, in the `chosen` columns.

        `rows` are those that columns must have room for, in folded groups too.
        """
        old_count = len(self._entries)
        self._entries = entries
        self.rows = [entry for entry in entries if isinstance(entry, Row)]
        self._index = {place_of(entry): index for index, entry in enumerate(entries)}
        content = columns.content_widths(rows)
        if content != self._content or (sort, reverse) != self._sort or chosen != self._columns:
            self._content, self._sort, self._columns = content, (sort, reverse), chosen
            self._arrange()
        if old_count != len(entries):
            self.virtual_size = Size(self.size.width, len(entries) + 1)
        self._keep_selection()
        self._repaint_changed()

    def renew(self, newest: Callable[[Row], Row]) -> None:
        """Bring the rows on screen up to date, and repaint those that changed; the order stays."""
        first, last = self._visible()
        entries = list(self._entries)
        entries[first:last] = [newest(one) if isinstance(one, Row) else one for one in entries[first:last]]
        self._entries = entries
        self._repaint_changed()

    @property
    def seen(self) -> list[AttemptKey]:
        """The ranks whose rows are on the screen."""
        first, last = self._visible()
        return [entry.key for entry in self._entries[first:last] if isinstance(entry, Row)]

    @property
    def selected(self) -> AttemptKey | None:
        """The selected rank; None when there is none, or when a group is selected."""
        return self._at if isinstance(self._at, AttemptKey) else None

    @property
    def group(self) -> Group | None:
        """The selected group, if one is."""
        index = self._index.get(self._at) if self._at is not None else None
        entry = self._entries[index] if index is not None else None
        return entry if isinstance(entry, Group) else None

    def action_fold(self) -> None:
        """Fold or unfold the selected group, or the one that the selected rank is in."""
        index = self._index.get(self._at) if self._at is not None else None
        above = self._entries[index::-1] if index is not None else ()
        group = next((entry for entry in above if isinstance(entry, Group)), None)
        if group is not None:
            self._at = self._chosen = place_of(group)
            self.post_message(self.Folding(group.name))

    @property
    def titles(self) -> list[str]:
        """The columns on screen."""
        return [column.title for column, _ in self._layout]

    @property
    def sort_keys(self) -> list[str]:
        """What one can sort by, in the order of the columns on screen."""
        return [column.sort for column, _ in self._layout if column.sort]

    # Marks

    @property
    def marked(self) -> list[AttemptKey]:
        """The marked rows by rank, also those that are filtered away."""
        return sorted(self._marked)

    def toggle_mark(self) -> None:
        """Mark the selected row, or take its mark back, and go on to the next row."""
        if self.selected is not None:
            self._marked ^= {self.selected}
            self.refresh_line(self._index[self.selected] + 1)
            self._move(1)

    def unmark(self) -> None:
        """Take all marks back."""
        self._marked.clear()
        self.refresh()

    # Selection

    def select(self, key: AttemptKey) -> None:
        """Select a row and bring it into view; a key that is not shown is ignored."""
        if key in self._index:
            self._select_index(self._index[key], by_person=False)

    def _select_index(self, index: int, by_person: bool = True) -> None:
        if not self._entries:
            return
        old = self._index.get(self._at) if self._at is not None else None
        index = max(0, min(index, len(self._entries) - 1))
        self._at = self._chosen = place_of(self._entries[index])
        for line in {old, index} - {None}:
            self.refresh_line(line + 1)  # type: ignore[operator]
        self._bring_into_view(index)
        if old != index:
            self.post_message(self.Selected(self.selected, by_person))

    def _keep_selection(self) -> None:
        """The row that was chosen stays selected; while it is filtered away, the first one is, until it is back."""
        before = self._at
        if self._chosen in self._index:
            self._at = self._chosen
        elif self._at not in self._index:
            first = self.rows[0] if self.rows else next(iter(self._entries), None)
            self._at = place_of(first) if first is not None else None
        if self._at != before:
            self.post_message(self.Selected(self.selected))

    def _bring_into_view(self, index: int) -> None:
        top, height = round(self.scroll_y), max(1, self.size.height - 1)
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif index >= top + height:
            self.scroll_to(y=index - height + 1, animate=False)

    def _move(self, by: int) -> None:
        index = self._index.get(self._at, 0) if self._at is not None else 0
        self._select_index(index + by)

    def action_down(self) -> None:
        """One row down."""
        self._move(1)

    def action_up(self) -> None:
        """One row up."""
        self._move(-1)

    def action_first(self) -> None:
        """To the first row."""
        self._select_index(0)

    def action_last(self) -> None:
        """To the last row."""
        self._select_index(len(self._entries) - 1)

    def action_page_down(self) -> None:
        """A page down."""
        self._move(max(1, self.size.height - 2))

    def action_page_up(self) -> None:
        """A page up."""
        self._move(-max(1, self.size.height - 2))

    def on_click(self, event: events.Click) -> None:
        """Select a row, open or fold it on a double click, or sort by a column."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == 0:
            sort = self._column_at(offset.x).sort
            if sort:
                self.post_message(self.HeaderClicked(sort))
            return
        index = offset.y - 1 + round(self.scroll_y)
        if index < len(self._entries):
            self._select_index(index)
            entry = self._entries[index]
            if isinstance(entry, Group) and (event.chain == 2 or offset.x < 3):
                self.action_fold()
            elif isinstance(entry, Row) and event.chain == 2:
                self.post_message(self.Opened(entry.key))

    def _column_at(self, x: int) -> columns.Column:
        position = 1
        for column, width in self._layout:
            position += width + columns.GAP
            if x < position:
                return column
        return self._layout[-1][0]

    # Drawing

    def on_resize(self) -> None:
        """Choose the columns for the new width."""
        self._arrange()
        self.virtual_size = Size(self.size.width, len(self._entries) + 1)
        index = self._index.get(self._at) if self._at is not None else None
        if index is not None:
            self._bring_into_view(index)

    def on_focus(self) -> None:
        """The cursor row looks different."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor row looks different."""
        self.refresh()

    def notify_style_update(self) -> None:
        """Colours changed: nothing drawn so far is right any more."""
        super().notify_style_update()
        self._strips.clear()

    def _arrange(self) -> None:
        self._layout = columns.layout(max(20, self.size.width - 2), self._content, self._columns)
        self._strips.clear()
        self._painted.clear()
        self.refresh()

    def _visible(self) -> tuple[int, int]:
        first = round(self.scroll_y)
        return first, min(len(self._entries), first + max(0, self.size.height - 1))

    def _repaint_changed(self) -> None:
        first, last = self._visible()
        for index in range(first, max(last, first + self.size.height - 1)):
            cells = self._cells(index) if index < last else None
            if self._painted.get(index - first) != cells:
                self.refresh(Region(0, index - first + 1, self.size.width, 1))

    def _cells(self, index: int) -> Cells:
        row = self._entries[index]
        if isinstance(row, Group):
            pieces = group_line.parts(row, self.size.width - 2)
            return (columns.Cell("", "", pieces),)
        mark = columns.Cell("!" if row.warning or row.finding else " ", "rank-table--warning")
        shown = (column.cell(row, width) for column, width in self._layout)
        sign = MARK if row.key in self._marked else ""
        return (*shown, mark, columns.Cell(row.label, str(row.superseded) + sign))

    def render_line(self, y: int) -> Strip:
        """The header, or one row; what was drawn once is kept."""
        width = self.size.width
        if y == 0:
            return self._header(width)
        index = y - 1 + round(self.scroll_y)
        if index >= len(self._entries):
            self._painted.pop(y - 1, None)
            return Strip.blank(width, self.rich_style)
        cells = self._cells(index)
        self._painted[y - 1] = cells
        entry = self._entries[index]
        chosen = place_of(entry) == self._at
        cached = (cells, chosen, chosen and self.has_focus)
        strip = self._strips.get(cached)
        if strip is None:
            if len(self._strips) > 1000:
                self._strips.clear()
            drawn = self._draw_group(cells, chosen) if isinstance(entry, Group) else self._draw(
                cells, chosen, entry.superseded)
            strip = self._strips[cached] = drawn.adjust_cell_length(width, self._base(chosen))
        return strip

    def _base(self, chosen: bool) -> Style:
        return self.rich_style + (
            self.get_component_rich_style("rank-table--cursor", partial=True) if chosen else Style.null()
        )

    def _draw_group(self, cells: Cells, chosen: bool) -> Strip:
        base = self._base(chosen)
        mark = Segment("▌" if chosen and self.has_focus else " ",
                       base + self.get_component_rich_style("rank-table--label", partial=True))  # fmt: skip
        styled = [(text, self.get_component_rich_style(component, partial=True)) for text, component in cells[0].parts]
        return Strip([mark, *(Segment(text, base + style) for text, style in styled)])

    def _draw(self, cells: Cells, chosen: bool, superseded: bool) -> Strip:
        base = self._base(chosen)
        mark = MARK if cells[-1].component.endswith(MARK) else "▌" if chosen and self.has_focus else " "
        segments = [Segment(mark, base + self.get_component_rich_style("rank-table--label", partial=True))]
        for (column, width), cell in zip(self._layout, cells, strict=False):
            component = "rank-table--muted" if superseded else cell.component
            if cell.parts and not superseded and cell_len(cell.text) <= width:
                segments += self._parts(cell, width, column.right, base)
            else:
                style = base + self.get_component_rich_style(component, partial=True)
                segments.append(Segment(fit(clean(cell.text), width, column.right, column.keep_end), style))
            segments.append(Segment(" " * columns.GAP, base))
        # the mark of a warning stands behind the rank, where it is seen also when the last column has no room
        warning = cells[len(self._layout)]
        style = base + self.get_component_rich_style(warning.component, partial=True)
        segments[2:3] = [Segment(warning.text, style), Segment(" " * (columns.GAP - 1), base)]
        return Strip(segments)

    def _parts(self, cell: columns.Cell, width: int, right: bool, base: Style) -> list[Segment]:
        """A cell of several colours; its text is ours, so it is clean."""
        room = Segment(" " * (width - cell_len(cell.text)), base)
        drawn = [
            Segment(part, base + self.get_component_rich_style(component, partial=True))
            for part, component in cell.parts
        ]
        return [room, *drawn] if right else [*drawn, room]

    def _header(self, width: int) -> Strip:
        plain = self.rich_style + self.get_component_rich_style("rank-table--header", partial=True)
        marked = plain + self.get_component_rich_style("rank-table--sorted", partial=True)
        segments = [Segment(" ", plain)]
        sort, reverse = self._sort
        for column, cells in self._layout:
            title, style = column.title, plain
            if column.sort == sort:
                title, style = f"{title}{'▼' if reverse else '▲'}", marked
            # the arrow of a title that fills its column stands in the gap
            wide = max(cells, min(cells + columns.GAP - 1, cell_len(title)))
            segments.append(Segment(fit(title, wide, column.right), style))
            segments.append(Segment(" " * (columns.GAP - (wide - cells)), plain))
        return Strip(segments).adjust_cell_length(width, plain)


def place_of(entry: Entry) -> Place:
    """What tells a line from all others."""
    return entry.key if isinstance(entry, Row) else (entry.by, entry.name)
