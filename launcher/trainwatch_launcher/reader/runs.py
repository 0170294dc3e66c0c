"""Finds runs: what a path on the command line means, and the newest runs under a root."""
from __future__ import annotations

import os
from itertools import islice

from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.facts import Facts
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import read_record
from trainwatch_launcher.rundir.record import NewerFormatError, RecordError
from trainwatch_launcher.rundir.records import RunInfo

MAX_ENTRIES = 5000
"""So many entries of a root are looked at; more would make a slow disk wait."""
MAX_RUNS = 200
NO_PERMISSION = "no permission to read it"
SHARING = "run trainwatch as the user that owns it, or start launchers with --share-group for your group to read"
"""What helps against a run that may not be read."""
MAX_DEPTH = 8
"""How far above a path its run may be."""


class TargetError(Exception):
    """A path names no run; the message is one line that says why and what would help."""


class Target(Facts):
    """What a path means."""

    path: str
    """The run directory, or the root of runs; absolute."""
    is_root: bool = False
    key: AttemptKey | None = None
    """The attempt that was named, when the path lies inside one; `attempt` 0 when only its rank was."""


class FoundRun(Facts):
    """A run under a root."""

    path: str
    run_id: str
    time: float
    """When it was created, else when its directory changed last; Unix seconds."""
    world_size: int | None = None
    command: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be opened, in one line; empty when it can."""

    @property
    def is_closed(self) -> bool:
        """Whether it is another user's, who does not share it."""
        return self.problem == NO_PERMISSION


def locate(path: str) -> Target:
    """What a path means: a run, a root of runs, or something inside a run. Raises TargetError for anything else."""
    if not path:
        raise TargetError("TARGET is empty")
    try:
        full = os.path.abspath(path)  # fails in a working directory that is gone
        os.stat(full)
        inside = _run_around(full)
        if inside is not None:
            return inside
        if not os.path.isdir(full):
            raise TargetError("%s is a file, not a run directory" % path)
        entries = _entries(full)
    except FileNotFoundError:
        raise TargetError("%s does not exist; name the directory that trainwatch-launch was given" % path) from None
    except PermissionError:
        raise TargetError("%s: no permission to read it; %s" % (path, SHARING)) from None
    except OSError as error:
        raise TargetError("%s cannot be read: %s" % (path, error.strerror or error)) from None
    closed = None
    for entry in entries:
        try:
            if _is_dir(entry) and _may_be_run(entry.path):
                return Target(full, is_root=True)
        except PermissionError:
            closed = closed or entry.name
    if closed is not None:
        # it cannot be told whether these are runs: a run's directory is its user's alone
        message = "%s: no run in it that you may read; no permission to read %s in it; %s"
        raise TargetError(message % (path, closed, SHARING))
    what = "holds no run" if entries else "is empty; no launcher has written there yet"
    if any(entry.name == paths.RUN_FILE for entry in entries):
        what = "holds no run that can be read: its run.json is damaged or another tool's, and there are no ranks"
    raise TargetError("%s %s (a run has run.json or rank-00000 in it)" % (path, what))


def find_runs(root: str, most: int = MAX_RUNS) -> list[FoundRun]:
    """The newest runs directly under a root, newest first. Looks at `MAX_ENTRIES` entries at most. Raises OSError."""
    dated = []
    for entry in _entries(root):
        try:
            if _is_dir(entry):
                dated.append((entry.stat().st_mtime, entry.path))
        except OSError:
            continue  # gone again
    newest = sorted(dated, reverse=True)[: most * 2]  # some of them are no runs
    runs = (found for found in (_found(path, time) for time, path in newest) if found is not None)
    return sorted(islice(runs, most), key=lambda run: run.time, reverse=True)


def _found(path: str, time: float) -> FoundRun | None:
    name = os.path.basename(path)
    try:
        info = _info(path)
    except NewerFormatError as error:
        return FoundRun(path, name, time, problem=_newer(error))
    except PermissionError:
        return FoundRun(path, name, time, problem=NO_PERMISSION)
    except (OSError, RecordError):
        return FoundRun(path, name, time) if _has_ranks(path) else None
    return FoundRun(path, info.run_id, info.created, info.world_size, tuple(info.command))


def _run_around(path: str) -> Target | None:
    """The run that a path is or lies in; None when there is none."""
    if os.path.isdir(path) and _is_run(path):
        return Target(path)
    names: list[str] = []
    directory = path
    for _ in range(MAX_DEPTH):
        directory, name = os.path.split(directory)
        names.insert(0, name)
        # only the names below decide: a run kept in somebody's rank-7/ is a run of its own
        if paths.number_of(name, paths.RANK_PREFIX) is not None and _is_run(directory):
            if not os.path.isdir(path):
                raise TargetError("%s is a file; the run that it belongs to is %s" % (path, directory))
            return Target(directory, key=_key(names))
    return None


def _key(names: list[str]) -> AttemptKey:
    """The attempt that the directories below a run lead to."""
    numbers = [-1, 0, -1, 0]
    prefixes = (paths.RANK_PREFIX, paths.ATTEMPT_PREFIX, paths.LOCAL_PREFIX, paths.ATTEMPT_PREFIX)
    for at, (name, prefix) in enumerate(zip(names, prefixes)):
        number = paths.number_of(name, prefix)
        if number is None:
            break
        numbers[at] = number
    return AttemptKey(*numbers)


def _is_run(directory: str) -> bool:
    """Whether a directory is a run. Raises OSError, and TargetError for one of a newer format."""
    try:
        _info(directory)
        return True
    except NewerFormatError as error:
        raise TargetError("%s: %s" % (directory, _newer(error))) from None
    except RecordError:
        pass  # damaged, or another tool's
    except PermissionError:
        raise
    except OSError:
        pass
    return _has_ranks(directory)


def _info(directory: str) -> RunInfo:
    return read_record(RunInfo, os.path.join(directory, paths.RUN_FILE))


def _newer(error: NewerFormatError) -> str:
    return "%s; upgrade trainwatch to open this run" % error


def _may_be_run(directory: str) -> bool:
    """Whether it looks like a run. Raises PermissionError when that cannot be seen."""
    try:
        return os.path.lexists(os.path.join(directory, paths.RUN_FILE)) or _has_ranks(directory)
    except PermissionError:
        raise
    except OSError:
        return False


def _has_ranks(directory: str) -> bool:
    with os.scandir(directory) as entries:
        return any(
            paths.number_of(entry.name, paths.RANK_PREFIX) is not None and _is_dir(entry)
            for entry in islice(entries, MAX_ENTRIES)
        )


def _entries(directory: str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return list(islice(entries, MAX_ENTRIES))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
