"""Moments as people type them: `-10m`, `12:31:05`, `2025-11-30 12:31`. Pure; local time as the machine has it."""
from __future__ import annotations

import re
from datetime import datetime, timedelta

from trainwatch.model.text import parse_duration

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](.+))?")
SLACK = timedelta(minutes=1)
"""A time of day that is a little later than the end is of the same day all the same."""


def parse(typed: str, end: float) -> float | None:
    """A moment in Unix seconds; None when it is none.

    `-10m` is so long before `end` (Unix seconds, when the newest line was written), `10m` too; a time of day is the
    newest one that is not after it; a date and a time are what they say. `@1764500000` is Unix seconds.
    """
    typed = typed.strip()
    if typed.startswith("@"):
        try:
            return float(typed[1:])
        except ValueError:
            return None
    try:
        return _parse(typed, datetime.fromtimestamp(end))
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return None


def _parse(typed: str, end: datetime) -> float | None:
    if dated := _DATE.fullmatch(typed):
        clock = _clock(dated[4] or "00:00")
        day = datetime(int(dated[1]), int(dated[2]), int(dated[3]))
        return None if clock is None else (day + clock).timestamp()
    clock = _clock(typed)
    if clock is not None:
        found = end.replace(hour=0, minute=0, second=0, microsecond=0) + clock
        return (found - timedelta(days=1) if found > end + SLACK else found).timestamp()
    ago = parse_duration(typed.removeprefix("-"))
    return None if ago is None else (end - timedelta(seconds=ago)).timestamp()


def _clock(typed: str) -> timedelta | None:
    found = _CLOCK.fullmatch(typed.strip())
    if not found or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        return None
    parts = {"hours": int(found[1]), "minutes": int(found[2]), "seconds": int(found[3] or 0)}
    return timedelta(**parts, microseconds=int((found[4] or "0").ljust(6, "0")))
