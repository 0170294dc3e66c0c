"""The root cause across ranks: who failed first, who died of it, how sure that is, and what else it could be. Pure.

Causes come before what follows from them, then who was earlier, then position. Words beat times: a rank that says that
it lost another is a victim, however early it says so.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainwatch.model.inside import inside
from trainwatch.model.parties import Party, completed
from trainwatch.model.waiting import Absent, who_did_not_come
from trainwatch_launcher.diagnosis.answer import NONE, SURE, UNKNOWN, Evidence
from trainwatch_launcher.diagnosis.levels import SCHEDULED, SILENT, WAITING
from trainwatch_launcher.diagnosis.ranks import fingerprint
from trainwatch_launcher.diagnosis.table import FACT, STOP, kind
from trainwatch_launcher.reader.changes import AttemptKey

TOGETHER = 1.0
"""Seconds within which nobody can say who was first."""
POD = re.compile(r"\bpod[/: ]+(?:[\w.-]{1,80}/)?[a-z][\w.-]{0,80}?-(\d{1,5})\b", re.IGNORECASE)
"""A pod of which the cluster tells: the workers of a job are numbered as their ranks are."""
MEMORY_VICTIMS = frozenset(("killed", "dataloader", "native_crash", "unknown", "peer_lost"))
GPU_VICTIMS = frozenset(("cuda_fault", "cuda_setup", "nccl_error", "native_crash", "python_error", "killed", "unknown"))


@dataclass(frozen=True)
class Cause:
    """Why a run failed."""

    kind: str
    family: str
    summary: str
    rank: int | None = None
    """The rank that it began on; None when it was no single rank."""
    label: str = ""
    """What that rank, or the log that tells of it, is called."""
    key: AttemptKey | None = None
    source: str = ""
    """The file that `line` is of, a base name; empty for the rank's own log in a run directory."""
    line: int | None = None
    """From 1; None when there is none to go to."""
    offset: int | None = None
    frame: str = ""
    time: float | None = None
    exit_code: int | None = None
    confidence: float = 0.0
    hint: str = ""
    why: str = ""
    """How it is known, in one sentence; empty when the line says it all."""
    evidence: tuple[Evidence, ...] = ()
    runner_up: str = ""
    """What else it could be, with its rank; empty when nothing else claims to be the cause."""
    inner_rank: int | None = None
    """Which process in that rank's container it was, by the engine's count; None when they are not told apart."""
    same: tuple[int, ...] = ()
    """Other ranks that failed of the same fault, and not of each other."""
    collateral: tuple[int, ...] = ()
    """Ranks that died because of it."""
    collateral_keys: tuple[AttemptKey, ...] = ()
    kinds: tuple[tuple[int, str], ...] = ()
    """The kind of each rank's own failure, by rank."""

    @property
    def clear(self) -> bool:
        """Whether it is clear enough to act on."""
        return self.kind != UNKNOWN and self.confidence >= SURE


def find_cause(given: Sequence[Party]) -> Cause | None:
    """The root cause among parties; None when nothing failed."""
    parties = completed(sorted(given, key=_place))
    failed = [party for party in parties if party.kind != NONE]
    if not failed:
        return None
    best = min(failed, key=_order)
    ranks = [party for party in parties if party.rank is not None]
    if best.level >= WAITING:
        waited = _absent(parties, ranks, best)
        if waited is not None:
            return waited
    if best.rank is None:
        best = _owner(best, ranks or inside(parties))
    elif kind(best.kind).role == STOP:
        reasons = (best.kind, *(SCHEDULED if best.kind == "cancelled" else ()))
        best = next((party for party in failed if party.rank is None and party.kind in reasons), best)
    return _of_party(parties, best)


def _absent(parties: list[Party], ranks: list[Party], best: Party) -> Cause | None:
    """The rank that the others waited for, or the process inside one; None when nothing tells."""
    within = inside(parties)
    absent = who_did_not_come(ranks) if len(ranks) > 1 else None
    finer = who_did_not_come(within) if len(within) > 1 else None
    if finer is None or (absent is not None and absent.confidence >= finer.confidence):
        return None if absent is None else _of_absent(parties, best, absent)
    if best.rank is None:
        return _of_absent([*parties, *within], best, finer)
    return _of_inner(parties, within, best, finer)


