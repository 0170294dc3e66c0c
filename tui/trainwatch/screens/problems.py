"""What is noteworthy about the run, and what could not be read in its directory."""

from __future__ import annotations

from collections.abc import Sequence

from trainwatch.model.findings import BAD
from trainwatch.screens.page import Page
from trainwatch.widgets.header import Part, hanging
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import Unreadable

WIDTH = 72
"""Cells of a line on the page where it is narrowest."""


class Problems(Page):
    """Findings, the most urgent first; then what could not be read, the newest first: the rest is shown as ever."""

    def __init__(self, problems: Sequence[Unreadable], told: Sequence[tuple[str, str]] = ()) -> None:
        parts: list[Part] = []
        for sentence, tone in told:
            sign, color = ("▲ ", "$state-failed" if tone == BAD else "$state-stalled")
            parts += hanging(sign.strip(), clean(sentence), len(sign), WIDTH, "", f"bold {color}")
        if told and problems:
            parts.append(("\nCould not be read\n", "bold $tw-accent"))
        for problem in reversed(problems):
            parts += [(clean(problem.path) + "\n", "bold"), (f"  {clean(problem.message)}\n", "$tw-muted")]
        nothing: list[Part] = [("No rank stands out, and everything could be read.", "$tw-muted")]
        super().__init__("problems", parts or nothing)
