"""Logs of any size on screen: opens at the end, reads only what is looked at, follows, and never blocks a key."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.selection import Selection

from trainwatch.widgets.log_lines import Anchor, Document
from trainwatch.widgets.log_loader import Goal, LogLoader, LogReader
from trainwatch.widgets.log_moving import LogMover
from trainwatch.widgets.log_rows import GUTTERS, Fact, Place
from trainwatch.widgets.page_loader import PageLoader, Sifting
from trainwatch.widgets.paged_lines import PagedLines
from trainwatch_launcher.reader.query import Query

WHEEL = 3
ALL = Sifting()


class LogView(LogMover):
    """The rows of one log, or of several as one, between two edges; see `log_lines` for how few bytes that takes."""

    @dataclass
    class Changed(Message):
        """What the title says of this view is not right any more: position, follow, size, error."""

        view: LogView

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, LogView.Changed)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.sifting = ALL
    # What is shown

    def open(self, reader: LogReader | None, sifting: Sifting = ALL, keep: bool = False) -> None:
        """Show another log, or other lines of it, from the end; with `keep` what is looked for stays."""
        folded = isinstance(self._lines, PagedLines) and self._lines.folded
        self.sifting = sifting
        self._size_before = self._lines.size if keep else 0
        if reader is not None and (len(reader.labels) > 1 or sifting.queries or reader.is_part):
            callbacks = self._start, self._run, self._grown, self._failed
            loader = PageLoader(*callbacks, sifting, lambda: self.following)
            self._loader = loader
        else:
            self._loader = LogLoader(self._start, self._run, self._grown, self._failed)
        self._loader.open(reader)
        self.following, self.error = True, ""
        self._top, self._frame = Anchor(0), []
        self.cursor = self.mark = None
        if not keep:
            self.total_lines = None
            self._rows.hit, self._rows.query, self._rows.phases = None, None, frozenset()
        self._rows.x, self._rows.facts = 0, {}
        self._rows.labels = reader.labels if reader is not None else ()
        self._rows.others, self._rows.is_context = self._others, self._is_context
        self._rows.left_out = self._left_out
        self._rows.forget()
        self._todo.clear()
        if folded:
            self.fold(True)
        self.refresh()
        self._look()
        self._tell()

    @property
    def reader(self) -> LogReader | None:
        """Where the log is read from."""
        return self._loader.reader

    @property
    def progress(self) -> str:
        """How far lines have been looked for; empty when they are not."""
        return self._loader.progress

    @property
    def wrapped(self) -> bool:
        """Whether long lines go on in the next row."""
        return self._rows.wrapped

    @property
    def states(self) -> bool:
        """Whether all states of a `\\r` bar are shown."""
        return self._rows.states

    @property
    def numbering(self) -> str:
        """What stands before each line."""
        return self._rows.gutter

    @property
    def folded(self) -> bool:
        """Whether lines that other ranks say too are one."""
        return isinstance(self._lines, PagedLines) and self._lines.folded

    @property
    def pattern(self) -> Query | None:
        """What is searched for."""
        return self._rows.query

    @property
    def hit(self) -> Place | None:
        """The line that a search has found: its log and its offset there."""
        return self._rows.hit

    @property
    def is_settled(self) -> bool:
        """Whether it shows all that it was asked to show."""
        return not self._todo and self._loader.is_idle and (bool(self._frame) == bool(self._lines.size)
                                                            or bool(self.sifting.queries))

    @property
    def seen(self) -> list[int]:
        """The lines on screen, each once."""
        return list(dict.fromkeys(row.line.start for row in self._frame))

    @property
    def current(self) -> int | None:
        """The line that one means: where a selection ends, else a hit that is seen, else the first one on screen."""
        if self.cursor is not None:
            return self.cursor
        seen = self.seen
        return next((start for start in seen if self._lines.place(start) == self.hit), seen[0] if seen else None)

    def cuts_at(self, start: int | None, below: bool = False) -> list[int] | None:
        """Where one stands in each log: above a line (or below it); None for the end."""
        if start is None:
            return None
        if isinstance(self._lines, PagedLines):
            return self._lines.cuts_above(start, below)
        line = self._lines.line_at(start)
        return [min(line.end + 1, self._lines.size) if below else start]

    @property
    def lines(self) -> Document:
        """The lines that are known."""
        return self._lines

    def time_of(self, start: int) -> float | None:
        """When a line was written, where that is known without asking."""
        return self._lines.entry(start).time if isinstance(self._lines, PagedLines) else None

    def place(self, start: int) -> Place:
        """Whose line it is, and where it begins."""
        return self._lines.place(start)

    def learn(self, total_lines: int | None, phases: frozenset[Place]) -> None:
        """How many lines there are, and which lines began a phase."""
        if phases != self._rows.phases:
            self._rows.phases = phases
            self.refresh()
        self.learn_lines(total_lines)

    def learn_lines(self, total_lines: int | None) -> None:
        """How many lines there are."""
        if total_lines != self.total_lines:
            self.total_lines = total_lines
            self._refresh_last_row()

    def learn_facts(self, facts: dict[int, Fact]) -> None:
        """Numbers and times of lines, for the gutter."""
        self._rows.facts = facts
        self.refresh()

    def show_pattern(self, query: Query | None, hit: Place | None) -> None:
        """Highlight what a search looks for, and go to the line that it has found."""
        self._rows.query, self._rows.hit = query, hit
        self.refresh()
        if hit is not None:
            self.go(Goal("place", *hit))

    # How lines are shown

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them at the edge."""
        self._rows.wrapped, self._rows.x = not self.wrapped, 0
        self._cut_anew()

    def toggle_states(self) -> None:
        """All states of a `\\r` bar, or the last one."""
        self._rows.states = not self._rows.states
        self._cut_anew()

    def next_gutter(self) -> None:
        """Nothing, numbers or times before each line."""
        at = GUTTERS.index(self._rows.gutter)
        self._rows.gutter = GUTTERS[(at + 1) % len(GUTTERS)]
        self._cut_anew()

    def fold(self, folded: bool) -> None:
        """Show lines that several ranks say once, or each."""
        if isinstance(self._lines, PagedLines):
            self._lines.fold(folded)
            self._cut_anew()

    def begin_selection(self) -> None:
        """Select lines by keys, from the line that one means on."""
        start = self.current
        if start is not None:
            if self.hit is None and self.following:
                start = self.seen[-1]
            self._unfollow()
            self.cursor = self.mark = start
            self.refresh()
            self._tell()

    def end_selection(self) -> bool:
        """Select nothing any more; False when nothing was."""
        was = self.cursor is not None
        self.cursor = self.mark = None
        self.refresh()
        self._tell()
        return was

    def _others(self, start: int) -> int:
        return self._lines.others(start) if isinstance(self._lines, PagedLines) else 0

    def _left_out(self, start: int) -> int:
        return self._lines.left_out(start) if isinstance(self._lines, PagedLines) else 0

    def _is_context(self, start: int) -> bool:
        return isinstance(self._lines, PagedLines) and not self._lines.entry(start).hit

    def _cut_anew(self) -> None:
        self._top = Anchor(self._top.offset)
        self._rows.forget()
        self._frame = []
        self._do(lambda: None)
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        if self.is_attached:
            self.post_message(self.Changed(self))

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
            self.go(Goal("share", value=offset.y / max(1, self.size.height - 1)))
            return
        on_mark = offset.y == self.size.height - 1 and offset.x >= self.size.width - len(self.new_text) - 6
        if on_mark and self.new_text:
            self.follow()
