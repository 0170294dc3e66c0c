"""Which rows: the filter that a user types in one line. Pure."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType

from trainwatch.model import naming
from trainwatch.model.measures import MEASURES, Measure
from trainwatch.model.rows import Row
from trainwatch_launcher.rundir.state import BAD, LIVE, STATES

EXAMPLES = "state:held gpu<50 lag>2 -word"
"""What a filter can say, in one line."""
DEEPEST = 8
"""So many saved filters may stand within each other."""


class QueryError(ValueError):
    """A filter that means nothing; the message is one line for the person who typed it."""


@dataclass(frozen=True)
class Context:
    """What a row is compared with."""

    first_step: int = 0
    """The step of the rank that is farthest."""


Test = Callable[[Row, Context], bool]
Saved = Mapping[str, str]
NONE_SAVED: Saved = MappingProxyType({})
TEXTS: Mapping[str, tuple[Callable[[Row], str], str]] = {
    "host": (lambda row: row.host, "where it runs: host:gpu-0*, several with commas"),
    "phase": (lambda row: row.phase or "", 'what it does: phase:load, phase:"Load data*"'),
    "reason": (lambda row: row.reason, "why it failed: reason:nccl"),
    "line": (lambda row: row.last_line, "its last line of output"),
}
HELP: tuple[tuple[str, str], ...] = (
    ("word", "in the rank's label, host, phase, state, exit, reason or last line; \"in quotes\" with blanks and all"),
    ("-word", "not: before anything, also -state:failed; several words must all hold"),
    ("state:", f"{', '.join(STATES)}; bad and live are several of them"),
    ("rank:", "rank:0-63,80 rank:8- rank:3#2 (its second attempt) rank:3.0 (its local rank 0)"),
    *((f"{name}:", said) for name, (_, said) in TEXTS.items()),
    ("exit:", "exit:137 exit:sigkill exit>0"),
    *((f"{name}<", measure.help) for name, measure in MEASURES.items()),
    ("@name", "a filter that is saved in config.toml under [filters]"),
)
"""Each field with what it means, for people."""
FIELDS = ("state", "rank", *TEXTS, "exit", *MEASURES)

WORD = re.compile(r'([-!]?)(?:([A-Za-z_]+)(<=|>=|[:<>=]))?((?:"[^"]*(?:"|$)|[^\s"])*)')
PART = re.compile(r'(?:"[^"]*(?:"|$)|[^,"])+')


def parse(query: str, saved: Saved = NONE_SAVED) -> Test:
    """A filter as a test of rows: words that must all hold; see `HELP`. `saved` are filters by name.

    Case does not matter. A value that is still missing, as in `host:`, is no condition. Raises QueryError when a word
    means nothing.
    """
    return _all(_parse(query, saved, 0))


def filter_rows(rows: Sequence[Row], query: str, saved: Saved = NONE_SAVED) -> tuple[Row, ...]:
    """The rows that a filter lets through, in their order. Raises QueryError."""
    tests = _parse(query, saved, 0)
    if not tests:
        return tuple(rows)
    steps = [row.progress.step for row in rows if row.progress.step is not None and not row.superseded]
    context = Context(max(steps, default=0))
    for test in tests:
        rows = [row for row in rows if test(row, context)]
    return tuple(rows)


def _parse(query: str, saved: Saved, depth: int) -> list[Test]:
    tests: list[Test] = []
    at = 0
    while at < len(query):
        match = WORD.match(query, at)
        if match is None or match.end() == at:
            at += 1  # a blank
            continue
        at = match.end()
        tests += _word(match, saved, depth)
    return tests


def _word(match: re.Match[str], saved: Saved, depth: int) -> list[Test]:
    sign, name, relation, value = match.groups()
    whole = match.group(0)
    if sign and len(whole) > 1:
        inner = WORD.match(whole, 1)
        tests = _word(inner, saved, depth) if inner is not None else []
        unwanted = _all(tests)
        return [lambda row, context: not unwanted(row, context)] if tests else []
    if name is None and value.startswith("@") and len(value) > 1:
        return _saved(value[1:], saved, depth)
    field = (name or "").lower()
    if field in FIELDS:
        return _field(field, relation, value)
    if field:
        near = get_close_matches(field, FIELDS, 1, 0.75)
        if near:
            raise QueryError(f'no field is called {field!r}; is it {near[0]}? As text, in quotes: "{_bare(whole)}"')
    wanted = _bare(whole).lower()
    return [_anywhere(wanted)] if wanted else []


def _all(tests: Sequence[Test]) -> Test:
    return lambda row, context: all(test(row, context) for test in tests)


def _saved(name: str, saved: Saved, depth: int) -> list[Test]:
    if name not in saved:
        known = f"there are {', '.join(sorted(saved))}" if saved else "config.toml has none under [filters]"
        raise QueryError(f"no filter is saved as {name!r}; {known}")
    if depth >= DEEPEST:
        raise QueryError(f"the saved filter {name!r} leads back to itself")
    return _parse(saved[name], saved, depth + 1)


def _field(field: str, relation: str, value: str) -> list[Test]:
    parts = [part for found in PART.findall(value) if (part := _bare(found).lower())]
    if not parts:
        return []  # the user is still typing
    if field in MEASURES:
        return [_measured(field, MEASURES[field], relation, parts)]
    if field == "exit" and relation not in ":=":
        return [_measured(field, EXIT, relation, parts)]
    if relation not in ":=":
        raise QueryError(f"{field} has no order; write {field}:{parts[0]}")
    if field == "state":
        return [_state(parts)]
    if field == "rank":
        return [_rank(",".join(parts))]
    if field == "exit":
        return [lambda row, _: any(part in row.exit_text.lower().split() for part in parts)]
    return [_pattern(TEXTS[field][0], parts)]


def _bare(value: str) -> str:
    return value.replace('"', "")


def _anywhere(wanted: str) -> Test:
    def test(row: Row, _: Context) -> bool:
        places = (row.label, row.host, row.phase or "", row.state, row.exit_text, row.reason, row.last_line)
        return any(wanted in place.lower() for place in places)

    return test


def _state(parts: Iterable[str]) -> Test:
    states: set[str] = set()
    for name in parts:
        group = {"bad": BAD, "live": LIVE}.get(name) or {state for state in STATES if state.startswith(name)}
        if not group:
            raise QueryError(f"no state is called {name!r}; states are {', '.join(STATES)}, bad and live")
        states |= group
    return lambda row, _: row.state in states


def _rank(wanted: str) -> Test:
    try:
        names = naming.parse(wanted)
    except naming.NamingError as error:
        wrong = error.part or wanted
        raise QueryError(f"{wrong!r} is no rank; write rank:3, rank:0-7,12, rank:3#2 or rank:3.0") from None
    return lambda row, _: any(name.covers(row.key) for name in names)


def _pattern(value: Callable[[Row], str], parts: Sequence[str]) -> Test:
    patterns = [part if any(sign in part for sign in "*?[") else f"*{part}*" for part in parts]
    return lambda row, _: any(fnmatchcase(value(row).lower(), pattern) for pattern in patterns)


# Numbers

EXIT = Measure(lambda row, _: row.exit_code, "its exit code")
NOT_FINITE = {"nan": math.isnan, "inf": math.isinf, "bad": lambda value: not math.isfinite(value)}
UNITS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DIGITS = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
NUMBER = re.compile(rf"({_DIGITS})([a-z%]?)")
SPAN = re.compile(rf"({_DIGITS}[a-z%]?)-({_DIGITS}[a-z%]?)?")


def _measured(field: str, measure: Measure, relation: str, parts: Sequence[str]) -> Test:
    """One number against a row's; with `:` also spans, several with commas, and for a loss `nan`, `inf` and `bad`."""
    if relation not in ":=" and len(parts) > 1:
        raise QueryError(f"{field}{relation} wants one number, not {','.join(parts)!r}")
    checks = [_check(field, measure, relation, part) for part in parts]

    def test(row: Row, context: Context) -> bool:
        value = measure.of(row, context.first_step)
        return value is not None and any(check(value) for check in checks)

    return test


