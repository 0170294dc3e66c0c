"""The way to one host, as a plain value: what sources tell and what the header and the Hosts panel show. Pure."""
from __future__ import annotations

from dataclasses import dataclass

CONNECTING = "connecting"
CONNECTED = "connected"
LAGGING = "lagging"
LOST = "lost"
RECONNECTING = "reconnecting"

STATES = (CONNECTING, CONNECTED, LAGGING, LOST, RECONNECTING)
"""`lagging`: it is there, and it or its file system does not answer as it should; what is shown may be old."""
UP = frozenset((CONNECTED, LAGGING))


@dataclass(frozen=True)
class Link:
    """How one host is reached at this moment. Moments are Unix seconds on our clock."""

    name: str
    """What the user calls it."""
    state: str = CONNECTING
    """One of `STATES`."""
    since: float = 0.0
    """When this state began; of a link that is lost, and of one that is tried again, when it was lost."""
    reason: str = ""
    """Why it is not connected, or why it lags, or what it waits for, in one line."""
    heard: float | None = None
    """When it last said anything; None before the first time. What is shown of it is no older."""
    retry_at: float | None = None
    """When it is tried again; None when it is not lost, or when trying again makes no sense until a person acts."""
    failures: int = 0
    """Tries in a row that failed."""
    round_trip: float | None = None
    """Seconds from a question to its answer, of the newest one."""
    host: str = ""
    """What the host calls itself."""
    directory: str = ""
    """The run directory there, once it has been found."""
    spare: bool = False
    """It sees the same directory as another one, which is the one that is read."""
    clock_ahead: float = 0.0
    """Seconds that its clock is ahead of ours; 0 when they may be the same."""
    server_ahead: float = 0.0
    """Seconds that the clock of the file server with the run directory is ahead of ours."""

    @property
    def up(self) -> bool:
        """Whether it can be asked."""
        return self.state in UP

    def age(self, now: float) -> float | None:
        """Seconds since it last said anything, never negative."""
        return None if self.heard is None else max(0.0, now - self.heard)
