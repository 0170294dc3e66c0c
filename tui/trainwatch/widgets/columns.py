"""The rank table's columns: which a screen shows, and how wide each is there. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from trainwatch.model.progress import NO_PROGRESS
from trainwatch.model.rows import Row
from trainwatch.widgets import cells
from trainwatch.widgets.cells import Cell, Column

GAP = 2
PHASE_WISH = 20
"""Cells of a phase's name that come before the last line."""
LAST_WISH = 16
"""Cells that the last line wants beyond its least before each rank's time left is shown."""
MAX_MEASURED = 40
"""No column but the last line grows beyond so many cells."""

RANK = Column("rank", "rank", cells.label, 5, 12, right=True)
HOST = Column("host", "host", cells.host, 8, 24, keep_end=True)
STATE = Column("state", "state", cells.state, 10, 13)
PHASE = Column("phase", "phase", cells.phase, 12, 28)
AGE = Column("age", "phase_age", cells.age, 6, 6, right=True)
STEP = Column("step", "step", cells.step, 4, 30, right=True, factual=True)
RATE = Column("rate", "rate", cells.rate, 4, 16, right=True, factual=True)
ETA = Column("eta", "eta", cells.eta, 6, 6, right=True, factual=True)
LOSS = Column("loss", "loss", cells.loss, 6, 20, right=True, factual=True)
GPU = Column("gpu", "gpu", cells.gpu, 4, 16, factual=True)
MEMORY = Column("mem", "memory", cells.memory, 6, 9, right=True, factual=True)
EXIT = Column("exit", "exit_code", cells.exit_code, 4, 12, optional=True)
HOLD = Column("hold", "", cells.hold, 6, 6, right=True, optional=True)
QUIET = Column("quiet", "last_output_age", cells.quiet, 6, 6, right=True)
LAST = Column("last line", "", cells.last_line, 16, 10_000)

COLUMNS = (RANK, HOST, STATE, PHASE, AGE, STEP, RATE, ETA, LOSS, GPU, MEMORY, EXIT, HOLD, QUIET, LAST)
FIRST_TO_GO = (QUIET, AGE, MEMORY, HOST, RATE, GPU, PHASE, LOSS, STEP)
"""What a narrow screen does without, in this order; who, state, exit and hold always stay."""
Content = dict[str, int]
"""By a column's title the cells that its widest content takes, 0 when it has none; `+` behind it: with its picture."""


def content_widths(rows: Sequence[Row]) -> Content:
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
    widths[STATE.title] = STATE.most if any(row.stalled_for is not None for row in rows) else STATE.least
    return {**widths, **_progress_widths(rows), **_gpu_widths(rows)}


def _progress_widths(rows: Sequence[Row]) -> Content:
    known = [row.progress for row in rows if row.progress is not NO_PROGRESS]
    if not known:
        return {}
    step, rate, loss = (max(each) for each in zip(*{progress.widths for progress in known}, strict=True))
    total = any(progress.share is not None for progress in known)
    eta = ETA.least if any(progress.eta is not None for progress in known) else 0
    return {
        STEP.title: step, f"{STEP.title}+": step + cells.BAR + 1 if total and step else step,
        RATE.title: rate, ETA.title: eta,
        LOSS.title: loss + 2 if loss else 0, f"{LOSS.title}+": loss + cells.SPARK + 1 if loss else 0,
    }  # fmt: skip


def _gpu_widths(rows: Sequence[Row]) -> Content:
    found = {(len(row.gpus.each), row.gpus.ail, row.gpus.memory_total or 0) for row in rows if row.gpus.each}
    if not found:
        return {}
    count = max(number for number, _, _ in found)
    word = max(len(ail) for _, ail, _ in found)
    total = max(memory for _, _, memory in found)
    least = 4 + (word + 1 if word else 0)
    pictured = count if 1 < count <= cells.MOST_BLOCKS else cells.BAR
    shared = max((len(f"see {row.gpus_at}") for row in rows if row.gpus_at), default=0)
    return {
        GPU.title: max(least, shared), f"{GPU.title}+": max(pictured + 1 + max(4, word), shared),
        MEMORY.title: 2 * len(f"{total / cells.GIB:.0f}") + 2 if total else 0,
    }  # fmt: skip


def layout(width: int, content: Content, chosen: Sequence[str] = ()) -> list[tuple[Column, int]]:
    """The columns that a table of this width shows, each with its cells.

    `chosen` are titles of those that a person wants, in this order; what does not fit is left out from the right.
    """
    shown = _wanted(chosen) or [column for column in COLUMNS if _has_place(column, content, width)]
    least = {column: _least(column, content) for column in shown}
    while chosen and len(shown) > 1 and _total(shown, least) > width:
        shown.pop()
    wish = {**least, PHASE: max(least[PHASE], min(PHASE_WISH, content[PHASE.title]))}
    wish[GPU] = max(least.get(GPU, 0), content.get(f"{GPU.title}+", 0))
    for column, more in ((ETA, LAST_WISH), (LAST, 0)):  # the header shows the one, the log below the other
        if not chosen and column in shown and _total(shown, wish) + more > width:
            shown.remove(column)
    for column in FIRST_TO_GO:
        if column in shown and _total(shown, least) > width:
            shown.remove(column)
    spare = max(0, width - _total(shown, least))
    widths = {column: least[column] for column in shown}
    wishes = [(column, min(content[column.title], column.most)) for column in (PHASE, HOST, RANK)]
    pictures = [(column, content.get(f"{column.title}+", 0)) for column in (GPU, LOSS, STEP)]
    for column, wished in (*wishes[:2], *pictures, *wishes[2:]):
        more = max(0, wished - widths[column]) if column in widths else 0
        if more > spare:
            more = 0 if (column, wished) in pictures else spare  # a part of a picture shows nothing
        if more:
            widths[column] += more
            spare -= more
    if LAST in widths:
        widths[LAST] += max(0, spare)
    return [(column, widths[column]) for column in shown]


def _wanted(chosen: Sequence[str]) -> list[Column]:
    """The chosen columns; which rank it is comes first, wherever else it stands."""
    of_title = {column.title: column for column in COLUMNS}
    found = [of_title[title] for title in chosen if title in of_title]
    return [RANK, *(column for column in found if column is not RANK)] if found else []


def _has_place(column: Column, content: Content, width: int) -> bool:
    if column.factual:
        return content[column.title] > 0
    if not column.optional or content[column.title] > 0:
        return True
    return width >= 120 and not any(content[other.title] for other in COLUMNS if other.factual)


def _least(column: Column, content: Content) -> int:
    if column in (HOST, PHASE):
        return min(column.least, max(len(column.title), content[column.title]))
    if column in (RANK, EXIT, STATE, STEP, RATE, LOSS, GPU, MEMORY):
        return max(column.least, min(column.most, content[column.title]))
    return column.least


def _total(shown: list[Column], widths: dict[Column, int]) -> int:
    return sum(widths[column] for column in shown) + GAP * (len(shown) - 1)


__all__ = ["COLUMNS", "GAP", "Cell", "Column", "Content", "content_widths", "layout"]
