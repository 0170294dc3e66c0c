"""How far an attempt's training is, how fast, and how well: the facts of a row, and as short words."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from trainwatch.model import course as courses
from trainwatch.model import text
from trainwatch.model.course import NO_COURSE, Course
from trainwatch_launcher.rundir.records import Status


@dataclass(frozen=True)
class Progress:
    """What is known of a training's progress. None means that nobody knows."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    loss: float | None = None
    """NaN and infinities are themselves."""
    course: Course = NO_COURSE
    """Its last steps and losses."""
    bad_since: int | None = None
    """The step at which the loss stopped being a number, when that was seen."""
    usual_loss: float | None = None
    """What the loss was before it exploded; None when it has not."""
    tokens: float | None = None
    """Tokens per second, of the whole job or of one GPU: `per_gpu` says which."""
    samples: float | None = None
    """The same for samples."""
    per_gpu: bool = False
    said_step_time: float | None = None
    """Seconds of one step as the training prints it."""
    seen_step_time: float | None = None
    """Seconds of one step as it was seen."""
    stride: int | None = None
    """It says its step every so many steps, as far as was seen."""
    eta: float | None = None
    """Seconds left, as printed, else by the step time."""

    @cached_property
    def losses(self) -> tuple[float, ...]:
        """The newest ones that are numbers, the oldest first."""
        return self.course.losses

    @cached_property
    def trend(self) -> int:
        """-1 when the loss falls, 1 when it rises."""
        return courses.trend(self.losses)

    @cached_property
    def widths(self) -> tuple[int, int, int]:
        """Characters of its step, its rate and its loss in words: tables ask that for all ranks again and again."""
        return len(step_text(self)), len(rate_text(self)), len(loss_text(self.loss))

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.step is not None or self.epoch is not None or self.loss is not None

    @property
    def step_time(self) -> float | None:
        """Seconds of one step: as printed, else as seen."""
        return self.said_step_time if self.said_step_time is not None else self.seen_step_time

    @property
    def share(self) -> float | None:
        """How much of it is done, from 0 to 1; by steps, else by epochs."""
        if self.step is not None and self.total:
            return min(1.0, max(0.0, self.step / self.total))
        if self.epoch is not None and self.epochs:
            return min(1.0, max(0.0, self.epoch / self.epochs))
        return None

    @property
    def is_bad(self) -> bool:
        """Whether the loss is no number any more."""
        return self.loss is not None and not math.isfinite(self.loss)


NO_PROGRESS = Progress()


def progress_of(status: Status | None, course: Course) -> Progress:
    """The progress that a status and what was seen before it say."""
    if status is None or (status.step is None and status.epoch is None and courses.loss_of(status) is None):
        return NO_PROGRESS
    per_gpu = status.tokens_per_s is None and status.samples_per_s is None
    said = status.ms_per_iter / 1000 if status.ms_per_iter is not None and status.ms_per_iter > 0 else None
    seen = course.step_time
    step_time, eta = said if said is not None else seen, status.eta_s
    if eta is None and status.step is not None and status.total is not None and step_time is not None:
        eta = max(0, status.total - status.step) * step_time
    return Progress(
        step=status.step, total=status.total, epoch=status.epoch, epochs=status.epochs_total,
        loss=courses.loss_of(status), course=course, bad_since=course.bad_since, usual_loss=course.usual_loss,
        tokens=status.tokens_per_s_per_gpu if per_gpu else status.tokens_per_s,
        samples=status.samples_per_s_per_gpu if per_gpu else status.samples_per_s, per_gpu=per_gpu,
        said_step_time=said, seen_step_time=seen, stride=course.stride, eta=eta,
    )  # fmt: skip


def step_text(progress: Progress) -> str:
    """`4120/48000`, `4120`, or `epoch 1.3/3`; empty when unknown."""
    if progress.step is not None:
        return f"{progress.step}/{progress.total}" if progress.total else str(progress.step)
    if progress.epoch is not None:
        return f"epoch {progress.epoch:.4g}" + (f"/{progress.epochs}" if progress.epochs else "")
    return ""


def loss_text(loss: float | None) -> str:
    """A loss in at most eight characters: `2.314`, `0.0123`, `1.2e-05`, `nan`; empty when unknown."""
    if loss is None:
        return ""
    if loss == 0 or not math.isfinite(loss):
        return f"{loss:g}"
    return f"{loss:#.4g}" if abs(loss) >= 1e-3 else f"{loss:.1e}"


def rate_text(progress: Progress) -> str:
    """The most telling rate there is: `412k tok/s`, `1.25k smp/s`, `310 ms/step`; `/gpu` when it is one GPU's."""
    per = "/gpu" if progress.per_gpu else ""
    for value, unit in ((progress.tokens, "tok/s"), (progress.samples, "smp/s")):
        if value is not None:
            return f"{quantity(value)} {unit}{per}"
    return f"{step_time_text(progress.step_time)}/step" if progress.step_time is not None else ""


def step_time_text(seconds: float | None) -> str:
    """A step's time: `31 ms`, `1.24 s`, `2m05s`; empty when unknown."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else text.duration(seconds)


def quantity(value: float) -> str:
    """A number that may be large, with three digits: `0.52`, `31.4`, `812`, `12.3k`, `3.4M`."""
    for limit, scale, unit in ((999.5, 1, ""), (999.5e3, 1e3, "k"), (999.5e6, 1e6, "M"), (999.5e9, 1e9, "B")):
        if abs(value) < limit:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.1e}"


def trouble_text(progress: Progress) -> str:
    """What is wrong with the loss, as said of a rank; empty when nothing is."""
    if progress.is_bad:
        since = progress.bad_since
        at = f" since step {since}" if since is not None else (
            f" at step {progress.step}" if progress.step is not None else "")
        return f"loss is {loss_text(progress.loss)}{at}"
    if progress.usual_loss is not None:
        at = f" at step {progress.step}" if progress.step is not None else ""
        return f"loss explodes: {loss_text(progress.loss)}{at}, it was {loss_text(progress.usual_loss)}"
    return ""
