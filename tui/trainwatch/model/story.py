"""A failure told from its beginning to what is left of it: who, when, what it was, and who went wrong after. Pure.

The failure screen, the report and the ticket say the same, because they all read this.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from trainwatch.model import clock, holding, naming, text
from trainwatch.model.bill import gpu_hours, words
from trainwatch.model.cause import Cause
from trainwatch.model.failure import Failure
from trainwatch.model.rows import row_of, state_at
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.diagnosis.answer import NONE, UNKNOWN
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import LOST

ROOT, SAME, VICTIM, OTHER = "root", "same", "victim", "other"
"""A rank's part in it: it began it, it failed of the same fault by itself, it died of it, or neither is certain."""
GONE = "lost"
"""How a rank ended that only went silent."""
CERTAIN = 0.85
AT_ONCE = 1.0
"""Seconds within which something happened at the same time."""


@dataclass(frozen=True)
class Ending:
    """How one rank went wrong."""

    key: AttemptKey
    label: str
    host: str
    kind: str
    exit_text: str
    """`1`, `137 SIGKILL`, or `lost`."""
    time: float
    """In Unix seconds on the reader's clock."""
    part: str


@dataclass(frozen=True)
class Fold:
    """Ranks that went wrong in the same way, after the root cause."""

    part: str
    kind: str
    count: int
    ranks: str
    """`0-36, 38-63`."""
    first: float
    """Seconds from the root cause to the first of them; negative when it went wrong before."""
    last: float


@dataclass(frozen=True)
class Story:
    """All there is to say of one failure at one moment."""

    run_id: str
    key: AttemptKey
    """The attempt to look at: where it began, or one of those that failed alike."""
    label: str
    host: str
    whole: bool
    """It is no single rank's: all failed alike, or the job as a whole was ended."""
    kind: str
    summary: str
    frame: str
    why: str
    hint: str
    evidence: tuple[str, ...]
    runner_up: str
    confidence: float
    clear: bool
    line: int | None
    offset: int | None
    time: float
    exit_text: str
    phase: str
    step: int | None
    hold_left: float | None
    inner_rank: int | None
    order: tuple[Ending, ...]
    """Who went wrong, the first first."""
    folds: tuple[Fold, ...]
    """The same without where it began, folded."""
    ranks: int
    """How many ranks the run has."""
    cost: str = ""
    """What its GPUs cost so far, in words; empty when nobody knows."""

    @property
    def ended(self) -> str:
        """How it ended: `exit 137 SIGKILL`, `lost`, or nothing."""
        return self.exit_text if self.exit_text in ("", GONE) else f"exit {self.exit_text}"

    @property
    def sure(self) -> str:
        """How sure it is, in words: `high (85%)`."""
        word = "low" if not self.clear else "high" if self.confidence >= CERTAIN else "fair"
        return f"{word} ({self.confidence:.0%})"

    @property
    def who(self) -> str:
        """Whom it began on."""
        if self.whole:
            return "the whole job" if len(self.order) > 1 else f"rank {self.label}"
        inner = f" (process {self.inner_rank})" if self.inner_rank is not None else ""
        return f"rank {self.label}{inner}" + (f" on {self.host}" if self.host else "")


def tell(run: Run, now: float, failure: Failure) -> Story:
    """The story of a run's failure. `now` is the reader's clock, in Unix seconds."""
    cause = failure.cause or Cause(UNKNOWN, UNKNOWN, failure.reason, key=failure.key)
    key = cause.key if cause.key in run.attempts and cause.key is not None else failure.key
    row = row_of(run, key, now)
    order = endings(run, now, key, cause)
    time = next((one.time for one in order if one.part == ROOT), cause.time or failure.time)
    shown = text.exit_text(cause.exit_code) if cause.exit_code is not None else row.exit_text
    if key == failure.key and not shown:
        shown = failure.exit_text
    hours = gpu_hours(run)
    return Story(
        cost="" if hours is None else words(hours), run_id=run.run_id, key=key, label=run.label(key), host=row.host,
        whole=cause.rank is None, kind=cause.kind,
        summary=cause.summary or failure.reason, frame=cause.frame, why=cause.why, hint=cause.hint,
        evidence=tuple(one.text for one in cause.evidence if one.text), runner_up=cause.runner_up,
        confidence=cause.confidence, clear=cause.clear, line=cause.line, offset=cause.offset, time=time,
        exit_text=shown, phase=row.phase or "", step=row.progress.step, hold_left=holding.hold_left(run, key, now),
        inner_rank=cause.inner_rank, order=order, folds=folds(order, time),
        ranks=len([attempt for attempt in run.current() if not attempt.nested]),
    )  # fmt: skip


