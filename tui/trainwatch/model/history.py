"""An attempt's history as series to draw: loss, rate, step time, GPUs over time. Pure."""
from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainwatch.model.progress import loss_text, quantity, step_time_text
from trainwatch_launcher.rundir.gpus import GpuMetrics, Metrics

MAX_SAMPLES = 20_000
"""So many of the newest samples of an attempt are kept: more than any launcher keeps in its file."""
OF_GPUS = ("util", "power", "memory_used", "temperature", "clock")
"""What is kept of each GPU."""
GpuName = tuple[int | None, str | None]
"""Which GPU of a rank: NVML's number, and the instance where it is one."""


@dataclass(frozen=True)
class Sample:
    """One line of history, with what can be drawn of it."""

    time: float
    """Unix seconds on the worker's clock."""
    values: Mapping[str, float]
    """What the output said newly: `step`, `loss`, …, and the means over all GPUs of `OF_GPUS`."""
    gpus: Mapping[GpuName, Mapping[str, float]]
    """Of each GPU its means over the time of the line."""


def samples(records: Iterable[Metrics]) -> tuple[Sample, ...]:
    """Records as samples."""
    return tuple(map(_sample, records))


def _sample(record: Metrics) -> Sample:
    values = record.progress()
    gpus = {(gpu.index, gpu.mig): _means(gpu) for gpu in record.gpus()}
    for name in OF_GPUS:
        known = [found[name] for found in gpus.values() if name in found]
        if known:
            values[name] = math.fsum(known) / len(known)
    return Sample(record.time, values, gpus)


def _means(gpu: GpuMetrics) -> Mapping[str, float]:
    return {name: pair[0] for name in OF_GPUS if (pair := gpu.pair(name)) is not None}


@dataclass(frozen=True)
class Series:
    """Values over time, by time; Unix seconds on the clock that the records had."""

    times: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def since(self, begin: float) -> Series:
        """The part from a moment on."""
        at = bisect_left(self.times, begin)
        return Series(self.times[at:], self.values[at:])

    def thinned(self, most: int) -> Series:
        """At most so many points, each the mean of those that it stands for."""
        count = len(self.times)
        if count <= most or most < 1:
            return self
        edges = [place * count // most for place in range(most + 1)]
        spans = [(first, last) for first, last in pairwise(edges) if last > first]
        return Series(
            tuple(math.fsum(self.times[a:b]) / (b - a) for a, b in spans),
            tuple(math.fsum(self.values[a:b]) / (b - a) for a, b in spans),
        )

    def shifted(self, seconds: float) -> Series:
        """The same on a clock that is so many seconds ahead."""
        return Series(tuple(time + seconds for time in self.times), self.values) if seconds else self


@dataclass(frozen=True)
class Measure:
    """Something to draw over time."""

    name: str
    title: str
    unit: str
    """What one value is, in a word or two."""
    of: Callable[[Sequence[Sample]], Series]
    say: Callable[[float], str]
    """A value as a short word."""
    whole: tuple[float, float] | None = None
    """The range that is always shown, where there is a natural one."""
    missing: str = ""
    """Why there may be nothing to draw."""


def merged(known: Sequence[Sample], newer: Sequence[Sample]) -> tuple[Sample, ...]:
    """Samples that are known, then those that are newer than the last of them: bounded."""
    last = known[-1].time if known else -math.inf
    return (*known, *(sample for sample in newer if sample.time > last))[-MAX_SAMPLES:]


def plain(name: str, scale: float = 1.0) -> Callable[[Sequence[Sample]], Series]:
    """The series of a number that samples say as it is, times `scale`."""

    def of(samples: Sequence[Sample]) -> Series:
        return _series((one.time, one.values[name] * scale) for one in samples if name in one.values)

    return of


def of_gpu(samples: Sequence[Sample], gpu: GpuName, name: str) -> Series:
    """The series of one number of one GPU."""
    rows = ((one.time, one.gpus[gpu]) for one in samples if gpu in one.gpus)
    return _series((time, row.get(name)) for time, row in rows)


def step_times(samples: Sequence[Sample]) -> Series:
    """Seconds of one step: as the training printed it, else from how far it came between two records."""
    said = plain("ms_per_iter", 1e-3)(samples)
    if said.times:
        return said
    steps = plain("step")(samples)
    points = list(zip(steps.times, steps.values, strict=True))
    return _series(
        (later, (later - earlier) / (after - before) if after > before else None)
        for (earlier, before), (later, after) in pairwise(points)
    )


def rates(samples: Sequence[Sample]) -> Series:
    """Tokens or samples a second, else steps a second."""
    for name in ("tokens_per_s", "samples_per_s", "tokens_per_s_per_gpu", "samples_per_s_per_gpu"):
        said = plain(name)(samples)
        if said.times:
            return said
    known = step_times(samples)
    points = zip(known.times, known.values, strict=True)
    return _series((time, 1 / value if value > 0 else None) for time, value in points)


def rate_unit(samples: Sequence[Sample]) -> str:
    """What `rates` counts: `tok/s`, `smp/s`, `steps/s`."""
    for name, unit in (("tokens_per_s", "tok/s"), ("samples_per_s", "smp/s"), ("tokens_per_s_per_gpu", "tok/s/gpu"),
                       ("samples_per_s_per_gpu", "smp/s/gpu")):  # fmt: skip
        if any(name in one.values for one in samples):
            return unit
    return "steps/s"


def _series(points: Iterable[tuple[float, float | None]]) -> Series:
    known = [(time, value) for time, value in points if value is not None and math.isfinite(value)]
    return Series(tuple(time for time, _ in known), tuple(value for _, value in known))


NO_PROGRESS = "no progress in a format that is known; see docs/progress.md for how to say it"
NO_GPUS = "its launcher has written nothing of GPUs"
LOSS = Measure("loss", "loss", "", plain("loss"), loss_text, missing=NO_PROGRESS)
RATE = Measure("rate", "rate", "", rates, quantity, missing=NO_PROGRESS)
STEP_TIME = Measure("step_time", "step time", "", step_times, step_time_text, missing=NO_PROGRESS)
UTIL = Measure("util", "GPU", "mean utilisation", plain("util"), lambda v: f"{v:.0f}%", (0.0, 100.0), NO_GPUS)
POWER = Measure("power", "power", "of a GPU, mean", plain("power"), lambda v: f"{v:.0f} W", missing=NO_GPUS)
MEASURES = (LOSS, RATE, STEP_TIME, UTIL, POWER)
"""What can be charted, in the order shown."""
