"""What is noteworthy about a run that has not failed (yet): one thing about one rank each. Pure."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainwatch.model import gpus as gpu_facts
from trainwatch.model import naming, pace, text
from trainwatch.model.progress import step_time_text, trouble_text
from trainwatch.model.rows import Row
from trainwatch.model.stands import elsewhere
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import RUNNING
from trainwatch_launcher.rundir.state import STALLED as STALLED_STATE

BAD, WARNING = "bad", "warning"
LOSS, GPU, BEHIND, STALLED, LAGS, SLOW, SLOW_GPU, IDLE = (
    "loss", "gpu", "behind", "stalled", "lags", "slow", "slow-gpu", "idle")  # fmt: skip
ORDER = (LOSS, GPU, BEHIND, STALLED, LAGS, SLOW, SLOW_GPU, IDLE)
"""The most urgent first."""
LASTING = {LAGS: 10.0, SLOW: 10.0, SLOW_GPU: 20.0, IDLE: 30.0}
"""What must be so for so many seconds before it is said: one look may have caught an odd moment."""
CAUSES = (LOSS, GPU)
"""What may be why a rank failed; all else is what the others do after it."""


@dataclass(frozen=True)
class Finding:
    """One thing about one rank."""

    kind: str
    key: AttemptKey
    label: str
    said: str
    """As said of the rank: `loss is nan since step 1200`."""
    tone: str = WARNING
    """`bad` or `warning`."""
    headline: str = ""
    """The whole sentence, where it is about more than this rank."""
    since: float = 0.0
    """When it began, in Unix seconds, where that is known."""

    @property
    def identity(self) -> Hashable:
        """The same for the same thing at another moment, whatever numbers it says."""
        return self.kind, self.key


class Findings:
    """Finds, and remembers since when each thing is so. `now` is the reader's clock, in Unix seconds."""

    def __init__(self) -> None:
        self._since: dict[Hashable, float] = {}

    def of(self, rows: Sequence[Row], now: float) -> tuple[Finding, ...]:
        """What is noteworthy now, the most urgent first, then by rank; what is too new to be said is left out."""
        found = find(rows, now)
        self._since = {one.identity: self._since.get(one.identity, now) for one in found}
        return tuple(one for one in found if now - self._since[one.identity] >= LASTING.get(one.kind, 0.0))


class Notes:
    """What findings say of each row, and whose row shows the GPUs that several report."""

    def __init__(self, found: Sequence[Finding] = (), rows: Sequence[Row] = ()) -> None:
        self._of: dict[AttemptKey, list[Finding]] = defaultdict(list)
        for one in found:
            self._of[one.key].append(one)
        owners = gpu_facts.owners((row.key, row.gpus) for row in rows if row.gpus.each)
        labels = {row.key: row.label for row in rows} if owners else {}
        self._shown_at = {key: labels[owner] for key, owner in owners.items()}

    def on(self, row: Row) -> Row:
        """The row with what is noteworthy about it; the same one when nothing is."""
        found, shown_at = self._of.get(row.key), self._shown_at.get(row.key, "")
        if not found and not shown_at:
            return row
        worst = found[0] if found else None
        return replace(
            row,
            gpus_at=shown_at,
            finding=worst.said if worst else "",
            finding_is_bad=worst is not None and worst.tone == BAD,
            kinds=frozenset(one.kind for one in found or ()),
        )


def find(rows: Sequence[Row], now: float) -> list[Finding]:
    """All that is noteworthy at this moment, the most urgent first, then by rank."""
    labels = {row.key: row.label for row in rows}
    of_key = {row.key: row for row in rows}
    trainers = pace.trainers(rows)
    found = [finding for row in rows for finding in _of_row(row, now)]
    waiting = pace.waiting(trainers)
    if waiting is not None:
        all_behind = naming.ranks(waiting.behind, labels)
        found += [_behind(of_key[key], waiting, labels, all_behind) for key in waiting.behind]
    else:
        found += _elsewhere(rows, labels)
    for slow in pace.lagging(trainers):
        if waiting is None:
            said = f"is {slow.others - slow.own:.0f} steps behind the others"
            found.append(Finding(LAGS, slow.key, labels[slow.key], said))
    for slow in pace.slow_steps(trainers):
        said = f"is slow: {step_time_text(slow.own)} a step, the others {step_time_text(slow.others)}"
        found.append(Finding(SLOW, slow.key, labels[slow.key], said))
    for slow, gpu in pace.slow_gpus(rows):
        said = f"{gpu_facts.name_of(gpu)} is slow: {slow.own:.0f} MHz, its peers {slow.others:.0f}"
        found.append(Finding(SLOW_GPU, slow.key, labels[slow.key], said))
    found += [Finding(IDLE, key, labels[key], "GPUs are idle while the others work") for key in pace.idle(rows)]
    return sorted(found, key=lambda one: (ORDER.index(one.kind), one.tone != BAD, one.key))


