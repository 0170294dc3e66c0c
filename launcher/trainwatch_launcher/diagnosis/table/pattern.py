"""How a kind of failure is written down: its family, what it is to others, its words, and what people do about it."""
from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Match, Sequence, Union

    Words = Union[str, tuple[str, str], tuple[str, str, str], "Pattern"]

FACT, CAUSE, STOP, WEAK, COLLATERAL = "fact", "cause", "stop", "weak", "collateral"
"""What a kind is to the others that are stated beside it.

FACT: the kernel says it of the machine; what programs say is its effect. CAUSE: a program says what went wrong with
itself. STOP: somebody wanted the end. WEAK: a death without a reason. COLLATERAL: something else was lost or did not
come.
"""
LEVELS = {FACT: 0, CAUSE: 1, STOP: 1, WEAK: 2, COLLATERAL: 3}
"""Which statement counts before which; causes and stops by who came first."""


class Pattern:
    """Words that state a kind: literals of which one must be there (`a|b`, no matter the case), and an expression.

    The expression is searched in one line or one exception with its message, both of bounded length, ignoring case. It
    must be linear: no unbounded repetition may come before its first literal, and none may be nested.
    """

    __slots__ = ("_regex", "expression", "hint", "literals")

    def __init__(self, literal: str, regex: str = "", hint: str = "") -> None:
        self.literals = tuple(literal.lower().split("|"))
        self.expression = regex or re.escape(literal)
        self.hint = hint
        self._regex: re.Pattern[str] | None = None

    @property
    def regex(self) -> re.Pattern[str]:
        """The expression, compiled when it is first needed: few of hundreds ever are."""
        if self._regex is None:
            self._regex = re.compile(self.expression, re.IGNORECASE)
        return self._regex

    def search(self, text: str, lowered: str) -> Match[str] | None:
        """Where a text states it; `lowered` is the text in lower case."""
        return self.regex.search(text) if any(literal in lowered for literal in self.literals) else None


def patterns(words: Sequence[Words]) -> tuple[Pattern, ...]:
    """Patterns from a table's short forms: a literal, (literals, expression) or (literals, expression, hint)."""
    made = []
    for word in words:
        if isinstance(word, Pattern):
            made.append(word)
        else:
            made.append(Pattern(word) if isinstance(word, str) else Pattern(*word))
    return tuple(made)


class Kind:
    """One row of the table. `says` counts in exceptions and in lines, `raises` only in exceptions, `prints` in lines.

    `softly` are words that only count in a line when something is known to have failed and nothing else says why.
    """

    def __init__(
        self,
        name: str,
        family: str,
        role: str,
        hint: str,
        *,
        says: Sequence[Words] = (),
        raises: Sequence[Words] = (),
        prints: Sequence[Words] = (),
        softly: Sequence[Words] = (),
    ) -> None:
        self.name, self.family, self.role, self.hint = name, family, role, hint
        self.raises = (*patterns(says), *patterns(raises))
        self.prints = (*patterns(says), *patterns(prints))
        self.softly = patterns(softly)
