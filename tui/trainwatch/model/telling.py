"""An attempt's events as sentences: what each says to a person, and how urgently."""
from __future__ import annotations

import shlex
from dataclasses import dataclass

from trainwatch.model import text
from trainwatch.model.state import Attempt
from trainwatch_launcher.rundir.records import Event

PLAIN = "plain"
GOOD = "good"
WARNING = "warning"
BAD = "bad"


@dataclass(frozen=True)
class Told:
    """One event, told."""

    title: str
    """What happened, in a word or two."""
    detail: str
    """The rest in one line; may be empty."""
    tone: str = PLAIN
    """`plain`, `good`, `warning` or `bad`."""


def tell_all(attempt: Attempt) -> list[tuple[float, Told]]:
    """All that is known to have happened to an attempt, by time, in Unix seconds on the worker's clock."""
    story = [(event.time, tell(event)) for event in attempt.events if event.event != "phase"]
    story += [(phase.started, Told("phase", _named(phase.name, phase.source))) for phase in attempt.phases]
    return sorted(story, key=lambda each: each[0])


def tell(event: Event) -> Told:
    """An event in words; one that this version does not know is shown by its name and facts."""
    teller = _TELLERS.get(event.event)
    return teller(event) if teller is not None else Told(event.event, _facts(event))


def _start(event: Event) -> Told:
    command = shlex.join(event.texts("argv"))
    pid = event.integer("pid")
    return Told("start", command + (f"  (pid {pid})" if pid is not None else ""))


def _phase(event: Event) -> Told:
    return Told("phase", _named(event.text("name"), event.text("source")))


def _named(phase: str, source: str) -> str:
    return phase + ("  (launcher)" if source == "launcher" else "")


def _signal(event: Event) -> Told:
    signal = event.extra.get("signal")
    name = text.signal_name(signal) if isinstance(signal, int) and not isinstance(signal, bool) else str(signal or "?")
    sender = event.extra.get("received_from")
    parts = [name]
    if isinstance(sender, dict):
        parts.append("from " + " ".join(f"{key} {value}" for key, value in sender.items() if value is not None))
    if event.extra.get("forwarded") is True:
        parts.append("forwarded to the command")
    elif event.extra.get("forwarded") is False:
        parts.append("not forwarded" + (f": {event.text('why')}" if event.text("why") else ""))
    return Told("signal", ", ".join(parts), WARNING)


def _warning(event: Event) -> Told:
    return Told("warning", _said(event), WARNING)


def _recovered(event: Event) -> Told:
    return Told("recovered", _said(event), GOOD)


def _stall(event: Event) -> Told:
    file = event.text("stacks")
    return Told("stall", (_said(event) or "no progress") + (f"; stacks: {file}" if file else ""), WARNING)


def _stacks(event: Event) -> Told:
    count, file, note = event.integer("processes"), event.text("file"), event.text("note")
    said = f"{file}: {count} process{'' if count == 1 else 'es'}, {event.text('method')}" if file else "not taken"
    return Told("stacks", f"{said}; {note}" if note else said, WARNING if note else PLAIN)


def _said(event: Event) -> str:
    lost = event.extra.get("lost")
    count = sum(
        span[1] - span[0]
        for span in (lost if isinstance(lost, list) else [])
        if isinstance(span, list) and len(span) == 2 and all(type(edge) is int for edge in span)
    )
    said = ": ".join(part for part in (event.text("kind"), event.text("message")) if part)
    return said + (f" ({text.size(count)} of output lost)" if count > 0 else "")


def _exit(event: Event) -> Told:
    code = event.integer("code")
    shown = text.exit_text(code) or "unknown"
    duration = text.duration(event.number("duration"))
    parts = [f"code {shown}" + (f" after {duration}" if duration else ""), event.text("reason")]
    if event.extra.get("core_dumped") is True:
        parts.append("core dumped")
    return Told("exit", " · ".join(part for part in parts if part), GOOD if code == 0 else BAD)


def _hold(event: Event) -> Told:
    return Told("hold", f"kept for {text.duration(event.number('seconds'))} with code {event.integer('code')}", WARNING)


def _extended(event: Event) -> Told:
    return Told("hold extended", _by(event), GOOD)


def _control(event: Event) -> Told:
    result = event.text("result")
    asked = " ".join(part for part in (event.text("command"), _by(event)) if part)
    return Told("asked", f"{asked}: {result}" if result else asked, PLAIN if result == "done" else WARNING)


def _release(event: Event) -> Told:
    why = {"deadline": "the hold ran out", "command": "on request", "signal": "by a signal"}
    said = why.get(event.text("why"), event.text("why"))
    return Told("release", " ".join(part for part in (said, _by(event)) if part))


def _by(event: Event) -> str:
    return f"by {event.text('by')}" if event.text("by") else ""


def _end(event: Event) -> Told:
    return Told("end", f"the launcher exits with {event.integer('code')}", BAD if event.integer("code") else GOOD)


def _facts(event: Event) -> str:
    return "  ".join(f"{name}={value}" for name, value in sorted(event.extra.items()))


_TELLERS = {
    "start": _start, "phase": _phase, "signal": _signal, "warning": _warning, "recovered": _recovered, "stall": _stall,
    "stacks": _stacks,
    "exit": _exit, "hold": _hold, "hold-extended": _extended, "control": _control, "release": _release, "end": _end,
}  # fmt: skip
