"""What an attempt's facts mean: the one function that derives its state."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.rundir.records import Status

STARTING = "starting"
RUNNING = "running"
STALLED = "stalled"
FINISHED = "finished"
FAILED = "failed"
HELD = "held"
ENDED = "ended"
LOST = "lost"

STATES = (STARTING, RUNNING, STALLED, FINISHED, FAILED, HELD, ENDED, LOST)
LIVE = frozenset((STARTING, RUNNING, STALLED, HELD))
"""States in which the launcher is still there."""
BAD = frozenset((FAILED, HELD, ENDED, LOST))
"""States of an attempt that went wrong."""

HEARTBEATS_MISSED = 3


def state_of(status: Status, now: float) -> str:
    """The state of an attempt at `now`, in Unix seconds on the same clock as `status.time`.

    A failed attempt that was held is `ended` once its launcher has left; one that was never held stays `failed`.
    `lost` means that the launcher stopped writing without saying that it ended: its host or container is gone.
    """
    if status.ended is None and now - status.time > HEARTBEATS_MISSED * status.interval:
        return LOST
    if status.exit_code is not None:
        return _after_exit(status)
    if status.ended is not None:
        return FINISHED if not status.end_code else FAILED
    if status.pid is None:
        return STARTING
    return STALLED if status.stalled_since is not None else RUNNING


def _after_exit(status: Status) -> str:
    if status.exit_code == 0:
        return FINISHED
    if status.hold_until is None:
        return FAILED
    return ENDED if status.ended is not None else HELD