def _of_row(row: Row, now: float) -> Iterable[Finding]:
    """What a row says by itself. The loss counts also after the end: it may be why."""
    if row.superseded:
        return
    trouble = trouble_text(row.progress)
    if trouble:
        yield Finding(LOSS, row.key, row.label, trouble, BAD)
    if row.gpus.ail:
        told = [(gpu_facts.ail_of(gpu), gpu) for gpu in row.gpus.each]
        worst = [gpu for ail, gpu in told if ail == row.gpus.ail]
        more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
        said = f"{gpu_facts.name_of(worst[0])} {gpu_facts.ail_text(worst[0])}{more}"
        bad = row.gpus.ail in (gpu_facts.LOST, gpu_facts.ECC)
        yield Finding(GPU, row.key, row.label, said, BAD if bad else WARNING)
    if row.stalled_for is not None and row.stalled_since is not None:
        since = text.time_of_day(row.stalled_since, now)
        said = f"no progress for {text.duration(row.stalled_for)}, since {since}"
        said += f"; stacks: {text.printable(row.stall_file)}" if row.stall_file else ""
        yield Finding(STALLED, row.key, row.label, said, since=row.stalled_since)


def _behind(row: Row, waiting: pace.Waiting, labels: Mapping[AttemptKey, str], all_behind: str) -> Finding:
    count = len(waiting.waiting)
    who = f"{count} ranks wait" if count > 1 else f"rank {labels[waiting.waiting[0]]} waits"
    quiet = f", last output {text.ago(row.last_output_age)}" if row.last_output_age is not None else ""
    quiet += " ago" if quiet and not quiet.endswith("now") else ""
    at = f"at step {row.progress.step}{quiet}"
    headline = f"{who} at step {waiting.step} for rank {row.label} ({at})"
    if len(waiting.behind) > 1:
        headline = f"{who} at step {waiting.step} for {all_behind}"
    said = f"is behind {at}; {who} for it at step {waiting.step}"
    return Finding(BEHIND, row.key, row.label, said, WARNING, headline)


def _elsewhere(rows: Sequence[Row], labels: Mapping[AttemptKey, str]) -> Iterable[Finding]:
    """Who is elsewhere while all others wait in a collective, as the stacks of all of them say."""
    working = [row for row in rows if row.state in (RUNNING, STALLED_STATE) and not row.superseded and not row.nested]
    absent = elsewhere({row.key: row.stand for row in working}) if any(row.stand for row in working) else None
    for key in absent.who if absent is not None else ():
        assert absent is not None
        others = f"the other {absent.count} ranks wait {absent.wait}"
        said = f"is {absent.where}, {others}"
        who = naming.ranks(absent.who, labels)
        headline = f"{who} {'is' if len(absent.who) == 1 else 'are'} {absent.where}, {others} (stacks)"
        yield Finding(BEHIND, key, labels[key], said, WARNING, headline)


def told(found: Sequence[Finding]) -> list[tuple[str, str]]:
    """The findings as sentences, each with its tone; what several ranks have in common is said once."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in found:
        groups[one.kind, one.headline or one.said if one.kind != STALLED else ""].append(one)
    return [(_sentence(group), group[0].tone) for group in groups.values()]


def _sentence(group: Sequence[Finding]) -> str:
    first = group[0]
    if first.headline:
        return first.headline
    if len(group) == 1:
        return f"rank {first.label}: {first.said}"
    labels = {one.key: one.label for one in group}
    if first.kind == STALLED:
        return f"{naming.ranks(tuple(labels), labels)}: {min(group, key=lambda one: one.since).said}"
    return f"{naming.ranks(tuple(labels), labels)}: {first.said}"
