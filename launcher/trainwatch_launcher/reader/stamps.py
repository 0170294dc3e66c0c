"""Times that log lines state themselves, for logs that no launcher has indexed. Formats are those of common loggers."""
from __future__ import annotations

import calendar
import re
import time

HEAD = 160
"""Bytes of a line in which its time is looked for."""
DAY = 86_400
_ZONE = rb"(?:\s?(?P<zone>Z|[+-]\d\d:?\d\d))?"
_CLOCK = rb"(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?"
_STAMP = re.compile(
    rb"(?<![\d.:/-])(?:"
    rb"(?P<y>(?:19|20)\d\d)[-/.](?P<mo>0[1-9]|1[0-2])[-/.](?P<d>0[1-9]|[12]\d|3[01])[ T_]{1,2}"  # ISO 8601
    + _CLOCK + _ZONE
    + rb"|[IWEFD](?P<gmo>0[1-9]|1[0-2])(?P<gd>0[1-9]|[12]\d|3[01]) (?P<g>\d\d:\d\d:\d\d(?:\.\d{1,9})?)"  # glog
    + rb"|(?P<smo>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<sd>[12]\d|3[01]|0?[1-9]) "
    rb"(?P<sg>\d\d:\d\d:\d\d(?:\.\d{1,9})?)"  # syslog
    rb"|(?P<e>1\d{9})(?:\.(?P<ef>\d{1,9}))?(?=[\]\s:,|])"  # Unix seconds
    rb"|(?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?![\d:])"  # only a time of day
    rb")"
)
_MONTHS = {name: number for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}


class Stamps:
    """Reads lines' times. `newest` (Unix seconds) is when the log was written last: it tells the year or the day where
    a line leaves that open; times without a zone are this machine's local ones.
    """

    def __init__(self, newest: float) -> None:
        self._newest = newest
        self._days: dict[tuple[int, int, int], float] = {}

    def of(self, line: bytes) -> float | None:
        """When a line says that it was written, in Unix seconds; None when it does not say."""
        found = _STAMP.search(line[:HEAD])
        if found is None:
            return None
        try:
            return self._time(found)
        except (ValueError, OverflowError, OSError):
            return None

    def _time(self, found: re.Match[bytes]) -> float | None:
        if found["e"]:
            return float(found["e"] + b"." + (found["ef"] or b"0"))
        if found["y"]:
            clock = int(found["h"]) * 3600 + int(found["m"]) * 60 + int(found["s"]) + _fraction(found["f"])
            day = (int(found["y"]), int(found["mo"]), int(found["d"]))
            if found["zone"]:
                return calendar.timegm((*day, 0, 0, 0)) + clock - _zone(found["zone"])
            return self._midnight(day) + clock
        if found["t"]:
            today = time.localtime(self._newest)[:3]
            at = self._midnight(today) + _clock(found["t"])
            return at if at <= self._newest + DAY / 2 else at - DAY
        month = int(found["gmo"]) if found["gmo"] else _MONTHS[found["smo"]]
        number, clock = int(found["gd"] or found["sd"]), _clock(found["g"] or found["sg"])
        year = time.localtime(self._newest)[0]
        at = self._midnight((year, month, number)) + clock
        return at if at <= self._newest + 2 * DAY else self._midnight((year - 1, month, number)) + clock

    def _midnight(self, day: tuple[int, int, int]) -> float:
        """When a local day began; days on which clocks change are an hour off for a part of them."""
        known = self._days.get(day)
        if known is None:
            if len(self._days) > 1000:
                self._days.clear()
            known = self._days[day] = time.mktime((*day, 0, 0, 0, 0, 0, -1))
        return known


def _clock(text: bytes) -> float:
    hours, minutes, seconds = text.replace(b",", b".").split(b":")
    if int(hours) > 23 or int(minutes) > 59 or float(seconds) >= 61:
        raise ValueError(text)
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _fraction(digits: bytes | None) -> float:
    return float(b"0." + digits) if digits else 0.0


def _zone(text: bytes) -> int:
    if text == b"Z":
        return 0
    seconds = int(text[1:3]) * 3600 + int(text[-2:]) * 60
    return -seconds if text[:1] == b"-" else seconds
