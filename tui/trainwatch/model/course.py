"""How an attempt's progress went lately: its last steps and losses, as they were seen. Pure, and bounded."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import sub

from trainwatch_launcher.rundir.records import Status

MAX_POINTS = 16
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
class Course:
    """What the newest lines of progress said, the oldest first; what follows from them is worked out when asked for.

    Three rows of numbers rather than one of points: a run of thousands of ranks has a hundred thousand of these.
    """

    steps: tuple[int | None, ...] = ()
    times: tuple[float, ...] = ()
    """When each was seen first, in Unix seconds on the worker's clock."""
    said: tuple[float | None, ...] = ()
    """The losses: NaN and infinities are themselves, None where none was said."""
    bad_since: int | None = None
    """The step at which the loss stopped being a number, as its launcher tells, else as it was seen here; None while
    it is one, or when nobody knows."""
    usual_loss: float | None = None
    """What the loss was before it exploded, for as long as it stays that high; None when it has not."""

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses that are numbers, the oldest first."""
        return tuple(filter(math.isfinite, [loss for loss in self.said if loss is not None]))

    @property
    def step_time(self) -> float | None:
        """Seconds of one step, over all points; None while there are too few.

        Over the whole span: a launcher looks once a second, so single differences are coarse.
        """
        steps, times = self._counted()
        if len(steps) < ENOUGH:
            return None
        done, seconds = steps[-1] - steps[0], times[-1] - times[0]
        return seconds / done if done > 0 and seconds > 0 else None

    @property
    def stride(self) -> int | None:
        """The largest distance between two steps in a row; None while there are too few points."""
        steps, _ = self._counted()
        return max(map(sub, steps[1:], steps)) if len(steps) >= ENOUGH else None

    def _counted(self) -> tuple[Sequence[int], Sequence[float]]:
        """Steps and times of the points that say a step."""
        if None not in self.steps:
            return self.steps, self.times  # type: ignore[return-value]
        known = [(step, time) for step, time in zip(self.steps, self.times, strict=True) if step is not None]
        return [step for step, _ in known], [time for _, time in known]


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
    step, loss = status.step, loss_of(status)
    if step is None and loss is None:
        return course
    last_step, last_loss = (course.steps[-1], course.said[-1]) if course.steps else (None, None)
    if course.steps and last_step == step and _same(last_loss, loss):
        return course
    # fewer steps than before: it began anew, from a checkpoint or with the next epoch
    anew = last_step is not None and step is not None and step < last_step
    old = slice(0, 0) if anew else slice(1 - MAX_POINTS, None)
    said = (*course.said[old], loss)
    return Course(
        steps=(*course.steps[old], step),
        times=(*course.times[old], status.progress_since if status.progress_since is not None else status.time),
        said=said,
        bad_since=_bad_since(course, last_loss, loss, step, status.loss_bad_since),
        usual_loss=_usual_loss(course, said),
    )


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


def _bad_since(
    course: Course, before: float | None, loss: float | None, step: int | None, told: int | None
) -> int | None:
    if loss is None:
        return course.bad_since
    if math.isfinite(loss):
        return None
    if told is not None:
        return told
    return step if before is not None and math.isfinite(before) else course.bad_since


def _usual_loss(course: Course, said: Sequence[float | None]) -> float | None:
    """The usual loss, when the last one is far above it; None when it is not, or when too few are known."""
    newest, usual = said[-1], course.usual_loss
    known = [loss for loss in said if loss is not None]
    if usual is None and (newest is None or newest <= min(known) + BY_AT_LEAST):
        return None  # it is near the least of them; thousands of statuses may come at once, and nearly all say so
    losses = tuple(filter(math.isfinite, known))
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
