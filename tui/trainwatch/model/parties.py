"""The witnesses of a failure: each rank's own diagnosis, and what schedulers, launchers and kernels say. Pure."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainwatch.model.stands import Stand
from trainwatch_launcher.diagnosis.answer import NONE, Collective, Diagnosis, Evidence, Inner
from trainwatch_launcher.diagnosis.levels import OWN, SILENT, STOPS, level_of
from trainwatch_launcher.diagnosis.table import COLLATERAL, kind
from trainwatch_launcher.reader.changes import AttemptKey


@dataclass(frozen=True)
class Party:
    """One rank, or one log that is no rank's, and why it ended."""

    diagnosis: Diagnosis
    rank: int | None = None
    """None for a log that is no rank's: a scheduler's, a launcher's, the kernel's."""
    label: str = ""
    """What a person calls it: `3`, `3.5`, `slurm.log`."""
    source: str = ""
    """The file that the diagnosis' lines are of; the base name of its path."""
    time: float | None = None
    """When it failed, comparable between parties; None when that is not known."""
    ended: bool = True
    """It does not run any more, or nobody knows that it does."""
    failed: bool = False
    """It is certain that it went wrong, whatever its log says."""
    step: int | None = None
    """The last training step that it is known to have done."""
    exit_code: int | None = None
    key: AttemptKey | None = None
    told_by: str = ""
    """The other log that says how this one ended; empty when its own does."""
    victim: bool = False
    """Somebody ended it because another had failed."""
    pid: int | None = None
    written: float | None = None
    """When its log was last written, in Unix seconds; None when that is not known."""
    inner: tuple[Inner, ...] = field(default=())
    stand: Stand | None = None
    """Where it stands, by its stacks; None when that is not known."""

    @property
    def kind(self) -> str:
        """The kind of its failure; `none` when it tells of none."""
        return self.diagnosis.kind

    @property
    def collective(self) -> Collective | None:
        """Where it stood among the collectives."""
        return self.diagnosis.collective

    @cached_property
    def level(self) -> float:
        """Who comes first when several parties tell of a failure: a lower level is nearer to the cause."""
        level = level_of(self.diagnosis, self.exit_code, self.victim)
        return level + (0.1 if self.rank is None and OWN <= level < SILENT else 0.0)


def completed(parties: Sequence[Party]) -> list[Party]:
    """The parties, ranks with what the other logs say of them where their own says nothing."""
    others = [party for party in parties if party.rank is None]
    told = [_completed(party, others) if party.rank is not None else party for party in parties]
    first = min((party.time for party in told if party.time is not None and _own_end(party)), default=None)
    return [replace(party, victim=True) if _after(party, first) else party for party in told]


def _own_end(party: Party) -> bool:
    """Whether it failed by itself, and was not asked to end."""
    return party.rank is not None and party.kind != NONE and not _was_stopped(party)


def _was_stopped(party: Party) -> bool:
    return party.kind == "cancelled" or (party.kind in ("killed", "peer_lost", "unknown") and party.exit_code in STOPS)


def _after(party: Party, first: float | None) -> bool:
    """Whether it was asked to end when another had already failed: so launchers and platforms clean up."""
    return first is not None and party.time is not None and _was_stopped(party) and party.time >= first - 1.0


def _completed(party: Party, others: Iterable[Party]) -> Party:
    for other in others:
        for inner in other.inner or other.diagnosis.inner:
            if inner.rank == party.rank:
                party = _with(party, other, inner)
    return party


def _with(party: Party, other: Party, inner: Inner) -> Party:
    code = party.exit_code if party.exit_code is not None else inner.exit_code
    victim = party.victim or inner.victim or (inner.exit_code == 143)
    party = replace(party, exit_code=code, victim=victim, pid=party.pid or inner.pid, failed=party.failed or bool(code))
    if party.kind not in (NONE, "unknown") or not code:
        return party
    name, words = _end(inner, victim)
    found = other.diagnosis
    if found.rank == inner.rank and found.failed and found.kind != "unknown":
        name, words = found.kind, found.summary
    line = found.line if found.rank == inner.rank else inner.line
    evidence = found.evidence if found.rank == inner.rank else (Evidence(line, words),)
    row = kind(name)
    own = party.diagnosis.before or next(iter(party.diagnosis.evidence), None)
    told = Diagnosis(
        kind=name, family=row.family, summary=words, line=line, rank=inner.rank, exit_code=code,
        confidence=0.6 if name != "unknown" else 0.1, hint=row.hint, evidence=evidence, before=own,
        collateral=row.role == COLLATERAL, time=inner.time or found.time,
    )  # fmt: skip
    return replace(party, diagnosis=told, told_by=other.source, time=party.time or inner.time)


def _end(inner: Inner, victim: bool) -> tuple[str, str]:
    """What an end that another log tells of says about a rank."""
    code = inner.exit_code or 0
    words = inner.summary or f"exit code {code}"
    if inner.kind:
        return inner.kind, words
    if victim:
        return "peer_lost", words
    if code == 137:
        return "killed", inner.summary or "killed by SIGKILL"
    if code in (134, 135, 136, 139, 132):
        return "native_crash", inner.summary or f"killed by signal {code - 128}"
    return "unknown", words
