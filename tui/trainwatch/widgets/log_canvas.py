"""What a log view draws: rows, the mark at their left, the scroll bar at their right, what came since one paused."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from trainwatch.model import text as words
from trainwatch.widgets import logtext
from trainwatch.widgets.log_lines import Document, LogLines, Missing, Row
from trainwatch.widgets.log_loader import LogLoader
from trainwatch.widgets.log_rows import COLOURS, RowPainter, overlaid, with_chip
from trainwatch.widgets.page_loader import PageLoader


class LogCanvas(Widget, can_focus=True):
    """Rows on a screen. What they are, its heir decides."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--match", "log-view--hit", "log-view--phase", "log-view--new", "log-view--muted", "log-view--thumb",
        "log-view--track", "log-view--error", "log-view--warning", "log-view--number", "log-view--others",
        "log-view--selected", *(f"log-view--rank-{number}" for number in range(COLOURS)),
    }  # fmt: skip

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.error = ""
        self.empty_text = "no output yet"
        self.total_lines: int | None = None
        """How many lines the log has, as its writer says."""
        self.cursor: int | None = None
        """The line at which a selection by keys ends; None while nothing is selected."""
        self.mark: int | None = None
        """The line at which it began."""
        self._frame: list[Row] = []
        self._loader: LogLoader | PageLoader
        self._rows = RowPainter(self._part_style, lambda: self._lines)
        self._paused_at: tuple[int | None, int] = (None, 0)
        self._size_before = 0
        """How much there was when the same log was opened with another filter, until that is known anew."""

    @property
    def _lines(self) -> Document:
        return self._loader.lines

    @property
    def size_bytes(self) -> int:
        """Bytes in the log, as known."""
        return self._lines.size

    @property
    def position(self) -> float:
        """How far down the last row on screen is, 0 to 1."""
        if not self._frame or not self._lines.size:
            return 1.0
        line = self._frame[-1].line
        return self._lines.share(line.end + 1 if isinstance(self._lines, LogLines) else line.start)

    @property
    def selected(self) -> tuple[int, int] | None:
        """The first and the last line that are selected by keys."""
        if self.cursor is None or self.mark is None:
            return None
        return min(self.cursor, self.mark), max(self.cursor, self.mark)

    @property
    def new_text(self) -> str:
        """What came since following stopped; empty when nothing did."""
        lines, size = self._paused_at
        if self.following or self._lines.size <= size:
            return ""
        if self.total_lines is not None and lines is not None and self.total_lines > lines:
            count = self.total_lines - lines
            return f"{count:,} new line{'' if count == 1 else 's'}"
        return f"{words.size(self._lines.size - size)} new"

    def _part_style(self, component: str) -> Style:
        return self.get_component_rich_style(component, partial=True)

    def render_line(self, y: int) -> Strip:
        """One row of the log, between the mark of a hit and the scroll bar."""
        base = self.rich_style
        if y >= len(self._frame):
            return self._blank(y)
        try:
            return self._row(y, self._frame[y], base)
        except Missing:  # what was shown is no longer known, and what is to be shown not yet
            return Strip.blank(self.size.width, base)

    def _row(self, y: int, row: Row, base: Style) -> Strip:
        chosen = self.selected
        if chosen is not None and chosen[0] <= row.line.start <= chosen[1]:
            base = base + self._part_style("log-view--selected")
        strip = self._rows.draw(row, base)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            strip = overlaid(strip, *span, self.screen.get_component_rich_style("screen--selection"))
        strip = strip.apply_offsets(0, y)
        if y == self.size.height - 1 and (new := self.new_text):
            strip = with_chip(strip, f" ↓ {new} ", self.get_component_rich_style("log-view--new"))
        pointed = row.line.start == self.cursor or self._rows.ready(row.line).place == self._rows.hit
        mark = Segment("▌" if pointed else " ", base + self._part_style("log-view--thumb"))
        return Strip([mark, *strip, self._scroll_mark(y, self.rich_style)])

    def _blank(self, y: int) -> Strip:
        base = self.rich_style
        message = self.error or self._loader_says() or ("" if self._lines.size else self.empty_text)
        if not message or y != self.size.height // 2 or self._frame:
            return Strip.blank(self.size.width, base)
        muted = base + self._part_style("log-view--muted")
        return Strip([Segment(logtext.clean(message).center(self.size.width), muted)]).crop(0, self.size.width)

    def _loader_says(self) -> str:
        """Why there is nothing to be seen although there is a log."""
        if self._loader.progress:
            return f"looking for lines… {self._loader.progress}"
        if isinstance(self._loader, PageLoader) and self._loader.is_idle and self._lines.size:
            return "no line passes the filter" if self._loader.sifting.queries else ""
        return ""

    def _scroll_mark(self, y: int, base: Style) -> Segment:
        """One cell of the scroll bar, which counts bytes or time, not lines: lines are not known."""
        height = self.size.height
        if not self._frame or (self.following and not self._room_above()):
            return Segment(" ", base)
        first = int(self._lines.share(self._frame[0].line.start) * height)
        last = max(first, min(height - 1, int(self.position * height - 0.001)))
        first = min(first, height - 1)
        thumb = first <= y <= last
        style = self._part_style("log-view--thumb" if thumb else "log-view--track")
        return Segment("┃" if thumb else "│", base + style)

    def _room_above(self) -> bool:
        return bool(self._frame) and not (self._frame[0].row == 0 and self._lines.is_first(self._frame[0].line.start))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as lines, without what the screen adds."""
        texts = [self._rows.draw(row, Style.null()).text.rstrip() for row in self._frame]
        return selection.extract("\n".join(texts)), "\n"
