"""The app: one run followed, screens that show it, and what they wish for fulfilled."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from textual.app import App, SystemCommand
from textual.reactive import reactive
from textual.screen import Screen

from trainwatch import actions, theme
from trainwatch.following import Following
from trainwatch.model.failure import first_failure
from trainwatch.model.state import EMPTY, Run
from trainwatch.screens import wishes
from trainwatch.screens.run_screen import RunScreen
from trainwatch.sources.base import Source, SourceError
from trainwatch.terminal import Watchdog
from trainwatch.widgets.keybar import perform

REPAINT = 0.25
"""Seconds between two renderings of the state, however often it changes."""


class TrainwatchApp(App[int]):
    """Follows a run, or offers the runs under `root` first."""

    TITLE = "trainwatch"
    CSS_PATH = "app.tcss"
    BINDINGS = actions.bindings(actions.APP)
    ENABLE_COMMAND_PALETTE = True

    run_state: reactive[Run] = reactive(EMPTY, init=False, always_update=True)
    """The run as known now; every screen renders this, and only `_follow` sets it."""

    def __init__(
        self,
        source: Source | None = None,
        *,
        root: Path | None = None,
        open_source: Callable[[Path], Source] | None = None,
        clock: Callable[[], float] = time.time,
        theme_name: str | None = None,
    ) -> None:
        self._first_theme = theme_name or theme.preferred(dict(os.environ))
        super().__init__()
        self._clock = clock
        self._source, self._root, self._open_source = source, root, open_source
        self.following: Following | None = None
        self._dirty = False
        self._rang = False
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

        following = self.following = Following(source, self._clock)
        self._rang = False

        async def closed(_: object = None) -> None:
            await following.close()

        self.push_screen(Overview(following, nested), closed)
        work = following.follow(lambda: self._changed(following))
        self.run_worker(work, name="follow", group="follow", exclusive=True)

    # State, one way: source → following → run_state → the screen that is seen

    def _changed(self, following: Following) -> None:
        if following is self.following and not self._dirty:
            self._dirty = True
            self.set_timer(REPAINT if self.run_state is not EMPTY else 0.001, self._publish)

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
        for screen in self._seen():
            screen.show()
        if not self._rang and first_failure(run) is not None:
            self._rang = True
            self.bell()
        self._pass_answers()

    def _tick(self) -> None:
        for screen in self._seen():
            screen.tick()
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
            self.notify(f"Asked rank {wish.key.rank} to {wish.command} its hold…", timeout=3, markup=False)

    def on_open_run(self, wish: wishes.OpenRun) -> None:
        """Watch another run; Esc comes back."""
        if self._open_source is not None:
            self.run_state = EMPTY
            self._watch_run(self._open_source(wish.path), nested=True)

    def on_open_shell(self, wish: wishes.OpenShell) -> None:
        """A shell, while the run is still followed."""
        if self.following is not None:
            from trainwatch.shell import open_shell

            self.run_worker(open_shell(self, self.following, wish.key), group="shell", exclusive=True)

    # Actions that work everywhere

    def action_help(self) -> None:
        """Keys, states and words."""
        from trainwatch.screens.help import Help

        self.push_screen(Help(*_scopes(self.screen)))

    def action_palette(self) -> None:
        """All actions by name."""
        self.action_command_palette()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers: the registry's actions that work on this screen, and Textual's theme picker."""
        origin = screen.focused or screen
        for action in actions.of(*_scopes(screen), actions.APP):
            if action.palette:
                yield SystemCommand(
                    f"{action.label}  ({action.key})", action.help, lambda action=action: perform(action, origin)
                )
        yield SystemCommand("choose a theme", "All themes, the terminal's own colours too", self.action_change_theme)


def _scopes(screen: Screen[object]) -> tuple[str, ...]:
    return tuple(getattr(screen, "SCOPES", ()))


def run(target: Path) -> int:
    """Show a run directory, or a directory of runs to pick from; returns the exit code. Raises TargetError."""
    from trainwatch.sources.local import LocalSource
    from trainwatch_launcher.reader.runs import locate

    if not all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__)):
        print("trainwatch: the screen needs a terminal; scripts use: trainwatch status TARGET", file=sys.stderr)
        return 2
    source = None if locate(str(target)).is_root else LocalSource(target)
    app = TrainwatchApp(source, root=target, open_source=LocalSource)
    watchdog = Watchdog(lambda code: app.call_from_thread(app.exit, code, return_code=code))
    watchdog.start()
    app.run()
    watchdog.stop()
    return app.return_code or 0
