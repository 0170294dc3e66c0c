"""The same actions as commands, to copy into a script or another terminal."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from trainwatch.screens import wishes
from trainwatch.screens.page import Page
from trainwatch.widgets.logtext import clean


@dataclass(frozen=True)
class Command:
    """One line to type elsewhere, and what it does."""

    what: str
    line: str


class Commands(Page):
    """What to type elsewhere for a rank: each on one line, of which any can be copied whole."""

    AUTO_FOCUS = "OptionList"
    SUBTITLE = "c copies · esc closes"
    BINDINGS: ClassVar = [
        Binding("y", "close", "close", show=False),
        Binding("c", "copy", "copy", show=False),
    ]
    DEFAULT_CSS = """
    Commands OptionList {
        border: none; padding: 0; background: $surface; background-tint: $foreground 0%; height: auto;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Commands OptionList:focus { background-tint: $foreground 0%; }
    Commands OptionList > .option-list--option { padding: 0 1; }
    Commands OptionList > .option-list--option-highlighted {
        background: $tw-cursor; color: $foreground; text-style: none;
    }
    """

    def __init__(self, title: str, commands: list[Command]) -> None:
        super().__init__(title)
        self.commands = commands

    def content(self) -> Widget:
        """One after the other."""
        shown = OptionList(*(Option(_prompt(command)) for command in self.commands), markup=False, compact=True)
        shown.highlighted = 0
        return shown

    def on_mount(self) -> None:
        """Commands are longer than text: the frame is as wide as the screen lets it be."""
        for frame in self.query(".page"):
            frame.styles.width, frame.styles.max_width = "96%", 130

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_copy()

    def action_copy(self) -> None:
        """The chosen command goes to the clipboard."""
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self.post_message(wishes.Copy(self.commands[at].line))

    def action_line(self, direction: int) -> None:
        """A command up or down."""
        shown = self.query_one(OptionList)
        if direction > 0:
            shown.action_cursor_down()
        else:
            shown.action_cursor_up()

    def action_end(self, direction: int) -> None:
        """The first or the last command."""
        shown = self.query_one(OptionList)
        if direction > 0:
            shown.action_last()
        else:
            shown.action_first()


def _prompt(command: Command) -> Content:
    return Content.assemble((f"{command.what}\n", "$tw-muted"), (f"  {clean(command.line)}", "bold"))


def commands_for(program: str, target: str, label: str, holder: str, log: str) -> list[Command]:
    """Commands for one attempt: `label` names it, `holder` the launcher that holds for it, as `--rank` takes them."""
    where, rank, held = shlex.quote(target), shlex.quote(label), shlex.quote(holder)
    return [
        Command("hold it two hours longer", f"{program} hold {where} --rank {held} --extend 2h"),
        Command("end its hold", f"{program} hold {where} --rank {held} --release"),
        Command("a shell beside it", f"{program} shell {where} --rank {rank}"),
        Command("where its processes are", f"{program} stacks {where} --rank {rank}"),
        Command("how the run stands", f"{program} status {where} --json"),
        Command("follow its log", f"tail -F {shlex.quote(log)}"),
    ]
