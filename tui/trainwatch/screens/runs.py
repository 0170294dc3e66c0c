"""Pick a run: the newest first, each with how it stands."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
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
from trainwatch.screens.once import Once
from trainwatch.widgets import states
from trainwatch.widgets.empty import Empty
from trainwatch.widgets.fit import fit
from trainwatch.widgets.header import Bar, Part, fit_most
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.runs import FoundRun

NAME, WIDE_NAME = 28, 52
"""Cells for a run's name, and where there is room for a directory's beside it."""
Find = Callable[[], list[FoundRun]]
StateOf = Callable[[str], Summary]


class RunsScreen(Once, Screen[None]):
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
        self._states: dict[str, Summary] = {}
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
        self._show_titles()
        self.action_reload()

    def on_resize(self) -> None:
        """Names are cut for the width."""
        self._show_titles()
        shown = self.query_one(OptionList)
        for index, run in enumerate(self._runs[: shown.option_count]):
            line = run_line(run, self._states.get(run.path), self._now(), self.name_width)
            shown.replace_option_prompt(str(index), line)

    @property
    def name_width(self) -> int:
        """Cells for the name of a run."""
        return WIDE_NAME if self.size.width >= 120 and any(other_name(run) for run in self._runs) else NAME

    def _show_titles(self) -> None:
        titles = f" {'state':<12}{'run':<{self.name_width}}  {'age':>7}  {'ranks':>7}  command"
        self.query_one("#titles", Bar).show([(titles, "$tw-header")])

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
        self._show_titles()
        lines = [(run_line(run, None, now, self.name_width), bool(run.problem)) for run in self._runs]
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
                self._states[run.path] = state
                shown.replace_option_prompt(str(index), run_line(run, state, self._now(), self.name_width))
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


def other_name(run: FoundRun) -> str:
    """The name of a run's directory, when that is not the run's own."""
    name = Path(run.path).name
    return "" if name == run.run_id else name


def name_parts(run: FoundRun, width: int) -> list[Part]:
    """A run's name, and its directory's where that is another one: it tells runs of the same name apart."""
    name, other = clean(run.run_id), clean(other_name(run))
    if not other:
        return [(fit(name, width), "bold")]
    room = width - 2
    name = fit_most(name, max(room // 2, room - cell_len(other)))
    return [(name, "bold"), (fit(f"  {other}", width - cell_len(name), keep_end=True), "$tw-muted")]


def run_line(run: FoundRun, state: Summary | None, now: float, width: int = NAME) -> Content:
    """One run on one line, `width` cells of it for its name."""
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
        *name_parts(run, width),
        (f"  {text.duration(max(0.0, now - run.time)):>7}", ""),
        (f"  {ranks:>7}  ", "$tw-muted"),
        (clean(said), "$tw-muted"),
    ]
    return Content.assemble(*parts)
