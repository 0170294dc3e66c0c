"""The rank table's columns: what each shows of a row, and how wide each is on a given screen. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from trainwatch.model import text
from trainwatch.model.rows import Row
from trainwatch.widgets import states

GAP = 2
PHASE_WISH = 20
"""Cells of a phase's name that come before the last line."""
MAX_MEASURED = 40
"""No column but the last line grows beyond so many cells."""


class Cell(NamedTuple):
    """What one column says of one row: text, and the component class that colours it."""

    text: str
    component: str = ""


@dataclass(frozen=True)
class Column:
    """One column of the rank table."""

    title: str
    sort: str
    """The model's sort key; empty when one cannot sort by it."""
    cell: Callable[[Row], Cell]
    least: int
    """It is hidden rather than narrower than this."""
    most: int
    right: bool = False
    keep_end: bool = False
    """What does not fit loses its beginning: hosts of one cluster differ at the end."""
    optional: bool = False
    """Not shown while no row has anything in it and room is short."""


def _label(row: Row) -> Cell:
    return Cell(("└ " if row.nested else "") + row.label, "rank-table--label")


def _host(row: Row) -> Cell:
    return Cell(row.host, "rank-table--plain")


def _state(row: Row) -> Cell:
    return Cell(f"{states.symbol(row.state)} {row.state}", states.component(row.state))


def _phase(row: Row) -> Cell:
    return Cell(row.phase or "", "rank-table--phase")


def _age(row: Row) -> Cell:
    return Cell(text.duration(row.phase_age), "rank-table--muted")


def _exit(row: Row) -> Cell:
    return Cell(row.exit_text, states.component(row.state) if row.exit_code else "rank-table--muted")


def _hold(row: Row) -> Cell:
    return Cell(text.countdown(row.hold_left), states.component(row.state))


def _quiet(row: Row) -> Cell:
    return Cell(text.duration(row.last_output_age), "rank-table--muted")


def _last_line(row: Row) -> Cell:
    if row.warning:
        return Cell(f"! {row.warning}", "rank-table--warning")
    return Cell(row.last_line, "rank-table--plain")


RANK = Column("rank", "rank", _label, 5, 12, right=True)
HOST = Column("host", "host", _host, 8, 24, keep_end=True)
STATE = Column("state", "state", _state, 10, 10)
PHASE = Column("phase", "phase", _phase, 12, 28)
AGE = Column("age", "phase_age", _age, 6, 6, right=True)
EXIT = Column("exit", "exit_code", _exit, 4, 12, optional=True)
HOLD = Column("hold", "", _hold, 6, 6, right=True, optional=True)
QUIET = Column("quiet", "last_output_age", _quiet, 6, 6, right=True)
LAST = Column("last line", "", _last_line, 16, 10_000)

COLUMNS = (RANK, HOST, STATE, PHASE, AGE, EXIT, HOLD, QUIET, LAST)
FIRST_TO_GO = (LAST, QUIET, AGE, HOST, PHASE)
"""What a narrow screen does without, in this order; who, state, exit and hold always stay."""


def content_widths(rows: Sequence[Row]) -> dict[str, int]:
    """The widest content of the columns that adapt to it, for `layout`. Quick for thousands of rows."""
    widths = dict.fromkeys((column.title for column in COLUMNS), 0)
    widths[RANK.title] = max((len(row.label) + 2 * row.nested for row in rows), default=0)
    for column, texts in (
        (HOST, {row.host for row in rows}),
        (PHASE, {row.phase or "" for row in rows}),
        (EXIT, {row.exit_text for row in rows}),
    ):
        widths[column.title] = min(MAX_MEASURED, max(map(cell_len, texts), default=0))
    widths[HOLD.title] = HOLD.least if any(row.hold_left is not None for row in rows) else 0
    return widths


def layout(width: int, content: dict[str, int]) -> list[tuple[Column, int]]:
    """The columns that a table of this width shows, each with its cells."""
    shown = [column for column in COLUMNS if not column.optional or content[column.title] or width >= 120]
    least = {column: _least(column, content) for column in shown}
    wish = max(least[PHASE], min(PHASE_WISH, content[PHASE.title]))
    if _total(shown, {**least, PHASE: wish}) > width:
        shown.remove(LAST)  # the log below shows the last line too, and phases must be told apart
    for column in FIRST_TO_GO:
        if column in shown and _total(shown, least) > width:
            shown.remove(column)
    spare = width - _total(shown, least)
    widths = {column: least[column] for column in shown}
    for column in (PHASE, HOST, RANK):
        if column in widths:
            more = max(0, min(spare, min(content[column.title], column.most) - widths[column]))
            widths[column] += more
            spare -= more
    if LAST in widths:
        widths[LAST] += max(0, spare)
    return [(column, widths[column]) for column in shown]


def _least(column: Column, content: dict[str, int]) -> int:
    if column in (HOST, PHASE):
        return min(column.least, max(len(column.title), content[column.title]))
    if column in (RANK, EXIT):
        return max(column.least, min(column.most, content[column.title]))
    return column.least


def _total(shown: list[Column], widths: dict[Column, int]) -> int:
    return sum(widths[column] for column in shown) + GAP * (len(shown) - 1)
