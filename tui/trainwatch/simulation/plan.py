"""What each rank of a simulated run does when: pure functions of the plan, the rank and the time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

SETUP = (("Load dataset", 0.25), ("Build model", 0.45), ("加载检查点 Load checkpoint", 0.3))
"""Phases before the first step, each with its share of the setup's time."""
TRAIN = "Train"
SAVE = "Save checkpoint"
VOCABULARY = 32_000
GIB = 1 << 30


class Fault(Enum):
    """How a rank goes wrong."""

    EXCEPTION = "exception"
    OOM = "oom"
    KILLED = "killed"
    HANG = "hang"
    NAN = "nan"
    SLOW = "slow"
    HOT = "hot"


@dataclass(frozen=True)
class Trouble:
    """One rank goes wrong, `after` seconds into the run."""

    rank: int
    after: float
    fault: Fault


@dataclass(frozen=True)
class Plan:
    """A simulated run. All times in seconds since its start."""

    ranks: int = 64
    per_host: int = 8
    gpus: int = 1
    """GPUs of each rank."""
    steps: int = 100_000
    step_time: float = 1.0
    setup: float = 40.0
    save_every: float = 100.0
    """Seconds between two checkpoints; each rank saves at a time of its own, so that phases change all the while."""
    save_time: float = 4.0
    lines: int = 1
    """Lines of log a second that a rank prints beside its progress."""
    hold: float = 10_000.0
    peers_fail_after: float = 20.0
    """How long the others wait for a rank that has failed before they fail too."""
    troubles: tuple[Trouble, ...] = field(default=())

    def first_failure(self) -> Trouble | None:
        """The trouble that ends the run for all, if any does."""
        fatal = [t for t in self.troubles if t.fault in (Fault.EXCEPTION, Fault.OOM, Fault.KILLED)]
        return min(fatal, key=lambda t: t.after, default=None)

    def of(self, rank: int, *faults: Fault) -> float | None:
        """When one of these faults strikes a rank; None when none does."""
        return min((t.after for t in self.troubles if t.rank == rank and t.fault in faults), default=None)


@dataclass(frozen=True)
class Moment:
    """One rank at one time, as long as its command runs."""

    phase: str
    phase_since: float
    phase_count: int
    step: int
    """Steps done; 0 before the first one."""
    loss: float
    step_time: float
    util: int
    """Per cent."""
    memory: int
    """Bytes of each GPU."""
    power: float
    temperature: int
    is_waiting: bool
    """Whether it stands in a collective until another rank comes, which may be never."""


def noise(*words: int) -> float:
    """A number from 0 to 1 that looks random and is always the same."""
    mixed = 0x9E3779B9
    for word in words:
        mixed = ((mixed ^ word) * 0x85EBCA6B + 0xC2B2AE35) & 0xFFFFFFFF
        mixed ^= mixed >> 15
    return (mixed & 0xFFFF) / 0xFFFF


def setup_of(plan: Plan, rank: int) -> float:
    """How long a rank takes to its first step: some are later than others, and all wait for the last."""
    return plan.setup * (0.7 + 0.3 * noise(rank, 1))


def standstill(plan: Plan, rank: int) -> float | None:
    """When a rank stops making steps: its own hang, or that of a rank it waits for; None when it never does."""
    times = [t.after + (0.0 if t.rank == rank else plan.step_time) for t in plan.troubles if t.fault is Fault.HANG]
    first = plan.first_failure()
    if first is not None and first.rank != rank:
        times.append(first.after + plan.step_time)
    return min(times, default=None)


def moment(plan: Plan, rank: int, at: float) -> Moment:
    """What a rank does at `at`, and how its GPUs are."""
    stop = standstill(plan, rank)
    active = at if stop is None else min(at, stop)
    waits = stop is not None and at > stop
    own = setup_of(plan, rank)
    if active < plan.setup:
        return _setting_up(plan, rank, active, own)
    slow = plan.of(rank, Fault.SLOW)
    pace = plan.step_time * (1.35 if slow is not None and at >= slow else 1.0)
    trained = active - plan.setup
    step = max(1, min(plan.steps, int(trained / plan.step_time) - (2 if slow is not None and at >= slow else 0)))
    phase, since, count = _training_phase(plan, rank, active)
    util = 97 - int(6 * noise(rank, int(active)))
    if phase == SAVE:
        util = 8
    if waits:
        util = 100 if plan.of(rank, Fault.HANG) is None else 0
    hot = plan.of(rank, Fault.HOT)
    temperature = 58 + int(12 * noise(rank, 3)) + (26 if hot is not None and at >= hot else 0)
    return Moment(
        phase, since, count, step, loss_at(plan, rank, step, at), pace * (0.98 + 0.04 * noise(rank, step)), util,
        int((61 + 8 * noise(rank, 2)) * GIB), 180.0 + 5.1 * util, temperature, waits,
    )  # fmt: skip


def _setting_up(plan: Plan, rank: int, at: float, own: float) -> Moment:
    since = 0.0
    for number, (name, share) in enumerate(SETUP, 1):
        until = since + own * share
        if at < until or number == len(SETUP):
            return Moment(name, since, number, 0, math.nan, 0.0, 0, (number - 1) * 18 * GIB, 95.0, 38, at >= own)
        since = until
    raise AssertionError("the last phase lasts to the end")


def _training_phase(plan: Plan, rank: int, at: float) -> tuple[str, float, int]:
    """The phase, since when, and how many there were: `Train` and `Save checkpoint` in turn."""
    first = plan.setup + plan.save_every * noise(rank, 4)
    done = len(SETUP) + 1
    if at < first:
        return TRAIN, plan.setup, done
    turns, into = divmod(at - first, plan.save_every)
    begin = at - into
    done += 2 * int(turns)
    return (SAVE, begin, done + 1) if into < plan.save_time else (TRAIN, begin + plan.save_time, done + 2)


def loss_at(plan: Plan, rank: int, step: int, at: float) -> float:
    """A loss that falls as they do, NaN once it has struck."""
    nan = plan.of(rank, Fault.NAN)
    if nan is not None and at >= nan:
        return math.nan
    return 1.7 + (math.log(VOCABULARY) - 1.7) * math.exp(-step / 400) + 0.05 * (noise(step, 7) - 0.5)
