"""One format as data: how its lines are recognised, and how what they say is called."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.pairs import SIGNS, pairs, pick
from trainwatch_launcher.progress.values import KEYS, convert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Pattern

    from trainwatch_launcher.progress.names import Names
    from trainwatch_launcher.progress.values import Values

NUM = r"[-+]?(?:\d[\d,]{0,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,4})?"
"""A number in a recognising expression."""
MAYBE = r"[-+]?(?:[nN]a[nN]|[iI]nf)(?:\.0)?|" + NUM


def number(key: str) -> str:
    """An expression for the value of `key`: a number, NaN or infinity."""
    return "(?P<%s>%s)" % (key, MAYBE)


def counter(key: str) -> str:
    """An expression for a whole number, maybe padded with blanks or with commas between its thousands."""
    return r" {0,12}(?P<%s>\d[\d,]{0,20})" % key


MOST_GLUED = 3
"""Processes that write at once glue their lines together: the last one counts."""
STEP, TOTAL, EPOCH, EPOCHS = counter("step"), counter("total"), counter("epoch"), counter("epochs_total")
LOSS, LR, NORM = number("loss"), number("lr"), number("grad_norm")
STEP_OF = STEP + r" {0,4}/" + TOTAL


def with_loss(values: Values, match: re.Match[str]) -> Values | None:
    """Only lines that state a training loss: the same line without one is a validation's."""
    return values if "loss" in values else None


class Format:
    """How one framework prints a training step.

    `needs` stand in every such line (cheap to look for), `head` recognises it; its named groups are keys, as are those
    of `more`, each looked for after it. `names` are read from the pairs that `style` parts. A key that several give is
    taken from the head, then from `more`, then from the names. `unless` refuses a line. `units` tells the unit of
    groups. `check` may correct the values, or refuse them with None, and gets the head's match.
    """

    def __init__(
        self,
        name: str,
        needs: tuple[str, ...],
        head: str,
        names: Names | None = None,
        style: str = SIGNS,
        more: tuple[str, ...] = (),
        unless: str = "",
        units: dict[str, str] | None = None,
        check: Callable[[Values, re.Match[str]], Values | None] | None = None,
    ) -> None:
        self.name, self.needs, self.names, self.style, self.check = name, needs, names, style, check
        self.units = units or {}
        self._head, self._more, self._unless = head, more, unless
        self._compiled: tuple[Pattern[str], list[Pattern[str]], Pattern[str] | None] | None = None

    def read(self, text: str) -> Values | None:
        """What a line says, or None when it is no line of this format. Text is one state, without controls."""
        for literal in self.needs:
            if literal not in text:
                return None
        head, more, unless = self._compiled or self._compile()
        match = head.search(text)
        if match is None or (unless is not None and unless.search(text)):
            return None
        for _ in range(MOST_GLUED):
            later = head.search(text, match.end())
            cut = text[max(0, later.start() - 1) :] if later is not None else ""
            again = head.search(cut) if later is not None else None
            if again is None:
                break
            text, match = cut, again
        values: Values = {}
        self._take(match, text, values)
        for pattern in more:
            found = pattern.search(text, match.start())
            if found is not None:
                self._take(found, text, values)
        if self.names:
            pick(text, pairs(text, self.style), self.names, values)
        return self.check(values, match) if self.check is not None else values

    def _take(self, match: re.Match[str], text: str, values: Values) -> None:
        for key, found in match.groupdict().items():
            if found is not None and key in KEYS and key not in values:
                value = convert(key, self.units.get(key, ""), text, match.start(key))
                if value is not None:
                    values[key] = value

    def _compile(self) -> tuple[Pattern[str], list[Pattern[str]], Pattern[str] | None]:
        """Expressions are compiled when a log first needs them: a log holds one or two of all these formats."""
        unless = re.compile(self._unless, re.IGNORECASE) if self._unless else None
        self._compiled = re.compile(self._head), [re.compile(pattern) for pattern in self._more], unless
        return self._compiled
