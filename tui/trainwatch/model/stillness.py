"""Who is behind when all logs just stop: by step, else by what the last line is. Pure."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trainwatch.model.cause import Cause
from trainwatch.model.parties import Party
from trainwatch_launcher.diagnosis.answer import Diagnosis
from trainwatch_launcher.diagnosis.ranks import fingerprint


def who_is_behind(parties: Sequence[Party], told: Diagnosis) -> Cause | None:
    """A hang that `told` describes, on the ranks that differ from the others; None when none does."""
    ranks = [party for party in parties if party.rank is not None]
    odd, why = _by_step(ranks)
    if not odd:
        odd, why = _by_last_line(ranks)
    if not odd:
        return None
    first = odd[0]
    before = first.diagnosis.before
    others = tuple(sorted(party.rank for party in ranks if party.rank is not None and party not in odd))
    evidence = tuple(party.diagnosis.before for party in odd if party.diagnosis.before is not None)
    return Cause(
        kind=told.kind, family=told.family, rank=first.rank, label=first.label, key=first.key, source=first.source,
        summary=f"{told.summary}; {why}" + (f": {before.text[:160]}" if before is not None else ""),
        line=before.line if before is not None else None, confidence=told.confidence, hint=told.hint, why=why,
        evidence=evidence, same=tuple(party.rank for party in odd[1:] if party.rank is not None), collateral=others,
        kinds=tuple((party.rank or 0, told.kind if party in odd else "peer_lost") for party in ranks),
    )  # fmt: skip


def _by_step(ranks: Sequence[Party]) -> tuple[list[Party], str]:
    steps = [party.step for party in ranks if party.step is not None]
    if len(steps) < 2 or len(steps) < len(ranks) or min(steps) == max(steps):
        return [], ""
    odd = [party for party in ranks if party.step == min(steps)]
    if len(odd) * 2 > len(ranks):
        return [], ""
    return odd, f"rank {odd[0].label} stopped at step {min(steps)}, the others at {max(steps)}"


def _by_last_line(ranks: Sequence[Party]) -> tuple[list[Party], str]:
    """Those whose last line is of another form than that of most."""
    forms = [fingerprint(party.diagnosis.before.text) if party.diagnosis.before else "" for party in ranks]
    common, count = Counter(forms).most_common(1)[0]
    odd = [party for party, form in zip(ranks, forms, strict=True) if form != common]
    if not odd or count < 2 or len(odd) * 2 > len(ranks):
        return [], ""
    return [replace(party) for party in odd], f"rank {odd[0].label} was at something else than the others"
