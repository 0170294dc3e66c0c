"""Ways to go in a log: the next error, the next phase, a line by its number, a moment by its time."""

from __future__ import annotations

import contextlib
from typing import Any

from textual.containers import Vertical
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from trainwatch.model import moments
from trainwatch.widgets import log_kinds
from trainwatch.widgets.log_find import first_page
from trainwatch.widgets.log_loader import Goal, LogReader, ReadError
from trainwatch.widgets.log_rows import LINES, Fact, Place
from trainwatch.widgets.log_view import LogView
from trainwatch.widgets.search_bar import LINE, TIME
from trainwatch_launcher.reader.query import Query

ERROR = Query(log_kinds.ERROR, regex=True, case=True)
PHASE = Query(log_kinds.PHASE, regex=True, case=True)
COUNT_EVERY = 2.0
"""Seconds between two counts of the lines of a log that grows."""


class LogGoing(Vertical):
    """Part of a log pane: its owner has a view and a line to type in."""

    busy = ""
    """What is being done for a person who waits; empty when nothing is."""
    phases: tuple[Place, ...] = ()
    """Lines that began a phase, in order, as far as a launcher has noted them."""
    is_told_lines = False
    """Whether the log's writer says how many lines there are."""
    _counted_bytes = 0
    """How large the log was when its lines were counted last."""
    _count_timer: Timer | None = None
    counted = ""
    """How far lines have been counted; empty when they are."""

    @property
    def view(self) -> LogView:
        """The log itself."""
        raise NotImplementedError

    def ask_for(self, mode: str, text: str | None = None) -> None:
        """Have a line typed."""
        raise NotImplementedError

    def retitle(self) -> None:
        """The title says something else now."""
        raise NotImplementedError

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What fails in a way that nobody thought of is said, too."""
        event.stop()
        if event.state == WorkerState.ERROR:
            self.busy = ""
            self.failed(f"{event.worker.group}: {type(event.worker.error).__name__}: {event.worker.error}")
            self.retitle()

    def failed(self, said: str) -> None:
        """Say what has failed, in one line."""
        self.notify(said, severity="error", markup=False)

    # Errors and phases

    def action_next_error(self) -> None:
        """The next line that says that something failed."""
        self._go_to("error", ERROR, True)

    def action_previous_error(self) -> None:
        """The same upwards."""
        self._go_to("error", ERROR, False)

    def action_next_phase(self) -> None:
        """The next line that begins a phase."""
        self._go_phase(True)

    def action_previous_phase(self) -> None:
        """The same upwards."""
        self._go_phase(False)

    def _go_phase(self, down: bool) -> None:
        view = self.view
        current = view.current
        if not self.phases or view.sifting.queries or current is None:
            self._go_to("phase", PHASE, down)
            return
        log, offset = view.place(current)
        known = [place for place in self.phases if place[0] == log]
        further = [place for place in known if (place[1] > offset if down else place[1] < offset)]
        if down and view.following:
            further = []
        if further:
            view.show_pattern(view.pattern, further[0] if down else further[-1])
        else:
            self._none("phase", down)

    def _go_to(self, what: str, query: Query, down: bool) -> None:
        view = self.view
        start = None if view.following else view.current
        reached = start is not None and view.place(start) == view.hit
        if view.reader is not None and not (down and view.following):
            work = self._seek(view.reader, what, query, down, view.cuts_at(start, below=down and reached))
            self.run_worker(work, group="go", exclusive=True, exit_on_error=False)
        elif down:
            self._none(what, down)

    async def _seek(
        self, reader: LogReader, what: str, query: Query, down: bool, cuts: list[int] | None
    ) -> None:
        view = self.view

        def progress(share: float) -> None:
            self.busy = f"looking for the {'next' if down else 'last'} {what}… {share:.0%}"
            self.retitle()

        try:
            found = await first_page(reader, [query, *view.sifting.queries], down, cuts, progress)
        except ReadError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        finally:
            self.busy = ""
            self.retitle()
        if found is None:
            self._none(what, down)
        else:
            view.show_pattern(view.pattern, found)

    def _none(self, what: str, down: bool) -> None:
        self.notify(f"No {what} further {'down' if down else 'up'}.")

    # Lines and times

    def action_go_line(self) -> None:
        """Type a line's number."""
        self.ask_for(LINE, "")

    def action_go_time(self) -> None:
        """Type a moment."""
        self.ask_for(TIME, "")

    def go_line(self, typed: str) -> str:
        """Go to a line; returns what is wrong with what was typed, or nothing."""
        digits = typed.strip().replace(",", "").replace("_", "")
        if not digits.isdecimal() or not int(digits):
            return "no number of a line"
        reader = self.view.reader
        if reader is None or len(reader.labels) > 1:
            return "lines are numbered in one log, not in several at once"
        self.run_worker(self._go_line(reader, int(digits) - 1), group="go", exclusive=True, exit_on_error=False)
        return ""

    async def _go_line(self, reader: LogReader, number: int) -> None:
        try:
            facts: dict[str, Any] = {}
            async with contextlib.aclosing(reader.ask("count")) as steps:
                async for facts, _ in steps:
                    if "done" in facts:
                        self.busy = f"counting lines… {facts['done'] / max(1, facts['size']):.0%}"
                        self.retitle()
            if not facts.get("lines"):
                self.notify("There is no line yet.")
                return
            last = facts["lines"] - 1
            async with contextlib.aclosing(reader.ask("places", numbers=[min(number, last)])) as answer:
                async for facts, _ in answer:
                    offset = facts["offsets"][0]
        except ReadError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        finally:
            self.busy = ""
            self.retitle()
        if number > last:
            self.notify(f"The last line is {last + 1:,}.")
        if offset is not None:
            self.view.show_pattern(self.view.pattern, (0, offset))

    def go_time(self, typed: str) -> str:
        """Go to a moment; returns what is wrong with what was typed, or nothing."""
        if moments.parse(typed, 0.0) is None:
            return "no moment; write -10m, 12:31:05, or 2025-11-30 12:31:05"
        if self.view.reader is not None:
            work = self._go_time(self.view.reader, typed)
            self.run_worker(work, group="go", exclusive=True, exit_on_error=False)
        return ""

    async def _go_time(self, reader: LogReader, typed: str) -> None:
        try:
            span: dict[str, Any] = {}
            async with contextlib.aclosing(reader.ask("span")) as answer:
                async for facts, _ in answer:
                    span = facts
        except ReadError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        time = moments.parse(typed, span["last"])
        if time is not None:
            self.view.go(Goal("time", value=time))

    # What is known of lines

    def count_lines(self) -> None:
        """Have the lines of a log counted that no index tells, in the background, and again when there are more."""
        view = self.view
        if view.size_bytes == self._counted_bytes or self._count_timer is not None:
            return
        if self._counted_bytes:
            self._count_timer = self.set_timer(COUNT_EVERY, self._begin_to_count)
        else:
            self._begin_to_count()

    def _begin_to_count(self) -> None:
        self._count_timer = None
        reader, size = self.view.reader, self.view.size_bytes
        if reader is None or len(reader.labels) > 1 or (self.is_told_lines and self._counted_bytes):
            return
        self._counted_bytes = size
        self.run_worker(self._count(reader), group="count", exclusive=True, exit_on_error=False)

    async def _count(self, reader: LogReader) -> None:
        with contextlib.suppress(ReadError):
            async with contextlib.aclosing(reader.ask("count")) as steps:
                async for facts, _ in steps:
                    if reader is not self.view.reader:
                        return
                    if "lines" in facts:
                        self.counted = ""
                        if not self.is_told_lines:
                            self.view.learn_lines(facts["lines"])
                    else:
                        self.counted = f"lines {facts['done'] / max(1, facts['size']):.0%} counted"
                    self.retitle()

    def learn_lines(self) -> None:
        """Ask for what stands before the lines that are seen."""
        view = self.view
        if not view.numbering or view.reader is None:
            return
        work = self._learn(view.reader, view.seen)
        self.run_worker(work, group="facts", exclusive=True, exit_on_error=False)

    async def _learn(self, reader: LogReader, starts: list[int]) -> None:
        view = self.view
        facts: dict[int, Fact] = {}
        if len(reader.labels) > 1:
            facts = {start: (None, view.time_of(start)) for start in starts}
        elif starts:
            offsets = [view.place(start)[1] for start in starts]
            with contextlib.suppress(ReadError):
                async with contextlib.aclosing(reader.ask("places", offsets=offsets)) as answer:
                    async for found, _ in answer:
                        known = zip(starts, found["lines"], found["times"], strict=True)
                        facts = {start: (line, time) for start, line, time in known}
        if view.numbering == LINES and len(reader.labels) > 1:
            facts = {}
        view.learn_facts(facts)