def _of_inner(parties: list[Party], within: list[Party], best: Party, absent: Absent) -> Cause | None:
    """The container in which a process did not come to what the others waited for."""
    away = next(party for party in within if party.rank == absent.ranks[0])
    outer = next((party for party in parties if party.key == away.key), None)
    if outer is None or outer.rank is None:
        return None
    told = _of_absent([*parties, replace(away, rank=outer.rank)], best, replace(absent, ranks=(outer.rank,)))
    return replace(told, label=outer.label, inner_rank=away.rank, summary=absent.why, why=absent.why)


def _place(party: Party) -> tuple[int, str, str, str, str]:
    """Where a party stands among the others; so the answer does not depend on who was read first."""
    rank = party.rank if party.rank is not None else 1 << 30
    return (rank, party.label, party.source, party.kind, party.diagnosis.summary)


def _order(party: Party) -> tuple[float, float, int, int]:
    """Who comes first. A whole second is the finest that times of different hosts are good for."""
    time = party.time if party.time is not None else float("inf")
    rank = party.rank if party.rank is not None else 1 << 30
    return (party.level, time, int(-10 * party.diagnosis.confidence), rank)


def _owner(best: Party, ranks: list[Party]) -> Party:
    """What a kernel or a scheduler tells of a rank, as that rank's own: by its rank, its process, or its end."""
    found = best.diagnosis
    owner = None
    if found.rank is not None:
        owner = next((party for party in ranks if party.rank == found.rank), None)
        if owner is None:
            return replace(best, rank=found.rank, label=str(found.rank), told_by=best.source)
    elif found.pid is not None:
        owner = next((party for party in ranks if party.pid == found.pid), None)
    elif (pod := POD.search(found.summary)) is not None:
        owner = next((party for party in ranks if party.rank == int(pod.group(1)) and party.level > 1.0), None)
    if owner is None and kind(found.kind).role == FACT:
        victims = MEMORY_VICTIMS if found.kind == "host_oom" else GPU_VICTIMS
        hit = [party for party in ranks if party.kind in victims and party.level < SILENT]
        first = [party for party in hit if party.level == min(one.level for one in hit)]
        owner = first[0] if len(first) == 1 else None
    if owner is None:
        return best
    frame = found.frame or owner.diagnosis.frame
    code = found.exit_code if found.exit_code is not None else owner.diagnosis.exit_code
    told = replace(found, rank=owner.rank, frame=frame, exit_code=code)
    return replace(owner, diagnosis=told, source=best.source, told_by=best.source, exit_code=owner.exit_code or code)


def _of_party(parties: list[Party], best: Party) -> Cause:
    """The cause as one party tells it."""
    found = best.diagnosis
    ranks = [party for party in parties if party.rank is not None]
    same = tuple(
        sorted(
            party.rank for party in ranks
            if party.rank is not None and party.rank != best.rank and party.level < WAITING and _same(party, best)
        )
    )  # fmt: skip
    everywhere = bool(same) and best.rank is not None and len(same) + 1 >= len(ranks)
    told = bool(best.told_by)
    job = best.rank is None or (kind(best.kind).role == STOP and everywhere and not told)
    rank = None if everywhere or job else best.rank
    same = () if job else same
    collateral: tuple[int, ...] = ()
    if rank is not None or (job and (kind(best.kind).role == STOP or best.rank is None)):
        collateral = _collateral(parties, rank, same)
    if not ranks:
        rank, collateral = found.rank, _told_collateral(parties, found.rank)
    other = _runner_up(parties, best, same)
    confidence = found.confidence
    if other is not None and rank is not None:
        confidence = min(confidence, 0.6 if _known_order(best, other) else 0.45)
    if best.level >= WAITING and best.kind != "hang" and len(ranks) > 1 and not _alone(parties, best):
        confidence = min(confidence, 0.4)
        rank, collateral = (None, ()) if not best.told_by else (rank, collateral)
    return Cause(
        kind=best.kind, family=found.family, summary=found.summary, rank=rank, label=best.label, key=best.key,
        source=best.told_by or best.source, line=found.line, offset=found.offset, frame=found.frame, time=best.time,
        exit_code=_exit_code(best),
        confidence=round(confidence, 2), hint=found.hint, evidence=found.evidence,
        why="all ranks have the same fault" if everywhere and not job else "",
        runner_up=_told(other) if other is not None else found.runner_up,
        inner_rank=found.rank if best.key is not None and found.inner and rank is not None else None,
        same=same, collateral=collateral, collateral_keys=_keys(parties, collateral), kinds=_kinds(parties),
    )  # fmt: skip


