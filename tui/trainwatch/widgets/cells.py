"""What each column of the rank table says of a row, in the cells that it has there. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trainwatch.model import findings, gpus, text
from trainwatch.model.progress import loss_text, rate_text, step_text
from trainwatch.model.rows import Row
from trainwatch.widgets import spark, states
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.state import STALLED

BAR, SPARK = 6, 8
"""Cells of a bar and of a line of values."""
MOST_BLOCKS = 8
"""More GPUs than this get one bar instead of a block each."""
GIB = 1 << 30

LABEL, PLAIN, MUTED, WARNING, BAD = (f"rank-table--{name}" for name in ("label", "plain", "muted", "warning", "bad"))
PHASE, PICTURE = "rank-table--phase", "rank-table--picture"
AILS = {gpus.LOST: BAD, gpus.ECC: BAD, gpus.HOT: WARNING, gpus.THROTTLED: WARNING}


class Cell(NamedTuple):
    """What one column says of one row: text, and the component class that colours it."""

    text: str
    component: str = MUTED
    parts: tuple[tuple[str, str], ...] = ()
    """The same text in pieces, each with its own component, where one colour is not enough."""


@dataclass(frozen=True)
class Column:
    """One column of the rank table."""

    title: str
    sort: str
    """The model's sort key; empty when one cannot sort by it."""
    cell: Callable[[Row, int], Cell]
    """What it says of a row in so many cells."""
    least: int
    """It is hidden rather than narrower than this."""
    most: int
    right: bool = False
    keep_end: bool = False
    """What does not fit loses its beginning: hosts of one cluster differ at the end."""
    optional: bool = False
    """Not shown while no row has anything in it and room is short."""
    factual: bool = False
    """Not shown while no row has anything in it."""


def label(row: Row, _: int) -> Cell:
    """Which rank."""
    return Cell(("└ " if row.nested else "") + row.label, LABEL)


def host(row: Row, _: int) -> Cell:
    """Where."""
    return Cell(row.host, PLAIN)


def state(row: Row, width: int) -> Cell:
    """How it stands; of a stalled one also for how long, where there is room."""
    said = f"{states.symbol(row.state)} {row.state}"
    if row.state == STALLED and row.stalled_for is not None and width >= 13:
        said += f" {text.roughly(row.stalled_for)}"
    return Cell(said, states.component(row.state))


def phase(row: Row, _: int) -> Cell:
    """What it is doing."""
    return Cell(row.phase or "", PHASE)


def age(row: Row, _: int) -> Cell:
    """For how long."""
    return Cell(text.duration(row.phase_age), MUTED)


def step(row: Row, width: int) -> Cell:
    """How far it is, with a bar where there is room."""
    said = step_text(row.progress)
    component = WARNING if row.kinds & {findings.BEHIND, findings.LAGS} else PLAIN
    share = row.progress.share
    if share is None or width < len(said) + BAR + 1:
        return Cell(said, component)
    bar = spark.bar(share, BAR)
    bar += spark.REST * (BAR - len(bar))
    return Cell(f"{said} {bar}", component, ((said + " ", component), (bar, PICTURE)))


def rate(row: Row, _: int) -> Cell:
    """How fast."""
    return Cell(rate_text(row.progress), WARNING if findings.SLOW in row.kinds else PLAIN)


def eta(row: Row, _: int) -> Cell:
    """How long still."""
    return Cell(text.duration(row.progress.eta) if row.state in states.WORKING else "", MUTED)


def loss(row: Row, width: int) -> Cell:
    """How well, with where it goes: its last values where there is room, else an arrow."""
    progress = row.progress
    said = loss_text(progress.loss)
    if not said or progress.loss is None or not math.isfinite(progress.loss) or progress.usual_loss is not None:
        return Cell(said, BAD)
    if width >= len(said) + SPARK + 1 and len(progress.losses) > 1:
        line = spark.line(progress.losses[-SPARK:], SPARK)
        return Cell(f"{said} {line}", PLAIN, ((said + " ", PLAIN), (line, PICTURE)))
    arrow = f" {spark.ARROWS[progress.trend]}" if len(progress.losses) > 1 else "  "
    return Cell(said + arrow, PLAIN, ((said, PLAIN), (arrow, MUTED)))


def gpu(row: Row, width: int) -> Cell:
    """How busy its GPUs are: a block for each where there is room, their mean, and what is wrong with the worst."""
    if row.gpus_at:
        return Cell(f"see {row.gpus_at}", MUTED)
    found = row.gpus
    if not found.each:
        return Cell("")
    idle = findings.IDLE in row.kinds
    component = AILS.get(found.ail, WARNING if idle or findings.SLOW_GPU in row.kinds else PLAIN)
    percent = "  ? " if found.util is None else f"{min(999, round(found.util)):>3}%"
    many = 1 < len(found) <= MOST_BLOCKS
    picture = len(found) if many else BAR
    if width < picture + 1 + max(4, len(found.ail)):
        return Cell(f"{percent} {found.ail}".rstrip(), component)
    if many:
        blocks = [(_block(each), AILS.get(gpus.ail_of(each), WARNING if idle else PICTURE)) for each in found.each]
    else:
        bar = spark.bar((found.util or 0.0) / 100, BAR)
        blocks = [(bar + " " * (BAR - len(bar)), WARNING if component == WARNING else PICTURE)]
    parts = (*blocks, (f" {found.ail or percent:>4}", component))
    return Cell("".join(part for part, _ in parts), component, parts)


def _block(each: Gpu) -> str:
    return "✗" if each.lost else spark.level(each.util, 0, 100)


def memory(row: Row, _: int) -> Cell:
    """How full the fullest of its GPUs is, in GiB."""
    used, total = row.gpus.memory_used, row.gpus.memory_total
    if used is None or total is None or row.gpus_at:
        return Cell("")
    return Cell(f"{min(used / GIB, 9999):.0f}/{min(total / GIB, 9999):.0f}G", PLAIN)


def exit_code(row: Row, _: int) -> Cell:
    """How the command ended."""
    return Cell(row.exit_text, states.component(row.state) if row.exit_code else MUTED)


def hold(row: Row, _: int) -> Cell:
    """How long it is still held."""
    return Cell(text.countdown(row.hold_left), states.component(row.state))


def quiet(row: Row, _: int) -> Cell:
    """Since when it says nothing."""
    return Cell(text.duration(row.last_output_age), MUTED)


def last_line(row: Row, _: int) -> Cell:
    """What is wrong, else what it said last."""
    if row.warning:
        return Cell(f"! {row.warning}", WARNING)
    if row.finding:
        return Cell(f"! {row.finding}", BAD if row.finding_is_bad else WARNING)
    return Cell(row.last_line, PLAIN)
