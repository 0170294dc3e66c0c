"""The GPUs of an attempt as a row tells them: how busy, how full, and which of them is not well."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu, gpus_of
from trainwatch_launcher.rundir.records import Status

LOST, ECC, HOT, THROTTLED = "lost", "ecc", "hot", "slowed"
AILS = (LOST, ECC, HOT, THROTTLED)
"""What a GPU can suffer from, the worst first."""
BUSY = 50
"""Per cent of utilisation from which on a GPU works."""
HOT_FROM = 87
"""Degrees Celsius. Data-centre GPUs name 85 to 93 as where they slow down (`nvidia-smi -q -d TEMPERATURE`)."""
THERMAL = frozenset(("hw_thermal", "sw_thermal"))
BRAKES = frozenset(("hw_slowdown", "hw_power_brake", "reliability"))
"""Reasons for low clocks that are none of a healthy GPU; a power cap is, under full load."""


@dataclass(frozen=True)
class Gpus:
    """All GPUs of one attempt. Per cent and bytes; None means that nobody knows."""

    each: tuple[Gpu, ...] = ()
    note: str = ""
    """Why nothing is known of GPUs."""
    util: float | None = None
    """Mean utilisation."""
    memory_used: int | None = None
    memory_total: int | None = None
    """Of the GPU that is fullest: that one will be out of memory first."""
    ail: str = ""
    """The worst that any of them suffers from, one of `AILS`; empty when all are well."""
    telling: int = 0
    """How many GPUs say their utilisation."""
    identities: tuple[tuple[str, str], ...] = ()
    """What tells each GPU from all others: UUID, and which instance of it. No UUID: nobody can tell."""
    busy_clocks: tuple[int, int] | None = None
    """The lowest and the highest clock of the GPUs that work, in MHz; None when none does or no clock is known."""

    def __len__(self) -> int:
        return len(self.each)


NO_GPUS = Gpus()


def gpus_in(status: Status | None) -> Gpus:
    """The GPUs that a status tells."""
    if status is None:
        return NO_GPUS
    each = tuple(gpus_of(status))
    if not each:
        return Gpus(note=status.gpu_note) if status.gpu_note else NO_GPUS
    utils = [gpu.util for gpu in each if gpu.util is not None]
    full = max(each, key=_fullness)
    known = full.memory_used is not None and full.memory_total is not None
    ails = {ail for gpu in each if (ail := ail_of(gpu))}
    clocks = [gpu.clock for gpu in each if gpu.clock and gpu.util is not None and gpu.util >= BUSY]
    return Gpus(
        each=each,
        note=status.gpu_note,
        util=sum(utils) / len(utils) if utils else None,
        telling=len(utils),
        identities=tuple((gpu.uuid, gpu.mig or "") for gpu in each),
        memory_used=full.memory_used if known else None,
        memory_total=full.memory_total if known else None,
        busy_clocks=(min(clocks), max(clocks)) if clocks else None,
        ail=next((ail for ail in AILS if ail in ails), ""),
    )


def _fullness(gpu: Gpu) -> float:
    return gpu.memory_used / gpu.memory_total if gpu.memory_used is not None and gpu.memory_total else -1.0


def ail_of(gpu: Gpu) -> str:
    """What a GPU suffers from, one of `AILS`; empty when it is well."""
    if gpu.lost:
        return LOST
    if gpu.ecc_uncorrected or gpu.remap_failed or gpu.remap_pending:
        return ECC
    reasons = set(gpu.throttle)
    if reasons & THERMAL or (gpu.temperature is not None and gpu.temperature >= HOT_FROM):
        return HOT
    return THROTTLED if reasons & BRAKES else ""


def ail_text(gpu: Gpu) -> str:
    """What a GPU suffers from, in a few words; empty when it is well."""
    ail = ail_of(gpu)
    if ail == LOST:
        return "is lost: it fell off the bus"
    if ail == ECC:
        if gpu.ecc_uncorrected:
            count = gpu.ecc_uncorrected
            return f"has {count} uncorrected memory error{'s' if count > 1 else ''}"
        return "cannot replace a bad memory row" if gpu.remap_failed else "will replace a bad memory row at its reset"
    degrees = f" at {gpu.temperature} °C" if gpu.temperature is not None else ""
    if ail == HOT:
        slowed = ", slowed down for it" if set(gpu.throttle) & THERMAL else ""
        return f"is hot{degrees}{slowed}"
    if ail == THROTTLED:
        return f"is slowed down: {', '.join(reason for reason in gpu.throttle if reason in BRAKES)}"
    return ""


def name_of(gpu: Gpu) -> str:
    """What a GPU is called: `GPU 3`, `GPU 3 MIG 7/0`."""
    number = "GPU" if gpu.index is None else f"GPU {gpu.index}"
    return f"{number} MIG {gpu.mig}" if gpu.mig else number


def owners(reported: Iterable[tuple[AttemptKey, Gpus]]) -> Mapping[AttemptKey, AttemptKey]:
    """Whose row shows the GPUs of an attempt whose own does not: of several that report a GPU, one draws it.

    That is the one with the fewest GPUs, then the first: a local rank rather than its container. An attempt is in the
    result when others draw all of its GPUs, with the first of them.
    """
    several = list(reported)
    if _all_different(several):
        return {}
    drawn: dict[tuple[str, str], AttemptKey] = {}
    given: dict[AttemptKey, AttemptKey] = {}
    for key, gpus in sorted(several, key=lambda one: (len(one[1]), one[0])):
        if gpus.identities and all(identity[0] and identity in drawn for identity in gpus.identities):
            given[key] = min(drawn[identity] for identity in gpus.identities)
            continue
        for identity in gpus.identities:
            drawn.setdefault(identity, key)
    return given


def mean_util(reported: Iterable[tuple[AttemptKey, Gpus]]) -> tuple[float | None, int]:
    """The mean utilisation of all GPUs, each counted once, and how many there are."""
    several = list(reported)
    if _all_different(several):
        count = sum(gpus.telling for _, gpus in several)
        total = sum(gpus.util * gpus.telling for _, gpus in several if gpus.util is not None)
        return (total / count if count else None), count
    utils: dict[object, int] = {}
    for key, gpus in several:
        for place, (identity, gpu) in enumerate(zip(gpus.identities, gpus.each, strict=True)):
            if gpu.util is not None:
                utils[identity if identity[0] else (key, place)] = gpu.util
    return (sum(utils.values()) / len(utils) if utils else None), len(utils)


def _all_different(reported: Iterable[tuple[AttemptKey, Gpus]]) -> bool:
    """Whether no GPU is reported twice: as a rule, and quickly found."""
    seen: set[tuple[str, str]] = set()
    count = 0
    for _, gpus in reported:
        seen.update(gpus.identities)
        count += len(gpus.identities)
    return len(seen) == count
