"""When a line was written, as far as a log says."""
from __future__ import annotations

import calendar
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Text

FULL = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
SHORT = re.compile(rb"[IWEF](\d\d?)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
LOOK_BACK = 60
"""Lines before a line without a time in which one is looked for."""


def time_of(text: Text, index: int) -> float | None:
    """When a line was written, in seconds; only differences mean something, since logs leave out zones and years.

    A line without a time gets that of the last one before it that has one, of whatever stream.
    """
    for at in range(index, max(-1, index - LOOK_BACK), -1):
        line = text.lines[at][:400]
        match = FULL.search(line)
        if match:
            return _seconds([int(one) for one in match.groups()[:6]], match.group(7))
        match = SHORT.search(line)
        if match:
            year = _year(text)
            return _seconds([year, *(int(one) for one in match.groups()[:5])], match.group(6))
    return None


def _year(text: Text) -> int:
    """The year that the log names near its end; a leap year when it names none, so that all days are there."""
    for line in reversed(text.lines[-400:]):
        match = FULL.search(line[:400])
        if match:
            return int(match.group(1))
    return 2000


def _seconds(parts: list[int], fraction: bytes | None) -> float | None:
    year, month, day, hour, minute, second = parts
    if not (1970 <= year < 3000 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    whole = calendar.timegm((year, month, day, hour, minute, second))
    return whole + (float(b"0." + fraction) if fraction else 0.0)
