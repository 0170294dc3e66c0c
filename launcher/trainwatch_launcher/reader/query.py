"""What to look for in a log, and which program may look for it: the answer is the same whichever does.

A query is text or a regular expression of Python's `re` for text, tried on each line for itself, without its line feed;
colours in a line do not count. grep is many times faster and can be stopped, so it looks wherever what it says is what
`re` would say: always for plain text, and for expressions of a common subset (pcre2pattern(3) and Python's re).
"""
from __future__ import annotations

import re
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if sys.version_info >= (3, 11):
    from re import _parser as sre_parse  # type: ignore[attr-defined]
else:
    import sre_parse

MAX_TEXT = 4096
"""Characters in a query."""
_ONLY_PYTHON = re.compile(r"\{,|\\[uUNZA]|\[\[|\[:|&&|\|\||--|~~|\(\?(?!:|=|!|<=|<!|P[<=])")
"""What `re` and PCRE read differently, or may in a later version."""
_AGREED = frozenset((
    "LITERAL", "NOT_LITERAL", "ANY", "IN", "RANGE", "CATEGORY", "NEGATE", "BRANCH", "SUBPATTERN", "MAX_REPEAT",
    "MIN_REPEAT", "AT", "ASSERT", "ASSERT_NOT",
))  # fmt: skip
_ESCAPE = re.compile(r"\\.")


class QueryError(ValueError):
    """What was asked for cannot be looked for; the message is one line for the person who typed it."""


class Query:
    """One thing to look for. `case` None: capitals matter once one was typed. `invert`: lines without it are meant.

    Raises QueryError.
    """

    def __init__(self, text: str, regex: bool = False, case: bool | None = None, invert: bool = False) -> None:
        if not text or len(text) > MAX_TEXT or "\n" in text or "\0" in text:
            raise QueryError("nothing to look for" if not text else "what is looked for is one line of text")
        self.text, self.regex, self.case, self.invert = text, regex, case, invert
        typed = _ESCAPE.sub("", text) if regex else text
        self.ignore_case = not case if case is not None else not any(letter.isupper() for letter in typed)
        self.source = text if regex else re.escape(text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.pattern = re.compile(self.source, re.IGNORECASE if self.ignore_case else 0)
                tree = sre_parse.parse(self.source, self.pattern.flags)
        except (re.error, OverflowError, RecursionError, UnicodeError) as error:
            raise QueryError("no regular expression: %s" % error) from None
        self.agreed = not (regex and _ONLY_PYTHON.search(text)) and _agrees(tree)
        """Whether grep -P reads it as `re` does."""
        self.in_bytes = self.agreed and _is_same_in_bytes(tree, self.ignore_case)
        """Whether it finds the same when it is tried on bytes, whatever letters the log holds."""

    @classmethod
    def from_json(cls, value: Any) -> Query:
        """A query as `to_json` wrote it. Raises QueryError."""
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            raise QueryError("no query")
        case = value.get("case")
        return cls(value["text"], bool(value.get("regex")), case if isinstance(case, bool) else None,
                   bool(value.get("invert")))

    def to_json(self) -> dict[str, Any]:
        """As it travels to where the log is."""
        return {"text": self.text, "regex": self.regex, "case": self.case, "invert": self.invert}


def _agrees(tree: Any) -> bool:
    """Whether a parsed expression has nothing in it but what both know alike."""
    for name, value in _nodes(tree):
        if name not in _AGREED or (name == "AT" and str(value).endswith("STRING")):
            return False
        if name == "SUBPATTERN" and (value[1] or value[2]):
            return False  # flags of its own
    return True


def _is_same_in_bytes(tree: Any, ignore_case: bool, repeated: str = "") -> bool:
    """Whether characters may be taken for bytes: none is counted, and none is of another kind as a byte.

    `repeated` tells how the tree is repeated when it is a single item: `any` number of times, or `some`.
    """
    for name, value in _children(tree):
        if name == "LITERAL" and value > 127:
            if repeated or (ignore_case and chr(value).lower() != chr(value).upper()):
                return False
        elif name == "CATEGORY" or (name == "AT" and "BOUNDARY" in str(value)):
            return False  # letters and digits of all scripts
        elif name in ("ANY", "NOT_LITERAL"):
            if repeated != "any" or (name == "NOT_LITERAL" and value > 127):
                return False
        elif name == "IN":
            if not _is_set_of_bytes(value, repeated):
                return False
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            single = len(value[2]) == 1 and str(value[2][0][0]) in ("ANY", "NOT_LITERAL", "IN", "LITERAL")
            how = "" if not single else "any" if value[0] <= 1 and value[1] > MAX_TEXT else "some"
            if not _is_same_in_bytes(value[2], ignore_case, how):
                return False
        elif not _is_same_in_bytes(_inner(name, value), ignore_case):
            return False
    return True


def _is_set_of_bytes(items: Any, repeated: str) -> bool:
    for name, value in _children(items):
        if name == "NEGATE":
            if repeated != "any":
                return False
        elif name == "LITERAL":
            if value > 127:
                return False
        elif name != "RANGE" or value[1] > 127:
            return False
    return True


def _nodes(tree: Any) -> Any:
    for name, value in _children(tree):
        yield name, value
        yield from _nodes(value[2] if name in ("MAX_REPEAT", "MIN_REPEAT") else _inner(name, value))


def _children(tree: Any) -> Any:
    return [(str(name), value) for name, value in tree]


def _inner(name: str, value: Any) -> Any:
    """What a node holds: more nodes."""
    if name == "SUBPATTERN":
        return value[3]
    if name == "BRANCH":
        return [node for branch in value[1] for node in branch]
    if name in ("ASSERT", "ASSERT_NOT"):
        return value[1]
    return value if name == "IN" else ()
