"""How an attempt's progress went lately: its last steps and losses, as they were seen. Pure, and bounded."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainwatch_launcher.rundir.records import Status

MAX_POINTS = 24
"""So many of the newest points are kept."""
ENOUGH = 4
"""From so many points on there is a step time and a trend."""
EXPLODES = 5.0
"""A loss explodes when it is so many times the usual one …"""
BY_AT_LEAST = 1.0
"""… and more than so much above it: small losses are noisy."""
FLAT = 0.005
"""A trend below this share of the loss is none."""


@dataclass(frozen=True)
class Point:
    """What one line of progress said."""

    step: int | None
    time: float
    """When it was seen first, in Unix seconds on the worker's clock."""
    loss: float | None
    """NaN and infinities are themselves; None when no loss was said."""


@dataclass(frozen=True)
class Course:
    """The newest points, the oldest first, and what follows from them."""

    points: tuple[Point, ...] = ()
    step_time: float | None = None
    """Seconds of one step, over all points; None while there are too few."""
    stride: int | None = None
    """The largest distance between two steps in a row; None while there are too few points."""
    bad_since: int | None = None
    """The step at which the loss stopped being a number; None while it is one, or when that was not seen."""
    usual_loss: float | None = None
    """What the loss was before it exploded, for as long as it stays that high; None when it has not."""

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses that are numbers, the oldest first."""
        return tuple(point.loss for point in self.points if point.loss is not None and math.isfinite(point.loss))


NO_COURSE = Course()


def median(values: Iterable[float]) -> float:
    """The value in the middle, or the mean of the two there. Raises IndexError for none.

    `statistics` has one too, and takes 8 ms of every start.
    """
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def after(course: Course, status: Status) -> Course:
    """The course when a status has come; the same one when it says nothing new of progress."""
    loss = loss_of(status)
    if status.step is None and loss is None:
        return course
    last = course.points[-1] if course.points else None
    if last is not None and last.step == status.step and _same(last.loss, loss):
        return course
    time = status.progress_since if status.progress_since is not None else status.time
    points = (*course.points, Point(status.step, time, loss))[-MAX_POINTS:]
    if last is not None and status.step is not None and last.step is not None and status.step < last.step:
        points = points[-1:]  # it began anew, from a checkpoint or with the next epoch
    bad_since, usual = _bad_since(course, last, points[-1]), _usual_loss(course, points)
    return Course(points, _step_time(points), _stride(points), bad_since, usual)


def loss_of(status: Status) -> float | None:
    """The loss as a float, NaN and infinities too; None when the status says none."""
    if status.loss_text:
        try:
            return float(status.loss_text[:12])
        except ValueError:
            return None
    return status.loss


def _same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))


def _step_time(points: Sequence[Point]) -> float | None:
    """Over the whole span: a launcher looks once a second, so single differences are coarse."""
    known = [(point.step, point.time) for point in points if point.step is not None]
    if len(known) < ENOUGH:
        return None
    steps, seconds = known[-1][0] - known[0][0], known[-1][1] - known[0][1]
    return seconds / steps if steps > 0 and seconds > 0 else None


def _stride(points: Sequence[Point]) -> int | None:
    steps = [point.step for point in points if point.step is not None]
    return max(b - a for a, b in pairwise(steps)) if len(steps) >= ENOUGH else None


def _bad_since(course: Course, last: Point | None, new: Point) -> int | None:
    if new.loss is None:
        return course.bad_since
    if math.isfinite(new.loss):
        return None
    if last is not None and last.loss is not None and math.isfinite(last.loss):
        return new.step
    return course.bad_since


def _usual_loss(course: Course, points: Sequence[Point]) -> float | None:
    """The usual loss, when the last one is far above it; None when it is not, or when too few are known."""
    losses = Course(tuple(points)).losses
    usual = course.usual_loss
    if usual is None:
        usual = median(losses[:-1]) if len(losses) >= 2 * ENOUGH else None
    if usual is None or not losses or losses[-1] <= max(EXPLODES * abs(usual), usual + BY_AT_LEAST):
        return None
    return usual


def trend(losses: Sequence[float]) -> int:
    """-1 when the loss falls, 1 when it rises, 0 when it does neither or too little is known.

    The later half against the earlier one; a difference that is small beside the loss, or beside its noise, is none.
    """
    if len(losses) < ENOUGH:
        return 0
    half = len(losses) // 2
    before, later = median(losses[:half]), median(losses[-half:])
    noise = median(abs(b - a) for a, b in pairwise(losses))
    change = later - before
    if abs(change) <= max(FLAT * abs(before), noise / 2):
        return 0
    return 1 if change > 0 else -1
