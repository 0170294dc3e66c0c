"""What a reader tells: who (an attempt's key) and what changed. Plain values, so that they can cross a process."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Union

from trainwatch_launcher.rundir.records import Event, RunInfo, Status


class AttemptKey(NamedTuple):
    """Names one attempt of one rank in a run; sorts by rank, then attempt, nested ranks after their container."""

    rank: int
    attempt: int = 1
    local_rank: int = -1
    """-1 for the container's own launcher, else the local rank of a nested one."""
    local_attempt: int = 0
    """0 for the container's own launcher, else the attempt of the nested one."""


@dataclass(frozen=True)
class RunFound:
    """run.json could be read."""

    info: RunInfo


@dataclass(frozen=True)
class AttemptFound:
    """An attempt's directory appeared. Its status may still be missing (a launcher that died at once)."""

    key: AttemptKey
    directory: str
    modified: float | None = None
    """When the directory was last changed, in Unix seconds on the file server's clock."""


@dataclass(frozen=True)
class StatusChanged:
    """An attempt's status.json was replaced."""

    key: AttemptKey
    status: Status


@dataclass(frozen=True)
class EventsAppended:
    """New lines of an attempt's events.jsonl, in the order written."""

    key: AttemptKey
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Unreadable:
    """Something in the run directory could not be read or understood; the rest goes on.

    `path` is relative to the run directory, `message` is one line for a person. `key` says whose file it is, where
    known. An empty message takes an earlier one back: the same path can be read again.
    """

    path: str
    message: str
    key: AttemptKey | None = None


Change = Union[RunFound, AttemptFound, StatusChanged, EventsAppended, Unreadable]
