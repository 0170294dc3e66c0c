"""The table of ranks, drawn line by line: it repaints the rows that changed and costs the same for 4 ranks or 4,096."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from trainwatch import actions
from trainwatch.model.rows import Row
from trainwatch.widgets import columns, states
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

MARK = "◆"
"""Before a row that is marked."""
Cells = tuple[columns.Cell, ...]


class RankTable(ScrollView, can_focus=True):
    """Rows in the order given; selection is by key and survives sorting, filtering and growth."""

    BINDINGS = actions.bindings(actions.TABLE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rank-table--header", "rank-table--sorted", "rank-table--cursor", "rank-table--label", "rank-table--plain",
        "rank-table--phase", "rank-table--muted", "rank-table--warning", "rank-table--bad", "rank-table--picture",
        *states.COMPONENTS,
    }  # fmt: skip
    DEFAULT_CSS = """
    RankTable { overflow-x: hidden; scrollbar-size-vertical: 1; padding: 0; }
    """

    selected: reactive[AttemptKey | None] = reactive(None, repaint=False)

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
        self._index: dict[AttemptKey, int] = {}
        self._chosen: AttemptKey | None = None
        self._layout: list[tuple[columns.Column, int]] = []
        self._content: dict[str, int] = columns.content_widths(())
        self._painted: dict[int, Cells] = {}
        self._strips: dict[tuple[Cells, bool, bool], Strip] = {}
        self._sort = ("rank", False)
        self._marked: set[AttemptKey] = set()

    # What is shown

    def show(self, rows: Sequence[Row], sort: str, reverse: bool) -> None:
        """Show these rows, in this order, sorted as the header shall say."""
        old_count = len(self.rows)
        self.rows = rows
        self._index = {row.key: index for index, row in enumerate(rows)}
        content = columns.content_widths(rows)
        if content != self._content or (sort, reverse) != self._sort:
            self._content, self._sort = content, (sort, reverse)
            self._arrange()
        if old_count != len(rows):
            self.virtual_size = Size(self.size.width, len(rows) + 1)
        self._keep_selection()
        self._repaint_changed()

    def renew(self, newest: Callable[[Row], Row]) -> None:
        """Bring the rows on screen up to date, and repaint those that changed; the order stays."""
        first, last = self._visible()
        rows = list(self.rows)
        rows[first:last] = [newest(row) for row in rows[first:last]]
        self.rows = rows
        self._repaint_changed()

    @property
    def seen(self) -> list[AttemptKey]:
        """The ranks whose rows are on the screen."""
        first, last = self._visible()
        return [row.key for row in self.rows[first:last]]

    @property
    def row(self) -> Row | None:
        """The selected row."""
        index = self._index.get(self.selected) if self.selected is not None else None
        return self.rows[index] if index is not None else None

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
        if not self.rows:
            return
        old = self._index.get(self.selected) if self.selected is not None else None
        index = max(0, min(index, len(self.rows) - 1))
        self.selected = self._chosen = self.rows[index].key
        for line in {old, index} - {None}:
            self.refresh_line(line + 1)  # type: ignore[operator]
        self._bring_into_view(index)
        if old != index:
            self.post_message(self.Selected(self.selected, by_person))

    def _keep_selection(self) -> None:
        """The row that was chosen stays selected; while it is filtered away, the first one is, until it is back."""
        before = self.selected
        if self._chosen in self._index:
            self.selected = self._chosen
        elif self.selected not in self._index:
            self.selected = self.rows[0].key if self.rows else None
        if self.selected != before:
            self.post_message(self.Selected(self.selected))

    def _bring_into_view(self, index: int) -> None:
        top, height = round(self.scroll_y), max(1, self.size.height - 1)
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif index >= top + height:
            self.scroll_to(y=index - height + 1, animate=False)

    def _move(self, by: int) -> None:
        index = self._index.get(self.selected, 0) if self.selected is not None else 0
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
        self._select_index(len(self.rows) - 1)

    def action_page_down(self) -> None:
        """A page down."""
        self._move(max(1, self.size.height - 2))

    def action_page_up(self) -> None:
        """A page up."""
        self._move(-max(1, self.size.height - 2))

    def on_click(self, event: events.Click) -> None:
        """Select a row, open it on a double click, or sort by a column."""
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
        if index < len(self.rows):
            self._select_index(index)
            if event.chain == 2:
                self.post_message(self.Opened(self.rows[index].key))

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
        self.virtual_size = Size(self.size.width, len(self.rows) + 1)
        index = self._index.get(self.selected) if self.selected is not None else None
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
        self._layout = columns.layout(max(20, self.size.width - 2), self._content)
        self._strips.clear()
        self._painted.clear()
        self.refresh()

    def _visible(self) -> tuple[int, int]:
        first = round(self.scroll_y)
        return first, min(len(self.rows), first + max(0, self.size.height - 1))

    def _repaint_changed(self) -> None:
        first, last = self._visible()
        for index in range(first, max(last, first + self.size.height - 1)):
            cells = self._cells(index) if index < last else None
            if self._painted.get(index - first) != cells:
                self.refresh(Region(0, index - first + 1, self.size.width, 1))

    def _cells(self, index: int) -> Cells:
        row = self.rows[index]
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
        if index >= len(self.rows):
            self._painted.pop(y - 1, None)
            return Strip.blank(width, self.rich_style)
        cells = self._cells(index)
        self._painted[y - 1] = cells
        chosen = self.rows[index].key == self.selected
        cached = (cells, chosen, chosen and self.has_focus)
        strip = self._strips.get(cached)
        if strip is None:
            if len(self._strips) > 1000:
                self._strips.clear()
            strip = self._strips[cached] = self._draw(cells, chosen, self.rows[index].superseded).adjust_cell_length(
                width, self._base(chosen)
            )
        return strip

    def _base(self, chosen: bool) -> Style:
        return self.rich_style + (
            self.get_component_rich_style("rank-table--cursor", partial=True) if chosen else Style.null()
        )

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


def fit(text: str, width: int, right: bool = False, keep_end: bool = False) -> str:
    """Text in exactly so many cells, cut with an ellipsis where it is longer."""
    length = cell_len(text)
    if length > width and keep_end:
        return "…" + set_cell_size(text[::-1], max(0, width - 1))[::-1]
    if length > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)
