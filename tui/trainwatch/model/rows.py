"""What a table row says: the facts of one attempt at one moment."""
from __future__ import annotations

from dataclasses import dataclass

from trainwatch.model import clock, text
from trainwatch.model.gpus import NO_GPUS, Gpus
from trainwatch.model.progress import NO_PROGRESS, Progress
from trainwatch.model.stands import Stand, stand_of
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.records import Status
from trainwatch_launcher.rundir.state import HELD, LIVE, LOST, STALLED, STARTING, state_of

NO_SIGN_OF_LIFE = 15.0
"""An attempt without a status or an event is lost when its directory is older than this many seconds."""


STANDINGS = {
    "starting": "is starting",
    "running": "is running",
    "stalled": "has stalled",
    "finished": "has finished",
    "failed": "has failed and is not held",
    "held": "is held",
    "ended": "is not held any more",
    "lost": "is lost: its launcher gives no sign of life",
}
"""How each state is said of a rank."""


def standing(state: str) -> str:
    """A state as what a rank does: `is running`, `has finished`, `is not held any more`."""
    return STANDINGS.get(state, f"is {state}")


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt at one moment. Ages and durations are seconds, never negative; None means that nobody knows."""

    key: AttemptKey
    label: str
    """`3`, `3#2` (attempt 2, where there are several), `3.0` (local rank 0); see `naming`."""
    host: str = ""
    state: str = STARTING
    """One of `rundir.state.STATES`."""
    superseded: bool = False
    """A newer attempt of the same rank exists."""
    nested: bool = False

    phase: str | None = None
    phase_age: float | None = None
    """How long the phase has lasted; stands still once the command has ended."""

    exit_code: int | None = None
    signal: str | None = None
    """The signal's name, such as `SIGKILL`."""
    exit_text: str = ""
    """`137 SIGKILL`, `1`, or empty."""
    reason: str = ""
    """The diagnosis in one line, empty when there is none."""
    exited: float | None = None
    """When the command ended, in Unix seconds on the file server's clock."""
    hold_left: float | None = None
    """Until the hold ends; None when it is not held."""
    hold_until: float | None = None
    """When the hold ends, in Unix seconds on the file server's clock; None when it is not held."""

    last_output_age: float | None = None
    output_bytes: int | None = None
    output_lines: int | None = None
    last_line: str = ""

    warning: str = ""
    """What is wrong with the launcher, or with reading what it wrote; empty when all is well."""
    pid: int | None = None
    launcher_pid: int | None = None
    stall_file: str = ""
    """The file with the stacks that its launcher took at this stall; empty when it took none."""
    stand: Stand | None = None
    """Where it stands, by its stacks; None when that is not known."""
    started: float | None = None
    """When the command was spawned, in Unix seconds on the file server's clock."""
    elapsed: float | None = None
    """How long the command has run, or ran."""
    heartbeat_age: float | None = None
    """Since the launcher last wrote anything."""

    progress: Progress = NO_PROGRESS
    progress_age: float | None = None
    """Since the step last changed; stands still once the command has ended."""
    stalled_for: float | None = None
    """Since when it has made no progress, while it is stalled."""
    stalled_since: float | None = None
    """The same as a moment, in Unix seconds on the file server's clock."""
    gpus: Gpus = NO_GPUS
    """What its launcher says of its GPUs now; nothing once that has left, or when a newer attempt has them."""
    gpus_at: str = ""
    """The label of the row that shows its GPUs, when another one reports the same; see `gpus.owners`."""
    finding: str = ""
    """What is noteworthy about it among the others, in one line: see `findings`. Empty when nothing is."""
    finding_is_bad: bool = False
    """Whether that ruins the training, rather than slowing it down."""
    kinds: frozenset[str] = frozenset()
    """Of which kinds all that is noteworthy about it is."""

    @property
    def live(self) -> bool:
        """Whether its launcher is still there."""
        return self.state in LIVE


def rows(run: Run, now: float) -> tuple[Row, ...]:
    """A row for each attempt, by rank, then attempt. `now` is the reader's clock, in Unix seconds."""
    return tuple(row_of(run, key, now) for key in run.order)


def row_of(run: Run, key: AttemptKey, now: float) -> Row:
    """The row of one attempt of a run at `now`."""
    attempt = run.attempts[key]
    status = attempt.status
    if status is None:
        return _unknown(run, attempt, now)
    state = state_at(attempt, now)
    ended = _end_of(status)
    until = now if ended is None else clock.server_time(status, ended)
    hold_left = clock.left(status, status.hold_until, now) if _may_be_held(status, state) else None
    return Row(
        key=key,
        label=run.label(key),
        host=status.host,
        state=state,
        superseded=key in run.superseded,
        nested=attempt.nested,
        phase=status.phase,
        phase_age=clock.age(status, status.phase_since, until),
        exit_code=status.exit_code,
        signal=text.signal_of(status.exit_code, status.exit_signal),
        exit_text=text.exit_text(status.exit_code, status.exit_signal),
        reason=status.reason,
        exited=_on_server(status, status.exited),
        hold_left=hold_left,
        hold_until=_on_server(status, status.hold_until) if hold_left is not None else None,
        last_output_age=clock.age(status, status.last_output, now),
        output_bytes=status.output_bytes,
        output_lines=status.output_lines,
        last_line=status.last_line,
        warning=attempt.problem or status.warning,
        pid=status.pid,
        launcher_pid=status.launcher_pid,
        stall_file=_stall_file(attempt) if state == STALLED and status.stacks else "",
        stand=stand_of(attempt) if status.stacks else None,
        started=_on_server(status, status.started),
        elapsed=clock.age(status, status.started, until),
        heartbeat_age=clock.age(status, status.time, now),
        progress=attempt.progress,
        progress_age=clock.age(status, status.progress_since, until),
        stalled_for=clock.age(status, status.stalled_since, now) if state == STALLED else None,
        stalled_since=_on_server(status, status.stalled_since) if state == STALLED else None,
        gpus=attempt.gpus if state in LIVE and key not in run.superseded else NO_GPUS,
    )


def _stall_file(attempt: Attempt) -> str:
    stall = attempt.last("stall")
    return stall.text("stacks") if stall is not None else ""


def state_at(attempt: Attempt, now: float) -> str:
    """The state of an attempt at `now` on the reader's clock, also of one that has written nothing yet."""
    if attempt.status is not None:
        return state_of(attempt.status, clock.worker_time(attempt.status, now))
    if attempt.found is not None and now - attempt.found > NO_SIGN_OF_LIFE:
        return LOST
    return STARTING


def _unknown(run: Run, attempt: Attempt, now: float) -> Row:
    return Row(
        key=attempt.key,
        label=run.label(attempt.key),
        state=state_at(attempt, now),
        superseded=attempt.key in run.superseded,
        nested=attempt.nested,
        warning=attempt.problem,
        heartbeat_age=clock.age(None, attempt.found, now),
    )


def _end_of(status: Status) -> float | None:
    """When the command ended, or when its launcher did without having seen that; worker's clock."""
    return status.exited if status.exited is not None else status.ended


def _may_be_held(status: Status, state: str) -> bool:
    """Whether a launcher holds, as far as one can know: one that looks lost may only have another idea of the time."""
    return state == HELD or (state == LOST and status.exit_code is not None and status.hold_until is not None)


def _on_server(status: Status, moment: float | None) -> float | None:
    return None if moment is None else clock.server_time(status, moment)
