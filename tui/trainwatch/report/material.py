"""What a report is made of, read once and never more than a bounded part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwatch.commands.targets import Followed
from trainwatch.commands.why import read_missing
from trainwatch.model import clock
from trainwatch.model.bill import PhaseCost, gpu_names, phase_costs
from trainwatch.model.failure import first_failure
from trainwatch.model.idle import of_lane
from trainwatch.model.state import Attempt, Run
from trainwatch.model.story import Story, tell
from trainwatch.model.timeline import timeline
from trainwatch.sources.base import SourceError
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.idle import LINES
from trainwatch_launcher.rundir.gpus import Metrics

if TYPE_CHECKING:
    from trainwatch.model.idle import Spans

EXCERPT = 24 << 10
"""Bytes from the end of a log."""
EXCERPT_LINES = 60
HISTORY = 256 << 10
"""Bytes of one attempt's history."""
MOST_CHARTED = 8
"""Ranks that are drawn in the charts."""
ALL_LINES, LEAST_LINES = 256_000, 60
"""Lines of history that are looked at for when GPUs were idle: of all ranks together; of each at least."""
AT_ONCE = 64
"""Ranks of which that is asked at once."""
MOST_HISTORIES = 256
"""Ranks whose history is read for the cost of phases; of more, these are a sample."""


@dataclass(frozen=True)
class Excerpt:
    """The end of one rank's log."""

    key: AttemptKey
    lines: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True)
class Material:
    """One run at one moment. `now` is Unix seconds."""

    name: str
    run: Run
    now: float
    excerpts: tuple[Excerpt, ...]
    histories: dict[AttemptKey, Sequence[Metrics]]
    """Of the ranks that are charted, by time."""
    costs: tuple[PhaseCost, ...]
    """Of the phases of all ranks whose history was read."""
    sampled: int
    """How many ranks that were."""
    idle: dict[AttemptKey, Spans]
    """When the GPUs of ranks were idle, by the key of their lanes in the timeline."""
    story: Story | None = None
    """Why it failed; None when nothing has."""


def gather(followed: Followed, name: str, now: float, told: Callable[[str], None]) -> Material:
    """Read what a report needs; `told` hears how far it is. What cannot be read is missing in it, and said."""
    run = followed.run
    ranks = [attempt for attempt in run.current() if not attempt.nested]
    story = _story(followed, run, now)
    first = [run.attempts[story.key]] if story is not None else []
    charted = list(dict.fromkeys(attempt.key for attempt in [*first, *ranks]))[:MOST_CHARTED]
    excerpts = tuple(_excerpt(followed, attempt.key) for attempt in (first or ranks[:1]))
    histories: dict[AttemptKey, Sequence[Metrics]] = {}
    costs: list[PhaseCost] = []
    chosen = _spread_out(ranks, MOST_HISTORIES)
    chosen += [run.attempts[key] for key in charted if run.attempts[key] not in chosen]
    for number, attempt in enumerate(chosen, 1):
        told(f"history of rank {number} of {len(chosen)}")
        try:
            lines = followed.read_metrics(attempt.key, HISTORY)
        except SourceError:
            continue
        if attempt.key in charted:
            histories[attempt.key] = lines
        costs += phase_costs(attempt.phases, lines, len(gpu_names(attempt)), _until(attempt, now))
    return Material(name, run, now, excerpts, histories, tuple(costs), len(chosen), _idle(followed, now, told), story)


def _idle(followed: Followed, now: float, told: Callable[[str], None]) -> dict[AttemptKey, Spans]:
    """When GPUs were idle, of all ranks; of thousands each is looked at less closely."""
    run = followed.run
    found: dict[AttemptKey, Spans] = {}
    lanes = timeline(run, now).lanes
    lines = max(LEAST_LINES, min(LINES, ALL_LINES // max(1, len(lanes))))
    for first in range(0, len(lanes), AT_ONCE):
        told(f"idle GPUs of rank {first + 1} of {len(lanes)}")
        some = lanes[first : first + AT_ONCE]
        try:
            known = followed.read_idle([key for lane in some for key in lane.keys], lines)
        except SourceError:
            continue
        found.update({lane.key: spans for lane in some if (spans := of_lane(lane, known))})
    return found


def _story(followed: Followed, run: Run, now: float) -> Story | None:
    """Why it failed, with the help of the logs whose launchers did not say so."""
    if first_failure(run, now) is None:
        return None
    failure = first_failure(run, now, read=read_missing(followed, run))
    return None if failure is None else tell(run, now, failure)


def _spread_out(ranks: Sequence[Attempt], most: int) -> list[Attempt]:
    step = max(1, -(-len(ranks) // most))
    return list(ranks[::step])


def _until(attempt: Attempt, now: float) -> float:
    """When its launcher ended, or now, on the worker's clock."""
    status = attempt.status
    if status is not None and status.ended is not None:
        return status.ended
    return clock.worker_time(status, now)


def _excerpt(followed: Followed, key: AttemptKey) -> Excerpt:
    try:
        size = followed.log_size(key)
        begin = max(0, size - EXCERPT)
        data = followed.read_log(key, begin, size - begin)
    except SourceError as error:
        return Excerpt(key, (), str(error))
    if begin:
        data = data[data.find(b"\n") + 1 :]
    return Excerpt(key, tuple(data.decode("utf-8", "replace").splitlines()[-EXCERPT_LINES:]))
