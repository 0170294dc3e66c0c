"""One rank, one attempt: facts, progress, GPUs, phases, events."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll

from trainwatch import actions
from trainwatch.screens import rank_facts, rank_work
from trainwatch.screens.feed import Feed
from trainwatch.screens.history import History
from trainwatch.screens.run_screen import RunScreen
from trainwatch.widgets.header import Bar, Part
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
        self._history = History(feed)

    @property
    def is_complete(self) -> bool:
        """Whether the history that there is is shown."""
        return self._history.has([self._key])

    @property
    def key(self) -> AttemptKey:
        """The attempt that is shown."""
        return self._key

    def compose(self) -> ComposeResult:
        """Title, facts, progress, GPUs, phases, events."""
        yield Bar(id="header")
        with VerticalScroll(id="body"), Container(id="columns"):
            yield Section("facts", id="facts")
            with Container(id="course"):
                yield Section("progress", id="work")
                yield Section("GPUs", id="gpus")
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
        samples = self._history.of(self._key)
        self._show_part("#work", rank_work.progress(attempt, row, samples, now, width), attempt.progress.known)
        gpus = attempt.gpus
        self._show_part("#gpus", rank_work.gpu_lines(attempt, row, samples, width), bool(gpus.each or gpus.note))
        self.query_one("#phases", Section).show(rank_facts.phases(attempt, now, width))
        self.query_one("#events", Section).show(rank_facts.events(attempt, now, width))

        if self._history.take_turn():
            self.run_worker(self._renew(), group="history")

    def _show_part(self, name: str, parts: list[Part], known: bool) -> None:
        """A section that is there only when there is something to say."""
        section = self.query_one(name, Section)
        section.display = known
        section.show(parts)

    async def _renew(self) -> None:
        await self._history.renew([self._key])
        self.show()

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

    def action_merged(self) -> None:
        """All ranks' logs as one."""
        from trainwatch.screens.merged import open_merged

        open_merged(self.app, self.feed, tuple(attempt.key for attempt in self.feed.run.current()))
