"""A log with its title and its search: the lower half of the overview, and the whole of the log screen."""

from __future__ import annotations

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.worker import Worker

from trainwatch import actions
from trainwatch.model import text as words
from trainwatch.widgets import log_search, logtext
from trainwatch.widgets.header import Bar, Part, fit_most
from trainwatch.widgets.log_loader import LogReader, ReadError
from trainwatch.widgets.log_view import LogView
from trainwatch.widgets.search_bar import SearchBar


class LogPane(Vertical):
    """Title, view and search bar. Its owner opens a log and says what it is called."""

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
        self._find: Worker[None] | None = None
        self._finding = ""

    def compose(self) -> ComposeResult:
        """Title above, search below."""
        yield Bar(classes="pane-title")
        yield LogView()
        yield SearchBar()

    @property
    def view(self) -> LogView:
        """The log itself."""
        return self.query_one(LogView)

    @property
    def found_actions(self) -> tuple[str, ...]:
        """Actions that matter now that something is looked for."""
        return ("find_next", "find_previous") if self.has_class("searching") and self.view.pattern is not None else ()

    def open(self, reader: LogReader | None, name: list[Part]) -> None:
        """Show another log, from its end, under this name."""
        self._stop_finding("")
        self._heading = name
        self.view.open(reader)
        self._end_search()

    def rename(self, name: list[Part], total_lines: int | None, phases: frozenset[int]) -> None:
        """What is known of the log by now: its title, its line count, where its phases begin."""
        view = self.view
        changed = (name, total_lines) != (self._heading, view.total_lines)
        view.learn(total_lines, phases)
        if changed:
            self._heading = name
            self._title()

    @on(LogView.Changed)
    def _view_changed(self, event: LogView.Changed) -> None:
        event.stop()
        self._title()

    def on_resize(self) -> None:
        """The title fills the width."""
        self._title()

    def _title(self) -> None:
        view = self.view
        width = self.size.width
        used = sum(cell_len(part) for part, _ in self._heading)
        facts = [part for part in self._facts(view) if part]
        while len(facts) > 1 and used + sum(map(len, facts)) + 3 * len(facts) > width:
            facts.pop(0)  # the last one matters most
        right = fit_most(" · ".join(facts), max(0, width - used - 3)) if width - used > 8 else ""
        gap = " " * max(1, width - used - cell_len(right) - 1)
        mark = "$state-running" if view.following and not self._finding else "$state-stalled"
        self.query_one(Bar).show([*self._heading, (gap, ""), (right, mark), (" ", "")])

    def _facts(self, view: LogView) -> list[str]:
        """What the title says at its right: how much there is, and where we are in it."""
        count = view.total_lines
        lines = f"{count:,} line{'' if count == 1 else 's'}" if count else ""
        size = words.size(view.size_bytes) if view.size_bytes else ""
        place = "" if view.following else f"{view.position:.0%}"
        if view.error:
            return [logtext.clean(view.error)]
        state = self._finding or ("following" if view.following else f"paused, {view.new_text or 'f follows'}")
        return [lines, size, "wrapped" if view.wrapped else "", place, state if view.size_bytes else ""]

    # Search

    def action_search(self) -> None:
        """Type what to look for."""
        self.add_class("searching")
        self.query_one(SearchBar).begin()

    @on(SearchBar.Wanted)
    def _wanted(self, event: SearchBar.Wanted) -> None:
        event.stop()
        try:
            pattern = log_search.compile_pattern(event.text, event.regex)
        except log_search.PatternError as error:
            self.query_one(SearchBar).say(str(error))
            return
        view = self.view
        down = not view.following
        view.show_pattern(pattern, None)
        self.post_message(self.Searching())
        view.focus()
        self._look_for(pattern, down, view.top_offset if down else view.size_bytes)

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self.close_search()
        self.view.focus()

    def close_search(self) -> bool:
        """End the search and its highlights; False when there is none."""
        if not self.has_class("searching"):
            return False
        self._stop_finding("")
        self._end_search()
        return True

    def _end_search(self) -> None:
        self.remove_class("searching")
        self.query_one(SearchBar).display = False
        self.view.show_pattern(None, None)
        self.post_message(self.Searching())
        self._title()

    def action_find_next(self) -> None:
        """The next hit below."""
        self._again(down=True)

    def action_find_previous(self) -> None:
        """The next hit above."""
        self._again(down=False)

    def _again(self, down: bool) -> None:
        view = self.view
        if view.pattern is None:
            self.action_search()
            return
        if view.hit is not None:
            self._look_for(view.pattern, down, view.hit, past=down)
        else:
            self._look_for(view.pattern, down, view.size_bytes if view.following else view.top_offset)

    def _look_for(self, pattern: log_search.Pattern, down: bool, start: int, past: bool = False) -> None:
        """Search from the line at `start`; `past` it, when it is the hit that one comes from."""
        if self.view.reader is not None:
            self._stop_finding("searching")
            work = self._search(self.view.reader, pattern, down, start, past)
            self._find = self.run_worker(work, group="search", exclusive=True, exit_on_error=False)

    async def _search(self, reader: LogReader, pattern: log_search.Pattern, down: bool, start: int, past: bool) -> None:
        """Look in the background, saying how far one is; a key stays a key all the while."""
        bar, size = self.query_one(SearchBar), self.view.size_bytes
        outcome = f"no match for {pattern.text}"
        try:
            if past:
                start = await log_search.line_after(reader.read, start, size)
            async for progress in log_search.find(pattern, reader.read, size, start, down):
                bar.say(f"searching… {progress.done:.0%}")
                if progress.hit is not None:
                    self.view.show_pattern(pattern, progress.hit)
                    around = ", around the end" if progress.wrapped else ""
                    outcome = f"hit at {progress.hit / max(1, size):.0%}{around} · n next · N previous"
        except (ReadError, log_search.PatternError) as error:
            outcome = str(error)
        bar.say(outcome)
        self._finding = ""
        self._title()

    def _stop_finding(self, now: str) -> None:
        if self._find is not None:
            self._find.cancel()
            self._find = None
        self._finding = now

    # Movements, for the keys

    def action_follow(self) -> None:
        """Follow, or stay here."""
        self.view.toggle_follow()

    def action_bottom(self) -> None:
        """To the end, and follow."""
        self.view.follow()

    def action_wrap(self) -> None:
        """Wrap long lines or not."""
        self.view.toggle_wrap()

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
