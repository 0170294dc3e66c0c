"""What a reader tells: who (an attempt's key) and what changed. Plain values, so that they can cross a process."""
from __future__ import annotations

from trainwatch_launcher.reader.facts import Facts
from trainwatch_launcher.rundir.records import Event, RunInfo, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple, Union

    Four = Tuple[int, int, int, int]
else:
    Four = tuple


class AttemptKey(Four):
    """Names one attempt of one rank in a run; sorts by rank, then attempt, nested ranks after their container."""

    __slots__ = ()

    def __new__(cls, rank: int, attempt: int = 1, local_rank: int = -1, local_attempt: int = 0) -> AttemptKey:
        """A key from its numbers."""
        return tuple.__new__(cls, (rank, attempt, local_rank, local_attempt))

    @property
    def rank(self) -> int:
        """The rank in the run."""
        return self[0]

    @property
    def attempt(self) -> int:
        """Its attempt, counted from 1."""
        return self[1]

    @property
    def local_rank(self) -> int:
        """-1 for the container's own launcher, else the local rank of a nested one."""
        return self[2]

    @property
    def local_attempt(self) -> int:
        """0 for the container's own launcher, else the attempt of the nested one."""
        return self[3]

    def __getnewargs__(self) -> tuple[int, int, int, int]:
        return tuple(self)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "AttemptKey(rank=%d, attempt=%d, local_rank=%d, local_attempt=%d)" % self

    def of_attempt(self, attempt: int) -> AttemptKey:
        """The key of another attempt of the same rank."""
        return AttemptKey(self[0], attempt, self[2], self[3])


class RunFound(Facts):
    """run.json could be read."""

    info: RunInfo


class AttemptFound(Facts):
    """An attempt's directory appeared. Its status may still be missing (a launcher that died at once)."""

    key: AttemptKey
    directory: str
    modified: float | None = None
    """When the directory was last changed, in Unix seconds on the file server's clock."""


class StatusChanged(Facts):
    """An attempt's status.json was replaced."""

    key: AttemptKey
    status: Status


class EventsAppended(Facts):
    """New lines of an attempt's events.jsonl, in the order written."""

    key: AttemptKey
    events: tuple[Event, ...]


class Unreadable(Facts):
    """Something in the run directory could not be read or understood; the rest goes on.

    `path` is relative to the run directory, `message` is one line for a person. `key` says whose file it is, where
    known. An empty message takes an earlier one back: the same path can be read again.
    """

    path: str
    message: str
    key: AttemptKey | None = None


if TYPE_CHECKING:
    Change = Union[RunFound, AttemptFound, StatusChanged, EventsAppended, Unreadable]
else:
    Change = Facts
