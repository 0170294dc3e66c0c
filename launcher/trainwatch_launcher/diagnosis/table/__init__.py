"""The table of all kinds of failures: what they are called, how they are said, what people do about them.

A new kind is a row in the module of its family, a place in KINDS, and a sample in tests/data/failures. The order is
that of precedence within one statement: an error that has the words of two kinds is of the one that comes first.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table import code, comm, data, ends, gpu, host
from trainwatch_launcher.diagnosis.table.pattern import CAUSE, COLLATERAL, FACT, LEVELS, STOP, WEAK, Kind, Pattern

__all__ = [
    "BY_NAME",
    "CAUSE",
    "COLLATERAL",
    "FACT",
    "KINDS",
    "LEVELS",
    "NOTHING",
    "STOP",
    "UNKNOWN",
    "WEAK",
    "Kind",
    "Pattern",
    "kind",
]

KINDS = (
    gpu.HARDWARE, host.SHM, gpu.OOM, data.DISK, ends.LIMIT, host.MEMORY, ends.PREEMPTED, ends.CANCELLED,
    gpu.SETUP, gpu.FAULT, comm.PORT, data.HUB,
    data.STORAGE, data.ARTIFACT, code.COMMAND, data.PERMISSION, code.DEPENDENCY,
    comm.NETWORK, comm.PEER, comm.CONNECTION, comm.TIMEOUT, comm.ERROR, comm.RENDEZVOUS,
    data.MISSING, code.USAGE, ends.NAN, data.LOADER, ends.HANG, host.KILLED, host.CRASH, code.PYTHON,
)  # fmt: skip

NOTHING = Kind("none", "none", WEAK, "")
UNKNOWN = Kind(
    "unknown",
    "unknown",
    WEAK,
    "Nothing in the log says why: look at its last lines, and at what the host and the scheduler say.",
)

BY_NAME = {row.name: row for row in (UNKNOWN, NOTHING, *reversed(KINDS))}


def kind(name: str) -> Kind:
    """The row of a kind; that of `unknown` for a name that another version may know."""
    return BY_NAME.get(name, UNKNOWN)
