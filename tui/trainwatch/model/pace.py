"""Who holds the others up: ranks that wait for another one, ranks and GPUs slower than the rest. Pure.

Everything is judged against the ranks of the same run at the same moment, with the median and the median deviation from
it, which a few odd ones do not move. What is equal, or differs by less than is normal, is never noteworthy, and of two
ranks neither is the odd one.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainwatch.model.course import median
from trainwatch.model.gpus import BUSY
from trainwatch.model.rows import Row
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.state import RUNNING, STALLED

K = TypeVar("K", bound=Hashable)

FEWEST = 3
"""Of fewer than so many nobody is the odd one out."""
ODD = 5.0
"""So many normal deviations from the median are odd (a robust z-score)."""
NORMAL = 1.4826
"""The median deviation of normally distributed values times this is their standard deviation."""
SLOWER = 1.25
"""A step that takes so many times the others' is slow …"""
STEP_FLOOR = 0.03
"""… and steps that differ by this share of their time are alike, however equal all others are."""
CLOCK_BELOW = 0.85
"""A GPU whose clock is below so much of its peers' is slow: power limits alone move it by less."""
CLOCK_FLOOR = 0.02
IDLE = 10.0
"""Per cent of utilisation below which a GPU does nothing."""
STILL = 10.0
"""Ranks whose step has not changed for so many seconds, and for `STILL_STEPS` steps, wait."""
STILL_STEPS = 5.0
STILL_UNKNOWN = 60.0
"""The same while nobody knows how long a step takes."""
BEHIND_BY = 20.0
"""A rank lags when it is so many seconds of steps behind: statuses are not all taken at the same moment."""


@dataclass(frozen=True)
class Waiting:
    """Ranks that wait, each within the same step, for others that are behind it."""

    step: int
    waiting: tuple[AttemptKey, ...]
    behind: tuple[AttemptKey, ...]


@dataclass(frozen=True)
class Slow:
    """A rank or GPU and how it compares."""

    key: AttemptKey
    own: float
    others: float
    """The median of all."""


def trainers(rows: Iterable[Row]) -> list[Row]:
    """The ranks that say how far they are, as it is now: live, the newest attempts, in their local ranks where these
    say it themselves.
    """
    working = [row for row in rows if row.state in (RUNNING, STALLED) and not row.superseded]
    split = {row.key[:2] for row in working if row.nested and row.progress.step is not None}
    return [
        row for row in working if row.progress.step is not None and (row.nested or row.key[:2] not in split)
    ]  # fmt: skip


def odd_ones(values: Mapping[K, float], floor: float) -> dict[K, float]:
    """Robust z-scores of the values that are far from the median, above or below; `floor` is a normal difference.

    Nothing when there are fewer than `FEWEST`.
    """
    if len(values) < FEWEST or floor <= 0:
        return {}
    middle = median(values.values())
    spread = max(NORMAL * median(abs(value - middle) for value in values.values()), floor)
    return {key: z for key, value in values.items() if abs(z := (value - middle) / spread) >= ODD}


