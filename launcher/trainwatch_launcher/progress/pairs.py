"""Names and where their values stand, in one line of text: `loss: 2.3`, `loss=2.3`, `'loss': 2.3`, `loss 2.3`."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.values import convert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from trainwatch_launcher.progress.names import Names
    from trainwatch_launcher.progress.values import Values

SIGNS, BLANKS, PIPES, COMMAS = "signs", "blanks", "pipes", "commas"
"""How a format parts name and value: `:` or `=`; these or blanks; in `|` columns; in `, ` items with `=`."""

NAME = r"(?<![\w./%-])['\"]?([^\W\d][\w./()%-]{0,60})['\"]?"
OPENING = r"['\"]{0,1}(?:[\[(]{1,2} {0,8}|tensor\(|(?:np|numpy)\.float\d\d\(){0,1}['\"]{0,1}"
WITH_SIGN = re.compile(NAME + r"[ \t]{0,3}[:=][ \t]{0,20}" + OPENING)
BLANK = r"(?:[ \t]{0,3}[:=#][ \t]{0,20}|[ \t]{1,8}(?=[-+.\d[#]|nan|inf|NaN|tensor\()|(?=\[ {0,8}\d))#?" + OPENING
WITH_BLANK = re.compile(NAME + BLANK)
WITH_WORD = re.compile(r"(?<![\w./%-])(?:([A-Za-z][A-Za-z_]{0,30}) )?" + NAME + BLANK)
JOINABLE = frozenset(("loss", "rate", "norm", "time", "scale", "weight"))
COUNTERS = frozenset((
    "step", "steps", "iter", "iters", "iteration", "iterations", "epoch", "epochs", "batch", "batches",
))  # fmt: skip
OTHER_COUNTERS = frozenset((
    "total", "max", "min", "num", "warmup", "save", "saving", "eval", "logging", "log", "accumulation", "per", "every",
    "each", "last", "inner", "micro", "of", "after", "at", "global", "gradient", "grad", "decay", "from", "until",
    "train", "training", "optimizer", "first", "next", "ppo", "data", "mini",
))  # fmt: skip
"""Words that make another counter of a step or an epoch."""
NO_PART = frozenset(("info", "debug", "root", "and", "with", "step", "epoch", "iter", "the"))
"""Words that only happen to stand before a name."""
OPEN = re.compile(r"[ \t]{0,20}" + OPENING)
WORDS = re.compile(r"[ \t]{0,8}([A-Za-z][\w ()/.-]{0,60}?)[ \t]{1,8}(?=[-+.\d]|nan|inf)")
"""A column without a sign: `learning rate 1.5E-04`."""
PARTS = {PIPES: ("|", ":"), COMMAS: (", ", "=")}


def pairs(text: str, style: str) -> dict[str, int]:
    """Each name of the line, in lower case, and the offset of its value; the first of two equal names counts."""
    found: dict[str, int] = {}
    if style in PARTS:
        at = 0
        between, sign = PARTS[style]
        for part in text.split(between):
            where = part.find(sign + " ") if style == PIPES else part.find(sign)  # a logger's place has signs too
            if where < 0 or not at:
                where = part.find(sign) if at else part.rfind(sign)  # the first may have a prefix with signs in it
            if where < 0 and style == PIPES:
                where = part.find("=")  # Argonne's Megatron-DeepSpeed
            if where >= 0:
                match = OPEN.match(text, at + where + 1)
                words = part[:where].rpartition(" - ")[2].lower().split()
                for first in range(1 if at else len(words)):
                    found.setdefault(" ".join(words[first:]), match.end() if match else 0)
            elif style == PIPES:
                match = WORDS.match(part)
                if match is not None:
                    found.setdefault(match.group(1).lower(), at + match.end())
            at += len(part) + len(between)
        return found
    for match in (WITH_SIGN if style == SIGNS else WITH_BLANK).finditer(text):
        found.setdefault(match.group(1).lower(), match.end())
    return found


def named(text: str) -> dict[str, int]:
    """Pairs of free text, where words belong together: `val loss` is no loss, `total steps` no step."""
    found: dict[str, int] = {}
    for match in WITH_WORD.finditer(text):
        word, name = match.group(1), match.group(2).lower()
        if word:
            word = word.lower()
            if (name in JOINABLE and word not in NO_PART) or (name in COUNTERS and word in OTHER_COUNTERS):
                name = word + "_" + name
        found.setdefault(name, match.end())
    return found


def pick(text: str, found: Mapping[str, int], names: Names, values: Values) -> None:
    """Put into `values` what the named pairs say; of several names for one key the first listed with a value counts."""
    for _, key, unit, at in sorted((*names[name], at) for name, at in found.items() if name in names):
        if key not in values:
            value = convert(key, unit, text, at)
            if value is not None:
                values[key] = value
