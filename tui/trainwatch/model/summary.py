"""The run in one line: its state, how many ranks are in which state, who failed first."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainwatch.model import clock
from trainwatch.model.failure import Failure, first_failure
from trainwatch.model.rows import state_at
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.rundir import state as states

WAITING = "waiting"
"""The run's state while no rank has come, or while all that came have finished and others are still missing."""
WORKING = (states.STARTING, states.RUNNING, states.STALLED)


@dataclass(frozen=True)
class Summary:
    """A run at one moment. Only ranks count, each with its newest attempt; local ranks belong to their rank."""

    run_id: str
    state: str
    """`waiting`, or one of `rundir.state.STATES`; see `summary`."""
    world_size: int | None
    seen: int
    """Ranks that have come."""
    missing: int
    """Ranks of the world size that have not come; 0 when it is unknown."""
    counts: Mapping[str, int]
    """Ranks by state, in the order of `rundir.state.STATES`, states without a rank left out."""
    started: float | None
    """When the first rank's command was spawned, in Unix seconds on the file server's clock."""
    elapsed: float | None
    """Seconds since then; stands still when every rank's command has ended."""
    first: Failure | None
    """Who failed first; None when none has."""
    unread: tuple[str, ...] = ()
    """Labels of the ranks of whose state nothing could be read: they may have failed for all that is known."""

    @property
    def bad(self) -> int:
        """Ranks that went wrong."""
        return sum(count for state, count in self.counts.items() if state in states.BAD)

    @property
    def working(self) -> bool:
        """Whether ranks still work, or are awaited, so that its time goes on."""
        return bool(self.missing) or any(state in self.counts for state in WORKING)

    def after(self, seconds: float) -> Summary:
        """The same some seconds later, when nothing has changed."""
        on = self.elapsed is not None and self.working
        return replace(self, elapsed=(self.elapsed or 0.0) + seconds) if on else self


def summary(run: Run, now: float) -> Summary:
    """The run at `now` (reader's clock, Unix seconds).

    Its state: `held` when a rank that went wrong is held (one can still look inside), else `failed` when one failed,
    else `lost` when one is lost, whatever the others do; else `running` when one runs, `stalled` when all that live
    are, `starting`, `finished` when all ranks have finished, and `waiting` when some of the world size have not come.
    """
    current = run.current()
    ranks = [attempt for attempt in current if not attempt.nested]
    of_all = {attempt.key: state_at(attempt, now) for attempt in current}
    found = Counter([of_all[attempt.key] for attempt in ranks])
    counts = {state: found[state] for state in states.STATES if found[state]}
    world_size = run.world_size
    missing = max(0, (world_size or 0) - len(ranks))
    started = min((time for attempt in ranks if (time := _started(attempt)) is not None), default=None)
    working = missing or any(state in counts for state in WORKING)
    until = now if working else max((time for attempt in ranks if (time := _ended(attempt))), default=now)
    return Summary(
        run_id=run.run_id,
        state=_state(counts, missing),
        world_size=world_size,
        seen=len(ranks),
        missing=missing,
        counts=counts,
        started=started,
        elapsed=None if started is None else max(0.0, until - started),
        first=first_failure(run, now, of_all),
        unread=tuple(run.label(attempt.key) for attempt in ranks if attempt.problem and attempt.snapshot is None),
    )


def _state(counts: Mapping[str, int], missing: int) -> str:
    if not counts:
        return WAITING
    if states.HELD in counts:
        return states.HELD
    if states.FAILED in counts or states.ENDED in counts:
        return states.FAILED
    for state in (states.LOST, states.RUNNING, states.STALLED, states.STARTING):
        if state in counts:
            return state
    return WAITING if missing else states.FINISHED


def _started(attempt: Attempt) -> float | None:
    status = attempt.status
    return None if status is None or status.started is None else clock.server_time(status, status.started)


def _ended(attempt: Attempt) -> float | None:
    """When its command ended, or its last sign of life."""
    status = attempt.status
    if status is None:
        return None
    return clock.server_time(status, status.exited if status.exited is not None else status.time)
