"""One rank, one attempt: facts, phases, events."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll

from trainwatch import actions
from trainwatch.screens import rank_facts
from trainwatch.screens.feed import Feed
from trainwatch.screens.run_screen import RunScreen
from trainwatch.widgets.header import Bar
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.section import Section
from trainwatch_launcher.reader.changes import AttemptKey


class RankScreen(RunScreen):
    """Two columns where there is room, one below the other where there is not."""

    BINDINGS = actions.bindings(actions.RANK)
    SCOPES = (actions.RANK,)

    def __init__(self, feed: Feed, key: AttemptKey) -> None:
        super().__init__(feed)
        self._key = key

    @property
    def key(self) -> AttemptKey:
        """The attempt that is shown."""
        return self._key

    def compose(self) -> ComposeResult:
        """Title, facts, phases, events."""
        yield Bar(id="header")
        with VerticalScroll(id="body"), Container(id="columns"):
            yield Section("facts", id="facts")
            with Container(id="course"):
                yield Section("phases", id="phases")
                yield Section("events", id="events")
        yield KeyBar(actions.RANK, actions.APP)

    def on_resize(self) -> None:
        """Bars and lines are cut for the width."""
        self.call_after_refresh(self.show)

    def run_changed(self) -> None:
        """Say what is known now."""
        attempt, row, now = self.attempt, self.row, self.feed.now()
        if attempt is None or row is None:
            return
        self.query_one("#header", Bar).show(self.title_of(row))
        facts = self.query_one("#facts", Section)
        facts.show(rank_facts.facts(self.feed.run, attempt, row, now, max(30, facts.content_size.width)))
        width = max(30, self.query_one("#phases", Section).content_size.width)
        self.query_one("#phases", Section).show(rank_facts.phases(attempt, now, width))
        self.query_one("#events", Section).show(rank_facts.events(attempt, now, width))

    @property
    def body(self) -> VerticalScroll:
        """What scrolls."""
        return self.query_one("#body", VerticalScroll)

    def action_page_line_down(self) -> None:
        """One row down."""
        self.body.scroll_relative(y=1, animate=False)

    def action_page_line_up(self) -> None:
        """One row up."""
        self.body.scroll_relative(y=-1, animate=False)

    def action_page_top(self) -> None:
        """To the top."""
        self.body.scroll_home(animate=False)

    def action_page_bottom(self) -> None:
        """To the bottom."""
        self.body.scroll_end(animate=False)

    def action_log(self) -> None:
        """The whole log."""
        from trainwatch.screens.log import LogScreen

        self.app.push_screen(LogScreen(self.feed, self._key))
