"""Why the run failed: where it began, its lines, who died of it, what to do; before a failure, what stands out."""

from __future__ import annotations

from collections.abc import Hashable

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll

from trainwatch import actions
from trainwatch.model import findings, holding
from trainwatch.model.board import Board
from trainwatch.model.failure import first_failure
from trainwatch.model.state import Run
from trainwatch.model.story import Story, tell
from trainwatch.model.ticket import ticket
from trainwatch.screens import failure_parts, wishes
from trainwatch.screens.feed import Feed
from trainwatch.screens.run_screen import MANY, RunScreen
from trainwatch.screens.unexplained import Unexplained
from trainwatch.widgets.excerpt import Excerpt, read
from trainwatch.widgets.header import Bar
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.section import Section
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptKey

EVERY = 3.0
"""Seconds between two tellings of a failure of more than `MANY` ranks."""
IN_TICKET = 20
"""Lines of the log that a ticket has."""
FEW = 6
"""Ranks that are shown in their order at least."""
FEWEST_LINES, MOST_LINES = 7, 30
"""Lines of the log that are shown."""


class FailureScreen(RunScreen):
    """Root cause and log at the left, what followed at the right; one below the other where it is narrow."""

    BINDINGS = actions.bindings(actions.FAILURE)
    SCOPES = (actions.FAILURE,)

    def __init__(self, feed: Feed, board: Board | None = None) -> None:
        super().__init__(feed)
        self._board = board if board is not None else Board()
        self._told: tuple[Run, float, Story | None] | None = None
        self._unexplained = Unexplained(feed)
        self._excerpt = Excerpt()
        self._read: Hashable = None
        self._is_reading = False

    @property
    def is_complete(self) -> bool:
        """Whether all that logs say is there."""
        return not self._is_reading and not self._unexplained.busy

    @property
    def story(self) -> Story | None:
        """What is told; None while nothing has failed."""
        return self._told[2] if self._told is not None else None

    @property
    def key(self) -> AttemptKey | None:
        """Where it began; else the rank that stands out most."""
        if self.story is not None:
            return self.story.key
        return self._board.found[0].key if self._board.found else None

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Bar(id="header")
        with VerticalScroll(id="body"), Container(id="columns"):
            with Container(id="story"):
                yield Section("root cause", id="cause")
                yield Section("log", id="lines")
            yield Section("what followed", id="followed")
        yield KeyBar(actions.FAILURE, actions.APP)

    def on_mount(self) -> None:
        """Keys that move go to the page."""
        self.body.focus()

    def on_resize(self) -> None:
        """Lines are cut for the width."""
        self.call_after_refresh(self.show)

    @property
    def body(self) -> VerticalScroll:
        """What scrolls."""
        return self.query_one("#body", VerticalScroll)

    # What is shown

    def run_changed(self) -> None:
        """Tell what is known now."""
        run, now = self.feed.run, self.feed.now()
        story = self._story(run, now)
        self.show_header(now)
        for name in ("#lines", "#followed"):
            self.query_one(name).display = story is not None
        if story is None:
            self._show_calm(run, now)
        else:
            self._show_story(story, now)

    def _story(self, run: Run, now: float) -> Story | None:
        """The story; of many ranks it is told anew every few seconds only."""
        known = self._told
        if known is not None and len(run.order) > MANY and (known[0] is run or 0 <= now - known[1] < EVERY):
            return known[2]
        failure = first_failure(run, now, read=self._unexplained.found)
        if failure is not None and (keys := self._unexplained.due(run)):
            self._unexplained.busy = True
            self.run_worker(self._unexplained.read(keys, self._tell_anew), group="unexplained", exit_on_error=False)
        self._told = (run, now, None if failure is None else tell(run, now, failure))
        return self._told[2]

    def _tell_anew(self) -> None:
        """Logs have said more."""
        self._told = None
        self.show()

    def _show_calm(self, run: Run, now: float) -> None:
        self._board.renew(run, now)
        section = self.query_one("#cause", Section)
        section.border_title = "why"
        section.show(failure_parts.calm_parts(findings.told(self._board.found), self._width(section)))

    def _show_story(self, story: Story, now: float) -> None:
        cause = self.query_one("#cause", Section)
        cause.border_title = "root cause" if story.clear else "root cause, as far as can be told"
        told = failure_parts.cause_parts(story, now, self._width(cause))
        cause.show(told)
        followed = self.query_one("#followed", Section)
        followed.show(failure_parts.followed_parts(story, self._width(followed), max(FEW, self.size.height - 16)))
        self._show_lines(story, "".join(text for text, _ in told).rstrip().count("\n") + 1)

    def _show_lines(self, story: Story, above: int) -> None:
        """The log's lines, read when another line is meant, or when the log without such a line has grown.

        There are `above` lines in the section above them.
        """
        lines = self.query_one("#lines", Section)
        place = f", line {story.line}" if story.line is not None else ""
        lines.border_title = f"log of rank {story.label}{place}"
        # one below the other, what followed must be seen too; side by side, the lines have all that is left
        room = self.size.height - 24 if self.has_class("-narrow") else self.body.size.height - above - 5
        count = max(FEWEST_LINES, min(MOST_LINES, room))
        lines.show(failure_parts.log_parts(self._excerpt.around(count), self._width(lines)))
        status = self.feed.run.attempts[story.key].status
        grown = status.output_bytes if status is not None and story.line is None and story.offset is None else None
        wanted = (story.key, story.line, story.offset, grown)
        if wanted != self._read and not self._is_reading:
            self._read, self._is_reading = wanted, True
            self.run_worker(self._read_lines(story), group="lines", exit_on_error=False)

    async def _read_lines(self, story: Story) -> None:
        try:
            self._excerpt = await read(self.feed.logs([story.key]), story.offset, story.line)
        finally:
            self._is_reading = False
        self.show()

    @staticmethod
    def _width(section: Section) -> int:
        return max(30, section.content_size.width)

    # Actions

    def action_line(self) -> None:
        """The line in the log that says why; the log's end when there is none."""
        if self.key is None:
            self.notify("No rank has failed, and none stands out.")
            return
        from trainwatch.screens.log import LogScreen

        story = self.story
        offset = line = None
        if story is not None:
            offset = story.offset if story.offset is not None else self._excerpt.offset
            line = story.line if offset is None else None
        self.app.push_screen(LogScreen(self.feed, self.key, offset, line))

    def action_copy_ticket(self) -> None:
        """All this as Markdown."""
        story = self.story
        if story is None:
            self.notify("No rank has failed: there is nothing to report.")
            return
        path = self.feed.log_path(story.key) or log_path(self.feed.run.attempts[story.key].directory)
        place = f"{path}:{story.line}" if story.line is not None else path
        lines = self._excerpt.around(IN_TICKET)
        self.post_message(wishes.Copy(ticket(story, self.feed.name, place, lines.lines, lines.hit)))

    def action_release_others(self) -> None:
        """End the holds of all but the rank where it began, after a question."""
        run = self.feed.run
        picked = holding.collateral(run, self.feed.now())
        if not picked.rows:
            said = "; ".join(picked.problems) or "no other rank is held"
            self.notify(f"{said[0].upper()}{said[1:]}.", severity="warning", markup=False)
            return
        from trainwatch.screens.dialogs import Confirm

        count = len(picked.rows)
        who = f"{count} ranks" if count > 1 else f"rank {picked.rows[0].label}"
        kept = "; ".join(picked.notes)
        said = f"Their containers go with all that is in them. {kept[0].upper()}{kept[1:]}." if kept else ""
        keys = tuple(row.key for row in picked.rows)

        def answered(yes: bool | None) -> None:
            if yes:
                self.post_message(wishes.ControlMany(keys, "release"))

        self.app.push_screen(Confirm(f"Release {who}?", said, "Release"), answered)

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
