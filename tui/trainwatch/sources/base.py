"""What the app knows of any source of a run, wherever its bytes are."""
from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trainwatch.link import Link
from trainwatch_launcher.reader.changes import AttemptKey, Change
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span


class SourceError(Exception):
    """A source cannot do what was asked; the message is one line for a person and names the fix where there is one."""


@dataclass(frozen=True)
class ShellPlan:
    """How to get a shell where an attempt runs: an argument list, never a string for a shell to parse."""

    argv: tuple[str, ...]
    env: dict[str, str] | None = None
    cwd: str | None = None
    note: str = ""
    """One line for the person: what this shell is, and what it is not."""


@dataclass(frozen=True)
class LogFile:
    """An attempt's output.log at one moment."""

    size: int
    """In bytes; 0 when there is none."""
    number: int
    """Which file it is: another number is another file in the same place."""


Part = tuple[dict[str, Any], bytes]
"""A part of an answer on logs: facts, and bytes that go with them."""


class Source(Protocol):
    """One run, followed. All methods are coroutines or cheap, and none blocks the event loop."""

    name: str
    """What the user called it."""

    @property
    def links(self) -> tuple[Link, ...]:
        """How each host is reached now, in the order that the user named them; none for a run of this machine.

        A value of the moment: ask again after each batch of `changes`, and for ages once a second.
        """
        ...

    def ahead(self, key: AttemptKey) -> float:
        """Seconds that the clock which an attempt's `clock_offset` leads to is ahead of ours; 0 where they agree."""
        ...

    def changes(self) -> AsyncIterator[Sequence[Change]]:
        """Batches of changes from the first reading on, until the source is closed. Raises SourceError.

        Nothing comes twice and nothing is left out, however often a link is lost. An empty batch says that something
        else is new: a link's state, a clock, or that the run has been read and holds nothing yet.
        """
        ...

    async def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now; 0 when there is none. Raises SourceError."""
        ...

    async def log_file(self, key: AttemptKey) -> LogFile:
        """An attempt's output.log as it is now. Raises SourceError."""
        ...

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log; fewer at its end. Raises SourceError."""
        ...

    async def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        ...

    async def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The stacks that an attempt's launcher has taken, the newest `most` of them, newest first. Raises SourceError.

        Their times are on the worker's clock.
        """
        ...

    async def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work, as spans of their workers' clocks.

        `since` leaves out, for each, what ended by then; `lines` bounds how much of each history is looked at. Whose
        history cannot be read has none. Raises SourceError.
        """
        ...

    def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        """Ask something of logs where they lie: see `trainwatch_launcher.reader.engine` for what, and for the answers.

        `shifts` are added to each log's times. Who stops iterating stops the work. Raises SourceError.
        """
        ...

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        """Ask an attempt's launcher for something; returns the request's id, which its `control` event answers.

        Raises SourceError when the request cannot be written.
        """
        ...

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        ...

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        """A shell, or `command`, in the working directory and environment of an attempt. Raises SourceError.

        `label` is what the attempt is called.
        """
        ...

    async def close(self) -> None:
        """Stop following; `changes` ends."""
        ...
