"""Which rank failed first."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainwatch.model import clock, text
from trainwatch.model.rows import state_at
from trainwatch.model.state import Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import LOST


@dataclass(frozen=True)
class Failure:
    """A rank that went wrong, and when."""

    key: AttemptKey
    label: str
    host: str
    time: float
    """In Unix seconds on the file server's clock."""
    exit_code: int | None
    """None when it was lost."""
    exit_text: str
    """`1`, `137 SIGKILL`, or `lost`."""
    reason: str
    """Why, in one line: the launcher's diagnosis, else the last line of its output; may be empty."""
    others: int = 0
    """How many more ranks went wrong."""


def first_failure(
    run: Run, now: float | None = None, states: Mapping[AttemptKey, str] | None = None
) -> Failure | None:
    """The rank that went wrong first, by the file server's clock; None when none has.

    Only the newest attempt of each rank counts. With `now` (reader's clock, Unix seconds) lost ranks count too, from
    their last sign of life on. Local ranks count when no rank as a whole has failed before them. `states` are those at
    `now`, for whoever knows them already.
    """
    found: list[tuple[float, AttemptKey, bool]] = []
    for attempt in run.current():
        status = attempt.status
        if status is None:
            continue
        lost = False
        if now is not None and not status.exit_code:
            lost = (states[attempt.key] if states is not None else state_at(attempt, now)) == LOST
        if lost or status.exit_code:
            moment = status.exited if status.exited is not None and not lost else status.time
            found.append((clock.server_time(status, moment), attempt.key, lost))
    if not found:
        return None
    time, key, lost = min(found)
    status = run.attempts[key].status
    assert status is not None
    shown = "lost" if lost else text.exit_text(status.exit_code, status.exit_signal)
    reason, others = status.reason or status.last_line, len({each.rank for _, each, _ in found}) - 1
    return Failure(key, run.label(key), status.host, time, status.exit_code, shown, reason, others)
