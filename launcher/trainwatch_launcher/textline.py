"""Short, safe text from raw output: one line, no control sequences, of bounded length."""
from __future__ import annotations

from trainwatch_launcher.phases import CONTROL_SEQUENCE

MAX_LINE = 200


def last_line(tail: bytes, limit: int = MAX_LINE) -> str:
    """The last line of output that shows something, as a terminal would leave it, at most `limit` characters."""
    for line in reversed(tail.split(b"\n")):
        text = plain(line)
        if text:
            return text[:limit]
    return ""


def plain(line: bytes) -> str:
    """A line as text: the last state of a `\\r` progress bar, without control sequences."""
    for part in reversed(line.split(b"\r")):
        text = CONTROL_SEQUENCE.sub(b"", part).decode("utf-8", "replace").strip()
        if text:
            return "".join(c if c.isprintable() else " " for c in text)
    return ""
