"""The bill: GPU time of a run and of its phases, and what it was spent on."""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainwatch.model import clock
from trainwatch.model.phases import Phase
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import IDLE, Metrics, gpus_of
from trainwatch_launcher.rundir.records import Status

HOUR = 3600.0
HOLD = "Hold"
"""The name under which `phase_costs` has the time after the command's end."""


@dataclass(frozen=True)
class GpuHours:
    """Hours times GPUs: all, and of these idle (at whatever time), before the first step, after it, held."""

    total: float
    idle: float
    setup: float | None
    """None while nobody knows when training began; so is `training`."""
    training: float | None
    held: float

    def at(self, price: float) -> GpuHours:
        """The same in money, at a price for an hour of one GPU."""
        setup, training = (None if value is None else value * price for value in (self.setup, self.training))
        return GpuHours(self.total * price, self.idle * price, setup, training, self.held * price)


@dataclass(frozen=True)
class PhaseCost:
    """What one phase of an attempt cost. Times are Unix seconds on the worker's clock."""

    name: str
    started: float
    ended: float
    gpu_seconds: float
    """Seconds times GPUs."""
    utilisation: float | None
    """Mean per cent over its GPUs and the time that was sampled; None when none was."""
    idle_seconds: float | None
    """Seconds times GPUs in which they were idle, of the time that was sampled."""

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.ended - self.started


@dataclass(frozen=True)
class _Use:
    """How one attempt used one of its GPUs; seconds, `begin` on the file server's clock."""

    key: AttemptKey
    begin: float
    total: float
    idle: float
    setup: float | None
    training: float | None
    held: float


def gpu_hours(run: Run) -> GpuHours | None:
    """What all attempts of a run cost, superseded ones too; None when no launcher knows of GPUs.

    A GPU that several ranks report at the same time counts once, and what they say of it is averaged; a container
    speaks for its local ranks. An attempt that saw no step itself takes the first step of the others: often one rank
    tells the progress of all.
    """
    uses: dict[object, list[_Use]] = defaultdict(list)
    steps = [step for attempt in run.attempts.values() if (step := _first_step(attempt.status)) is not None]
    for attempt in run.attempts.values():
        for name, use in _uses(attempt, steps):
            uses[name].append(use)
    counted = [part for found in uses.values() for part in _joined(_without_nested(found))]
    if not counted:
        return None
    sums = [sum(part.total for part in counted), sum(part.idle for part in counted),
            sum(part.held for part in counted)]  # fmt: skip
    setup = training = None
    if all(part.setup is not None for part in counted):
        setup = sum(part.setup or 0.0 for part in counted) / HOUR
        training = sum(part.training or 0.0 for part in counted) / HOUR
    return GpuHours(sums[0] / HOUR, sums[1] / HOUR, setup, training, sums[2] / HOUR)


def words(hours: GpuHours) -> str:
    """`3.2 GPU-hours, 0.9 before the first step, 0.4 idle, 0.3 held`."""
    digits = 1 if hours.total >= 0.1 else 3
    parts = [(hours.setup, "before the first step"), (hours.idle, "idle"), (hours.held, "held")]
    shown = [f"{value:,.{digits}f} {name}" for value, name in parts if value is not None and round(value, digits) > 0]
    return ", ".join([f"{hours.total:,.{digits}f} GPU-hours", *shown])


