"""Progress values: the keys there are, their units, and how a printed value becomes one."""
from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Union

    Value = Union[int, float, str]
    Values = Dict[str, Value]

INTEGER, REAL, RATE_LR, MILLISECONDS, SECONDS, PERCENT, COUNT, TERAFLOPS, EPOCH = range(9)

KEYS = {
    "step": INTEGER,  # as printed: the optimiser step where the text has one
    "total": INTEGER,  # of the same counter
    "epoch": EPOCH,
    "epochs_total": INTEGER,
    "loss": REAL,  # a number, or "nan", "inf", "-inf"
    "lr": RATE_LR,
    "grad_norm": REAL,
    "ms_per_iter": MILLISECONDS,
    "eta_s": SECONDS,
    "tokens_per_s": COUNT,  # of the whole job
    "tokens_per_s_per_gpu": COUNT,
    "samples_per_s": COUNT,
    "samples_per_s_per_gpu": COUNT,
    "tflops_per_gpu": TERAFLOPS,
    "mfu": PERCENT,
    "tokens": COUNT,  # consumed so far
    "samples": COUNT,
    "reward": REAL,
}
"""Every key of a point, in the order in which they are shown, and what kind of value it has."""

NUMBER = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3}){1,6}(?!,?\d)(?:\.\d+)?|\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,4})?"
    r"|[-+]?(?:nan|inf(?:inity)?)(?:\.0)?(?![\w])",
    re.IGNORECASE,
)
LETTERS = frozenset("nNfFyY")
"""What a number without digits ends in."""
SUFFIX = re.compile(r" ?([A-Za-z%\u00b5][A-Za-z%/]{0,12})")
NO_NUMBER_AFTER = re.compile(r"[\w%]|[.:-]\d|,\d{3}(?!\d)")
"""What makes the number before it no number: a word's rest, a clock's, an address's, a date's, thousands."""

TIME_UNITS = {
    "us": 1e-3, "\u00b5s": 1e-3, "ms": 1.0, "msec": 1.0, "s": 1e3, "sec": 1e3, "secs": 1e3, "second": 1e3,
    "seconds": 1e3, "m": 6e4, "min": 6e4, "mins": 6e4,
}  # fmt: skip
"""Milliseconds in each unit of time."""
STEP_UNITS = ("/step", "/it", "/iter", "/batch")
RATES = ("it/s", "iter/s", "step/s", "steps/s")
SIZES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
FLOPS = {"g": 1e-3, "t": 1.0, "p": 1e3}

CLOCK = re.compile(
    r"(?:(\d{1,5}) ?d(?:ays?)?,? {0,2})?(\d{1,5}):(\d\d)(?::(\d\d))?(?:\.\d{1,9})?(?![\d:])", re.IGNORECASE
)
LENGTH = re.compile(
    r"(\d{1,9}(?:\.\d{1,6})?) ?(d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![A-Za-z])(?:,? ?(?:and )?)",
    re.IGNORECASE,
)
LENGTHS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def convert(key: str, unit: str, text: str, at: int) -> Value | None:
    """The value that stands at `at` in the text, as one of `key`, or None when it is none or says "not known".

    `unit` is what the number is in when no unit stands after it: "ms" or "s" for times, "per_s" for iterations in a
    second, "fraction" for an MFU from 0 to 1, "own" when there must be one, "in_ms" when it must be a small one. Empty:
    what KEYS says.
    """
    kind = KEYS[key]
    if kind == SECONDS:
        return seconds(text, at, unit)
    match = NUMBER.match(text, at)
    if match is None:
        return None
    word = match.group().replace(",", "")
    if word[-3:-2] in LETTERS and word.endswith(".0"):
        word = word[:-2]  # Lightning pads all numbers to five characters: `nan.0`
    if kind in (REAL, RATE_LR, EPOCH) and "," in match.group() and "." not in match.group():
        return None  # a decimal comma or a thousands separator: nobody knows
    return CONVERSIONS[kind](float(word), unit, text, match.end())


def integer(value: float, unit: str, text: str, end: int) -> Value | None:
    """A counter: whole, not negative, nothing glued to it."""
    if not is_alone(text, end) or is_listed(text, end) or not 0 <= value < 1e15 or value != int(value):
        return None
    return int(value)


def real(value: float, unit: str, text: str, end: int) -> Value | None:
    """Any number that stands alone, NaN and infinities by name."""
    if not is_alone(text, end) or is_listed(text, end):
        return None
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def learning_rate(value: float, unit: str, text: str, end: int) -> Value | None:
    """A number from 0 up; "milli" is in thousandths."""
    if not is_alone(text, end) or not 0 <= value < 1e6:
        return None
    return value / 1000 if unit == "milli" else value


