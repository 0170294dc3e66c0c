"""Spans of time in which a share of an attempt's GPUs was idle: joined, made fewer, and as a line of text. Pure."""
from __future__ import annotations

from trainwatch_launcher.rundir import jsontext
from trainwatch_launcher.rundir.record import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

    Span = tuple[float, float, float]
    """From when to when, in Unix seconds, and which share of the GPUs was idle, from 0 to 1."""

MOST = 400
"""Spans of one attempt, at most."""
NEAR = 15.0
"""Seconds between two spans over which what is known of both is taken to hold."""
STEPS = 8
"""Shares are told in so many steps: what differs by less is one span."""


def rounded(share: float) -> float:
    """A share in one of the steps that are told."""
    return round(share * STEPS) / STEPS


def joined(spans: Iterable[Span]) -> list[Span]:
    """Spans, by time, with neighbours that say the same as one; none overlaps another."""
    found = []  # type: list[Span]
    for begin, end, share in spans:
        if found and begin - found[-1][1] <= NEAR:
            begin = found[-1][1]
            if found[-1][2] == share:
                found[-1] = (found[-1][0], max(begin, end), share)
                continue
        if end > begin:
            found.append((begin, end, share))
    return found


def fewer(spans: Iterable[Span], most: int = MOST) -> list[Span]:
    """The same in at most so many spans: neighbours become one with the mean of both."""
    found = joined(spans)
    while len(found) > most:
        found = joined([_mean(found[at:at + 2]) for at in range(0, len(found), 2)])
    return found


def _mean(spans: Sequence[Span]) -> Span:
    known = sum(end - begin for begin, end, _ in spans)
    return spans[0][0], spans[-1][1], rounded(sum((end - begin) * share for begin, end, share in spans) / known)


def encode(spans: Iterable[Span]) -> bytes:
    """Spans as a line for the way from another host."""
    told = [[round(begin, 1), round(end, 1), share] for begin, end, share in spans]
    return jsontext.dumps(told).encode("ascii") + b"\n"


def decode(line: bytes) -> list[Span]:
    """The spans of such a line; none when it is none."""
    try:
        values = jsontext.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        return []
    found = []
    for value in values if isinstance(values, list) else []:
        if isinstance(value, list) and len(value) == 3 and all(is_a(item, "float") for item in value):
            found.append((float(value[0]), float(value[1]), float(value[2])))
    return joined(sorted(found))
