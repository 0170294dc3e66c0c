"""What a TARGET on the command line means, for all commands alike."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from trainwatch.model.state import EMPTY, Run, apply
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.reader.runs import Target, TargetError, find_runs, locate

__all__ = ["Followed", "TargetError", "default_root", "find", "run_directory"]


def default_root() -> Path:
    """Where runs are looked for when no TARGET is given: $TRAINWATCH_ROOT, else ./runs."""
    return Path(os.environ.get("TRAINWATCH_ROOT") or "runs")


def find(written: str | None) -> Target:
    """The run or the root of runs that a TARGET names; without one, the default root. Raises TargetError."""
    if written is not None:
        return locate(written)
    root = default_root()
    if not root.exists():
        where = f"$TRAINWATCH_ROOT, {root}," if os.environ.get("TRAINWATCH_ROOT") else "./runs"
        raise TargetError(f"no TARGET given, and {where} does not exist; name a run directory, or try: trainwatch demo")
    return locate(str(root))


def run_directory(written: str | None) -> Target:
    """The run that a TARGET names; of a root, its newest run, which is said on stderr. Raises TargetError."""
    target = find(written)
    if not target.is_root:
        return target
    runs = find_runs(target.path)
    newest = next((run for run in runs if not run.problem), None)
    if newest is None:
        why = f": {runs[0].problem}" if runs else ""
        raise TargetError(f"{target.path}: none of its runs can be opened{why}")
    if len(runs) > 1:
        print(f"trainwatch: the newest of {len(runs)} runs: {newest.path}", file=sys.stderr)
    return Target(newest.path)


class Followed:
    """A run directory that is read again when asked, without a screen."""

    def __init__(self, directory: str) -> None:
        self.reader = Reader(directory)
        self.run: Run = EMPTY
        self.look()

    def look(self) -> Run:
        """Read what is new; returns the run as it is now."""
        while True:
            self.run = apply(self.run, self.reader.poll())
            if not self.reader.behind:
                return self.run
