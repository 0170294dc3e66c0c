"""The line at the top, and the red one below it when a rank went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from textual.content import Content
from textual.widgets import Static

from trainwatch.link import Link
from trainwatch.model import text
from trainwatch.model.failure import Failure
from trainwatch.model.rows import Row
from trainwatch.model.summary import Summary
from trainwatch.widgets import links as marks
from trainwatch.widgets import states
from trainwatch.widgets.fit import fit
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.rundir.state import HELD

Part = tuple[str, str]
"""Some text and its content style."""


class Bar(Static):
    """One line that is repainted only when it says something else."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__("", id=id, classes=classes, markup=False)
        self._parts: list[Part] = []

    def show(self, parts: list[Part]) -> None:
        """Say this."""
        if parts != self._parts:
            self._parts = parts
            self.update(Content.assemble(*parts))


def header_parts(
    summary: Summary, name: str, now: float, width: int, problems: int, note: str, links: Sequence[Link] = (),
    shells: int = 0,
) -> list[Part]:
    """The header: which run, its state, how long, how many ranks in which state; the clock at the right.

    `shells` are those ranks whose holds are kept.
    """
    alarm = summary.first is not None
    wide = width >= 110
    run_id = clean(summary.run_id or name)
    left: list[Part] = [(f" {fit_most(run_id, 40 if wide else 18)}", "bold")]
    shown = f"{states.symbol(summary.state)} {summary.state}"
    left += [("  ", ""), (shown, "bold" if alarm else f"bold {states.variable(summary.state)}")]
    if summary.elapsed is not None:
        left += [("  ", ""), (text.duration(summary.elapsed), ""), (" elapsed" if wide else "", _muted(alarm))]
    if note:
        left.append((f"  ! {clean(note)}", "bold" if alarm else "bold $warning"))
    left.append(("   ", ""))
    for state, count in summary.counts.items():
        word = f" {count} {state}" if wide else f" {count}"
        left += [(states.symbol(state) + word, "bold" if alarm else states.variable(state)), ("  ", "")]
    left += _expected(summary, alarm, wide)
    reached, wrong = marks.summary(links, wide)
    if reached:
        left.append((f"  {clean(reached)}", ("bold" if alarm else "bold $warning") if wrong else _muted(alarm)))
    if problems:
        left.append((f"  ! {problems} unreadable" if wide else f" !{problems}", "bold" if alarm else "bold $warning"))
    if shells:
        said = "hold kept" if shells == 1 else f"{shells} holds kept"
        whole = f"  {said} while your shell is open" if wide else f"  {said}"
        left.append((whole, "bold" if alarm else states.variable(HELD)))
    clock = text.moment(now, "%H:%M:%S ")
    used = sum(cell_len(part) for part, _ in left)
    if used + len(clock) + 1 > width:
        return left
    return [*left, (" " * (width - used - len(clock)), ""), (clock, _muted(alarm))]


def trouble_note(trouble: str) -> str:
    """Why the run directory as a whole cannot be read, in few words."""
    if not trouble:
        return ""
    return "run directory is gone" if trouble == "it is gone" else f"run directory: {trouble}"


def _muted(alarm: bool) -> str:
    return "$tw-alarm-soft" if alarm else "$tw-muted"


def _expected(summary: Summary, alarm: bool, wide: bool) -> list[Part]:
    if not summary.world_size:
        return []
    seen = "" if summary.seen == summary.world_size else f"{summary.seen} "
    ranks = "rank" if summary.world_size == 1 else "ranks"
    of = f"{seen}of {summary.world_size} {ranks}" if wide else f"{summary.seen}/{summary.world_size}"
    return [(of, _muted(alarm))]


