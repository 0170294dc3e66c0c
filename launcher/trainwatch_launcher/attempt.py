"""Taking a place in the run directory: where this launcher writes, and the files that it keeps open there."""
from __future__ import annotations

import errno
import os
import time

from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import create_once, open_append
from trainwatch_launcher.rundir.records import RunInfo
from trainwatch_launcher.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from trainwatch_launcher.identity import Identity
    from trainwatch_launcher.options import Options

DEFAULT_ROOT = "runs"
ATTEMPT_VARIABLE = "TRAINWATCH_ATTEMPT_DIR"
"""Set for the command: by it a nested launcher finds the attempt that it belongs to."""


class Place:
    """Where a launcher is to write, decided without touching a disk."""

    def __init__(self, run_dir: str, rank_dir: str, share_group: bool, nested: bool) -> None:
        self.run_dir, self.rank_dir, self.nested = run_dir, rank_dir, nested
        self.directory_mode = 0o2770 if share_group else 0o700
        self.file_mode = 0o640 if share_group else 0o600


class Attempt:
    """Our attempt's directory and open files. The descriptors stay open until the end of the process."""

    def __init__(self, number: int, directory: str, events: int, index: int, output: int) -> None:
        self.number, self.directory = number, directory
        self.events, self.index, self.output = events, index, output

    def path(self, name: str) -> str:
        """The path of a file of this attempt."""
        return os.path.join(self.directory, name)


def place_of(options: Options, identity: Identity, environ: Mapping[str, str]) -> Place:
    """Where this launcher writes: inside the attempt of an outer launcher if there is one, else as the options say."""
    outer = environ.get(ATTEMPT_VARIABLE, "")
    if outer and os.path.isdir(outer):
        local_rank = identity.local_rank if identity.local_rank is not None else identity.rank
        rank_dir = os.path.join(outer, paths.local_name(local_rank))
        return Place(os.path.dirname(os.path.dirname(outer)), rank_dir, options.share_group, True)
    run_dir = options.run_dir or os.path.join(options.root or DEFAULT_ROOT, identity.run_id)
    run_dir = os.path.abspath(run_dir)
    return Place(run_dir, os.path.join(run_dir, paths.rank_name(identity.rank)), options.share_group, False)


def claim(place: Place, identity: Identity, options: Options) -> Attempt:
    """Make the attempt's directory and open its files. Raises OSError when that cannot be done here."""
    os.makedirs(os.path.dirname(place.run_dir), exist_ok=True)
    try:
        os.mkdir(place.run_dir, place.directory_mode)
    except FileExistsError:
        if not os.path.isdir(place.run_dir):
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, not a directory", place.run_dir) from None
    if not place.nested:
        write_run_info(place, identity, options)
    number, directory = paths.claim_attempt(place.rank_dir, place.directory_mode)
    os.mkdir(os.path.join(directory, paths.CONTROL), place.directory_mode)
    names = (paths.EVENTS, paths.INDEX, paths.OUTPUT)
    events, index, output = [open_append(os.path.join(directory, name), place.file_mode) for name in names]
    return Attempt(number, directory, events, index, output)


def write_run_info(place: Place, identity: Identity, options: Options) -> None:
    """Write run.json if we are the first of the run."""
    path = os.path.join(place.run_dir, paths.RUN_FILE)
    info = RunInfo(
        run_id=identity.run_id,
        created=time.time(),
        world_size=identity.world_size,
        command=options.command,
        launcher_version=__version__,
    )
    create_once(path, info, place.file_mode)


def clock_offset(attempt: Attempt) -> float | None:
    """The file server's clock minus ours, in seconds, by the time stamp of a file that we write now.

    Differences below 50 ms are none: the kernel stamps files by a clock that ticks every few milliseconds.
    """
    before = time.time()
    try:
        stamp = os.stat(attempt.path(paths.CONTROL)).st_mtime
        os.utime(attempt.path(paths.CONTROL))  # without times, the server uses its own clock
        stamp = os.stat(attempt.path(paths.CONTROL)).st_mtime
    except OSError:
        return None
    offset = stamp - (before + time.time()) / 2
    return round(offset, 3) if abs(offset) >= 0.05 else 0.0
