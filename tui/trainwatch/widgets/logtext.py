"""Bytes of a log line made safe to draw: colours are kept, everything else that could act on a terminal is not.

Logs are hostile. What comes out of here holds no control character, no escape sequence, no text direction override and
no markup; the work is linear in the bytes that go in, and callers bound those (see `log_lines`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

TAB = 8
MAX_PIECES = 400
"""Changes of style that one line may have; what follows keeps the last style."""
MAX_COMBINING = 4
"""Combining marks that one character may carry; more are dropped."""

Pieces = list[tuple[str, Style]]
"""A line, cut where its style changes."""

# An unfinished string sequence loses its introducer only, so that it cannot hide the rest of a line. Its body holds no
# other introducer, so that each byte is looked at a bounded number of times.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<sgr>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]*[0-~]?"
)
_NULS = re.compile("\x00+")
_ODD = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f"  # C0 (tabs are expanded later), DEL, C1
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u061c\ufeff\ufff9-\ufffb"  # zero width, direction, separators
    "\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff"  # variation selectors, skin tones, tags
    "\ud800-\udfff]"
)
_OVERRIDES = frozenset("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_COMBINING = re.compile(f"({_MARK}{{{MAX_COMBINING}}}){_MARK}+")
_REPLACEMENT = "\ufffd"


class Sgr(NamedTuple):
    """What "select graphic rendition" has switched on so far in a line."""

    fg: Color | None = None
    bg: Color | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


_PLAIN = Sgr()
_SWITCHES: dict[int, dict[str, bool]] = {
    1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underline": True}, 7: {"reverse": True},
    9: {"strike": True}, 21: {"underline": True}, 22: {"bold": False, "dim": False}, 23: {"italic": False},
    24: {"underline": False}, 27: {"reverse": False}, 29: {"strike": False},
}


def parse(data: bytes, states: bool = False) -> Pieces:
    """One line of a log, without its line feed, as text and styles. Any bytes are welcome.

    With `states` all states of a `\\r` bar are shown, else what a terminal would show in the end.
    """
    text = (data.rstrip(b"\r") if states else last_state(data)).decode("utf-8", "replace")
    pieces: Pieces = []
    state = _PLAIN
    column = position = 0
    for found in _SEQUENCE.finditer(text):
        column = _add(pieces, text[position:found.start()], _style(state), column)
        position = found.end()
        if found["final"] == "m" and not found["between"] and len(pieces) < MAX_PIECES:
            state = _select(state, found["sgr"])
    _add(pieces, text[position:], _style(state), column)
    return pieces


def plain(data: bytes) -> str:
    """The text of one log line as it is drawn, without its colours."""
    return "".join(text for text, _ in parse(data))


def clean(text: str) -> str:
    """Text from a run directory (a host name, a reason) made safe to draw on one line."""
    if text.isascii() and text.isprintable():
        return text  # nearly all of it, and there are thousands
    return plain(" ".join(text.splitlines()).encode("utf-8", "replace"))


def last_state(data: bytes) -> bytes:
    """What a terminal would show of a line that returns to its start: the text after the last return that has any."""
    data = data.rstrip(b"\r")
    while True:
        kept, found, last = data.rpartition(b"\r")
        if not found or _visible(last):
            return last
        data = kept


def strip_of(pieces: Pieces) -> Strip:
    """A line's pieces as a strip, as long as its text."""
    return Strip([Segment(text, style) for text, style in pieces])


def highlight(pieces: Pieces, spans: list[tuple[int, int]], style: Style, under: bool = False) -> Pieces:
    """The pieces with `style` laid over ranges of characters; `spans` are in order and do not overlap.

    `under`: a style that a piece has itself counts more.
    """
    marked: Pieces = []
    position = 0
    for text, base in pieces:
        end = position + len(text)
        at = position
        for first, last in spans:
            first, last = max(first, position), min(last, end)
            if first >= last:
                continue
            if at < first:
                marked.append((text[at - position:first - position], base))
            marked.append((text[first - position:last - position], style + base if under else base + style))
            at = last
        if at < end:
            marked.append((text[at - position:], base))
        position = end
    return marked