def banner_parts(failure: Failure, row: Row, hold_left: float | None, width: int) -> list[Part]:
    """One line on the first failure: which rank, how it ended, where, why, its hold, and the key that leads to it.

    `hold_left` is that of its container, whose launcher holds for the local ranks in it too.
    """
    lost = failure.exit_code is None
    wide = width >= 110
    where = f" on {clean(failure.host)}" if wide and failure.host else ""
    ended = "went silent first" if lost else f"failed first: exit {failure.exit_text}"
    if failure.root != failure.key:
        where, ended = (f" on {clean(row.host)}" if wide and row.host else ""), "is where it began"
    head = f" {states.symbol('lost' if lost else 'failed')} rank {row.label}{where} {ended}"
    phase = f" in {clean(row.phase)}" if row.phase else ""
    if phase and cell_len(phase) > width // 4:
        phase = fit_most(phase, width // 4)
    hold = ""
    if hold_left is not None:
        hold = f"held {text.countdown(hold_left)} more" if wide else f"hold {text.countdown(hold_left)}"
    key = " w  why " if wide else " w "
    room = width - cell_len(head) - cell_len(phase) - (cell_len(hold) + 2 if hold else 0) - len(key) - 2
    reason = fit_most(clean(failure.summary), room - 3) if failure.summary and room > 12 else ""
    parts: list[Part] = [(head, "bold"), (phase, "$tw-alarm-soft")]
    if reason:
        parts.append((f" · {reason}", ""))
    used = sum(cell_len(part) for part, _ in parts)
    end: list[Part] = [(hold, "bold"), ("  ", "")] if hold else []
    end += [(key[:3], "bold reverse"), (key[3:], "$tw-alarm-soft")]
    return [*parts, (" " * max(1, width - used - sum(cell_len(part) for part, _ in end)), ""), *end]


def rank_parts(row: Row, width: int, hold_left: float | None, note: str = "", kept: bool = False) -> list[Part]:
    """A rank in one line: who, where, in which state and phase, and what is wrong with what is known of it.

    `kept` says that its hold does not run out, because a shell is open beside it.
    """
    parts: list[Part] = [(f" rank {row.label}", "bold")]
    if row.host:
        parts += [(" · ", "$tw-muted"), (fit_most(clean(row.host), max(8, width // 5)), "")]
    parts += [("  ", ""), (f"{states.symbol(row.state)} {row.state}", states.variable(row.state))]
    warning = note or row.warning or row.finding
    if warning:
        parts += [("  ! ", "bold $state-stalled"), (fit_most(clean(warning), max(21, width // 3)), "$state-stalled")]
    if row.phase and width >= 60:
        parts += [("  ", ""), (fit_most(clean(row.phase), max(8, width // 4)), "")]
    if row.exit_text and width >= 100:
        parts += [("  exit ", "$tw-muted"), (row.exit_text, states.variable(row.state))]
    if hold_left is not None and width >= 100:
        parts += [("  hold ", "$tw-muted"), (text.countdown(hold_left), states.variable(HELD))]
    if hold_left is not None and kept:
        said = " kept while your shell is open" if width >= 130 else " kept"
        parts.append((said if width >= 100 else f"  hold{said}", states.variable(HELD)))
    return parts


def hanging(label: str, value: str, indent: int, width: int, style: str, label_style: str = "$tw-muted") -> list[Part]:
    """A label and its text on as many lines as it takes, all of them beginning in the same column."""
    lines = wrapped(value, max(10, width - indent))
    parts: list[Part] = [(label + " " * max(1, indent - cell_len(label)), label_style), (lines[0] + "\n", style)]
    for line in lines[1:]:
        parts.append((" " * indent + line + "\n", style))
    return parts


def wrapped(value: str, width: int) -> list[str]:
    """Text cut into lines of at most so many cells, between words where it can be."""
    lines: list[str] = []
    for word in value.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, width) or [""]
    return lines


def fit_most(value: str, width: int) -> str:
    """Text in at most so many cells, cut with an ellipsis where it is longer."""
    return value if cell_len(value) <= width else fit(value, max(1, width)).rstrip()
