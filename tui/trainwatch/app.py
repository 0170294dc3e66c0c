"""The app: one run followed, screens that show it, and what they wish for fulfilled."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

from textual.app import SystemCommand
from textual.command import CommandPalette
from textual.driver import Driver
from textual.events import Key
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen
from textual.theme import ThemeProvider
from textual.widgets import Input

from trainwatch import actions, alarm, browser, theme
from trainwatch.alarm import Alarm
from trainwatch.driver import TerminalDriver
from trainwatch.following import Following
from trainwatch.keys_in_order import KeysInOrder
from trainwatch.model.failure import first_failure
from trainwatch.model.state import EMPTY, Run
from trainwatch.screens import wishes
from trainwatch.screens.once import Palette
from trainwatch.screens.run_screen import RunScreen
from trainwatch.sources.base import Source, SourceError
from trainwatch.taste import Taste
from trainwatch.terminal import copied, program
from trainwatch.widgets.keybar import perform
from trainwatch.widgets.logtext import clean

REPAINT, REPAINT_MANY = 0.25, 0.5
"""Seconds between two renderings of the state, however often it changes; of a run of more than `MANY` attempts."""
MANY = 256


class TrainwatchApp(KeysInOrder):
    """Follows a run, or offers the runs under `root` first."""

    TITLE = "trainwatch"
    CSS_PATH = "app.tcss"
    BINDINGS = actions.bindings(actions.APP)
    ENABLE_COMMAND_PALETTE = True
    DEFAULT_CSS = """
    .-typing-below ToastRack { dock: top; align: right top; margin: 2 0 0 0; }
    """

    run_state: reactive[Run] = reactive(EMPTY, init=False, always_update=True)
    """The run as known now; every screen renders this, and only `_follow` sets it."""

    def __init__(
        self,
        source: Source | None = None,
        *,
        root: Path | None = None,
        open_source: Callable[[Path], Awaitable[Source]] | None = None,
        clock: Callable[[], float] = time.time,
        theme_name: str | None = None,
        keep_hold: bool = True,
        gpu_price: float | None = None,
        on_failure: Alarm = Alarm(),  # noqa: B008 - it does not change
        taste: Taste | None = None,
    ) -> None:
        self._first_theme = theme_name or theme.preferred(dict(os.environ))
        super().__init__()
        self._clock = clock
        self._source, self._root, self._open_source = source, root, open_source
        self._keep_hold, self._gpu_price = keep_hold, gpu_price
        self._taste = taste or Taste()
        self.following: Following | None = None
        self._dirty = False
        self._shown_at = 0.0
        self._rang = False
        self._alarm, self._opened_at = on_failure, 0.0
        self._alarmed: set[str] = set()
        self._told_trouble = ""
        self.ansi_theme_dark, self.ansi_theme_light = theme.LOG_DARK, theme.LOG_LIGHT

    # Colours

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our colours, for themes that know nothing of them."""
        current = self.current_theme
        return theme.defaults(current.ansi, current.dark)

    def action_toggle_theme(self) -> None:
        """Light or dark."""
        self.theme = theme.other(self.theme)

    # Life

    def get_driver_class(self) -> type[Driver]:
        """Textual's, and of terminals ours."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen in TerminalDriver.__bases__ else chosen

    def on_mount(self) -> None:
        """Show the run, or the runs."""
        for ours in theme.THEMES:
            self.register_theme(ours)
        self.theme = self._first_theme if self._first_theme in self.available_themes else theme.DARK
        self.set_interval(1.0, self._tick)
        if self._source is not None:
            self._watch_run(self._source, nested=False)
        else:
            self._pick()

    def _pick(self) -> None:
        from trainwatch import runs
        from trainwatch.screens.runs import RunsScreen

        root, clock = self._root or Path("runs"), self._clock
        self.push_screen(RunsScreen(root, lambda: runs.newest(root), lambda path: runs.state_of(path, clock()), clock))

    def _watch_run(self, source: Source, nested: bool) -> None:
        from trainwatch.screens.overview import Overview

        following = self.following = Following(source, self._clock, program(), self._keep_hold, self._gpu_price)
        self._rang, self._told_trouble, self._opened_at = False, "", self._clock()

        async def closed(_: object = None) -> None:
            await following.close()

        self.push_screen(Overview(following, nested, self._taste), closed)
        work = following.follow(lambda: self._changed(following))
        self.run_worker(work, name="follow", group="follow", exclusive=True)

    # State, one way: source → following → run_state → the screen that is seen

    def _changed(self, following: Following) -> None:
        if following is not self.following:
            return
        if self.run_state is not EMPTY:  # not yet rendered, but of two states of thousands of ranks only one is kept
            self.set_reactive(TrainwatchApp.run_state, following.run)
        if not self._dirty:
            self._dirty = True
            pause = REPAINT_MANY if len(following.run.order) > MANY else REPAINT
            self.set_timer(pause if self.run_state is not EMPTY else 0.001, self._publish)

    @property
    def is_behind(self) -> bool:
        """Whether the source has said something that is not on screen yet."""
        return self._dirty

    def _publish(self) -> None:
        self._dirty = False
        if self.following is not None:
            self.run_state = self.following.run

    def watch_run_state(self, run: Run) -> None:
        """Render the state, ring once for the first failure, pass answers on."""
        self._shown_at = time.monotonic()
        for screen in self._seen():
            screen.show()
        if not self._rang and first_failure(run) is not None:
            self._rang = True
            self.bell()
            if self.following is not None and not browser.is_there():
                self.run_worker(self._raise_alarm(self.following, self._opened_at), group="alarm", exit_on_error=False)
        self._tell_trouble(run.trouble)
        self._pass_answers()

    async def _raise_alarm(self, following: Following, opened: float) -> None:
        """Tell of the first failure beside the screen, once for a run, unless it is an old one."""
        await asyncio.sleep(alarm.SETTLE)
        run, now = following.run, following.now()
        failure = first_failure(run, now)
        if failure is None or failure.time < opened - alarm.NEWS or following.name in self._alarmed:
            return
        self._alarmed.add(following.name)
        if self._alarm.notify and self._driver is not None:
            said = alarm.words(failure, run.run_id or following.name)
            self._driver.write(await alarm.sequence(*said, dict(os.environ)))
        if self._alarm.command:
            from trainwatch.commands import why

            answer = why.as_json(why.about(run, failure.cause, following.name))
            wrong = await alarm.run(self._alarm.command, answer)
            if wrong:
                self.notify(wrong, title="--on-failure", severity="warning", timeout=10, markup=False)

    def _tell_trouble(self, trouble: str) -> None:
        """Say once that the run directory as a whole cannot be read any more; the header goes on saying it."""
        if trouble and trouble != self._told_trouble and self.following is not None:
            said = f"The run directory {self.following.name}: {trouble}. What has been read of it is still shown."
            self.notify(said, severity="error", timeout=10, markup=False)
        self._told_trouble = trouble

    def _tick(self) -> None:
        if self.following is not None:
            self.following.now()  # whatever is seen: it must know when we did not run
        if time.monotonic() - self._shown_at > REPAINT_MANY:
            for screen in self._seen():
                screen.tick()
        self._place_messages()
        self._pass_answers()

    def _seen(self) -> list[RunScreen]:
        """The run screen that is seen: the topmost one, perhaps below a dialog."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, RunScreen):
                return [screen] if screen.is_whole else []
        return []

    def _pass_answers(self) -> None:
        if self.following is not None:
            for answer in self.following.answers():
                self.notify(answer.said, severity="information" if answer.good else "warning", markup=False)

    # Wishes

    async def on_control(self, wish: wishes.Control) -> None:
        """Ask a launcher for something."""
        if self.following is None:
            return
        try:
            await self.following.ask(wish.key, wish.command, wish.seconds)
        except SourceError as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"Asked {wish.name} to {wish.command} its hold…", timeout=3, markup=False)

    def on_control_many(self, wish: wishes.ControlMany) -> None:
        """Ask several launchers for the same, beside all else: there may be thousands."""
        if self.following is not None:
            self.run_worker(self.following.ask_many(wish.keys, wish.command), group="ask")
            self.notify(f"Asked {len(wish.keys)} ranks to {wish.command} their holds…", timeout=3, markup=False)

    def on_take_stacks(self, wish: wishes.TakeStacks) -> None:
        """Ask for stacks, beside all else; the screen that wishes for them shows what comes of it."""
        following = self.following
        if following is not None:
            self.run_worker(following.take_stacks(wish.keys, lambda: self._changed(following)), group="ask")

    async def on_open_run(self, wish: wishes.OpenRun) -> None:
        """Watch another run; Esc comes back. A key that came twice opens it once."""
        if self._open_source is None or isinstance(self.screen, RunScreen):
            return
        try:
            source = await self._open_source(wish.path)
        except SourceError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.run_state = EMPTY
        self._watch_run(source, nested=True)

    def on_open_shell(self, wish: wishes.OpenShell) -> None:
        """A shell, while the run is still followed; one at a time in our terminal, in windows as many as one likes."""
        if self.following is None:
            return
        from trainwatch.shell import open_shell, open_window

        if browser.is_there() and not (wish.in_window and browser.shell_allowed()):
            self.notify(browser.NO_SHELL, title="No shell", severity="warning", timeout=10, markup=False)
            return
        if wish.in_window:
            self.run_worker(open_window(self, self.following, wish.key, os.environ), group="window")
            return
        busy = any(worker.group == "shell" and not worker.is_finished for worker in self.workers)
        if not busy:
            self.run_worker(open_shell(self, self.following, wish.key), group="shell")

    def on_open_log(self, wish: wishes.OpenLog) -> None:
        """A log in the person's pager or editor, one at a time."""
        busy = any(worker.group == "shell" and not worker.is_finished for worker in self.workers)
        if self.following is not None and not busy:
            from trainwatch.elsewhere import open_log

            self.run_worker(open_log(self, self.following, wish), group="shell")

    async def on_copy(self, wish: wishes.Copy) -> None:
        """Copy a text, and say where it went."""
        where = "" if browser.is_there() else await copied(wish.text, dict(os.environ))
        if not where:
            super().copy_to_clipboard(wish.text)
            where = "Sent to your terminal's clipboard. Some terminals do not allow that: then select and copy there."
        self.notify(where, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """What is selected on the screen goes the same way."""
        self.post_message(wishes.Copy(text))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Tell something; what it quotes from a run directory does not act on the terminal."""
        super().notify(clean(message), title=clean(title), severity=severity, timeout=timeout, markup=markup)

    # Keys, whoever has them

    def on_key(self, event: Key) -> None:
        """A character that was typed before the line that it was meant for had the keys goes there now."""
        line = getattr(self.screen, "type_ahead", None) or getattr(self.focused, "insert_text_at_cursor", None)
        if callable(line) and event.is_printable and event.character is not None:
            event.stop()
            line(event.character)

    def on_descendant_focus(self) -> None:
        """What has the keys may be a line that is typed."""
        self.call_after_refresh(self._place_messages)

    def _place_messages(self) -> None:
        """While there is a line to type in, messages stand in the other half of the screen, so as not to cover it."""
        if not self.screen_stack:
            return
        lines = [self.focused] if isinstance(self.focused, Input) else list(self.screen.query("SearchBar, FilterBar"))
        below = any(line.display and 2 * line.region.y >= self.size.height for line in lines)
        self.screen.set_class(below, "-typing-below")

    # Actions that work everywhere

    def action_help(self) -> None:
        """Keys, states and words."""
        from trainwatch.screens.help import Help

        self.push_screen(Help(*_scopes(self.screen)))

    def action_palette(self) -> None:
        """All actions by name."""
        self.action_command_palette()

    def action_command_palette(self) -> None:
        """The same, as Textual calls it."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette())

    def search_themes(self) -> None:
        """Choose among all themes."""
        self.push_screen(Palette([ThemeProvider], placeholder="Search for themes…"))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers: the registry's actions that work on this screen, and Textual's theme picker."""
        origin = screen.focused or screen
        for action in actions.of(*_scopes(screen), actions.APP):
            if action.palette:
                yield SystemCommand(
                    f"{action.label}  ({action.key})", action.help, lambda action=action: perform(action, origin)
                )
        if callable(use := getattr(screen, "use_filter", None)):
            for name, query in self._taste.filters.items():
                yield SystemCommand(f"filter @{name}", query, partial(use, f"@{name}"))
        yield SystemCommand("choose a theme", "All themes, the terminal's own colours too", self.action_change_theme)


def _scopes(screen: Screen[object]) -> tuple[str, ...]:
    return tuple(getattr(screen, "SCOPES", ()))