def phase_costs(phases: Sequence[Phase], lines: Iterable[Metrics], gpus: int, until: float) -> tuple[PhaseCost, ...]:
    """What each phase of an attempt cost, in order, and as `HOLD` the time after them.

    `lines` are the attempt's metrics, `gpus` how many it has, `until` (worker's clock, Unix seconds) is when its
    launcher ended, or now.
    """
    spans = [(p.name, p.started, max(p.started, p.ended if p.ended is not None else until)) for p in phases]
    if spans and spans[-1][2] < until:
        spans.append((HOLD, spans[-1][2], until))
    starts = [start for _, start, _ in spans]
    sampled, worked, idle = ([0.0] * len(spans) for _ in range(3))
    for line in lines:
        begin = line.time - max(0.0, line.seconds)
        utils = [pair[0] for gpu in line.gpus() if (pair := gpu.pair("util")) is not None]
        for number in range(max(0, bisect_right(starts, begin) - 1), bisect_right(starts, line.time)):
            share = min(spans[number][2], line.time) - max(spans[number][1], begin)
            if share > 0 and utils:
                sampled[number] += share * len(utils)
                worked[number] += share * sum(utils)
                idle[number] += share * sum(util < IDLE for util in utils)
    return tuple(
        PhaseCost(
            name, start, end, gpus * (end - start),
            worked[number] / sampled[number] if sampled[number] else None,
            idle[number] if sampled[number] else None,
        )
        for number, (name, start, end) in enumerate(spans)
    )  # fmt: skip


def gpu_names(attempt: Attempt) -> list[object]:
    """What tells the GPUs of an attempt from all others: their UUIDs, else host, number and MIG instance."""
    told = attempt.last("gpus")
    gpus = gpus_of(told) if told is not None else []
    if not gpus and attempt.status is not None:
        gpus = gpus_of(attempt.status)
    return list(dict.fromkeys(gpu.uuid or (attempt.host, gpu.index, gpu.mig) for gpu in gpus))


def _uses(attempt: Attempt, steps: Sequence[float]) -> list[tuple[object, _Use]]:
    status = attempt.status
    if status is None or not status.gpu_seconds or status.gpu_seconds <= 0 or status.started is None:
        return []
    names: list[object] = gpu_names(attempt) or [attempt.key]
    seconds = status.gpu_seconds / len(names)
    idle, held = (_part(value, len(names), seconds) for value in (status.gpu_seconds_idle, status.gpu_seconds_held))
    begin, ran = clock.server_time(status, status.started), seconds - held
    if status.gpu_seconds_setup is not None:
        setup: float | None = _part(status.gpu_seconds_setup, len(names), ran)
    elif steps:
        seen = [step - begin for step in steps if 0 <= step - begin <= ran]
        setup = min(seen, default=ran)
    else:
        setup = None
    training = None if setup is None else ran - setup
    return [(name, _Use(attempt.key, begin, seconds, idle, setup, training, held)) for name in names]


def _part(value: float | None, gpus: int, most: float) -> float:
    return min(max(0.0, value or 0.0) / gpus, most)


def _first_step(status: Status | None) -> float | None:
    return None if status is None or status.first_step is None else clock.server_time(status, status.first_step)


def _without_nested(uses: Sequence[_Use]) -> list[_Use]:
    """The uses of one GPU without those of local ranks whose container reports it too."""
    containers = {use.key[:2] for use in uses if use.key.local_rank < 0}
    return [use for use in uses if use.key.local_rank < 0 or use.key[:2] not in containers]


def _joined(uses: Sequence[_Use]) -> list[_Use]:
    """The uses of one GPU, made smaller so that time which several have in common counts once."""
    union, reached = 0.0, float("-inf")
    for use in sorted(uses, key=lambda use: use.begin):
        end = use.begin + use.total
        union += max(0.0, end - max(use.begin, reached))
        reached = max(reached, end)
    summed = sum(use.total for use in uses)
    if union >= summed:
        return list(uses)
    scale = union / summed

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * scale

    return [
        _Use(use.key, use.begin, use.total * scale, use.idle * scale, scaled(use.setup), scaled(use.training),
             use.held * scale)
        for use in uses
    ]  # fmt: skip


def as_json(hours: GpuHours | None) -> Mapping[str, float | None] | None:
    """As plain values, shortened; None when nothing is known."""
    if hours is None:
        return None
    return {name: None if value is None else round(value, 4) for name, value in vars(hours).items()}