def wrap_cuts(text: str, width: int) -> list[int]:
    """The cells at which each row of a wrapped line ends, so that no wide character is torn; at least one row."""
    total = cell_len(text)
    if total <= width or width < 2:
        return [total]
    if text.isascii():
        return [*range(width, total, width), total]
    cuts = []
    at = row = 0
    for character in text:
        size = get_character_cell_size(character)
        if row + size > width:
            cuts.append(at)
            row = 0
        row += size
        at += size
    return [*cuts, total]


def _visible(data: bytes) -> bool:
    return bool(_SEQUENCE.sub("", data.decode("utf-8", "replace")).strip()) if data else False


def _add(pieces: Pieces, text: str, style: Style, column: int) -> int:
    """Append a run of text free of sequences; returns the column after it."""
    if not text:
        return column
    if not (text.isascii() and text.isprintable()):
        text = _NULS.sub(_nuls, text)
        text = _ODD.sub(_odd, text)
        text = _COMBINING.sub(r"\1", text)
        if "\t" in text:
            text = _expand_tabs(text, column)
    if not text:
        return column
    if pieces and pieces[-1][1] is style:
        pieces[-1] = (pieces[-1][0] + text, style)
    else:
        pieces.append((text, style))
    return column + cell_len(text)


def _nuls(found: re.Match[str]) -> str:
    length = len(found[0])
    return "␀" if length == 1 else f"␀×{length}"


def _odd(found: re.Match[str]) -> str:
    """What is shown for a character that must not be drawn: a picture of it, a replacement, or nothing."""
    character = found[0]
    code = ord(character)
    if character in "\x07\x0f\x0e":  # bells and character set shifts say nothing to a reader
        return ""
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return _REPLACEMENT if character in _OVERRIDES or 0xD800 <= code <= 0xDFFF else ""


def _expand_tabs(text: str, column: int) -> str:
    parts = []
    for part in re.split("(\t)", text):
        shown = " " * (TAB - column % TAB) if part == "\t" else part
        column += cell_len(shown)
        parts.append(shown)
    return "".join(parts)


@lru_cache(maxsize=1024)
def _style(state: Sgr) -> Style:
    if state is _PLAIN or state == _PLAIN:
        return Style.null()
    return Style(color=state.fg, bgcolor=state.bg, bold=state.bold or None, dim=state.dim or None,
                 italic=state.italic or None, underline=state.underline or None, reverse=state.reverse or None,
                 strike=state.strike or None)


@lru_cache(maxsize=4096)
def _select(state: Sgr, parameters: str) -> Sgr:
    """The state after one SGR sequence. What it does not know (blink, conceal, fonts) changes nothing."""
    if len(parameters) > 100 or (parameters and parameters[0] in "<=>?"):
        return state
    codes = [_code(part) for part in parameters.replace(":", ";").split(";")]
    position = 0
    while position < len(codes):
        code = codes[position]
        position += 1
        if code == 0:
            state = _PLAIN
        elif code in _SWITCHES:
            state = state._replace(**_SWITCHES[code])  # type: ignore[arg-type]
        elif code in (38, 48):
            color, position = _extended(codes, position)
            if color is not None:
                state = state._replace(fg=color) if code == 38 else state._replace(bg=color)
        else:
            state = _basic(state, code)
    return state


def _code(part: str) -> int:
    return int(part) if part.isascii() and part.isdigit() and len(part) < 5 else (0 if not part else -1)


def _basic(state: Sgr, code: int) -> Sgr:
    if code == 39:
        return state._replace(fg=None)
    if code == 49:
        return state._replace(bg=None)
    for first, target, offset in ((30, "fg", 0), (40, "bg", 0), (90, "fg", 8), (100, "bg", 8)):
        if first <= code < first + 8:
            color = Color.from_ansi(code - first + offset)
            return state._replace(fg=color) if target == "fg" else state._replace(bg=color)
    return state


def _extended(codes: list[int], position: int) -> tuple[Color | None, int]:
    """The colour of `38;5;N` or `38;2;R;G;B`, and where the codes go on."""
    kind = codes[position] if position < len(codes) else -1
    if kind == 5 and position + 1 < len(codes):
        number = codes[position + 1]
        return (Color.from_ansi(number) if 0 <= number < 256 else None), position + 2
    if kind == 2 and position + 3 < len(codes):
        values = codes[position + 1:position + 4]
        if all(0 <= value < 256 for value in values):
            return Color.from_rgb(*values), position + 4
        return None, position + 4
    return None, len(codes)
