"""What users say themselves: `::trainwatch step=10 total=100 loss=2.31::` lines, and expressions of their own."""
from __future__ import annotations

import re
import time

from trainwatch_launcher.phases import is_shown_only
from trainwatch_launcher.progress.values import KEYS, convert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence

    from trainwatch_launcher.progress.values import Values

MARKER = "::trainwatch "
ITEM = re.compile(r"(?<![\w.])([a-z_]{1,40}) ?[=:] ?(?=[^\s,])")
MOST_IN_A_LINE = 8
LONGEST = 500
"""Characters of an explicit line, and of the lines that a user's expression is tried on."""
TOO_SLOW = 0.05
"""Seconds for one line: an expression that takes longer is not used again."""


class PatternError(ValueError):
    """A user's expression cannot be used; the message says why."""


class Pattern:
    """A user's expression, whose named groups are keys of a point."""

    def __init__(self, text: str) -> None:
        try:
            self._expression = re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise PatternError("is no regular expression: %s" % error) from None
        unknown = sorted(set(self._expression.groupindex) - set(KEYS))
        if unknown or not self._expression.groupindex:
            named = "the group %r" % unknown[0] if unknown else "no named group"
            names = ", ".join(KEYS)
            raise PatternError("has %s; groups are named like (?P<step>\\d+), with names of %s" % (named, names))
        if is_explosive(self._expression):
            raise PatternError("can take for ever: avoid (a+)+, and several .* in one expression")
        self.text = text
        self.gave_up = False

    def read(self, text: str) -> Values | None:
        """What the expression finds in a line."""
        if self.gave_up:
            return None
        began = time.perf_counter()
        match = self._expression.search(text[:LONGEST])
        self.gave_up = time.perf_counter() - began > TOO_SLOW
        if match is None:
            return None
        values: Values = {}
        for key in self._expression.groupindex:
            if match.group(key) is not None:
                value = convert(key, unit_of(key), match.group(key).strip(), 0)
                if value is not None:
                    values[key] = value
        return values or None


def is_explosive(expression: re.Pattern[str]) -> bool:
    """Whether an expression may take for ever: a repetition in a repetition, or slow on lines made of its own letters.

    While an expression is matched nothing else in the launcher runs, the copying of output neither.
    """
    try:
        from re import _parser as parser  # type: ignore[attr-defined]  # Python 3.11 and newer
    except ImportError:
        import sre_parse as parser

    letters: list[str] = []

    def repeats(items: Iterable[Any], inside: bool) -> bool:
        for operation, arguments in items:
            name = str(operation)
            if name == "LITERAL":
                letters.append(chr(arguments))
            unbounded = name in ("MAX_REPEAT", "MIN_REPEAT") and int(arguments[1]) > 100
            if unbounded and inside:
                return True
            if any(repeats(part, inside or unbounded) for part in parts(arguments)):
                return True
        return False

    def parts(arguments: Any) -> Iterable[Any]:
        if isinstance(arguments, parser.SubPattern):
            yield arguments
        elif isinstance(arguments, (tuple, list)):
            for item in arguments:
                yield from parts(item)

    if repeats(parser.parse(expression.pattern), False):
        return True
    own = "".join(letters) or "x"
    for length in (30, 60, 120, 250, LONGEST):
        for unit in (own, own + "1", own[:1], "1", " ", "1 "):
            began = time.perf_counter()
            expression.search((unit * length)[:length])
            if time.perf_counter() - began > TOO_SLOW:
                return True
    return False


def explicit(text: str) -> Values | None:
    """The values of the last explicit line in the text, but not of the shell's echo of the command that prints it."""
    places, start = [], text.find(MARKER)
    while start >= 0:
        begin = start + len(MARKER)
        end = text.find("::", begin, begin + LONGEST)
        if end < 0:
            break
        places.append((start, begin, end))
        start = text.find(MARKER, end)
    last = ""
    for start, begin, end in places[: -1 - MOST_IN_A_LINE : -1]:
        before = text[max(0, start - 1024) : start].encode("utf-8", "replace")
        if not is_shown_only(before):
            last = text[begin:end]
            break
    values: Values = {}
    for item in ITEM.finditer(last):
        if item.group(1) in KEYS:
            value = convert(item.group(1), unit_of(item.group(1)), last, item.end())
            if value is not None:
                values[item.group(1)] = value
    return values or None


def unit_of(key: str) -> str:
    """What a user's number without a unit is in."""
    return "s" if key == "eta_s" else ""


def patterns(texts: Sequence[str]) -> list[Pattern]:
    """Compiled expressions of a user. Raises PatternError."""
    return [Pattern(text) for text in texts]
