"""Logs with their title and a line to type in: the lower half of the overview, and the whole of the log screens."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer

from trainwatch import actions
from trainwatch.model import text as words
from trainwatch.widgets import logtext
from trainwatch.widgets.header import Bar, Part, fit_most
from trainwatch.widgets.log_find import Finder
from trainwatch.widgets.log_loader import Goal, LogReader
from trainwatch.widgets.log_rows import Place
from trainwatch.widgets.log_taking import LogTaking
from trainwatch.widgets.log_view import ALL, LogView
from trainwatch.widgets.page_loader import Sifting
from trainwatch.widgets.search_bar import FIND, HIDE, LINE, SAVE, SHOW, TIME, SearchBar
from trainwatch_launcher.reader.query import Query, QueryError

TYPING = 0.15
"""Seconds without a key after which what has been typed so far is looked for."""
CONTEXTS = (0, 2, 5, 20)


class LogPane(LogTaking):
    """Title, view and the line to type in. Its owner opens logs and says what they are called."""

    BINDINGS = actions.bindings(actions.VIEW)
    DEFAULT_CSS = """
    LogPane { height: 1fr; }
    LogPane LogView { height: 1fr; }
    LogPane SearchBar { display: none; }
    LogPane.searching SearchBar { display: block; }
    """

    class Searching(Message):
        """Something is looked for now, or no longer."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._heading: list[Part] = []
        self._finder: Finder | None = None
        self._came_from: Place | None = None
        self._timer: Timer | None = None
        self._shown: Query | None = None
        self._hidden: tuple[Query, ...] = ()
        self._around = 0
        self._go_then: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        """Title above, the line to type in below."""
        yield Bar(classes="pane-title")
        yield LogView()
        yield SearchBar()

    @property
    def view(self) -> LogView:
        """The log itself."""
        return self.query_one(LogView)

    @property
    def bar(self) -> SearchBar:
        """The line to type in."""
        return self.query_one(SearchBar)

    @property
    def finder(self) -> Finder:
        """What looks for something."""
        if self._finder is None:
            self._finder = Finder(
                self.view, lambda work: self.run_worker(work, group="search", exit_on_error=False), self._found
            )
        return self._finder

    @property
    def found_actions(self) -> tuple[str, ...]:
        """Actions that matter now: what leads on in a search, what ends a selection."""
        if self.view.cursor is not None:
            return ("copy_lines", "save")
        return ("find_next", "find_previous") if self.has_class("searching") and self.view.pattern is not None else ()

    def open(self, reader: LogReader | None, name: list[Part], suggested: str = "trainwatch.log") -> None:
        """Show other logs, from their end, under this name; `suggested` is the name of a file for their lines."""
        self.finder.stop()
        self._heading, self.suggested_name = name, suggested
        self._shown, self._hidden, self.counted, self._counted_bytes, self.is_told_lines = None, (), "", 0, False
        self._go_then = None
        self.phases = ()
        self.view.open(reader)
        self._end_search()

    def go_when_known(self, go: Callable[[], None]) -> None:
        """Call this once it is known how much of the log there is: before that there is nowhere to go to."""
        self._go_then = go

    def reopen(self, reader: LogReader) -> None:
        """Show fewer or more of the same logs, with the same filter."""
        self.finder.stop()
        self.view.open(reader, self.view.sifting, keep=True)
        self._end_search()

    def rename(self, name: list[Part], total_lines: int | None, phases: tuple[Place, ...]) -> None:
        """What is known of the log by now: its title, its line count, where its phases begin."""
        view = self.view
        self.is_told_lines = bool(total_lines)
        lines = total_lines or view.total_lines
        changed = (name, lines) != (self._heading, view.total_lines)
        self.phases = phases
        view.learn(lines, frozenset(phases))
        if changed:
            self._heading = name
            self.retitle()

    @on(LogView.Changed)
    def _view_changed(self, event: LogView.Changed) -> None:
        event.stop()
        self.retitle()
        self.learn_lines()
        if self._go_then is not None and self.view.size_bytes:
            go, self._go_then = self._go_then, None
            go()
        if self.view.size_bytes:
            self.count_lines()

    def on_resize(self) -> None:
        """The title fills the width."""
        self.retitle()

    # The title

    def retitle(self) -> None:
        """Say what is so now."""
        view = self.view
        width = self.size.width
        used = sum(cell_len(part) for part, _ in self._heading)
        facts = [part for part in self._facts(view) if part]
        while len(facts) > 1 and used + sum(map(len, facts)) + 3 * len(facts) > width:
            facts.pop(0)  # the last one matters most
        right = fit_most(" · ".join(facts), max(0, width - used - 3)) if width - used > 8 else ""
        gap = " " * max(1, width - used - cell_len(right) - 1)
        mark = "$state-running" if view.following and not self.busy else "$state-stalled"
        self.query_one(Bar).show([*self._heading, (gap, ""), (right, mark), (" ", "")])

    def _facts(self, view: LogView) -> list[str]:
        """What the title says at its right: how much there is, and where we are in it."""
        count = view.total_lines
        lines = f"{count:,} line{'' if count == 1 else 's'}" if count else self.counted
        size = words.size(view.size_bytes) if view.size_bytes else ""
        place = "" if view.following else f"{view.position:.0%}"
        if view.error:
            return [logtext.clean(view.error)]
        how = ["wrapped" if view.wrapped else "", "all states" if view.states else "", "folded" if view.folded else ""]
        state = self.busy or ("following" if view.following else f"paused, {view.new_text or 'f follows'}")
        if view.cursor is not None:
            state = "selecting: c copies, ctrl+s saves, esc leaves"
        elif view.progress and not self.busy:
            state = f"looking for lines… {view.progress}"
        return [lines, size, *how, place, self._filter_text(), state if view.size_bytes else ""]

    def _filter_text(self) -> str:
        """Which lines are shown."""
        parts = [f"& {self._shown.text}" if self._shown else "", *(f"- {query.text}" for query in self._hidden)]
        shown = "  ".join(logtext.clean(part) for part in parts if part)
        return f"{shown} ±{self._around}" if shown and self._around else shown

    # Typing

    def ask_for(self, mode: str, text: str | None = None) -> None:
        """Have a line typed."""
        self.add_class("searching")
        current = self.view.current
        self._came_from = None if self.view.following or current is None else self.view.place(current)
        self.bar.begin(mode, text)

    def action_search(self) -> None:
        """Type what to look for."""
        self.ask_for(FIND)

    def action_show_lines(self) -> None:
        """Type which lines to show."""
        self.ask_for(SHOW, self._shown.text if self._shown else None)

    def action_hide_lines(self) -> None:
        """Type which lines to hide."""
        self.ask_for(HIDE, "")

    @on(SearchBar.Typed)
    def _typed(self, event: SearchBar.Typed) -> None:
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        if event.mode == FIND:
            self._timer = self.set_timer(TYPING, lambda: self._preview(event.text, event.regex))

    def _preview(self, text: str, regex: bool) -> None:
        """Show the first hit of what has been typed so far."""
        if self.bar.mode != FIND or not self.bar.has_focus_within:
            return
        if not text:
            self.finder.stop()
            self.view.show_pattern(None, None)
            self._return()
            return
        self._look_for(text, regex)

    def _look_for(self, text: str, regex: bool) -> bool:
        """Look from where the person was; False when it is no expression, which is said."""
        try:
            query = Query(text, regex)
        except QueryError as error:
            self.bar.say(str(error))
            return False
        known = self.finder.query
        if known is not None and known.to_json() == query.to_json():
            return True
        start = self._start()
        self.finder.look_for(query, start is not None, start)
        return True

    def _start(self) -> int | None:
        """The line from which one looks; None for the end, upwards."""
        view, came = self.view, self._came_from
        if came is None:
            return None
        return next((start for start in view.seen if view.place(start) == came), view.current)

    @on(SearchBar.Wanted)
    def _wanted(self, event: SearchBar.Wanted) -> None:
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        said = ""
        if event.mode == FIND:
            if not self._look_for(event.text, event.regex):
                return
            self.finder.count()
            self.post_message(self.Searching())
        elif event.mode in (SHOW, HIDE):
            said = self._filter(event.mode, event.text, event.regex)
        else:
            said = {LINE: self.go_line, TIME: self.go_time, SAVE: self.save_to}[event.mode](event.text)
        if said:
            self.bar.say(said)
            return
        if event.mode != FIND:
            self._hide_bar()
        self.view.focus()

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        if event.mode == FIND:
            self._return()
            self.close_search()
        else:
            self._hide_bar()
        self.view.focus()

    def _return(self) -> None:
        """Back to where one was when one began to type."""
        if self._came_from is None:
            self.view.follow()
        else:
            self.view.go(Goal("place", *self._came_from))

    def _hide_bar(self) -> None:
        """What was typed is done; a search that goes on keeps its line."""
        if self.finder.query is not None:
            self.bar.begin(FIND, self.finder.query.text)
            self.finder.tell()
        else:
            self.remove_class("searching")
            self.bar.display = False

    def _filter(self, mode: str, text: str, regex: bool) -> str:
        """Show or hide lines; returns what is wrong, or nothing."""
        try:
            query = Query(text, regex, invert=mode == HIDE) if text else None
        except QueryError as error:
            return str(error)
        if mode == SHOW:
            self._shown = query
        else:
            self._hidden = (*self._hidden, query) if query is not None else ()
        self._sift()
        return ""

    def action_context(self) -> None:
        """More or fewer lines around those that are shown."""
        self._around = CONTEXTS[(CONTEXTS.index(self._around) + 1) % len(CONTEXTS)]
        if self._shown is not None:
            self._sift()
        self.notify(f"{self._around or 'No'} lines around each that passes the filter (&).", timeout=2)

    def _sift(self) -> None:
        """Show what passes, at the line where one is, as far as it is shown."""
        view, current = self.view, self.view.current
        place = None if view.following or current is None else view.place(current)
        queries = (*((self._shown,) if self._shown else ()), *self._hidden)
        sifting = Sifting(queries, self._around if self._shown else 0) if queries else ALL
        view.open(view.reader, sifting, keep=True)
        if place is not None:
            view.go(Goal("place", *place))
        if self.finder.query is not None:
            self.finder.look_for(self.finder.query, False, view.current)
            self.finder.count()

    # The search

    def _found(self, said: str) -> None:
        """How a search goes."""
        if self.bar.mode == FIND:
            self.bar.say(said)

    def failed(self, said: str) -> None:
        """Say what has failed, in one line; of a search where one looks for its answer."""
        if self.has_class("searching") and said.startswith("search"):
            self._found(said)
        super().failed(said)

    def close_search(self) -> bool:
        """End the selection, else the search, else the filter; False when there is none."""
        if self.view.end_selection():
            return True
        if self.busy:
            self.workers.cancel_group(self, "save")
            self.workers.cancel_group(self, "go")
            self.busy = ""
            self.retitle()
            return True
        if self.has_class("searching"):
            self._end_search()
            return True
        return self.show_all()

    def show_all(self) -> bool:
        """Filter no more, and stay at the line; False when nothing was filtered."""
        if not self._shown and not self._hidden:
            return False
        self._shown, self._hidden = None, ()
        self._sift()
        return True

    def _end_search(self) -> None:
        self.finder.stop()
        self.remove_class("searching")
        self.bar.display = False
        self.view.show_pattern(None, None)
        self.post_message(self.Searching())
        self.retitle()

    def action_find_next(self) -> None:
        """The next hit below."""
        self._again(down=True)

    def action_find_previous(self) -> None:
        """The next hit above."""
        self._again(down=False)

    def _again(self, down: bool) -> None:
        view = self.view
        if self.finder.query is None:
            self.action_search()
            return
        start = None if view.following and not down else view.current
        self.finder.next(down, start, below=start is not None and view.place(start) == view.hit)

    # Movements and modes, for the keys

    def action_follow(self) -> None:
        """Follow, or stay here."""
        self.view.toggle_follow()

    def action_bottom(self) -> None:
        """To the end, and follow."""
        self.view.follow()

    def action_wrap(self) -> None:
        """Wrap long lines or not."""
        self.view.toggle_wrap()

    def action_states(self) -> None:
        """All states of a bar, or the last one."""
        self.view.toggle_states()

    def action_gutter(self) -> None:
        """Nothing, numbers or times before each line."""
        self.view.next_gutter()

    def action_fold(self) -> None:
        """Lines that several ranks say, once or each."""
        self.view.fold(not self.view.folded)

    def action_line_down(self) -> None:
        """One row down."""
        self.view.scroll_rows(1)

    def action_line_up(self) -> None:
        """One row up."""
        self.view.scroll_rows(-1)

    def action_view_down(self) -> None:
        """A page down."""
        self.view.scroll_page(1)

    def action_view_up(self) -> None:
        """A page up."""
        self.view.scroll_page(-1)

    def action_top(self) -> None:
        """To the beginning."""
        self.view.go_top()

    def action_right(self) -> None:
        """Sideways."""
        self.view.scroll_sideways(1)

    def action_left(self) -> None:
        """Back."""
        self.view.scroll_sideways(-1)
