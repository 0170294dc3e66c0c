"""Which rank failed first."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainwatch.model import clock, text
from trainwatch.model.rows import state_at
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.records import Status
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
    failures = []
    for attempt in run.current():
        if attempt.status is None:
            continue
        lost = False
        if now is not None and not attempt.status.exit_code:
            lost = (states[attempt.key] if states is not None else state_at(attempt, now)) == LOST
        if lost or attempt.status.exit_code:
            failures.append(_failure_of(run, attempt, attempt.status, lost))
    if not failures:
        return None
    first = min(failures, key=lambda failure: (failure.time, failure.key))
    ranks = {failure.key.rank for failure in failures}
    return Failure(**{**vars(first), "others": len(ranks) - 1})


def _failure_of(run: Run, attempt: Attempt, status: Status, lost: bool) -> Failure:
    moment = status.exited if status.exited is not None and not lost else status.time
    shown = "lost" if lost else text.exit_text(status.exit_code, status.exit_signal)
    time = clock.server_time(status, moment)
    reason = status.reason or status.last_line
    return Failure(attempt.key, run.label(attempt.key), status.host, time, status.exit_code, shown, reason)
