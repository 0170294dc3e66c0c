"""What could not be read in the run directory."""

from __future__ import annotations

from collections.abc import Sequence

from trainwatch.screens.page import Page
from trainwatch.widgets.header import Part
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import Unreadable


class Problems(Page):
    """One problem after the other, the newest first; all the rest of the run is shown as ever."""

    def __init__(self, problems: Sequence[Unreadable]) -> None:
        parts: list[Part] = []
        for problem in reversed(problems):
            parts += [(clean(problem.path) + "\n", "bold"), (f"  {clean(problem.message)}\n", "$tw-muted")]
        super().__init__("unreadable", parts or [("Everything could be read.", "$tw-muted")])
