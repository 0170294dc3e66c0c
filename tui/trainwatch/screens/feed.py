"""A run as the screens see it: what is known of it now, and where its logs are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from trainwatch.link import Link
from trainwatch.model.stacks import Taken
from trainwatch.model.state import Run
from trainwatch.widgets.log_loader import LogReader
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch_launcher.reader.spans import Span


class Feed(Protocol):
    """One followed run. The app makes it from a source; screens never see that."""

    name: str
    """What the user called the run."""
    problem: str
    """Why nothing more comes, in one line; empty while all is well."""
    loaded: bool
    """Whether the first reading is done."""
    gpu_price: float | None
    """What an hour of one GPU costs; None when nobody has said."""
    program: str
    """How our commands are started from where the person sits: `trainwatch`, or a path."""

    @property
    def run(self) -> Run:
        """The run as known now."""
        ...

    @property
    def links(self) -> tuple[Link, ...]:
        """How each host is reached now; none for a run of this machine."""
        ...

    @property
    def kept(self) -> frozenset[AttemptKey]:
        """The launchers whose holds are kept, because shells are open beside them."""
        ...

    def now(self) -> float:
        """The reader's clock, in Unix seconds."""
        ...

    def taking(self, key: AttemptKey) -> Taken | None:
        """What became of the newest request for an attempt's stacks; None when there was none."""
        ...

    async def stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The stacks that an attempt's launcher has taken, the newest `most`, newest first, on our clock.

        Raises ReadError.
        """
        ...

    def logs(self, keys: Sequence[AttemptKey]) -> LogReader:
        """The logs of some attempts, to be read as one in the order of time."""
        ...

    def log_path(self, key: AttemptKey) -> str:
        """Where an attempt's log lies, as far as this machine can open it; empty when it cannot."""
        ...

    async def history(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises ReadError."""
        ...

    async def idle(self, keys: Sequence[AttemptKey], since: Sequence[float]) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work: spans on their workers' clocks, by time.

        Of each what ended by its `since` (Unix seconds) is left out. Raises ReadError.
        """
        ...
