"""In what order rows stand, and in what groups. Pure."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainwatch.model.measures import fullness, loss_order, speed
from trainwatch.model.rows import Row
from trainwatch_launcher.rundir.state import STATES

SORT_KEYS = ("rank", "state", "host", "phase", "phase_age", "last_output_age", "output_bytes", "exit_code", "elapsed",
             "step", "rate", "eta", "loss", "gpu", "memory")  # fmt: skip
"""What rows can be sorted by; `rank` is the order that they come in."""
LASTING = frozenset(("rank", "state", "host", "phase", "exit_code"))
"""What does not change all the time: an order by one of these is right at once, by others now and then."""
GROUPS = ("", "host", "state", "phase")
"""What rows can be grouped by, in the order that one goes through them; not at all first."""

_URGENCY = {state: order for order, state in enumerate(
    ("failed", "held", "lost", "ended", "stalled", "starting", "running", "finished")
)}  # fmt: skip


class OrderError(ValueError):
    """An order that there is not; the message is one line."""


def sort_rows(rows: Iterable[Row], key: str = "rank", reverse: bool = False) -> tuple[Row, ...]:
    """Rows by one of `SORT_KEYS`, then by rank. Unknown facts come last either way. `state` puts the worst first.

    Raises OrderError for another key.
    """
    if key not in SORT_KEYS:
        raise OrderError(f"cannot sort by {key!r}; sort by one of {', '.join(SORT_KEYS)}")
    ordered = sorted(rows, key=_rank, reverse=reverse and key == "rank")
    if key == "rank":
        return tuple(ordered)
    known, unknown = [], []
    for row in ordered:
        value = _value(row, key)
        if value is None:
            unknown.append(row)
        else:
            known.append((value, row))
    known.sort(key=lambda pair: pair[0], reverse=reverse)  # type: ignore[arg-type,return-value]
    return (*(row for _, row in known), *unknown)


def _rank(row: Row) -> tuple[int, ...]:
    return row.key


def _value(row: Row, key: str) -> object:
    if key == "state":
        return (row.superseded, _URGENCY[row.state])
    if key in _MEASURES:
        return _MEASURES[key](row)
    value = getattr(row, key)
    return None if value == "" else value


_MEASURES: dict[str, Callable[[Row], float | None]] = {
    "step": lambda row: row.progress.step,
    "rate": speed,
    "eta": lambda row: row.progress.eta,
    "loss": loss_order,
    "gpu": lambda row: row.gpus.util,
    "memory": fullness,
}


@dataclass(frozen=True)
class Group:
    """Rows that have something in common, as one line above them."""

    by: str
    """One of `GROUPS`."""
    name: str
    """What they have in common; empty when that is not known."""
    count: int
    states: tuple[tuple[str, int], ...]
    """How many are in each state, in the order of `rundir.state.STATES`."""
    steps: tuple[int, int] | None = None
    """The lowest and the highest step."""
    util: float | None = None
    """Mean load of their GPUs in per cent."""
    folded: bool = False
    """Whether its rows are not shown."""


Entry = Row | Group


def grouped(rows: Sequence[Row], by: str, folded: Callable[[str], bool]) -> tuple[Entry, ...]:
    """Rows under lines of their groups, in the order of each group's first row; states by urgency.

    The rows keep their order within a group; those of groups that are `folded` are left out. Without `by`: the rows.
    """
    if not by:
        return tuple(rows)
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_common(row, by), []).append(row)
    names: Iterable[str] = found
    if by == "state":
        names = sorted(found, key=lambda name: _URGENCY.get(name, len(_URGENCY)))
    entries: list[Entry] = []
    for name in names:
        hidden = folded(name)
        entries.append(_group(by, name, found[name], hidden))
        if not hidden:
            entries += found[name]
    return tuple(entries)


def _common(row: Row, by: str) -> str:
    return str({"host": row.host, "state": row.state, "phase": row.phase or ""}[by])


def _group(by: str, name: str, rows: Sequence[Row], folded: bool) -> Group:
    counts: Mapping[str, int] = Counter(row.state for row in rows if not row.superseded)
    steps = [row.progress.step for row in rows if row.progress.step is not None and not row.superseded]
    utils = [row.gpus.util for row in rows if row.gpus.util is not None]
    return Group(
        by, name, len(rows), tuple((state, counts[state]) for state in STATES if counts[state]),
        (min(steps), max(steps)) if steps else None, sum(utils) / len(utils) if utils else None, folded,
    )  # fmt: skip
