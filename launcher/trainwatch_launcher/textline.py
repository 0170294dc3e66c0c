"""Short, safe text from raw output: one line, no control sequences, of bounded length."""
from __future__ import annotations

CONTROL_SEQUENCE = (
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    rb"|\x1b[@-Z\\^_]|[\x00-\x08\x0e-\x1f\x7f]"  # other escapes and controls
)
MAX_LINE = 200

CONTROLS = bytes((*range(32), 127))


def uncontrolled(data: bytes) -> bytes:
    """Bytes without control sequences."""
    if len(data.translate(None, CONTROLS)) == len(data):
        return data
    import re  # not before it is needed: it takes long to import

    return re.sub(CONTROL_SEQUENCE, b"", data)


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
        text = uncontrolled(part).decode("utf-8", "replace").strip()
        if text:
            return "".join(c if c.isprintable() else " " for c in text)
    return ""
