"""Finds the runs of launchers that are alive on this host, in whatever container, by the files that they keep open."""
from __future__ import annotations

import os

from trainwatch_launcher.agent.processes import PROC, command_line, environment, process_ids
from trainwatch_launcher.rundir import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping


def announced(wanted: Mapping[str, str]) -> list[str]:
    """The run directories of launchers alive here whose environment has all of `wanted`, as paths that we can open.

    Those of most launchers come first. Launchers of other users, whom the kernel hides from us, are not found.
    """
    found: dict[str, int] = {}
    for pid in process_ids():
        if b"trainwatch" not in command_line(pid):
            continue
        attempt = _open_attempt(pid)
        if not attempt or not _has(pid, wanted):
            continue
        run = _reachable(pid, _run_of(attempt))
        if run:
            found[run] = found.get(run, 0) + 1
    return sorted(found, key=lambda run: (-found[run], run))


def _has(pid: int, wanted: Mapping[str, str]) -> bool:
    if not wanted:
        return True
    environ = environment(pid)
    return all(environ.get(name) == value for name, value in wanted.items())


def _open_attempt(pid: int) -> str:
    """The attempt that a launcher writes, as that process sees it; empty when it is none."""
    directory = "%s/%d/fd" % (PROC, pid)
    try:
        for name in os.listdir(directory):
            path = os.readlink(os.path.join(directory, name))
            if os.path.basename(path) == paths.EVENTS:
                return os.path.dirname(path)
    except OSError:
        pass  # gone, or not ours to see
    return ""


def _run_of(attempt: str) -> str:
    """The run that an attempt's directory belongs to, also that of a nested launcher."""
    directory = os.path.dirname(attempt)
    while paths.number_of(os.path.basename(directory), paths.LOCAL_PREFIX) is not None:
        directory = os.path.dirname(os.path.dirname(directory))
    return os.path.dirname(directory)


def _reachable(pid: int, path: str) -> str:
    """A path to the same directory from here: a container's own lies below its root; empty when there is none."""
    inside = "%s/%d/root%s" % (PROC, pid, path)
    theirs, ours = _identity(inside), _identity(path)
    if theirs is None or theirs == ours:
        return path if ours is not None else ""
    return inside


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
