"""The first screen: the run in one line, who failed first, all ranks, and the selected rank's live log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual import events, on, work
from textual.app import ComposeResult

from trainwatch import actions
from trainwatch.model import findings, order, query
from trainwatch.model.bill import GpuHours, gpu_hours
from trainwatch.model.board import CALM, Board
from trainwatch.model.failure import Failure
from trainwatch.model.rows import Row
from trainwatch.screens.feed import Feed
from trainwatch.screens.log_keeper import LogKeeper
from trainwatch.taste import Taste
from trainwatch.widgets import progress_bar
from trainwatch.widgets.empty import Empty, waiting_parts
from trainwatch.widgets.filter_bar import FilterBar
from trainwatch.widgets.header import Bar
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.log_pane import LogPane
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.rank_table import RankTable
from trainwatch_launcher.reader.changes import AttemptKey

BILL_EVERY, BILL_MANY_EVERY = 10.0, 60.0
"""What the GPUs cost is added up every so many seconds; those of thousands of ranks."""
REORDER_EVERY = 2.0
"""Seconds that rows stay where they are, when they are thousands or in an order that changes all the time; unless the
user asks."""


class Overview(LogKeeper):
    """Table above, log below."""

    BINDINGS = actions.bindings(actions.OVERVIEW)
    SCOPES = (actions.OVERVIEW, actions.TABLE, actions.VIEW)

    def __init__(self, feed: Feed, nested: bool = False, taste: Taste | None = None) -> None:
        super().__init__(feed)
        self.nested = nested
        """Whether there is a screen to go back to."""
        self.filter = ""
        self._taste = taste or Taste()
        self.look = self._taste.look
        """How the table is ordered, grouped and laid out."""
        self._folded: set[str] = set()
        self._all_folded = False
        """Whether `_folded` are the groups that are not."""
        self._board = Board()
        self._ordered, self._order_at = 0, 0.0
        self._logged: AttemptKey | None = None
        self._first: Failure | None = None
        self._led_to: AttemptKey | None = None
        self._moved = False
        self._hours: GpuHours | None = None
        self._billed_at, self._billed_ranks = float("-inf"), 0

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Bar(id="header")
        yield Bar(id="progress")
        yield Bar(id="banner")
        yield Bar(id="notice")
        yield RankTable(id="table")
        yield Empty(id="empty")
        yield FilterBar(id="filter")
        yield LogPane(id="log")
        yield KeyBar(actions.OVERVIEW, actions.APP)

    @property
    def table(self) -> RankTable:
        """The ranks."""
        return self.query_one(RankTable)

    @property
    def key(self) -> AttemptKey | None:
        """The selected attempt."""
        return self.table.selected

    @property
    def row(self) -> Row | None:
        """The selected attempt as a row, with what is noteworthy about it."""
        row = super().row
        return None if row is None else self._board.on(row)

    def on_mount(self) -> None:
        """Keys go to the table."""
        self.table.focus()

    # What is shown

    def run_changed(self) -> None:
        """All that changed anew; widgets repaint what says something else. Of thousands of ranks a part at a time."""
        board, now = self._board, self.feed.now()
        board.renew(self.feed.run, now, self.table.seen)
        calm = CALM if board.is_calm else 1
        settled = board.is_small and self.look.sort in order.LASTING
        if settled or len(board) != self._ordered or not 0 <= now - self._order_at < REORDER_EVERY * calm:
            self._show_rows()
        else:
            self.table.renew(board.of)
        self._show_header()
        self._show_log_title()

    def _show_rows(self) -> None:
        """The rows that the filter lets through, in order."""
        rows, wrong = self._board.rows, ""
        self._ordered, self._order_at = len(rows), self.feed.now()
        look = self.look
        try:
            shown = query.filter_rows(rows, self.filter, self._taste.filters)
        except query.QueryError as error:
            shown, wrong = rows, str(error)
        sorted_rows = order.sort_rows(shown, look.sort, look.reverse)
        entries = order.grouped(sorted_rows, look.group, lambda name: (name in self._folded) != self._all_folded)
        self.table.show(entries, shown, look.sort, look.reverse, look.columns)
        count = f"{len(shown)} of {len(rows)} · esc shows all" if self.filter else ""
        self.query_one(FilterBar).say(wrong or count, error=bool(wrong))
        self._show_empty(bool(shown))

    def _show_empty(self, any_shown: bool) -> None:
        empty = self.query_one(Empty)
        self.set_class(not any_shown, "empty")
        if not len(self._board):
            feed = self.feed
            empty.show(waiting_parts(feed.run, feed.name, feed.problem, feed.loaded, feed.links))
        elif not any_shown:
            hidden = f"{len(self._board)} hidden · esc shows all"
            empty.show([(f"No rank matches “{clean(self.filter)}”.\n\n", "bold"), (hidden, "$tw-muted")])

    def _show_header(self) -> None:
        state = self.show_header(self.feed.now())
        self._first = state.first
        self._show_progress(self.size.width)
        self._show_keys()
        if state.first is not None:
            self._first_seen(state.first)

    def _show_progress(self, width: int) -> None:
        """How far the run is, and what is noteworthy; each line only when there is something to say."""
        progress, told = self._board.whole, findings.told(self._board.found)
        self.set_class(progress.known, "progressing")
        self.set_class(bool(told), "noticing")
        now, ranks = self.feed.now(), len(self.feed.run.attempts)
        every = BILL_EVERY if self._board.is_small else BILL_MANY_EVERY
        if ranks != self._billed_ranks or not 0 <= now - self._billed_at < every:
            self._billed_at, self._billed_ranks = now, ranks
            self._hours = gpu_hours(self.feed.run)
        parts = progress_bar.whole_parts(progress, width, self._hours, self.feed.gpu_price)
        self.query_one("#progress", Bar).show(parts)
        self.query_one("#notice", Bar).show(progress_bar.notice_parts(told, width, leads=self._first is None))

    def _first_seen(self, failure: Failure) -> None:
        """Whoever has not moved yet looks at the rank that failed first."""
        if not self._moved and failure.root != self._led_to:
            self._led_to = failure.root
            self.table.select(failure.root)

    # The log below

    @on(RankTable.Selected)
    def _selected(self, event: RankTable.Selected) -> None:
        event.stop()
        self._moved = self._moved or event.by_person
        self._show_log_title()

    def _show_log_title(self) -> None:
        pane, key = self.query_one(LogPane), self.key
        if self.table.group is not None:
            return  # a group has no log; the last rank's stays
        if key != self._logged:
            self._logged = key
            label = "" if key is None else self.feed.run.label(key)
            pane.open(None if key is None else self.feed.logs([key]), [], f"{label}.rank.log")
        row, attempt = self.row, self.attempt
        if row is not None and attempt is not None:
            phases = tuple((0, phase.offset) for phase in attempt.phases if phase.source == "marker")
            pane.rename(self.title_of(row), row.output_lines, phases)

    @property
    def log_keys(self) -> tuple[AttemptKey, ...]:
        """The selected one."""
        return () if self._logged is None else (self._logged,)

    def keys_to_merge(self) -> tuple[AttemptKey, ...]:
        """The marked ones, else those that the filter shows."""
        keys = [row.key for row in self.table.rows if not row.superseded]
        return tuple(sorted(self.table.marked or keys))

    # Actions

    @on(RankTable.Opened)
    def action_open(self) -> None:
        """The selected rank's details; a group is folded or unfolded."""
        if self.table.group is not None:
            self.table.action_fold()
        else:
            super().action_open()

    def action_mark(self) -> None:
        """Mark the selected rank or unmark it, and go on to the next."""
        self.table.toggle_mark()

    def keys_for_stacks(self) -> tuple[AttemptKey, ...]:
        """The marked ones', else the selected one's."""
        return tuple(sorted(self.table.marked)) or super().keys_for_stacks()

    def action_chart(self) -> None:
        """The marked ranks over time, else the selected one."""
        keys = self.table.marked or ([self.key] if self.key is not None else [])
        if keys:
            from trainwatch.screens.chart import ChartScreen

            self.app.push_screen(ChartScreen(self.feed, keys))

    @on(events.Click, "#notice")
    def action_why(self) -> None:
        """Why it failed, else what stands out; coming back, that rank is the selected one."""
        from trainwatch.screens.failure import FailureScreen

        if self._first is not None or self._board.found:
            self._set_filter("")
            self.table.select(self._first.root if self._first is not None else self._board.found[0].key)
            self.table.focus()
        self.app.push_screen(FailureScreen(self.feed, self._board))

    def action_sort_next(self) -> None:
        """Sort by the next column."""
        self._sort_by(1)

    def action_sort_previous(self) -> None:
        """Sort by the column before."""
        self._sort_by(-1)

    def _sort_by(self, step: int) -> None:
        keys = self.table.sort_keys
        at = keys.index(self.look.sort) if self.look.sort in keys else 0
        self._look(sort=keys[(at + step) % len(keys)], reverse=False)

    def _look(self, **changes: Any) -> None:
        """Another order, grouping or choice of columns, from now on."""
        self.look = replace(self.look, **changes)
        self._taste.keep(self.look)
        self._show_rows()

    def action_reverse(self) -> None:
        """Turn the order around."""
        self._look(reverse=not self.look.reverse)

    def action_group(self) -> None:
        """By the next of host, state, phase; then not at all."""
        at = order.GROUPS.index(self.look.group)
        self._folded, self._all_folded = set(), False
        self._look(group=order.GROUPS[(at + 1) % len(order.GROUPS)])
        self.notify(f"Grouped by {self.look.group}" if self.look.group else "Not grouped", timeout=2)

    @on(RankTable.Folding)
    def _fold(self, event: RankTable.Folding) -> None:
        event.stop()
        self._folded ^= {event.name}
        self._show_rows()

    def action_fold_all(self) -> None:
        """All groups folded, or none."""
        self._folded, self._all_folded = set(), not self._all_folded
        self._show_rows()

    @work
    async def action_columns(self) -> None:
        """Choose the columns."""
        from trainwatch.screens.columns import ChooseColumns

        chosen = await self.app.push_screen_wait(ChooseColumns(self.look.columns, self.table.titles))
        if chosen is not None:
            self._look(columns=chosen)

    @on(RankTable.HeaderClicked)
    def _header_clicked(self, event: RankTable.HeaderClicked) -> None:
        event.stop()
        self._look(sort=event.sort, reverse=not self.look.reverse if event.sort == self.look.sort else False)

    def action_problems(self) -> None:
        """What is noteworthy, and what could not be read."""
        from trainwatch.screens.problems import Problems

        self.app.push_screen(Problems(self.feed.run.problems, findings.told(self._board.found)))

    def action_grid(self) -> None:
        """All ranks as cells."""
        from trainwatch.screens.grid import GridScreen

        self.app.push_screen(GridScreen(self.feed, self.key))

    def action_timeline(self) -> None:
        """Phases over time."""
        from trainwatch.screens.timeline import TimelineScreen

        self.app.push_screen(TimelineScreen(self.feed, self.key))

    def action_hosts(self) -> None:
        """How each host is reached."""
        from trainwatch.screens.hosts import Hosts

        self.app.push_screen(Hosts(self.feed))

    def action_switch(self) -> None:
        """Between table and log."""
        pane = self.query_one(LogPane)
        (self.table if pane.has_focus_within else pane.view).focus()

    def on_descendant_focus(self) -> None:
        """The footer offers what works where the keys go."""
        self._show_keys()

    @on(LogPane.Searching)
    def _searching(self, event: LogPane.Searching) -> None:
        event.stop()
        self._show_keys()

    def _show_keys(self) -> None:
        bar, pane = self.query_one(KeyBar), self.query_one(LogPane)
        why = ["why"] if self._first is not None or self._board.found else []
        if any(found.kind in (findings.STALLED, findings.BEHIND) for found in self._board.found):
            why.append("stacks_all")
        if pane.has_focus_within:
            found = list(pane.found_actions)
            bar.show(actions.VIEW, actions.OVERVIEW, actions.APP, needed=(*found, *why))
        else:
            bar.show(actions.OVERVIEW, actions.APP, needed=tuple(why))

    # The filter

    def action_filter(self) -> None:
        """Type a filter."""
        self.add_class("filtering")
        rows = self._board.rows
        known = {"host": {row.host for row in rows}, "phase": {row.phase for row in rows if row.phase}}
        self.query_one(FilterBar).begin(lambda typed: query.complete(typed, known, self._taste.filters))

    def use_filter(self, value: str) -> None:
        """Show what a filter lets through, as if it had been typed."""
        self._set_filter(value)
        self.table.focus()

    @on(FilterBar.Typed)
    def _filter_typed(self, event: FilterBar.Typed) -> None:
        event.stop()
        self.filter = event.query
        self._show_rows()

    @on(FilterBar.Done)
    def _filter_done(self, event: FilterBar.Done) -> None:
        event.stop()
        self._show_filter(bool(event.query))
        self.table.focus()

    @on(FilterBar.Closed)
    def _filter_closed(self, event: FilterBar.Closed) -> None:
        event.stop()
        self._set_filter("")
        self.table.focus()

    def _set_filter(self, value: str) -> None:
        self.query_one(FilterBar).set(value)
        self.filter = value
        self._show_filter(bool(value))
        self._show_rows()

    def _show_filter(self, shown: bool) -> None:
        self.set_class(shown, "filtering")
        self.query_one(FilterBar).display = shown

    def action_back(self) -> None:
        """One step back: the search, the filter, the log's focus, the marks, then the screen before."""
        if self.query_one(LogPane).close_search():
            self.query_one(LogPane).view.focus()
        elif self.has_class("filtering") or self.filter:
            self._set_filter("")
            self.table.focus()
        elif not self.table.has_focus:
            self.table.focus()
        elif self.table.marked:
            self.table.unmark()
        elif self.nested:
            self.dismiss()
