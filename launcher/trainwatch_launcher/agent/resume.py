"""What a viewer has already, so that after a reconnect nothing comes twice and nothing is missed.

The viewer says it as plain values, `have`: {"run": fingerprint, "attempts": [[key, directory, events, fingerprint], …],
"problems": [[path, message, key], …]}. A reader that begins again tells everything; `Resumption` lets through the rest.
"""
from __future__ import annotations

from trainwatch_launcher.agent.wire import decode_key, encode_key, fingerprint
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from trainwatch_launcher.rundir.records import Status


class Seen:
    """What has been told of one attempt."""

    __slots__ = ("directory", "events", "status")

    def __init__(self, directory: str = "", events: int = 0, status: Status | int | None = None) -> None:
        self.directory, self.events, self.status = directory, events, status

    @property
    def fingerprint(self) -> int | None:
        """What tells its status from others."""
        return self.status if self.status is None or isinstance(self.status, int) else fingerprint(self.status)


class Have:
    """What a viewer has, kept up to date by all changes that reached it."""

    def __init__(self) -> None:
        self.run: int | None = None
        self.attempts: dict[AttemptKey, Seen] = {}
        self.problems: dict[str, Unreadable] = {}

    def note(self, changes: Iterable[Change]) -> None:
        """These changes have come."""
        for change in changes:
            if isinstance(change, RunFound):
                self.run = fingerprint(change.info)
            elif isinstance(change, Unreadable):
                self.problems.pop(change.path, None)
                if change.message:
                    self.problems[change.path] = change
            else:
                seen = self.attempts.setdefault(change.key, Seen())
                if isinstance(change, AttemptFound):
                    seen.directory = change.directory
                elif isinstance(change, StatusChanged):
                    seen.status = change.status  # what tells it from others is worked out when somebody asks
                else:
                    seen.events += len(change.events)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the other end."""
        return {
            "run": self.run,
            "attempts": [[encode_key(key), a.directory, a.events, a.fingerprint] for key, a in self.attempts.items()],
            "problems": [
                [p.path, p.message, None if p.key is None else encode_key(p.key)] for p in self.problems.values()
            ],
        }

    @classmethod
    def from_json(cls, value: object) -> Have:
        """What the other end has. Raises ValueError when that is not understood."""
        have = cls()
        try:
            have.run = value["run"]  # type: ignore[index]
            for key, directory, events, status in value["attempts"]:  # type: ignore[index]
                have.attempts[decode_key(key)] = Seen(str(directory), int(events), status)
            for path, message, owner in value["problems"]:  # type: ignore[index]
                have.problems[path] = Unreadable(path, message, None if owner is None else decode_key(owner))
        except (KeyError, TypeError) as error:
            raise ValueError("not understood: %s" % error) from None
        return have


class Resumption:
    """Leaves out of what a new reader tells what a viewer has."""

    def __init__(self, have: Have) -> None:
        self._have = have
        self._problems = dict(have.problems)
        self.done = not (have.attempts or have.problems or have.run is not None)
        """Nothing more will be left out."""

    def new(self, changes: Iterable[Change]) -> list[Change]:
        """Those of the reader's first changes that the viewer does not have."""
        return [rest for change in changes for rest in self._rest(change)]

    def finish(self) -> list[Change]:
        """The reader has told all that there is: what the viewer has and was not told is gone, or was begun again."""
        self.done = True
        return [Unreadable(path, "", problem.key) for path, problem in self._problems.items()]

    def _rest(self, change: Change) -> list[Change]:
        if isinstance(change, RunFound):
            return [] if fingerprint(change.info) == self._have.run else [change]
        if isinstance(change, Unreadable):
            known = self._problems.pop(change.path, None)
            return [] if known is not None and known.message == change.message else [change]
        seen = self._have.attempts.get(change.key)
        if seen is None:
            return [change]
        if isinstance(change, AttemptFound):
            return [] if seen.directory == change.directory else [change]
        if isinstance(change, StatusChanged):
            same, seen.status = fingerprint(change.status) == seen.fingerprint, None
            return [] if same else [change]
        events = change.events[seen.events :]
        seen.events = max(0, seen.events - len(change.events))
        return [EventsAppended(change.key, events)] if events else []
