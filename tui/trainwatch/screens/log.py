"""One log on the whole screen."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from trainwatch import actions
from trainwatch.screens.feed import Feed
from trainwatch.screens.log_keeper import LogKeeper
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.log_pane import LogPane
from trainwatch_launcher.reader.changes import AttemptKey


class LogScreen(LogKeeper):
    """A log pane and its keys."""

    BINDINGS = actions.bindings(actions.LOG)
    SCOPES = (actions.LOG, actions.VIEW)

    def __init__(self, feed: Feed, key: AttemptKey, offset: int | None = None, line: int | None = None) -> None:
        """The log of `key`, from the line that begins at `offset`, or has the number `line` (from 1); else its end."""
        super().__init__(feed)
        self._key, self._offset, self._line = key, offset, line
        self._opened = False

    @property
    def key(self) -> AttemptKey:
        """The attempt whose log it is."""
        return self._key

    @property
    def log_keys(self) -> tuple[AttemptKey, ...]:
        """That one."""
        return (self._key,)

    @property
    def pane(self) -> LogPane:
        """The log."""
        return self.query_one(LogPane)

    def compose(self) -> ComposeResult:
        """The log and the footer."""
        yield LogPane(id="log")
        yield KeyBar(actions.VIEW, actions.LOG, actions.APP)

    def on_mount(self) -> None:
        """Keys go to the log."""
        self.pane.view.focus()

    def run_changed(self) -> None:
        """The title says how the rank stands."""
        row, attempt = self.row, self.attempt
        if row is None or attempt is None:
            return
        if not self._opened:
            self._opened = True
            self.pane.open(self.feed.logs([self._key]), self.title_of(row), f"{row.label}.rank.log")
            self.pane.go_when_known(self._go)
        phases = tuple((0, phase.offset) for phase in attempt.phases if phase.source == "marker")
        self.pane.rename(self.title_of(row), row.output_lines, phases)

    def _go(self) -> None:
        """To the line that was meant."""
        if self._offset is not None:
            self.pane.view.show_pattern(None, (0, self._offset))
        elif self._line is not None:
            self.pane.go_line(str(self._line))

    @on(LogPane.Searching)
    def _show_keys(self, event: LogPane.Searching) -> None:
        """While something is looked for, the way to the next hit is offered first."""
        event.stop()
        self.query_one(KeyBar).show(actions.VIEW, actions.LOG, actions.APP, needed=self.pane.found_actions)

    def action_in_full(self) -> None:
        """The line among all lines again."""
        self.pane.show_all()

    def action_wrap(self) -> None:
        """Wrap long lines or not."""
        self.pane.action_wrap()

    def action_scroll_right(self) -> None:
        """Sideways."""
        self.pane.action_right()

    def action_back(self) -> None:
        """Out of the selection, the search, the filter; then out of the log."""
        if self.pane.close_search():
            self.pane.view.focus()
        else:
            self.dismiss()
