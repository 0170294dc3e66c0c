"""What is noteworthy about the run, and what could not be read in its directory."""

from __future__ import annotations

from collections.abc import Sequence

from trainwatch.model.findings import BAD
from trainwatch.screens.page import Page
from trainwatch.widgets.header import Part, hanging, wrapped
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import Unreadable

NOTHING = "No rank stands out, and everything could be read."


class Problems(Page):
    """Findings, the most urgent first; then what could not be read, the newest first: the rest is shown as ever."""

    def __init__(self, problems: Sequence[Unreadable], told: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__("problems", lambda width: problem_parts(problems, told, width))


def problem_parts(problems: Sequence[Unreadable], told: Sequence[tuple[str, str]], width: int) -> list[Part]:
    """What the page says, in lines of so many cells."""
    parts: list[Part] = []
    for sentence, tone in told:
        sign, color = ("▲ ", "$state-failed" if tone == BAD else "$state-stalled")
        parts += hanging(sign.strip(), clean(sentence), len(sign), width, "", f"bold {color}")
    if told and problems:
        parts.append(("\nCould not be read\n", "bold $tw-accent"))
    for problem in reversed(problems):
        parts += [(f"{line}\n", "bold") for line in wrapped(clean(problem.path), max(10, width))]
        parts += hanging(" ", clean(problem.message), 2, width, "$tw-muted")
    return parts or [(f"{line}\n", "$tw-muted") for line in wrapped(NOTHING, max(10, width))]
