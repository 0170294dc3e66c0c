"""The runs under a root, and how each stands: what the picker shows. Blocking; called from threads."""

from __future__ import annotations

from pathlib import Path

from trainwatch.model.state import EMPTY, apply
from trainwatch.model.summary import Summary, summary
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.reader.runs import FoundRun, find_runs

OFFERED = 60
"""So many of the newest runs are offered."""


def newest(root: Path) -> list[FoundRun]:
    """The newest runs under `root`, newest first; none when it cannot be read."""
    try:
        return find_runs(str(root), OFFERED)
    except OSError:
        return []


def state_of(path: str, now: float) -> Summary:
    """How a run stands."""
    reader = Reader(path)
    run = apply(EMPTY, reader.poll())
    while reader.behind:
        run = apply(run, reader.poll())
    return summary(run, now)
