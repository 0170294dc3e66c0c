"""Whose clock: the one place where worker time, file server time and the reader's time meet.

Records carry the worker's time. `Status.clock_offset` maps it to the file server's clock, which all workers of a run
share; the reader's own clock is taken to agree with that one.
"""
from __future__ import annotations

from trainwatch_launcher.rundir.records import Status

FARTHEST = 1e11
"""Seconds from 1970 to where time ends here, in the year 5138: calendars and differences still work."""


def server_time(status: Status | None, worker_time: float) -> float:
    """A worker's time on the file server's clock, in Unix seconds: comparable across workers and with `now`.

    An offset that is none counts as 0, a time that no calendar has as the farthest one.
    """
    return moved(worker_time, (status.clock_offset if status is not None else None) or 0.0)


def moved(worker_time: float, offset: float) -> float:
    """A time on a clock that is `offset` seconds ahead; see `server_time`."""
    mapped = worker_time + (offset if -FARTHEST <= offset <= FARTHEST else 0.0)
    if -FARTHEST <= mapped <= FARTHEST:
        return mapped
    return FARTHEST if mapped > 0 else -FARTHEST


def worker_time(status: Status | None, now: float) -> float:
    """What a worker's clock says at `now`, in Unix seconds: to compare with the times in its records."""
    return now - server_time(status, 0.0)


def age(status: Status | None, worker_moment: float | None, now: float) -> float | None:
    """Seconds from a worker's moment to `now`, never negative; None when the moment is unknown."""
    if worker_moment is None:
        return None
    seconds = now - server_time(status, worker_moment)
    return seconds if seconds > 0.0 else 0.0


def left(status: Status | None, worker_moment: float | None, now: float) -> float | None:
    """Seconds from `now` to a worker's moment, never negative; None when the moment is unknown."""
    return None if worker_moment is None else max(0.0, server_time(status, worker_moment) - now)
