"""The same actions as commands, to copy into a script or another terminal."""

from __future__ import annotations

import shlex

from trainwatch.model.state import Attempt
from trainwatch.screens.page import Page
from trainwatch.widgets.header import Part
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.attempt import log_path


class Commands(Page):
    """What to type elsewhere for this rank."""

    def __init__(self, target: str, attempt: Attempt) -> None:
        super().__init__("commands", command_parts(target, attempt))


def command_parts(target: str, attempt: Attempt) -> list[Part]:
    """Commands for one attempt, each with what it does."""
    where, rank = shlex.quote(target), attempt.key.rank
    commands = (
        ("hold it two hours longer", f"trainwatch hold {where} --rank {rank} --extend 2h"),
        ("end its hold", f"trainwatch hold {where} --rank {rank} --release"),
        ("a shell beside it", f"trainwatch shell {where} --rank {rank}"),
        ("how the run stands", f"trainwatch status {where} --json"),
        ("follow its log", f"tail -F {shlex.quote(log_path(attempt.directory))}"),
    )
    parts: list[Part] = []
    for what, command in commands:
        parts += [(f"{what}\n", "$tw-muted"), (f"  {clean(command)}\n\n", "bold")]
    return parts
