"""One line of a log, as a point or none: the formats in the order in which they are tried."""
from __future__ import annotations

import re

from trainwatch_launcher.progress import bars, formats_llm, formats_vision, keras
from trainwatch_launcher.progress.dictionaries import dictionary
from trainwatch_launcher.progress.explicit import MARKER, explicit
from trainwatch_launcher.progress.generic import generic
from trainwatch_launcher.textline import uncontrolled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from trainwatch_launcher.progress.context import Context
    from trainwatch_launcher.progress.explicit import Pattern
    from trainwatch_launcher.progress.values import Values

EXPLICIT, PATTERN = "explicit", "pattern"
LONGEST_LINE = 64 << 10
"""Bytes of a line that are looked at: its end, where the newest state of a bar stands."""
LONGEST_STATE = 16 << 10
STATES = 40
"""States between carriage returns that are looked at, from the last one back."""
BANNER = "***** Running training *****"
FORMATS = [(entry.needs[0], entry) for entry in formats_llm.FORMATS + formats_vision.FORMATS]
"""Each with the literal that most other lines do not have."""
BARE = re.compile(
    r"(?:\\(?:u001b|x1b|033|e)|#033|\^\[|\u241b)\[[\d;]{0,30}[mK]"
    r"|\[(?:[01]|22|3\d|4\d|9[0-7])(?:;\d{1,3}){0,6}m"
)
"""Colours whose escape character was lost, or written out, on the way."""
RESETS = ("[0m", "[39m")
CONTROLS = bytes({*range(32), 127} - {9, 27})


def read_line(line: bytes, context: Context, own: Sequence[Pattern] = ()) -> tuple[str, Values] | None:
    """The format and the values of one line without its newline, or None when it is no training step."""
    states = list(reversed(line[-LONGEST_LINE:].rsplit(b"\r", STATES)))
    if len(line) > LONGEST_LINE or len(states) > STATES:
        states.pop()  # cut, or a rest that was not split
        if not states:
            return None
    newest: tuple[str, Values] | None = None
    for raw in states:
        if len(raw) > LONGEST_STATE:
            continue
        text = plain(raw)
        if not text or text.isspace():
            continue
        found = read_state(text, context, own)
        if found is None:
            continue
        if not found[1]:
            break  # an evaluation's bar or numbers: what stands before is older
        if newest is None:
            newest = found
            if found[0] == EXPLICIT:
                break
        elif bars.is_bar(newest[0]) != bars.is_bar(found[0]):  # a dictionary and its bar belong together
            name = found[0] if bars.is_bar(newest[0]) else newest[0]
            return name, {**found[1], **newest[1]}
        else:
            break
    return newest


def plain(raw: bytes) -> str:
    """A state as text without colours and controls, tabs kept."""
    if b"\x1b" in raw:
        raw = uncontrolled(raw)
    text = raw.translate(None, CONTROLS).decode("utf-8", "replace")
    return BARE.sub("", text) if any(reset in text for reset in RESETS) else text


def read_state(text: str, context: Context, own: Sequence[Pattern]) -> tuple[str, Values] | None:
    """The format and the values of one state of a line; no values: it is surely no training; None: nothing known."""
    if MARKER in text:
        said = explicit(text)
        if said is not None:
            return EXPLICIT, said
    for pattern in own:
        values = pattern.read(text)
        if values is not None:
            return PATTERN, values
    if BANNER in text:
        context.announce(again=True)
        return None
    if "poch " in text and keras.epoch_line(text, context):
        return None
    found = bar_or_dictionary(text, context)
    if found is not None:
        return found
    for literal, entry in FORMATS:
        if literal in text:
            values = entry.read(text)
            if values:
                return entry.name, values
    if "oss" in text or "损失" in text or "LOSS" in text:
        values = generic(text)
        if values is not None:
            return "generic", values
    return None


def bar_or_dictionary(text: str, context: Context) -> tuple[str, Values] | None:
    """What bars and dictionaries say; they may stand in one line, because one is on stderr and the other on stdout."""
    said = dictionary(text) if "{'" in text or '{"' in text else None
    if said is not None and not said[1]:
        return said
    if said is not None:
        context.announce()
    bar = None
    if "%" in text:
        bar = bars.ultralytics(text) if "G " in text or "M " in text else None
        bar = bar or (bars.tqdm(text, context) if "%|" in text else None)
    elif "/? [" in text or "it [" in text:
        bar = bars.endless(text)
    if bar is None and ("/step" in text or "loss:" in text):
        bar = keras.bar(text, context)
    if said is None or bar is None or not bar[1]:
        return said or bar
    return said[0], {**bar[1], **said[1]}