def waiting(rows: Sequence[Row]) -> Waiting | None:
    """Who waits for whom, when most ranks stand still in the same step and few others are behind it.

    A rank is behind only when it should have said a later step by now: it prints every so many steps, and is more than
    that before the others.
    """
    steps = {row.key: row.progress.step for row in rows if row.progress.step is not None}
    if len(steps) < 2:
        return None
    step, count = max(Counter(steps.values()).items(), key=lambda item: (item[1], item[0]))
    stand_still = [row for row in rows if steps.get(row.key) == step and _is_still(row)]
    behind = [row for row in rows if steps[row.key] < step and _is_still(row) and _is_due(row, step, len(steps))]
    most = 2 * count > len(steps) or len(steps) == 2
    if not most or len(stand_still) < count or not behind or len(behind) > max(1, len(steps) // 4):
        return None
    return Waiting(step, _sorted(stand_still), _sorted(behind))


def _is_still(row: Row) -> bool:
    """Whether it has been in its step for far longer than a step takes."""
    if row.state == STALLED:
        return True
    step_time = row.progress.step_time
    long = max(STILL, STILL_STEPS * step_time) if step_time is not None else STILL_UNKNOWN
    return row.progress_age is not None and row.progress_age >= long


def _is_due(row: Row, step: int, ranks: int) -> bool:
    """Whether a rank that works would have said `step` or a later one than its own before that."""
    stride = row.progress.stride
    if stride is None:
        return ranks > 2
    assert row.progress.step is not None
    return row.progress.step + stride <= step


def lagging(rows: Sequence[Row]) -> list[Slow]:
    """Ranks whose step is far behind the others' while all go on; `own` and `others` are steps."""
    found = []
    for group in _by_phase(rows).values():
        steps = {row.key: float(row.progress.step) for row in group if row.progress.step is not None}
        times = [row.progress.step_time for row in group if row.progress.step_time is not None]
        strides = [row.progress.stride for row in group if row.progress.stride is not None]
        if not times or not steps:
            continue
        floor = max(BEHIND_BY / max(median(times), 1e-6), 2.0 * max(strides, default=1)) / ODD
        middle = median(steps.values())
        found += [Slow(key, steps[key], middle) for key, z in odd_ones(steps, floor).items() if z < 0]
    return sorted(found, key=lambda slow: slow.key)


def slow_steps(rows: Sequence[Row]) -> list[Slow]:
    """Ranks whose steps take longer than the others'; `own` and `others` are seconds.

    Printed times are compared with printed ones, seen ones with seen ones.
    """
    found = []
    for group in _by_phase(rows).values():
        said = {row.key: t for row in group if (t := row.progress.said_step_time) is not None}
        seen = {row.key: t for row in group if (t := row.progress.seen_step_time) is not None}
        times = said if len(said) >= len(seen) else seen
        if len(times) < FEWEST:
            continue
        middle = median(times.values())
        found += [
            Slow(key, times[key], middle)
            for key, z in odd_ones(times, STEP_FLOOR * middle).items() if z > 0 and times[key] >= SLOWER * middle
        ]  # fmt: skip
    return sorted(found, key=lambda slow: slow.key)


def _by_phase(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    """Ranks that do the same: one that evaluates is not slow at training."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.phase or ""].append(row)
    return groups


def slow_gpus(rows: Iterable[Row]) -> list[tuple[Slow, Gpu]]:
    """GPUs that run slower than others of their kind at the same work; `own` and `others` are MHz."""
    working = [row for row in rows if row.state == RUNNING and not row.superseded and row.gpus.busy_clocks is not None]
    clocks_of_rows = [row.gpus.busy_clocks for row in working if row.gpus.busy_clocks is not None]
    highest = max((high for _, high in clocks_of_rows), default=0)
    if all(low >= CLOCK_BELOW * highest for low, _ in clocks_of_rows):
        return []  # the usual case, and thousands of GPUs need not be looked at one by one
    kinds: dict[tuple[str, bool], dict[tuple[AttemptKey, int], Gpu]] = defaultdict(dict)
    for row in working:
        for place, gpu in enumerate(row.gpus.each):
            if gpu.clock and gpu.util is not None and gpu.util >= BUSY:
                kinds[(gpu.name, gpu.mig is not None)][(row.key, place)] = gpu
    found = []
    for gpus in kinds.values():
        clocks = {place: float(gpu.clock) for place, gpu in gpus.items() if gpu.clock}
        if len(clocks) < FEWEST:
            continue
        middle = median(clocks.values())
        for which, z in odd_ones(clocks, CLOCK_FLOOR * middle).items():
            if z < 0 and clocks[which] < CLOCK_BELOW * middle:
                found.append((Slow(which[0], clocks[which], middle), gpus[which]))
    return sorted(found, key=lambda one: (one[0].key, one[1].index or 0))


def idle(rows: Iterable[Row]) -> list[AttemptKey]:
    """Ranks whose GPUs do nothing while most others' work."""
    utils = {
        row.key: row.gpus.util for row in rows
        if row.state == RUNNING and not row.superseded and row.gpus.util is not None
    }  # fmt: skip
    if len(utils) < FEWEST or median(utils.values()) < BUSY:
        return []
    return sorted(key for key, util in utils.items() if util < IDLE)


def _sorted(rows: Iterable[Row]) -> tuple[AttemptKey, ...]:
    return tuple(sorted(row.key for row in rows))
