"""What all screens of one run share: they render the feed when it changes, and once a second while they are seen."""

from __future__ import annotations

from textual import events, on
from textual.screen import Screen
from textual.widgets import Static

from trainwatch.model import holding
from trainwatch.model.rows import Row, row_of, standing
from trainwatch.model.stacks import has_stacks, running, runs
from trainwatch.model.state import Attempt
from trainwatch.model.summary import Summary, summary
from trainwatch.screens import wishes
from trainwatch.screens.feed import Feed
from trainwatch.screens.once import Once
from trainwatch.widgets import header
from trainwatch.widgets.header import Bar, Part, rank_parts, trouble_note
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptKey

MANY = 400
"""A run of more attempts is not counted and drawn wholly at each change."""
COUNT_EVERY, COUNT_CALM = 1.9, 3.9
"""Seconds between two counts of so many."""


class RunScreen(Once, Screen[None]):
    """A screen on one run. The app calls `show` and `tick` of the screen that is seen, and of no other."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual declares it so

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self.feed = feed
        self._widgets = 0
        self._counted: tuple[int, int, float, Summary] | None = None
        """The run's serial and size, when it was counted, and what was found."""

    @property
    def key(self) -> AttemptKey | None:
        """The attempt that actions are about."""
        raise NotImplementedError

    def run_changed(self) -> None:
        """The run's state is another one."""
        raise NotImplementedError

    def tick(self) -> None:
        """A second has passed; ages and countdowns say something else."""
        self.run_changed()

    def summary_at(self, now: float) -> Summary:
        """The run in short; more than `MANY` attempts are counted every two seconds, or four while nothing changes."""
        run = self.feed.run
        if self._counted is not None and len(run.order) > MANY:
            serial, size, counted_at, found = self._counted
            every = COUNT_CALM if serial == run.serial else COUNT_EVERY
            if size == len(run.order) and 0 <= now - counted_at < every:
                return found.after(now - counted_at)
        found = summary(run, now)
        self._counted = (run.serial, len(run.order), now, found)
        return found

    def show_header(self, now: float) -> Summary:
        """The run in one line, and below it in red why it failed, where the screen has a line for that."""
        run, state, width = self.feed.run, self.summary_at(now), self.size.width
        self.set_class(state.first is not None, "alarm")
        note = trouble_note(run.trouble) or (self.feed.problem and "source lost")
        problems = len(run.problems) - bool(run.trouble)
        shells = len(self.feed.kept)
        parts = header.header_parts(state, self.feed.name, now, width, problems, note, self.feed.links, shells)
        self.query_one("#header", Bar).show(parts)
        if state.first is not None:
            for banner in self.query("#banner").results(Bar):
                row, left = row_of(run, state.first.root, now), holding.hold_left(run, state.first.root, now)
                banner.show(header.banner_parts(state.first, row, left, width))
        return state

    @property
    def is_whole(self) -> bool:
        """Whether its widgets are there: not while it is being made or taken down."""
        return 0 < self._widgets == len(self.children)

    def show(self) -> None:
        """Render the run, when there is something to render it on."""
        if self.is_whole:
            self.run_changed()

    def on_mount(self) -> None:
        """Show what is known."""
        self._widgets = len(self.children)
        self.show()

    def on_resize(self) -> None:
        """Lines are cut for the width."""
        self.show()

    def on_screen_resume(self) -> None:
        """Seen again: show what happened meanwhile."""
        self.show()

    @property
    def attempt(self) -> Attempt | None:
        """What is known of the attempt that actions are about."""
        return self.feed.run.attempts.get(self.key) if self.key is not None else None

    @property
    def row(self) -> Row | None:
        """The same, as a row at this moment."""
        attempt = self.attempt
        return None if attempt is None else row_of(self.feed.run, attempt.key, self.feed.now())

    def title_of(self, row: Row) -> list[Part]:
        """Who, where, in which state and phase, in one line."""
        run = self.feed.run
        left = holding.hold_left(run, row.key, self.feed.now())
        kept = holding.container(row.key) in self.feed.kept
        return rank_parts(row, self.size.width, left, trouble_note(run.trouble), kept)

    @property
    def attempt_seen(self) -> AttemptKey | None:
        """The attempt that is looked at: the selected one, unless a screen points to another of its rank."""
        return self.key

    def action_open(self) -> None:
        """The selected rank's details."""
        key = self.attempt_seen
        if key is not None:
            from trainwatch.screens.rank import RankScreen

            self.app.push_screen(RankScreen(self.feed, key))

    def action_log(self) -> None:
        """The selected rank's log, on the whole screen."""
        key = self.attempt_seen
        if key is not None:
            from trainwatch.screens.log import LogScreen

            self.app.push_screen(LogScreen(self.feed, key))

    def action_chart(self) -> None:
        """The selected rank over time."""
        key = self.attempt_seen
        if key is not None:
            from trainwatch.screens.chart import ChartScreen

            self.app.push_screen(ChartScreen(self.feed, [key]))

    @on(events.Click, "#banner")
    def _banner_clicked(self) -> None:
        self.action_why()

    def action_why(self) -> None:
        """Why it failed, else what stands out."""
        from trainwatch.screens.failure import FailureScreen

        self.app.push_screen(FailureScreen(self.feed))

    # What one can ask of an attempt

    def keys_for_stacks(self) -> tuple[AttemptKey, ...]:
        """Whose stacks are meant: the selected attempt's."""
        return () if self.key is None else (self.key,)

    def action_stacks(self) -> None:
        """Take the stacks of the selected rank, or the marked ones; of those that have ended what was taken before."""
        from trainwatch.screens.stacks import StacksScreen

        run, now = self.feed.run, self.feed.now()
        keys = tuple(key if runs(run, key, now) else holding.container(key) for key in self.keys_for_stacks())
        keys = tuple(dict.fromkeys(key for key in keys if key in run.attempts))
        live = tuple(key for key in keys if runs(run, key, now))
        if not keys:
            self.notify("No rank is selected.", severity="warning")
        elif live or any(has_stacks(run, key) for key in keys):
            self.app.push_screen(StacksScreen(self.feed, live or keys, take=bool(live)))
        else:
            said = f"rank {run.label(keys[0])} {standing(row_of(run, keys[0], now).state)}"
            self.notify(f"Nothing to take: {said}, and no stacks were taken before.", severity="warning", markup=False)

    def action_stacks_all(self) -> None:
        """Take the stacks of all ranks that run; when none does, show what was taken before."""
        from trainwatch.screens.stacks import StacksScreen

        run = self.feed.run
        live = running(run, self.feed.now())
        if live or any(has_stacks(run, key) for key in run.order):
            self.app.push_screen(StacksScreen(self.feed, take=bool(live)))
        else:
            self.notify("No rank runs, and no stacks were taken before.", severity="warning")

    def action_shell(self) -> None:
        """Open a shell where the attempt runs."""
        self._open_shell(in_window=False)

    def action_shell_window(self) -> None:
        """The same in a new window of tmux."""
        self._open_shell(in_window=True)

    def _open_shell(self, in_window: bool) -> None:
        if self.key is None:
            self.notify("No rank is selected.", severity="warning")
        else:
            self.post_message(wishes.OpenShell(self.key, in_window))

    def action_release(self) -> None:
        """End the hold, after a question."""
        row = self._held_row()
        if row is None or self.key is None:
            return
        from trainwatch.screens.dialogs import Confirm

        name = holding.called(self.feed.run, self.key)
        said = f"Its launcher exits with {row.exit_text or 'its code'}, and the container goes with all that is in it."

        def answered(yes: bool | None) -> None:
            if yes:
                self.post_message(wishes.Control(row.key, name, "release"))

        self.app.push_screen(Confirm(f"Release {name}?", said, "Release"), answered)

    def action_extend(self) -> None:
        """Hold for longer, after asking how long."""
        row = self._held_row()
        if row is None or self.key is None:
            return
        from trainwatch.screens.dialogs import AskDuration

        name = holding.called(self.feed.run, self.key)

        def answered(seconds: float | None) -> None:
            if seconds:
                self.post_message(wishes.Control(row.key, name, "extend", seconds))

        self.app.push_screen(AskDuration(name, row), answered)

    def action_commands(self) -> None:
        """Show the same as commands for scripts."""
        attempt, run = self.attempt, self.feed.run
        if attempt is None:
            self.notify("No rank is selected.", severity="warning")
            return
        from trainwatch.screens.commands import Commands, commands_for

        label, holder = run.label(attempt.key), run.label(holding.container(attempt.key))
        log = self.feed.log_path(attempt.key) or log_path(attempt.directory)
        found = commands_for(self.feed.program, self.feed.name, label, holder, log)
        self.app.push_screen(Commands(f"commands for rank {label}", found))

    def action_back(self) -> None:
        """Back to where one came from."""
        self.dismiss()

    def _held_row(self) -> Row | None:
        """The row of the launcher that holds for the selected one, when it does; else it is said why not."""
        if self.key is None:
            self.notify("No rank is selected.", severity="warning")
            return None
        run = self.feed.run
        row = holding.holder(run, self.key, self.feed.now())
        if row is not None and holding.may_hold(row):
            return row
        name = holding.called(run, self.key)
        said = standing(row.state) if row is not None else "is not known"
        whole = f"{name[0].upper()}{name[1:]} {said}. Only a held rank can be released or held for longer."
        self.notify(whole, severity="warning", markup=False)
        return None


class Plain(Static):
    """Text that is never markup."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__("", id=id, classes=classes, markup=False)
