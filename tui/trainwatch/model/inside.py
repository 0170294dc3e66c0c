"""The processes inside one log: a container's torchrun workers, or all ranks of one console. Pure."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainwatch.model.parties import Party
from trainwatch_launcher.diagnosis.answer import NONE, Diagnosis, Inner
from trainwatch_launcher.diagnosis.levels import level_of
from trainwatch_launcher.diagnosis.table import kind


def inside(parties: Sequence[Party]) -> list[Party]:
    """A party for each process that these logs tell apart, by its rank in the engine's count; the key is its log's."""
    found: dict[int, Party] = {}
    for party in parties:
        for one in party.diagnosis.inner:
            told = _party(party, one)
            known = found.get(one.rank)
            if known is None or told.level < known.level:
                found[one.rank] = told
    return [found[rank] for rank in sorted(found)]


def _party(outer: Party, one: Inner) -> Party:
    name = one.kind or (outer.kind if one.collective is not None else NONE)
    row = kind(name)
    own = outer.diagnosis
    told = Diagnosis() if name == NONE else replace(
        own, kind=row.name, family=row.family, summary=one.summary or own.summary, rank=one.rank, line=one.line,
        inner=(), before=None, collateral_ranks=(), hint=row.hint,
    )  # fmt: skip
    told = replace(told, collective=one.collective)
    asked = one.exit_code == 143 or one.victim
    if name != NONE and asked and level_of(told) <= 1.0 and not one.summary:
        told = Diagnosis(collective=one.collective)
    return Party(
        told, one.rank, str(one.rank), outer.source, one.time, exit_code=one.exit_code, key=outer.key, failed=True,
        victim=one.victim,
    )  # fmt: skip