def _check(field: str, measure: Measure, relation: str, part: str) -> Callable[[float], bool]:
    if relation in ":=" and field == "loss" and part in NOT_FINITE:
        return NOT_FINITE[part]
    span = SPAN.fullmatch(part) if relation == ":" else None
    if span is not None:
        low = _number(field, measure, span.group(1))
        high = _number(field, measure, span.group(2)) if span.group(2) else math.inf
        return lambda value: low <= value <= high
    wanted = _number(field, measure, part)
    return {
        "<": lambda value: value < wanted, "<=": lambda value: value <= wanted,
        ">": lambda value: value > wanted, ">=": lambda value: value >= wanted,
        ":": lambda value: value == wanted, "=": lambda value: value == wanted,
    }[relation]  # fmt: skip


def _number(field: str, measure: Measure, said: str) -> float:
    match = NUMBER.fullmatch(said)
    units = TIMES if measure.is_time else UNITS
    if match is None or match.group(2) not in units:
        raise QueryError(f"{field} is compared with a number{' of seconds, or 5m, 2h' if measure.is_time else ''}: "
                         f"{said!r} is none")  # fmt: skip
    return float(match.group(1)) * units[match.group(2)]


# While it is typed


def complete(query: str, known: Mapping[str, Iterable[str]], saved: Saved = NONE_SAVED) -> str | None:
    """What the last word may be meant to become, as the whole line; None when nobody can know.

    `known` are values that exist: of `host` and `phase`.
    """
    start = max(query.rfind(" "), -1) + 1
    if query.count('"') % 2:
        start = query.rfind(" ", 0, query.rfind('"')) + 1
    before, word = query[:start], query[start:]
    sign = word[:1] if word[:1] in ("-", "!") else ""
    word = word[len(sign):]
    if not word:
        return None
    name, colon, value = word.partition(":")
    if word.startswith("@"):
        options = [f"@{each}" for each in sorted(saved)]
    elif not colon:
        options = [f"{each}:" for each in FIELDS if each not in MEASURES] + [*MEASURES]
    else:
        done, comma, value = value.rpartition(",")
        values = (*STATES, "bad", "live") if name == "state" else sorted(known.get(name, ()))
        word, head = value, f"{name}:{done}{comma}"
        quoted = [f'"{each}"' if " " in each or "," in each else each for each in values]
        options = [each for each in quoted if value or len(quoted) == 1]
        before += sign + head
        sign = ""
    lower = word.lower()
    found = next((each for each in options if _starts(each, lower)), None)
    return None if found is None or found.lower() == lower else before + sign + found


def _starts(option: str, typed: str) -> bool:
    return option.lower().startswith(typed) or (option.lower().lstrip('"').startswith(typed) and bool(typed))
