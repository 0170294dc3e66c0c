"""Which rows, in what order: the filter that a user types, and the columns to sort by."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from trainwatch.model import naming
from trainwatch.model.rows import Row
from trainwatch_launcher.rundir.state import BAD, LIVE, STATES

SORT_KEYS = ("rank", "state", "host", "phase", "phase_age", "last_output_age", "output_bytes", "exit_code", "elapsed",
             "step", "rate", "eta", "loss", "gpu", "memory")  # fmt: skip
"""What rows can be sorted by; `rank` is the order that they come in."""

_URGENCY = {state: order for order, state in enumerate(
    ("failed", "held", "lost", "ended", "stalled", "starting", "running", "finished")
)}  # fmt: skip

Test = Callable[[Row], bool]


class QueryError(ValueError):
    """A filter that means nothing; the message is one line for the person who typed it."""


def sort_rows(rows: Iterable[Row], key: str = "rank", reverse: bool = False) -> tuple[Row, ...]:
    """Rows by one of `SORT_KEYS`, then by rank. Unknown facts come last either way. `state` puts the worst first.

    Raises QueryError for another key.
    """
    if key not in SORT_KEYS:
        raise QueryError(f"cannot sort by {key!r}; sort by one of {', '.join(SORT_KEYS)}")
    ordered = sorted(rows, key=lambda row: row.key)
    known = [row for row in ordered if _value(row, key) is not None]
    unknown = [row for row in ordered if _value(row, key) is None]
    known.sort(key=lambda row: _value(row, key), reverse=reverse)  # type: ignore[arg-type,return-value]
    return (*known, *unknown)


def _value(row: Row, key: str) -> object:
    if key == "rank":
        return row.key
    if key == "state":
        return (row.superseded, _URGENCY[row.state])
    if key in _MEASURES:
        return _MEASURES[key](row)
    value = getattr(row, key)
    return None if value == "" else value


def _speed(row: Row) -> float | None:
    """What one can compare: tokens or samples a second where they are said, else steps."""
    progress = row.progress
    if progress.tokens is not None or progress.samples is not None:
        return progress.tokens if progress.tokens is not None else progress.samples
    return 1 / progress.step_time if progress.step_time else None


def _loss(row: Row) -> float | None:
    """A loss that is no number is the worst."""
    loss = row.progress.loss
    return math.inf if loss is not None and not math.isfinite(loss) else loss


def _fullness(row: Row) -> float | None:
    used, total = row.gpus.memory_used, row.gpus.memory_total
    return used / total if used is not None and total else None


_MEASURES: dict[str, Callable[[Row], float | None]] = {
    "step": lambda row: row.progress.step,
    "rate": _speed,
    "eta": lambda row: row.progress.eta,
    "loss": _loss,
    "gpu": lambda row: row.gpus.util,
    "memory": _fullness,
}


def parse(query: str) -> Test:
    """A filter: words that must all hold, `-word` for one that must not.

    `state:failed` (also `state:bad`, `state:live`, several with commas), `rank:0-7,12` (`rank:8-`: from 8 on;
    `rank:3#2`: its second attempt, `rank:3.0`: its local rank 0),
    `host:gpu-0*`, `phase:load`, `exit:137`; any other word is looked for in the label, host, phase, state, reason and
    last line. Case does not matter. Raises QueryError when a word means nothing.
    """
    tests = [_word(word) for word in query.split()]
    return lambda row: all(test(row) for test in tests)


def filter_rows(rows: Iterable[Row], query: str) -> tuple[Row, ...]:
    """The rows that a filter lets through, in their order. Raises QueryError."""
    test = parse(query)
    return tuple(row for row in rows if test(row))


def _word(word: str) -> Test:
    if word.startswith("-") and len(word) > 1:
        unwanted = _word(word[1:])
        return lambda row: not unwanted(row)
    name, colon, wanted = word.lower().partition(":")
    if not colon or name not in _FIELDS:
        return _anywhere(word.lower())
    if not wanted:
        return lambda row: True  # the user is still typing
    return _FIELDS[name](wanted)


def _anywhere(wanted: str) -> Test:
    def test(row: Row) -> bool:
        places = (row.label, row.host, row.phase or "", row.state, row.exit_text, row.reason, row.last_line)
        return any(wanted in place.lower() for place in places)

    return test


def _state(wanted: str) -> Test:
    states: set[str] = set()
    for name in wanted.split(","):
        group = {"bad": BAD, "live": LIVE}.get(name) or {state for state in STATES if name and state.startswith(name)}
        if name and not group:
            raise QueryError(f"no state is called {name!r}; states are {', '.join(STATES)}, bad and live")
        states |= group
    return lambda row: row.state in states


def _rank(wanted: str) -> Test:
    try:
        names = naming.parse(wanted)
    except naming.NamingError as error:
        wrong = error.part or wanted
        raise QueryError(f"{wrong!r} is no rank; write rank:3, rank:0-7,12, rank:3#2 or rank:3.0") from None
    return lambda row: any(name.covers(row.key) for name in names)


def _pattern(value: Callable[[Row], str]) -> Callable[[str], Test]:
    def of(wanted: str) -> Test:
        patterns: Sequence[str] = [part if _is_glob(part) else f"*{part}*" for part in wanted.split(",") if part]
        return lambda row: any(fnmatchcase(value(row).lower(), pattern) for pattern in patterns)

    return of


def _is_glob(part: str) -> bool:
    return any(sign in part for sign in "*?[")


def _exit(wanted: str) -> Test:
    codes = wanted.split(",")
    return lambda row: any(code in row.exit_text.lower().split() for code in codes)


_FIELDS: dict[str, Callable[[str], Test]] = {
    "state": _state,
    "rank": _rank,
    "host": _pattern(lambda row: row.host),
    "phase": _pattern(lambda row: row.phase or ""),
    "exit": _exit,
}
