"""Keys and changes as JSON values and back. What the other end does not know is left out, never fatal."""
from __future__ import annotations

import zlib

from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.rundir import jsontext
from trainwatch_launcher.rundir.record import RecordError, is_a
from trainwatch_launcher.rundir.records import Event, RunInfo, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from trainwatch_launcher.rundir.record import Record

CHANGES_SIZE = 512 << 10
"""About so many bytes of changes go into one frame; a longer list of events is cut."""


def encode_key(key: AttemptKey) -> list[int]:
    """A key as a list."""
    return list(key)


def decode_key(value: object) -> AttemptKey:
    """A key from a list. Raises ValueError."""
    if not isinstance(value, list) or not 1 <= len(value) <= 4 or not all(is_a(item, "int") for item in value):
        raise ValueError("no key of an attempt: %r" % (value,))
    return AttemptKey(*value)


class Told:
    """The statuses that have gone over one connection, so that of the next ones only what differs does.

    Each end has one and keeps it by encoding, or decoding, all changes in their order.
    """

    def __init__(self) -> None:
        self.facts: dict[AttemptKey, dict[str, Any]] = {}
        """Of the end that tells."""
        self.statuses: dict[AttemptKey, Status] = {}
        """Of the end that is told."""

    def encode(self, change: StatusChanged) -> list[Any]:
        """A status whole the first time, then as what changed and the names of what is gone."""
        facts, before = change.status.facts(), self.facts.get(change.key)
        self.facts[change.key] = facts
        if before is None:
            return ["status", encode_key(change.key), facts]
        changed = {name: value for name, value in facts.items() if name not in before or before[name] != value}
        return ["changed", encode_key(change.key), changed, [name for name in before if name not in facts]]

    def decode(self, kind: str, facts: list[Any]) -> StatusChanged:
        """The status that was encoded. Raises ValueError, TypeError, IndexError or RecordError."""
        key = decode_key(facts[0])
        if kind == "status":
            status = Status.from_json(facts[1])
        else:
            before = self.statuses.get(key)
            if before is None or not isinstance(facts[1], dict):
                raise ValueError("a difference to nothing")
            status = before.changed(facts[1], [str(name) for name in facts[2]])
        self.statuses[key] = status
        return StatusChanged(key, status)


def encode_change(change: Change, told: Told) -> list[Any]:
    """A change as a list: its kind, then its facts."""
    if isinstance(change, RunFound):
        return ["run", change.info.facts()]
    if isinstance(change, AttemptFound):
        return ["attempt", encode_key(change.key), change.directory, change.modified]
    if isinstance(change, StatusChanged):
        return told.encode(change)
    if isinstance(change, EventsAppended):
        return ["events", encode_key(change.key), [event.facts() for event in change.events]]
    return ["unreadable", change.path, change.message, None if change.key is None else encode_key(change.key)]


def decode_change(value: object, told: Told) -> Change | None:
    """A change from a list; None for one of a kind or a format that is not known here."""
    if not isinstance(value, list) or not value:
        return None
    kind, facts = value[0], value[1:]
    try:
        if kind == "run":
            return RunFound(RunInfo.from_json(facts[0]))
        if kind == "attempt":
            modified = facts[2] if is_a(facts[2], "float") else None
            return AttemptFound(decode_key(facts[0]), str(facts[1]), modified)
        if kind in ("status", "changed"):
            return told.decode(kind, facts)
        if kind == "events":
            return EventsAppended(decode_key(facts[0]), tuple(Event.from_json(event) for event in facts[1]))
        if kind == "unreadable":
            key = None if facts[2] is None else decode_key(facts[2])
            return Unreadable(str(facts[0]), str(facts[1]), key)
    except (TypeError, ValueError, IndexError, RecordError):
        pass
    return None


def packets(changes: Iterable[Change], told: Told) -> Iterator[list[str]]:
    """Changes as JSON texts, in portions for one frame each; the last may be empty."""
    portion: list[str] = []
    size = 0
    for change in changes:
        for text in _texts(change, told):
            if portion and size + len(text) > CHANGES_SIZE:
                yield portion
                portion, size = [], 0
            portion.append(text)
            size += len(text)
    yield portion


def fingerprint(record: Record) -> int:
    """Tells one version of a record from another, the same number on both ends."""
    return zlib.crc32(jsontext.dumps(record.facts(), sort_keys=True).encode("ascii"))


def _texts(change: Change, told: Told) -> Iterator[str]:
    """A change as JSON; many events are told in several changes."""
    if not isinstance(change, EventsAppended):
        yield jsontext.dumps(encode_change(change, told))
        return
    start = '["events",%s,[' % jsontext.dumps(encode_key(change.key))
    events: list[str] = []
    size = 0
    for event in change.events:
        text = jsontext.dumps(event.facts())
        if events and size + len(text) > CHANGES_SIZE:
            yield start + ",".join(events) + "]]"
            events, size = [], 0
        events.append(text)
        size += len(text)
    yield start + ",".join(events) + "]]"

