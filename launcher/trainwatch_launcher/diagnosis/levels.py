"""How near to the cause a failure is, judged by its kind: by this, ranks are compared with each other."""
from __future__ import annotations

from trainwatch_launcher.diagnosis.answer import NONE
from trainwatch_launcher.diagnosis.table import COLLATERAL, FACT, STOP, WEAK, kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.answer import Diagnosis

SYMPTOMS = {"network": 1.5, "nccl_error": 1.5, "hang": 2.3, "rendezvous": 2.2, "unknown": 2.5}
"""Kinds that a rank also has when another one is at fault, and between which levels they stand."""
LEVELS = {FACT: 0.0, STOP: 1.0, WEAK: 2.0, COLLATERAL: 3.0}
OWN = 1.0
"""Up to this level a failure is a cause of its own."""
WAITING = 2.15
"""From this level on it tells of waiting for others, or of nothing."""
SILENT = 4.0
SCHEDULED = ("time_limit", "preempted")
"""Ends by a scheduler, which programs take for an interruption by a person."""
STOPS = frozenset((129, 130, 143))
"""Exit codes of a process that was asked to end."""


def level_of(found: Diagnosis, exit_code: int | None = None, victim: bool = False) -> float:
    """The level of a failure: lower is nearer to the cause. `victim`: somebody ended it because another had failed."""
    if found.kind == NONE:
        return SILENT
    role = kind(found.kind).role
    if victim and role in (WEAK, STOP):
        return LEVELS[COLLATERAL]
    if found.kind == "killed" and exit_code in STOPS:
        return 2.8
    level = SYMPTOMS.get(found.kind, LEVELS.get(role, OWN))
    return max(level, LEVELS[COLLATERAL]) if found.collateral else level
