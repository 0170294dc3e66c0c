"""Taking a place in the run directory: where this launcher writes, and the files that it keeps open there."""
from __future__ import annotations

import os
import time

from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import create_once, open_append, write_all
from trainwatch_launcher.rundir.records import RunInfo
from trainwatch_launcher.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from trainwatch_launcher.identity import Identity
    from trainwatch_launcher.options import Options

DEFAULT_ROOT = "runs"
COPY_SIZE = 1 << 20
LONGEST_COMMAND = 32 << 10
ATTEMPT_VARIABLE = "TRAINWATCH_ATTEMPT_DIR"
"""Set for the command: by it a nested launcher finds the attempt that it belongs to."""


class Place:
    """Where a launcher is to write, decided without touching a disk."""

    def __init__(self, run_dir: str, rank_dir: str, share_group: bool, nested: bool) -> None:
        self.run_dir, self.rank_dir, self.nested = run_dir, rank_dir, nested
        self.directory_mode = 0o700
        self.file_mode = 0o600
        if share_group:
            self.share()

    def share(self) -> None:
        """Let the group read what is written here, and act."""
        self.directory_mode = 0o2770
        self.file_mode = 0o640


class Attempt:
    """Our attempt's directory and open files. The descriptors stay open until the end of the process."""

    def __init__(self, number: int, directory: str, events: int, index: int, output: int) -> None:
        self.number, self.directory = number, directory
        self.events, self.index, self.output = events, index, output

    def path(self, name: str) -> str:
        """The path of a file of this attempt."""
        return os.path.join(self.directory, name)


def container_of(environ: Mapping[str, str]) -> str:
    """The attempt of the rank that we run inside of, empty when there is none.

    A launcher inside a nested one belongs to the same rank: a run knows ranks and local ranks, and nothing below.
    """
    outer = environ.get(ATTEMPT_VARIABLE, "").rstrip("/")
    above = os.path.dirname(outer)
    if paths.number_of(os.path.basename(above), paths.LOCAL_PREFIX) is not None:
        outer = os.path.dirname(above)
    return outer if os.path.isabs(outer) and rank_of(outer) is not None else ""


def rank_of(attempt: str) -> int | None:
    """The rank to which an attempt's directory belongs; None when it is no such directory."""
    return paths.number_of(os.path.basename(os.path.dirname(attempt)), paths.RANK_PREFIX)


def run_of(attempt: str) -> str:
    """The run directory in which a rank's attempt lies."""
    return os.path.dirname(os.path.dirname(attempt))


def place_of(options: Options, identity: Identity, environ: Mapping[str, str]) -> Place:
    """Where this launcher writes: inside the attempt of an outer launcher if there is one, else as the options say.

    Also when that attempt's directory cannot be seen from here: whoever starts nested launchers waits for them, so that
    a hold would keep the failure from it.
    """
    container = container_of(environ)
    if container:
        rank_dir = os.path.join(container, paths.local_name(identity.local_rank or 0))
        return Place(run_of(container), rank_dir, options.share_group, True)
    run_dir = options.run_dir or os.path.join(options.root or DEFAULT_ROOT, identity.run_id)
    run_dir = absolute(run_dir)
    return Place(run_dir, os.path.join(run_dir, paths.rank_name(identity.rank)), options.share_group, False)


def absolute(path: str) -> str:
    """The path from the root on; as it is when the working directory was deleted, so that using it fails later."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


def claim(place: Place, identity: Identity, options: Options) -> Attempt:
    """Make the attempt's directory and open its files. Raises OSError when that cannot be done here."""
    os.makedirs(os.path.dirname(place.run_dir), exist_ok=True)
    paths.make_directory(place.run_dir, place.directory_mode)
    if place.nested:
        enter_container(place)
    else:
        write_run_info(place, identity, options)
    number, directory = paths.claim_attempt(place.rank_dir, place.directory_mode)
    paths.make_directory(os.path.join(directory, paths.CONTROL), place.directory_mode)
    names = (paths.EVENTS, paths.INDEX, paths.OUTPUT)
    events, index, output = [open_append(os.path.join(directory, name), place.file_mode) for name in names]
    return Attempt(number, directory, events, index, output)


def enter_container(place: Place) -> None:
    """Find the container's attempt, made again if it was removed, and share with whom its launcher shares."""
    container = os.path.dirname(place.rank_dir)
    paths.make_directories(place.run_dir, container, place.directory_mode)
    if os.stat(container).st_mode & 0o040:
        place.share()


def write_run_info(place: Place, identity: Identity, options: Options) -> None:
    """Write run.json if we are the first of the run."""
    path = os.path.join(place.run_dir, paths.RUN_FILE)
    info = RunInfo(
        run_id=identity.run_id,
        created=time.time(),
        world_size=identity.world_size,
        command=shortened(options.command),
        launcher_version=__version__,
    )
    create_once(path, info, place.file_mode)


def shortened(command: list[str]) -> list[str]:
    """A command that a small file can hold: all of it, or its first words."""
    size = 0
    for number, word in enumerate(command):
        size += len(word) + 3
        if size > LONGEST_COMMAND:
            return [*command[:number], "..."]
    return command


def restore(attempt: Attempt, place: Place) -> None:
    """Make a deleted attempt's directory, events and index again, with what the open files still hold.

    Raises OSError; then nothing was changed.
    """
    os.makedirs(os.path.dirname(place.run_dir), exist_ok=True)
    paths.make_directories(place.run_dir, attempt.path(paths.CONTROL), place.directory_mode)
    events = copy_to(attempt.path(paths.EVENTS), attempt.events, place.file_mode)
    attempt.index = copy_to(attempt.path(paths.INDEX), attempt.index, place.file_mode)
    attempt.events = events


def copy_to(path: str, source: int, mode: int) -> int:
    """The file of this name, opened for appending, with all the bytes of an open one if it is new; its descriptor.

    It has some already when its file system came back after the open one had lost its own. Raises OSError.
    """
    target = open_append(path, mode)
    position = 0
    while os.fstat(target).st_size == position:
        try:
            data = os.pread(source, COPY_SIZE, position)
        except OSError:
            break  # nothing to be had from the lost file
        if not data:
            break
        write_all(target, data)
        position += len(data)
    return target


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
