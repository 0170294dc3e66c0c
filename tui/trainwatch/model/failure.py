"""Why a run failed, from what its launchers wrote: the root cause with its rank's facts. Pure."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from trainwatch.model import clock, text
from trainwatch.model.cause import Cause, find_cause
from trainwatch.model.parties import Party
from trainwatch.model.rows import state_at
from trainwatch.model.stands import stand_of
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.diagnosis.answer import UNKNOWN, Diagnosis
from trainwatch_launcher.diagnosis.facts import end_of
from trainwatch_launcher.diagnosis.frames import LOOKS_RAISED
from trainwatch_launcher.diagnosis.statements import kind_of
from trainwatch_launcher.diagnosis.table import COLLATERAL, kind
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.records import Status
from trainwatch_launcher.rundir.state import LOST, STALLED


@dataclass(frozen=True)
class Failure:
    """The rank that a failure began on, and when."""

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
    cause: Cause | None = None
    """What it was, who died of it, how sure that is, and what to do."""

    @property
    def root(self) -> AttemptKey:
        """The attempt to look at: `key`, or one that has not failed itself but kept all others waiting."""
        return self.cause.key if self.cause is not None and self.cause.key is not None else self.key

    @property
    def summary(self) -> str:
        """What it was, in one line; may be empty."""
        return (self.cause.summary if self.cause is not None else "") or self.reason


def first_failure(
    run: Run,
    now: float | None = None,
    states: Mapping[AttemptKey, str] | None = None,
    read: Mapping[AttemptKey, Diagnosis] | None = None,
) -> Failure | None:
    """The rank that a failure of the run began on; None when none has failed.

    Only the newest attempt of each rank counts. With `now` (reader's clock, Unix seconds) lost ranks count too, from
    their last sign of life on. Local ranks count as well as the containers that they are in. `states` are those at
    `now`, for whoever knows them already; `read` has diagnoses of logs whose launchers did not say why.
    """
    if not any(_has_failed(attempt, now, states) for attempt in run.current()):
        return None
    parties = parties_of(run, now, read, states)
    failed = [party for party in parties if party.failed]
    if not failed:
        return None
    cause = find_cause(parties)
    first = min(failed, key=lambda party: (party.level, party.time or 0.0, party.key))
    if cause is not None and cause.key is not None:
        first = next((party for party in failed if party.key == cause.key), first)
    assert first.key is not None
    status = run.attempts[first.key].status
    shown = text.exit_text(first.exit_code, status.exit_signal if status is not None else None)
    reason = (status.reason or status.last_line) if status is not None else ""
    return Failure(
        key=first.key, label=first.label, host=status.host if status is not None else "", time=first.time or 0.0,
        exit_code=first.exit_code, exit_text=shown or "lost", reason=reason,
        others=len({party.key.rank for party in failed if party.key is not None}) - 1, cause=cause,
    )  # fmt: skip


def cause_of(
    run: Run, now: float | None = None, read: Mapping[AttemptKey, Diagnosis] | None = None, others: Iterable[Party] = ()
) -> Cause | None:
    """The root cause of a run's failure; None when nothing failed.

    `read` has diagnoses of logs whose launchers did not say why, `others` those of logs that are no rank's.
    """
    return find_cause([*parties_of(run, now, read or {}), *others])


def unexplained(run: Run) -> list[Attempt]:
    """The attempts that failed, or ended without saying how, and whose launchers have not said why; the first first."""
    found = [attempt for attempt in run.current() if attempt.diagnosis is None and _went_wrong(attempt.status)]
    return sorted(found, key=lambda attempt: (_moment(attempt.status), attempt.key))


def _went_wrong(status: Status | None) -> bool:
    return status is not None and (bool(status.exit_code) or (status.exit_code is None and status.ended is None))


def _moment(status: Status | None) -> float:
    """When it ended, or gave its last sign of life."""
    assert status is not None
    return clock.server_time(status, status.exited if status.exited is not None else status.time)


def _has_failed(attempt: Attempt, now: float | None, states: Mapping[AttemptKey, str] | None) -> bool:
    status = attempt.status
    return status is not None and (bool(status.exit_code) or _state(attempt, now, states) == LOST)


def _state(attempt: Attempt, now: float | None, states: Mapping[AttemptKey, str] | None) -> str:
    if states is not None:
        return states[attempt.key]
    return state_at(attempt, now) if now is not None else ""


def parties_of(
    run: Run,
    now: float | None = None,
    read: Mapping[AttemptKey, Diagnosis] | None = None,
    states: Mapping[AttemptKey, str] | None = None,
) -> list[Party]:
    """The newest attempts of a run as witnesses. A container whose local ranks tell why is left to them."""
    parties = [_standing(_party(run, attempt, now, read or {}, states), attempt) for attempt in run.current()]
    told = {(p.key.rank, p.key.attempt) for p in parties if p.key is not None and p.key.local_rank >= 0 and p.failed}
    return [
        replace(party, victim=True) if _is_container(party) and (party.key.rank, party.key.attempt) in told else party  # type: ignore[union-attr]
        for party in parties
    ]


def _standing(party: Party, attempt: Attempt) -> Party:
    stand = stand_of(attempt)
    return party if stand is None else replace(party, stand=stand)


def _is_container(party: Party) -> bool:
    return party.key is not None and party.key.local_rank < 0


def _party(
    run: Run,
    attempt: Attempt,
    now: float | None,
    read: Mapping[AttemptKey, Diagnosis],
    states: Mapping[AttemptKey, str] | None,
) -> Party:
    status, key = attempt.status, attempt.key
    label = run.label(key)
    if status is None:
        return Party(NOTHING, key.rank, label, key=key, ended=False)
    state = _state(attempt, now, states)
    if status.exit_code:
        moment = status.exited if status.exited is not None else status.time
        found = attempt.diagnosis or read.get(key) or _by_exit(status.exit_code, status.exit_signal, status.reason)
    elif state == LOST:
        moment, found = status.time, read.get(key) or LOST_ONE
    elif state == STALLED:
        moment = status.stalled_since if status.stalled_since is not None else status.time
        time = clock.server_time(status, moment)
        return Party(STALLED_ONE, key.rank, label, time=time, key=key, ended=False, step=status.step)
    else:
        return Party(NOTHING, key.rank, label, key=key, ended=False, step=status.step)
    return Party(
        found, key.rank, label, time=clock.server_time(status, moment), key=key, failed=True, step=status.step,
        exit_code=status.exit_code,
    )  # fmt: skip


LAST_LINE = "last line: "
"""How a launcher begins a reason for which it had no time."""


@lru_cache(maxsize=256)  # thousands of ranks end alike, and this is asked every second
def _by_exit(code: int, signal: int | None, reason: str) -> Diagnosis:
    """What an exit says of which its launcher has said no more."""
    name, words = end_of(code, signal)
    said = reason[len(LAST_LINE) :] if reason.startswith(LAST_LINE) else reason
    if not name and LOOKS_RAISED.match(said):
        name, reason = kind_of(said)[0].name, said
    row = kind(name or UNKNOWN)
    return Diagnosis(
        kind=row.name, family=row.family, summary=reason or words or f"exit code {code}", exit_code=code,
        confidence=0.6 if name else 0.3, hint=row.hint, collateral=row.role == COLLATERAL,
    )  # fmt: skip


def _of_kind(name: str, summary: str, confidence: float) -> Diagnosis:
    row = kind(name)
    return Diagnosis(kind=row.name, family=row.family, summary=summary, confidence=confidence, hint=row.hint)


NOTHING = Diagnosis()
LOST_ONE = _of_kind("killed", "its launcher gives no sign of life: the host or the container is gone", 0.4)
STALLED_ONE = _of_kind("hang", "no progress", 0.5)
