"""How a log view moves: rows, pages, places far away; and how it waits for bytes without keeping a key waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from textual.geometry import Region
from textual.worker import Worker, WorkerState

from trainwatch.widgets.log_canvas import LogCanvas
from trainwatch.widgets.log_lines import Anchor, Missing, Row, end_anchor, moved, rows_from
from trainwatch.widgets.log_loader import Goal, LogLoader

POLL = 0.1
"""Seconds between two looks at the log's size, and so between two repaints, however fast it grows."""
SIDEWAYS = 8


class LogMover(LogCanvas):
    """A frame of rows over lines that may have to be loaded first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._loader = LogLoader(self._start, self._run, self._grown, self._failed)
        self._top = Anchor(0)
        self._todo: deque[Callable[[], None]] = deque()

    # Moving

    def scroll_rows(self, by: int) -> None:
        """Scroll; upwards stops following, down to the end starts it again. A selection by keys goes along."""
        if self.cursor is not None:
            self._do(lambda: self._move_cursor(by))
            return

        def go() -> None:
            top = moved(self._lines, self._top, by, self._rows.rows_of)
            at_end = by > 0 and self._is_at_end(top)
            self._top = top  # only now: whatever is missing, this is done once
            if at_end:
                self.following = True  # what follows this in _run goes to the end, and the next look for growth on
                self._tell()

        if by < 0:
            if not self._room_above():
                return
            self._unfollow()
        elif self.following:
            return
        self._do(go)

    def _is_at_end(self, top: Anchor) -> bool:
        """Whether the last row would be on screen, without loading what is far."""
        rows = rows_from(self._lines, top, self.size.height + 1, self._rows.rows_of)
        return len(rows) <= self.size.height

    def _move_cursor(self, by: int) -> None:
        assert self.cursor is not None
        line = self._lines.line_at(self.cursor)
        for _ in range(abs(by)):
            start = self._lines.after(line) if by > 0 else None
            following = self._lines.line_at(start) if start is not None else None
            following = self._lines.before(line.start) if by < 0 else following
            if following is None:
                break
            line = following
        self._see(line.start)
        self.cursor = line.start
        self.refresh()

    def _see(self, start: int) -> None:
        """Scroll as little as need be to have a line on screen."""
        shown = [row.line.start for row in self._frame]
        if shown and start < shown[0]:
            self._top = Anchor(start)
        elif shown and start > shown[-1]:
            self._top = moved(self._lines, Anchor(start), 1 - self.size.height, self._rows.rows_of)

    def scroll_page(self, direction: int) -> None:
        """A page down (1) or up (-1)."""
        self.scroll_rows(direction * max(1, self.size.height - 1))

    def scroll_sideways(self, direction: int) -> None:
        """Scroll lines that are not wrapped to the right (1) or back (-1)."""
        longest = max((self._rows.width_of(row.line) for row in self._frame), default=0)
        x = max(0, min(self._rows.x + direction * SIDEWAYS, longest - self._rows.columns // 2))
        if not self._rows.wrapped and x != self._rows.x:
            self._rows.x = x
            self.refresh()
            self._tell()

    def go_top(self) -> None:
        """To the beginning of the log."""

        def go() -> None:
            self._top = Anchor(self._lines.first())
            if self.cursor is not None:
                self.cursor = self._top.offset
                self.refresh()

        if self._room_above():
            self._unfollow()
            self._todo.clear()
            self._do(go)

    def follow(self) -> None:
        """To the end, and stay there as the log grows; a selection by keys goes to the end and no further."""
        if self.cursor is not None:
            self._do(self._cursor_to_end)
            return
        self.following = True
        self._todo.clear()
        self._do(lambda: None)
        self._look()
        self._tell()

    def _cursor_to_end(self) -> None:
        last = self._lines.last()
        if last is not None:
            self._top = end_anchor(self._lines, self.size.height, self._rows.rows_of)
            self.cursor = last.start
            self.refresh()

    def toggle_follow(self) -> None:
        """Follow, or stay here."""
        if self.following:
            self._unfollow()
        else:
            self.follow()

    def go(self, goal: Goal) -> None:
        """Bring a place into view, a third down; stops following."""

        def show(number: int) -> None:
            def work() -> None:
                start = self._lines.start_of(number)
                if all(row.line.start != start for row in self._frame):
                    up = -(self.size.height // 3) if goal.kind == "place" else 0
                    self._top = self._clamped(moved(self._lines, Anchor(start), up, self._rows.rows_of))

            self._do(work)

        if goal.kind == "share" and goal.value >= 1:
            self.follow()
            return
        self._unfollow()
        self._todo.clear()
        self._loader.seek(goal, show)

    def _unfollow(self) -> None:
        if self.following:
            self.following = False
            self._paused_at = (self.total_lines, self._lines.size or self._size_before)
            self._tell()

    def _clamped(self, top: Anchor) -> Anchor:
        """The same, or less far down when the last row would not be at the bottom of the screen."""
        rows = rows_from(self._lines, top, self.size.height, self._rows.rows_of)
        missing = self.size.height - len(rows)
        return moved(self._lines, top, -missing, self._rows.rows_of) if missing > 0 else top

    # Work that may have to wait for bytes

    def _do(self, work: Callable[[], None]) -> None:
        if len(self._todo) < 100:  # keys held down while a slow source loads
            self._todo.append(work)
        self._run()

    def _run(self) -> None:
        """Do what is to be done; where bytes are missing, load them and come back."""
        if not self.is_mounted or self.size.height == 0 or self._loader.reader is None:
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
            self._loader.load(missing)
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

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What fails in a way that nobody thought of is said, too."""
        event.stop()
        if event.state == WorkerState.ERROR:
            self._loader.give_up(f"{type(event.worker.error).__name__}: {event.worker.error}")

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
            self.cursor = self.mark = None
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
        """The title says something else now."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """The rows that a line takes depend on the width."""
        self._rows.width = max(1, self.size.width - 2)  # a mark at the left, the scroll bar at the right
        if self._rows.wrapped:
            self._rows.forget()
            self._top = Anchor(self._top.offset)
        self._frame = []
        self._do(lambda: None if self.following else self._set_top(self._clamped(self._top)))

    def _set_top(self, top: Anchor) -> None:
        self._top = top
