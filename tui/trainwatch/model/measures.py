"""The numbers of a row that one can sort by and compare with. Pure."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainwatch.model.rows import Row


@dataclass(frozen=True)
class Measure:
    """One number of a row."""

    of: Callable[[Row, int], float | None]
    """Its value; None when nobody knows. The second argument is the step of the rank that is farthest."""
    help: str
    """What it is, for people."""
    is_time: bool = False
    """Whether it is seconds."""


def speed(row: Row) -> float | None:
    """What one can compare: tokens or samples a second where they are said, else steps."""
    progress = row.progress
    if progress.tokens is not None or progress.samples is not None:
        return progress.tokens if progress.tokens is not None else progress.samples
    return 1 / progress.step_time if progress.step_time else None


def fullness(row: Row) -> float | None:
    """How full the fullest GPU is, in per cent."""
    used, total = row.gpus.memory_used, row.gpus.memory_total
    return 100 * used / total if used is not None and total else None


def loss_order(row: Row) -> float | None:
    """The loss, for an order in which one that is no number is the worst."""
    loss = row.progress.loss
    return math.inf if loss is not None and not math.isfinite(loss) else loss


def _lag(row: Row, first: int) -> float | None:
    return None if row.progress.step is None else first - row.progress.step


def _hottest(row: Row) -> float | None:
    return max((gpu.temperature for gpu in row.gpus.each if gpu.temperature is not None), default=None)


MEASURES: Mapping[str, Measure] = {
    "step": Measure(lambda row, _: row.progress.step, "training step: step<1200, step:100-200, step>1.5k"),
    "lag": Measure(_lag, "steps behind the rank that is farthest: lag>2"),
    "loss": Measure(lambda row, _: row.progress.loss, "loss: loss>5; loss:nan, loss:inf, loss:bad"),
    "rate": Measure(lambda row, _: speed(row), "tokens, samples or steps a second: rate<40k"),
    "gpu": Measure(lambda row, _: row.gpus.util, "mean load of its GPUs in per cent: gpu<50"),
    "mem": Measure(lambda row, _: fullness(row), "memory of its fullest GPU in per cent: mem>90"),
    "temp": Measure(lambda row, _: _hottest(row), "its hottest GPU in °C: temp>85"),
    "age": Measure(lambda row, _: row.phase_age, "how long it has been in its phase: age>5m", True),
    "quiet": Measure(lambda row, _: row.last_output_age, "since its last output: quiet>30s", True),
    "elapsed": Measure(lambda row, _: row.elapsed, "how long it has run: elapsed<1h", True),
    "eta": Measure(lambda row, _: row.progress.eta, "time left: eta>2h", True),
    "hold": Measure(lambda row, _: row.hold_left, "how long it is still held: hold<10m", True),
}
"""By the name of its field in a filter."""
