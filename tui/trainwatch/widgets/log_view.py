"""A log of any size on screen: opens at its end, reads only what is looked at, follows, and never blocks a key."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from trainwatch.model import text as words
from trainwatch.widgets import log_search, logtext
from trainwatch.widgets.log_lines import Anchor, LogLines, Missing, Row, end_anchor, moved, rows_from
from trainwatch.widgets.log_loader import LogLoader, LogReader
from trainwatch.widgets.log_rows import RowPainter, overlaid, with_chip

POLL = 0.25
"""Seconds between two looks at the log's size, and so between two repaints, however fast it grows."""
WHEEL = 3
SIDEWAYS = 8


class LogView(Widget, can_focus=True):
    """The rows of one log between two edges; see `log_lines` for how few bytes that takes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--match", "log-view--hit", "log-view--phase", "log-view--new", "log-view--muted", "log-view--thumb",
        "log-view--track",
    }  # fmt: skip

    @dataclass
    class Changed(Message):
        """What the title says of this view is not right any more: position, follow, size, error."""

        view: LogView

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, LogView.Changed)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.error = ""
        self.empty_text = "no output yet"
        self.total_lines: int | None = None
        """How many lines the log has, as its writer says."""
        self._loader = LogLoader(self._start, self._run, self._grown, self._failed)
        self._top = Anchor(0)
        self._frame: list[Row] = []
        self._rows = RowPainter(self._part_style, lambda line: self._lines.text(line))
        self._todo: deque[Callable[[], None]] = deque()
        self._paused_at: tuple[int | None, int] = (None, 0)

    # What is shown

    def open(self, reader: LogReader | None) -> None:
        """Show another log, from its end."""
        self._loader.open(reader)
        self.following, self.error, self.total_lines = True, "", None
        self._top, self._frame = Anchor(0), []
        self._rows.x, self._rows.hit, self._rows.phases = 0, None, frozenset()
        self._rows.forget()
        self._todo.clear()
        self.refresh()
        self._look()
        self._tell()

    @property
    def reader(self) -> LogReader | None:
        """Where the log is read from."""
        return self._loader.reader

    @property
    def wrapped(self) -> bool:
        """Whether long lines go on in the next row."""
        return self._rows.wrapped

    @property
    def pattern(self) -> log_search.Pattern | None:
        """What is searched for."""
        return self._rows.pattern

    @property
    def hit(self) -> int | None:
        """The offset of the line that a search has found."""
        return self._rows.hit

    @property
    def _lines(self) -> LogLines:
        return self._loader.lines

    @property
    def size_bytes(self) -> int:
        """Bytes in the log, as known."""
        return self._lines.size

    @property
    def is_settled(self) -> bool:
        """Whether it shows all that it was asked to show."""
        return not self._todo and self._loader.is_idle and bool(self._frame) == bool(self._lines.size)

    @property
    def position(self) -> float:
        """How far down the last row on screen is, 0 to 1, by bytes."""
        if not self._frame or not self._lines.size:
            return 1.0
        return min(1.0, (self._frame[-1].line.end + 1) / self._lines.size)

    @property
    def top_offset(self) -> int:
        """The offset of the line at the top."""
        return self._top.offset

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

    def learn(self, total_lines: int | None, phases: frozenset[int]) -> None:
        """How many lines there are, and at which offsets the lines are that began a phase."""
        if phases != self._rows.phases:
            self._rows.phases = phases
            self.refresh()
        if total_lines != self.total_lines:
            self.total_lines = total_lines
            self._refresh_last_row()

    def show_pattern(self, pattern: log_search.Pattern | None, hit: int | None) -> None:
        """Highlight what a search looks for, and go to the line that it has found."""
        self._rows.pattern, self._rows.hit = pattern, hit
        self.refresh()
        if hit is not None:
            self.go_to(hit)

    def go_to(self, offset: int) -> None:
        """Bring the line that holds this byte into view, a third down; stops following."""

        def go() -> None:
            start = self._lines.start_of(offset)
            if any(row.line.start == start for row in self._frame):
                return
            self._top = self._clamped(moved(self._lines, Anchor(start), -(self.size.height // 3), self._rows.rows_of))

        self._unfollow()
        self._do(go)

    # Moving

    def scroll_rows(self, by: int) -> None:
        """Scroll; upwards stops following, down to the end starts it again."""

        def go() -> None:
            end = end_anchor(self._lines, self.size.height, self._rows.rows_of)
            self._top = min(moved(self._lines, self._top, by, self._rows.rows_of), end)
            if by > 0 and self._top == end:
                self.following = True  # what follows this in _run goes to the end, and the next look for growth on
                self._tell()

        if by < 0:
            if not self._room_above():
                return
            self._unfollow()
        elif self.following:
            return
        self._do(go)

    def scroll_page(self, direction: int) -> None:
        """A page down (1) or up (-1)."""
        self.scroll_rows(direction * max(1, self.size.height - 1))

    def scroll_sideways(self, direction: int) -> None:
        """Scroll lines that are not wrapped to the right (1) or back (-1)."""
        longest = max((self._rows.width_of(row.line) for row in self._frame), default=0)
        x = max(0, min(self._rows.x + direction * SIDEWAYS, longest - self._rows.columns // 2))
        if not self.wrapped and x != self._rows.x:
            self._rows.x = x
            self.refresh()
            self._tell()

    def go_top(self) -> None:
        """To the beginning of the log."""
        if self._room_above():
            self._unfollow()
            self._do(lambda: self._set_top(Anchor(0)))

    def follow(self) -> None:
        """To the end, and stay there as the log grows."""
        self.following = True
        self._do(lambda: None)
        self._look()
        self._tell()

    def toggle_follow(self) -> None:
        """Follow, or stay here."""
        if self.following:
            self._unfollow()
        else:
            self.follow()

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them at the edge."""
        self._rows.wrapped, self._rows.x = not self.wrapped, 0
        self._top = Anchor(self._top.offset)
        self._rows.forget()
        self._frame = []
        self._do(lambda: None)
        self.refresh()
        self._tell()

    def _room_above(self) -> bool:
        return bool(self._frame) and self._top != Anchor(0)

    def _unfollow(self) -> None:
        if self.following:
            self.following = False
            self._paused_at = (self.total_lines, self._lines.size)
            self._tell()

    def _set_top(self, top: Anchor) -> None:
        self._top = top

    def _clamped(self, top: Anchor) -> Anchor:
        return min(top, end_anchor(self._lines, self.size.height, self._rows.rows_of))

    # Work that may have to wait for bytes

    def _do(self, work: Callable[[], None]) -> None:
        if len(self._todo) < 100:  # keys held down while a slow source loads
            self._todo.append(work)
        self._run()

    def _run(self) -> None:
        """Do what is to be done; where bytes are missing, load them and come back."""
        if not self.is_mounted or self.size.height == 0:
            return
        try:
            while self._todo:
                self._todo[0]()
                self._todo.popleft()
            if self.following:
                self._top = end_anchor(self._lines, self.size.height, self._rows.rows_of)
            frame = rows_from(self._lines, self._top, self.size.height, self._rows.rows_of)
            for row in frame:
                self._rows.ready(row.line)
        except Missing as missing:
            self._loader.load(missing.index)
            return
        self._show(frame)

    def _show(self, frame: list[Row]) -> None:
        old, self._frame = self._frame, frame
        for y in range(self.size.height):
            if (old[y] if y < len(old) else None) != (frame[y] if y < len(frame) else None):
                self.refresh(Region(0, y, self.size.width, 1))
        if old != frame:
            self.refresh(Region(self.size.width - 1, 0, 1, self.size.height))
            self._tell()

    # Growth

    def on_mount(self) -> None:
        """Begin to look for growth."""
        self.set_interval(POLL, self._tick)

    def on_show(self) -> None:
        """Visible again: catch up at once."""
        self._look()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.run_worker(work, group="log", exit_on_error=False)

    def _tick(self) -> None:
        if self._is_seen:
            self._loader.tick()

    def _look(self) -> None:
        if self._is_seen:
            self._loader.look()

    @property
    def _is_seen(self) -> bool:
        return self.is_attached and self.app.screen is self.screen

    def _grown(self, shorter: bool) -> None:
        if shorter:  # another file under the same name
            self._rows.forget()
            self._todo.clear()
            self._frame, self._top, self.following = [], Anchor(0), True
            self.refresh()
        if (self.following and self.text_selection is None) or len(self._frame) < self.size.height:
            self._run()
        self._refresh_last_row()
        self._tell()

    def _refresh_last_row(self) -> None:
        """Where the mark of new lines is."""
        if not self.following:
            self.refresh(Region(0, self.size.height - 1, self.size.width, 1))

    def _failed(self, said: str) -> None:
        self.error = said
        if said:
            self._todo.clear()
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        if self.is_attached:
            self.post_message(self.Changed(self))

    # Drawing

    def on_resize(self) -> None:
        """The rows that a line takes depend on the width."""
        self._rows.columns = max(1, self.size.width - 2)  # a mark at the left, the scroll bar at the right
        if self.wrapped:
            self._rows.forget()
            self._top = Anchor(self._top.offset)
        self._frame = []
        self._do(lambda: None if self.following else self._set_top(self._clamped(self._top)))

    def _part_style(self, component: str) -> Style:
        return self.get_component_rich_style(component, partial=True)

    def render_line(self, y: int) -> Strip:
        """One row of the log, between the mark of a hit and the scroll bar."""
        base = self.rich_style
        if y >= len(self._frame):
            return self._blank(y)
        row = self._frame[y]
        strip = self._rows.draw(row, base)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            strip = overlaid(strip, *span, self.screen.get_component_rich_style("screen--selection"))
        strip = strip.apply_offsets(0, y)
        if y == self.size.height - 1 and (new := self.new_text):
            strip = with_chip(strip, f" ↓ {new} ", self.get_component_rich_style("log-view--new"))
        mark = Segment("▌" if row.line.start == self.hit else " ", base + self._part_style("log-view--thumb"))
        return Strip([mark, *strip, self._scroll_mark(y, base)])

    def _blank(self, y: int) -> Strip:
        base = self.rich_style
        message = self.error or ("" if self._lines.size else self.empty_text)
        if not message or y != self.size.height // 2 or self._frame:
            return Strip.blank(self.size.width, base)
        muted = base + self._part_style("log-view--muted")
        return Strip([Segment(logtext.clean(message).center(self.size.width), muted)]).crop(0, self.size.width)

    def _scroll_mark(self, y: int, base: Style) -> Segment:
        """One cell of the scroll bar, which counts bytes, not lines: lines are not known."""
        size, height = self._lines.size, self.size.height
        if not self._frame or (self.following and not self._room_above()):
            return Segment(" ", base)
        first = int(self._frame[0].line.start / max(1, size) * height)
        last = max(first, min(height - 1, int(self.position * height - 0.001)))
        first = min(first, height - 1)
        thumb = first <= y <= last
        style = self._part_style("log-view--thumb" if thumb else "log-view--track")
        return Segment("┃" if thumb else "│", base + style)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as lines, without what the screen adds."""
        texts = [self._rows.draw(row, Style.null()).text.rstrip() for row in self._frame]
        return selection.extract("\n".join(texts)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected; once nothing is, go on."""
        self.refresh()
        if selection is None and self.following:
            self._run()

    # The mouse

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Wheel down."""
        event.stop()
        self.scroll_rows(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Wheel up."""
        event.stop()
        self.scroll_rows(-WHEEL)

    def on_click(self, event: events.Click) -> None:
        """The scroll bar jumps there, the mark of new lines follows again."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.x >= self.size.width - 1:
            self.go_share(offset.y / max(1, self.size.height - 1))
            return
        on_mark = offset.y == self.size.height - 1 and offset.x >= self.size.width - len(self.new_text) - 6
        if on_mark and self.new_text:
            self.follow()

    def go_share(self, share: float) -> None:
        """To a place in the log by its share of the bytes, 0 to 1."""
        if share >= 1:
            self.follow()
            return

        def go() -> None:
            self._top = self._clamped(Anchor(self._lines.start_of(int(self._lines.size * share))))

        self._unfollow()
        self._do(go)
