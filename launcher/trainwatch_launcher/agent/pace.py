"""How often to look at a run directory: soon enough to be news, seldom enough to cost nothing. Pure."""
from __future__ import annotations

LOCAL = 0.25
"""Seconds between two looks at least, where looking asks this kernel only."""
IDLE = 1.0
"""The same after `CALM` seconds without a change."""
CALM = 5.0
SHARED = 1.0
"""The same where each look may ask a file server."""
SLOWEST = 10.0
"""No run is looked at less often: three missing heartbeats, 15 s, make a rank `lost`."""
CPU_SHARE = 100
"""Looking takes at most one part in so many of a core, as long as that is not slower than `SLOWEST`."""
OPERATIONS = 2000
"""So many file operations a second at most are asked of a file server, with the same reserve."""
TIME_SHARE = 2
"""A slow file server is busy with us for at most one part in so many of the time."""

PER_ATTEMPT = 7
"""File operations that a look at an attempt takes, about: its directories, its status, its events."""
HOT = 32
"""So many of the attempts that changed last are looked at between two looks at everything."""


def operations(live: int, ended: int) -> int:
    """About how many file operations a look at everything takes."""
    return 3 + PER_ATTEMPT * live + ended


def pause(shared: bool, cpu: float, took: float, asked: int, quiet: float = 0.0) -> float:
    """Seconds from the end of one look at everything to the next.

    `cpu` and `took` are what the last one cost in seconds of a core and of the clock, `asked` its file operations;
    `quiet` is for how many seconds nothing has changed.
    """
    if not shared:
        return min(SLOWEST, max(LOCAL if quiet < CALM else IDLE, cpu * CPU_SHARE))
    return max(SHARED, took * (TIME_SHARE - 1), min(SLOWEST, max(cpu * CPU_SHARE, asked / OPERATIONS)))
