"""Pick a run: the newest first, each with how it stands."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from trainwatch import actions
from trainwatch.model import text
from trainwatch.model.summary import Summary
from trainwatch.screens import wishes
from trainwatch.widgets import states
from trainwatch.widgets.empty import Empty
from trainwatch.widgets.header import Bar, Part
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.rank_table import fit
from trainwatch_launcher.reader.runs import FoundRun

NAME = 28
Find = Callable[[], list[FoundRun]]
StateOf = Callable[[str], Summary]


class RunsScreen(Screen[None]):
    """A list of runs; their states come one by one, read in the background."""

    SCOPES = (actions.RUNS,)
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.RUNS),
        Binding("j", "cursor(1)", show=False),
        Binding("k", "cursor(-1)", show=False),
        Binding("g", "end(-1)", show=False),
        Binding("G", "end(1)", show=False),
    ]

    def __init__(self, root: Path, find: Find, state_of: StateOf, now: Callable[[], float]) -> None:
        super().__init__()
        self._root, self._find, self._state_of, self._now = root, find, state_of, now
        self._runs: list[FoundRun] = []
        self.is_complete = False
        """Whether the state of every run is shown."""

    def compose(self) -> ComposeResult:
        """Title, column names, list."""
        yield Bar(id="header")
        yield Bar(id="titles", classes="pane-title")
        yield OptionList(id="runs", markup=False, compact=True)
        yield Empty(id="empty")
        yield KeyBar(actions.RUNS, actions.APP)

    def on_mount(self) -> None:
        """Look for runs."""
        titles = f" {'state':<12}{'run':<{NAME}}  {'age':>7}  {'ranks':>7}  command"
        self.query_one("#titles", Bar).show([(titles, "$tw-header")])
        self.action_reload()

    def on_screen_resume(self) -> None:
        """Back from a run: its state may be another one."""
        if self._runs:
            self.action_reload()

    def action_reload(self) -> None:
        """Look again."""
        self.run_worker(self._reload(), exclusive=True)

    async def _reload(self) -> None:
        self.is_complete = False
        self._runs = await asyncio.to_thread(self._find)
        shown, now = self.query_one(OptionList), self._now()
        at = shown.highlighted or 0
        lines = [(run_line(run, None, now), bool(run.problem)) for run in self._runs]
        shown.set_options(Option(line, str(index), closed) for index, (line, closed) in enumerate(lines))
        if self._runs:
            shown.highlighted = min(at, len(self._runs) - 1)
            shown.focus()
        where = clean(str(self._root))
        self.query_one("#header", Bar).show([(" runs ", "bold"), (f" {len(self._runs)} in {where}", "$tw-muted")])
        self.set_class(not self._runs, "empty")
        empty: list[Part] = [("No run here yet.\n\n", "bold"), (f"looking in {where}\n\n", "")]
        self.query_one(Empty).show([*empty, ("r looks again", "$tw-muted")])
        for index, run in enumerate(self._runs):
            if not run.problem:
                state = await asyncio.to_thread(self._state_of, run.path)
                shown.replace_option_prompt(str(index), run_line(run, state, self._now()))
        self.is_complete = True

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(wishes.OpenRun(Path(self._runs[event.option_index].path)))

    def action_pick(self) -> None:
        """Watch the selected run."""
        self.query_one(OptionList).action_select()

    def action_cursor(self, direction: int) -> None:
        """A run up or down."""
        shown = self.query_one(OptionList)
        if direction > 0:
            shown.action_cursor_down()
        else:
            shown.action_cursor_up()

    def action_end(self, direction: int) -> None:
        """The first or the last run."""
        shown = self.query_one(OptionList)
        if direction > 0:
            shown.action_last()
        else:
            shown.action_first()


def run_line(run: FoundRun, state: Summary | None, now: float) -> Content:
    """One run on one line."""
    if run.problem:
        parts: list[Part] = [(fit("! closed", 12), "$state-stalled")]
    elif state is None:
        parts = [(" " * 12, "")]
    else:
        parts = [(fit(f"{states.symbol(state.state)} {state.state}", 12), states.variable(state.state))]
    size = run.world_size if run.world_size is not None else (state.world_size if state is not None else None)
    ranks = "" if state is None else f"{state.seen}/{size}" if size else str(state.seen)
    said = run.problem or shlex.join(run.command)
    parts += [
        (fit(clean(run.run_id), NAME), "bold"),
        (f"  {text.duration(max(0.0, now - run.time)):>7}", ""),
        (f"  {ranks:>7}  ", "$tw-muted"),
        (clean(said), "$tw-muted"),
    ]
    return Content.assemble(*parts)