def epoch(value: float, unit: str, text: str, end: int) -> Value | None:
    """A number of epochs; whole ones as integers."""
    if not is_alone(text, end) or not 0 <= value < 1e9:
        return None
    return int(value) if value == int(value) else value


def milliseconds(value: float, unit: str, text: str, end: int) -> Value | None:
    """The time of one iteration."""
    if unit == "per_s":
        good = is_alone(text, end) or suffix(text, end).endswith(RATES)
        return 1000 / value if good and 0 < value < 1e9 else None
    found = suffix(text, end).lower()
    for step in STEP_UNITS:
        if found.endswith(step):
            found = found[: -len(step)]
    factor = TIME_UNITS.get(found)
    if found == "k" and unit == "ms":
        factor = 1000.0  # nanotron shortens all numbers: `4.71K` milliseconds
    if unit == "in_ms" and found not in ("ms", "us", "msec"):
        return None
    if factor is None:
        if not is_alone(text, end) or unit == "own":
            return None
        factor = TIME_UNITS[unit or "ms"]
    return value * factor if 0 < value < 1e12 else None


def percent(value: float, unit: str, text: str, end: int) -> Value | None:
    """A share in percent; below zero means "not known"."""
    if suffix(text, end).startswith("%"):
        factor = 1.0
    elif not is_alone(text, end):
        return None
    else:
        factor = 100.0 if unit == "fraction" or (unit == "auto" and value <= 1) else 1.0
    return value * factor if 0 <= value * factor <= 100 else None


def count(value: float, unit: str, text: str, end: int) -> Value | None:
    """An amount, maybe with K, M, B, G or T behind it; whole ones as integers."""
    factor = 1.0
    if is_listed(text, end):
        return None  # thousands that are cut
    if not is_alone(text, end):
        found = suffix(text, end, glued=True)
        factor = SIZES.get(found[:1].lower(), 1.0) if len(found) == 1 or found[1:2] == "/" else 1.0
        if factor == 1.0 and not found.startswith(("tok", "sample", "img", "image", "/")):
            return None
    value *= factor
    if not 0 <= value < 1e21:
        return None
    return int(value) if value == int(value) else value


def teraflops(value: float, unit: str, text: str, end: int) -> Value | None:
    """TFLOP/s of one device, `170.7T`, `45.3TFLOPS` and `1.2PFLOP/s` too."""
    factor = 1.0
    if not is_alone(text, end):
        found = suffix(text, end, glued=True).lower()
        if found[:1] not in FLOPS or not (len(found) == 1 or found[1:].startswith("flop")):
            return None
        factor = FLOPS[found[0]]
    return value * factor if 0 <= value < 1e9 else None


CONVERSIONS: dict[int, Callable[[float, str, str, int], Optional[Value]]] = {
    INTEGER: integer, REAL: real, RATE_LR: learning_rate, EPOCH: epoch, MILLISECONDS: milliseconds, PERCENT: percent,
    COUNT: count, TERAFLOPS: teraflops,
}  # fmt: skip


def seconds(text: str, at: int, unit: str) -> Value | None:
    """A length of time: `1:22:40`, `02:45`, `1 day, 2:03:04`, `2h 5m 59s`, or a plain number if `unit` is "s"."""
    clock = CLOCK.match(text, at)
    if clock is not None:
        days, first, second, third = clock.groups()
        whole = int(days or 0) * 86400
        if third is None:
            return whole + int(first) * 60 + int(second)
        return whole + int(first) * 3600 + int(second) * 60 + int(third)
    found = 0.0
    length = LENGTH.match(text, at)
    for _ in range(4):
        if length is None:
            break
        found += float(length.group(1)) * LENGTHS[length.group(2)[0].lower()]
        at = length.end()
        length = LENGTH.match(text, at)
        if length is None:
            return int(found) if found == int(found) else found
    number = NUMBER.match(text, at) if unit == "s" else None
    if number is not None and is_alone(text, number.end()) and 0 <= float(number.group().replace(",", "")) < 1e9:
        return float(number.group().replace(",", ""))
    return None


def is_alone(text: str, end: int) -> bool:
    """Whether the number that ends here is all of its word."""
    return NO_NUMBER_AFTER.match(text, end) is None


def is_listed(text: str, end: int) -> bool:
    """Whether a comma and a digit follow at once: one of several numbers, or a decimal comma."""
    return text[end : end + 1] == "," and text[end + 1 : end + 2].isdigit()


def suffix(text: str, end: int, glued: bool = False) -> str:
    """The unit right behind a number, maybe after a blank; empty when there is none."""
    match = SUFFIX.match(text, end)
    if match is None or (glued and text[end] == " "):
        return ""
    return match.group(1)