def endings(run: Run, now: float, root: AttemptKey, cause: Cause) -> tuple[Ending, ...]:
    """Each rank that went wrong, by time. A container stands for the local ranks in it, save for the root cause's."""
    kinds, same, victims = dict(cause.kinds), frozenset(cause.same), frozenset(cause.collateral)
    found = []
    for attempt in run.current():
        if attempt.nested or attempt.status is None:
            continue
        is_root = attempt.key == holding.container(root)
        key = root if is_root else attempt.key
        ended = _ended(run.attempts[key], now) or _ended(attempt, now)
        if ended is None:
            continue
        rank = attempt.key.rank
        alike = rank in same or is_root
        part = ROOT if is_root and cause.rank is not None else VICTIM if rank in victims else SAME if alike else OTHER
        kind = cause.kind if is_root else kinds.get(rank, UNKNOWN)
        shown = text.exit_text(attempt.status.exit_code, attempt.status.exit_signal) or GONE
        found.append(Ending(key, run.label(key), attempt.host, kind if kind != NONE else UNKNOWN, shown, ended, part))
    return tuple(sorted(found, key=lambda one: (one.time, one.part != ROOT, one.key)))


def _ended(attempt: Attempt, now: float) -> float | None:
    """When it went wrong; None when it has not."""
    status = attempt.status
    if status is None:
        return None
    if status.exit_code:
        return clock.server_time(status, status.exited if status.exited is not None else status.time)
    return clock.server_time(status, status.time) if state_at(attempt, now) == LOST else None


def folds(order: Sequence[Ending], began: float) -> tuple[Fold, ...]:
    """Who went wrong beside the root cause, by part and kind; the largest group of a part first."""
    groups: dict[tuple[str, str], list[Ending]] = defaultdict(list)
    for one in order:
        if one.part != ROOT:
            groups[one.part, one.kind].append(one)
    made = [
        Fold(part, kind, len(found), naming.spans(one.key.rank for one in found), found[0].time - began,
             found[-1].time - began)
        for (part, kind), found in groups.items()
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda fold: ((SAME, VICTIM, OTHER).index(fold.part), -fold.count, fold.first)))


def kind_words(kind: str) -> str:
    """A kind as a person says it."""
    return "cause unknown" if kind == UNKNOWN else kind.replace("_", " ")


def fold_words(fold: Fold) -> str:
    """`63 ranks: nccl timeout, 12s later`."""
    count = f"{fold.count} rank{'s' if fold.count > 1 else ''}"
    alike = {SAME: "the same fault", OTHER: f"{kind_words(fold.kind)} of their own" if fold.count > 1 else
             f"{kind_words(fold.kind)} of its own"}.get(fold.part, kind_words(fold.kind))  # fmt: skip
    return f"{count}: {alike}, {delay_words(fold.first, fold.last)}"


def delay_words(first: float, last: float) -> str:
    """When something happened after the root cause, both in seconds: `12s to 4m01s later`, `within a second`."""
    if last < -AT_ONCE:
        return f"{text.duration(-first)} before"
    if last <= AT_ONCE:
        return "within a second"
    if first <= AT_ONCE or last - first < AT_ONCE:
        return f"{'up to ' if first <= AT_ONCE else ''}{text.duration(last)} later"
    return f"{text.duration(first)} to {text.duration(last)} later"
