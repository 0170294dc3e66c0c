"""Single facts of one attempt, read when somebody asks, without following it."""
from __future__ import annotations

import os

from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import LineFile, read_record
from trainwatch_launcher.rundir.record import RecordError
from trainwatch_launcher.rundir.records import Event, Status

HEAD = 4 << 20
"""The `start` event is among the first so many bytes; a long command line makes it long."""


def status_of(directory: str) -> Status | None:
    """An attempt's status as it is now; None when there is none or it cannot be read."""
    try:
        return read_record(Status, os.path.join(directory, paths.STATUS))
    except (OSError, RecordError):
        return None


def start_of(directory: str) -> Event | None:
    """An attempt's `start` event; None when there is none or it cannot be read."""
    try:
        events = LineFile(os.path.join(directory, paths.EVENTS)).read(Event, HEAD)
    except OSError:
        return None
    return next((event for event in events if event.event == "start"), None)


def log_path(directory: str) -> str:
    """Where an attempt's output lies."""
    return os.path.join(directory, paths.OUTPUT)


def log_number(directory: str) -> int:
    """The inode number of an attempt's output: another one means another file in its place. 0 when there is none."""
    try:
        return os.lstat(log_path(directory)).st_ino
    except OSError:
        return 0


def files_of(directory: str) -> tuple[str, ...]:
    """Files of an attempt that its launcher keeps open."""
    return tuple(os.path.join(directory, name) for name in (paths.EVENTS, paths.OUTPUT, paths.INDEX))
