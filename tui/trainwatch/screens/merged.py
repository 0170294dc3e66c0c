"""Several ranks' logs as one, in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from trainwatch import actions
from trainwatch.model import naming
from trainwatch.screens.feed import Feed
from trainwatch.screens.log_keeper import LogKeeper
from trainwatch.screens.page import Page
from trainwatch.widgets.header import Part
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.log_pane import LogPane
from trainwatch.widgets.log_rows import COLOURS, Place
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey


class MergedScreen(LogKeeper):
    """A log pane on several logs, of which any may be muted."""

    BINDINGS = actions.bindings(actions.MERGED)
    SCOPES = (actions.MERGED, actions.VIEW)

    def __init__(self, feed: Feed, keys: tuple[AttemptKey, ...]) -> None:
        super().__init__(feed)
        self.keys = keys
        self.muted: frozenset[AttemptKey] = frozenset()
        self._opened = False

    @property
    def key(self) -> AttemptKey | None:
        """The attempt whose line one is at."""
        view = self.pane.view
        current = view.current
        keys = self.log_keys
        return keys[view.place(current)[0]] if current is not None and keys else None

    @property
    def log_keys(self) -> tuple[AttemptKey, ...]:
        """Those that are not muted."""
        return tuple(key for key in self.keys if key not in self.muted)

    @property
    def pane(self) -> LogPane:
        """The logs."""
        return self.query_one(LogPane)

    def compose(self) -> ComposeResult:
        """The logs and the footer."""
        yield LogPane(id="log")
        yield KeyBar(actions.VIEW, actions.MERGED, actions.APP)

    def on_mount(self) -> None:
        """Keys go to the logs."""
        self.pane.view.focus()

    def run_changed(self) -> None:
        """The title says whose logs these are, and how many lines they have."""
        if not self._opened:
            self._opened = True
            self.pane.open(self.feed.logs(self.log_keys), self._heading(), f"{self.feed.run.run_id or 'run'}.log")
        attempts = [self.feed.run.attempts.get(key) for key in self.log_keys]
        counts = [a.status.output_lines for a in attempts if a is not None and a.status is not None]
        lines = sum(count for count in counts if count is not None)
        phases: tuple[Place, ...] = tuple(
            (number, phase.offset) for number, attempt in enumerate(attempts) if attempt is not None
            for phase in attempt.phases if phase.source == "marker"
        )  # fmt: skip
        self.pane.rename(self._heading(), lines or None, phases)

    def _heading(self) -> list[Part]:
        ranks = naming.spans(key.rank for key in self.log_keys)
        muted = f"  {len(self.muted)} muted" if self.muted else ""
        return [(" ranks ", "$tw-muted"), (ranks, "bold"), (muted, "$state-stalled")]

    @on(LogPane.Searching)
    def _show_keys(self, event: LogPane.Searching) -> None:
        event.stop()
        self.query_one(KeyBar).show(actions.VIEW, actions.MERGED, actions.APP, needed=self.pane.found_actions)

    def action_mute(self) -> None:
        """Choose which ranks are shown."""

        def chosen(muted: frozenset[AttemptKey]) -> None:
            if muted != self.muted and len(muted) < len(self.keys):
                self.muted = muted
                self.pane.reopen(self.feed.logs(self.log_keys))
                self.run_changed()

        labels = [self.feed.run.label(key) for key in self.keys]
        self.app.push_screen(Mute(self.keys, labels, self.muted, chosen))

    def action_fold(self) -> None:
        """Lines that several ranks say, once or each."""
        self.pane.action_fold()

    def action_in_full(self) -> None:
        """The line in its own rank's log."""
        from trainwatch.screens.log import LogScreen

        view = self.pane.view
        current, keys = view.current, self.log_keys
        if current is not None and keys:
            log, offset = view.place(current)
            self.app.push_screen(LogScreen(self.feed, keys[log], offset))

    def action_wrap(self) -> None:
        """Wrap long lines or not."""
        self.pane.action_wrap()

    def action_scroll_right(self) -> None:
        """Sideways."""
        self.pane.action_right()

    def action_back(self) -> None:
        """Out of the selection, the search, the filter; then out of the logs."""
        if self.pane.close_search():
            self.pane.view.focus()
        else:
            self.dismiss()


def open_merged(app: App[Any], feed: Feed, keys: tuple[AttemptKey, ...]) -> None:
    """Show these logs as one; a single one is not worth it."""
    if len(keys) < 2:
        app.notify("There is only one log.", severity="warning")
    else:
        app.push_screen(MergedScreen(feed, keys))


class Mute(Page):
    """Ranks, of which each is shown or muted."""

    AUTO_FOCUS = "OptionList"
    SUBTITLE = "⏎ shows or mutes · a all · o only this · esc done"
    BINDINGS: ClassVar = [
        Binding("m", "close", "close", show=False),
        Binding("space", "show_or_mute", "show or mute", show=False),
        Binding("a", "all", "all", show=False),
        Binding("o", "only", "only", show=False),
    ]
    DEFAULT_CSS = """
    Mute OptionList { border: none; padding: 0; background: $surface; background-tint: $foreground 0%; height: auto; }
    Mute OptionList:focus { background-tint: $foreground 0%; }
    Mute OptionList > .option-list--option { padding: 0 1; }
    Mute OptionList > .option-list--option-highlighted {
        background: $tw-cursor; color: $foreground; text-style: none;
    }
    """

    def __init__(
        self, keys: tuple[AttemptKey, ...], labels: list[str], muted: frozenset[AttemptKey],
        chosen: Callable[[frozenset[AttemptKey]], None],
    ) -> None:
        super().__init__("ranks")
        self._chosen = chosen
        self._keys, self._labels, self._muted = keys, labels, set(muted)

    def content(self) -> Widget:
        """A line for each rank."""
        shown = OptionList(*(Option(self._prompt(at)) for at in range(len(self._keys))), markup=False, compact=True)
        shown.highlighted = 0
        return shown

    def _prompt(self, at: int) -> Content:
        muted = self._keys[at] in self._muted
        colour = f"$tw-line-{at % COLOURS}"
        mark = ("  muted  ", "$tw-muted") if muted else ("● shown  ", colour)
        return Content.assemble(mark, (f"rank {clean(self._labels[at])}", "$tw-muted" if muted else "bold"))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_show_or_mute()

    def action_show_or_mute(self) -> None:
        """Show or mute the rank."""
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._muted ^= {self._keys[at]}
            self._redraw()

    def action_all(self) -> None:
        """Show all."""
        self._muted.clear()
        self._redraw()

    def action_only(self) -> None:
        """Show only this one."""
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._muted = set(self._keys) - {self._keys[at]}
            self._redraw()

    def _redraw(self) -> None:
        shown = self.query_one(OptionList)
        for at in range(len(self._keys)):
            shown.replace_option_prompt_at_index(at, self._prompt(at))

    def action_close(self) -> None:
        """Done: these are muted."""
        self._chosen(frozenset(self._muted))
        self.dismiss()

    def action_line(self, direction: int) -> None:
        """A rank up or down."""
        shown = self.query_one(OptionList)
        if direction > 0:
            shown.action_cursor_down()
        else:
            shown.action_cursor_up()
