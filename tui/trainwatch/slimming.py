"""Python sources without what only people read: comments and docstrings. Every statement stays on its line."""
from __future__ import annotations

import io
import tokenize

BETWEEN = (tokenize.NL, tokenize.COMMENT)
BEGINNING = (tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def slim(source: bytes) -> bytes:
    """The same program with nothing where comments and docstrings were, so that tracebacks tell true lines.

    A string that is a statement becomes an empty one: it may be all that a function has.
    """
    tokens = list(tokenize.tokenize(io.BytesIO(source).readline))
    lines = source.decode("utf-8").split("\n")
    for token in reversed(unread(tokens)):
        (first, left), (last, right) = token.start, token.end
        kept = "" if token.type == tokenize.COMMENT else '""'
        joined = lines[first - 1][:left] + kept + lines[last - 1][right:]
        lines[first - 1 : last] = [joined.rstrip(), *[""] * (last - first)]
    return "\n".join(lines).encode("utf-8")


def unread(tokens: list[tokenize.TokenInfo]) -> list[tokenize.TokenInfo]:
    """Comments, but not a first line that says how the file is run, and strings that are statements, in order."""
    found, before = [], tokenize.ENCODING
    for number, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            is_unread = token.start != (1, 0)
        else:
            ends = token.type == tokenize.STRING and tokens[number + 1].type in (tokenize.NEWLINE, tokenize.COMMENT)
            is_unread = ends and before in BEGINNING
        if is_unread:
            found.append(token)
        if token.type not in BETWEEN:
            before = token.type
    return found
