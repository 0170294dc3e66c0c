"""An attempt's facts from its two witnesses: the newest snapshot, completed by what its events say since.

Events are written at once and the snapshot a little later, or never when the disk is full; a launcher that wrote its
`end` must not look lost because its last snapshot could not be written.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwatch.model.text import SHELL_SIGNAL
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.records import Event, Status

AFTER_EXIT = "Drain"
"""The launcher's own last phase. A row keeps showing in which phase the command ended."""


def completed(snapshot: Status | None, events: Sequence[Event], key: AttemptKey) -> Status | None:
    """The snapshot with the facts of all events that are newer; made from the events alone when there is none.

    None when there is neither.
    """
    if snapshot is not None and (not events or events[-1].time <= snapshot.time):
        return snapshot
    if not events:
        return None
    since = snapshot.time if snapshot is not None else float("-inf")
    changes: dict[str, Any] = {}
    for event in events:
        if event.time > since:
            changes.update(_told(event))
    if snapshot is not None:
        return snapshot.replace(**changes)
    nested = key.local_rank if key.local_rank >= 0 else None
    attempt = key.local_attempt if nested is not None else key.attempt
    return Status(**{"rank": key.rank, "attempt": attempt, "local_rank": nested, **changes})


def _told(event: Event) -> dict[str, Any]:
    """The fields of a status that an event tells; each event is a heartbeat too."""
    facts: dict[str, Any] = {"time": event.time}
    if event.event == "start":
        facts.update(started=event.time, host=event.text("host"), run_id=event.text("run_id"))
        facts.update({name: event.integer(name) for name in ("pid", "launcher_pid", "world_size")})
        facts.update(clock_offset=event.number("clock_offset"))
    elif event.event == "phase" and event.text("name") != AFTER_EXIT:
        facts.update(phase=event.text("name"), phase_since=event.time)
    elif event.event == "exit":
        facts.update(exited=event.time, exit_code=event.integer("code"), reason=event.text("reason"))
        facts.update(exit_signal=_signal_in(event), stalled_since=None)
    elif event.event == "diagnosis":
        facts.update(reason=event.text("reason"))
    elif event.event in ("hold", "hold-extended"):
        facts.update(hold_until=event.number("until"))
    elif event.event == "end":
        facts.update(ended=event.time, end_code=event.integer("code"))
    return facts


def _signal_in(event: Event) -> int | None:
    """The number of the signal that an `exit` event names: its code is 128 more."""
    code = event.integer("code")
    return code - SHELL_SIGNAL if code is not None and event.text("signal") else None