def _of_absent(parties: list[Party], best: Party, absent: Absent) -> Cause:
    """The cause when ranks waited in vain: the rank that did not come, and what it did last."""
    rank = absent.ranks[0]
    away = next((party for party in parties if party.rank == rank), None)
    base = away if away is not None and away.kind != NONE and away.level < WAITING else best
    found, own = base.diagnosis, away.diagnosis if away is not None else best.diagnosis
    place, source = best.diagnosis.line, best.source
    if away is not None:
        source = away.source
        if base is away:
            place = own.line
        elif own.before is not None:
            place = own.before.line
        else:
            place = own.evidence[0].line if own.evidence else own.line
    if place is None:
        place, source = best.diagnosis.line, best.source
    gone = best.kind == "peer_lost" and base is best and (away is None or away.kind == NONE)
    row = kind("killed" if gone else base.kind)
    last = f"; its last line: {own.before.text[:120]}" if away is not None and own.before is not None else ""
    summary = found.summary if base is away else f"{absent.why}{last}"
    evidence = (*([own.before] if own.before is not None else []), *best.diagnosis.evidence)
    collateral = _collateral(parties, rank, absent.ranks)
    return Cause(
        kind=row.name, family=row.family, summary=summary, rank=rank,
        label=away.label if away is not None else str(rank), key=away.key if away is not None else None,
        source=source, line=place, frame=own.frame, time=base.time,
        exit_code=away.exit_code if away is not None else None, confidence=absent.confidence, hint=row.hint,
        why=absent.why, evidence=evidence, runner_up="",
        same=tuple(absent.ranks[1:]), collateral=collateral, collateral_keys=_keys(parties, collateral),
        kinds=_kinds(parties),
    )  # fmt: skip


def _exit_code(best: Party) -> int | None:
    """The exit code of the very process that failed, where a log tells several apart."""
    found = best.diagnosis
    inner = next((one.exit_code for one in found.inner if one.rank == found.rank), None)
    return next((code for code in (inner, best.exit_code, found.exit_code) if code is not None), None)


def _told_collateral(parties: list[Party], rank: int | None) -> tuple[int, ...]:
    """Who died of it, as consoles of all ranks tell."""
    told = {one for party in parties if party.diagnosis.rank == rank for one in party.diagnosis.collateral_ranks}
    return tuple(sorted(told - {rank}))


def _alone(parties: list[Party], best: Party) -> bool:
    """Whether nobody else is as near to the cause: one that ended without a word, among others that lost it."""
    return best.kind == UNKNOWN and not any(
        party is not best and party.kind != NONE and party.level <= best.level for party in parties
    )


def _same(party: Party, best: Party) -> bool:
    return party.kind == best.kind and (
        kind(best.kind).role == STOP or fingerprint(party.diagnosis.summary) == fingerprint(best.diagnosis.summary)
    )


def _collateral(parties: list[Party], rank: int | None, same: Sequence[int]) -> tuple[int, ...]:
    """Ranks that ended without a cause of their own."""
    return tuple(
        sorted(
            {
                party.rank for party in parties
                if party.rank is not None and party.rank != rank and party.rank not in same
                and party.ended and (party.level > 1.0 or rank is None or party.victim)
            }
        )
    )  # fmt: skip


def _runner_up(parties: list[Party], best: Party, same: Sequence[int]) -> Party | None:
    """Another rank with a cause of its own that nothing explains."""
    others = [
        party for party in parties
        if party is not best and party.rank is not None and party.rank != best.rank and party.rank not in same
        and party.level <= best.level and not party.victim
    ]  # fmt: skip
    return min(others, key=_order) if others else None


def _known_order(best: Party, other: Party) -> bool:
    """Whether times say clearly who was first."""
    return best.time is not None and other.time is not None and abs(best.time - other.time) > TOGETHER


def _told(party: Party) -> str:
    name = f"rank {party.label}: " if party.rank is not None else ""
    return f"{name}{party.kind}: {party.diagnosis.summary[:200]}"


def _keys(parties: list[Party], ranks: Sequence[int]) -> tuple[AttemptKey, ...]:
    wanted = set(ranks)
    return tuple(sorted(party.key for party in parties if party.key is not None and party.rank in wanted))


def _kinds(parties: list[Party]) -> tuple[tuple[int, str], ...]:
    kinds: dict[int, Party] = {}
    for party in parties:
        if party.rank is not None and (party.rank not in kinds or party.level < kinds[party.rank].level):
            kinds[party.rank] = party
    return tuple((rank, kinds[rank].kind) for rank in sorted(kinds))
