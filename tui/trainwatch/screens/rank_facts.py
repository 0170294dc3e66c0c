"""What the details of a rank say: facts, phases and events as styled text. Pure."""

from __future__ import annotations

import shlex

from rich.cells import cell_len

from trainwatch.model import clock, holding, text
from trainwatch.model.rows import Row
from trainwatch.model.state import Attempt, Run
from trainwatch.model.telling import BAD, GOOD, WARNING, tell_all
from trainwatch.widgets import states
from trainwatch.widgets.fit import fit
from trainwatch.widgets.header import Part, fit_most, hanging
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.spark import bar
from trainwatch_launcher.rundir.records import Event

LABEL = 11
SHOWN_EVENTS = 200
TONES = {BAD: "$state-failed", WARNING: "$state-stalled", GOOD: "$state-running"}


def facts(run: Run, attempt: Attempt, row: Row, now: float, width: int) -> list[Part]:
    """Who, where, how it stands, what it used."""
    lines = [
        ("state", f"{states.symbol(row.state)} {row.state}" + (f", code {row.exit_text}" if row.exit_text else "")),
        ("reason", row.reason),
        ("hold", _hold(run, row, now)),
        ("warning", row.warning),
        ("command", shlex.join(attempt.argv)),
        ("directory", attempt.cwd),
        ("host", row.host),
        ("pids", _pids(row)),
        ("started", moment(row.started, now)),
        ("ended", moment(row.exited, now)),
        ("ran for", text.duration(row.elapsed)),
        ("output", _output(row)),
        *_start_facts(attempt.start),
        *_usage(attempt.last("exit")),
        ("clock", _offset(attempt)),
        ("attempts", _attempts(run, attempt)),
        ("files", attempt.directory),
    ]
    colors = {"state": f"bold {states.variable(row.state)}", "reason": "bold", "warning": "$state-stalled",
              "hold": f"bold {states.variable(row.state)}"}  # fmt: skip
    parts: list[Part] = []
    for label, value in lines:
        if value:
            parts += hanging(label, clean(value), LABEL, width, colors.get(label, ""))
    return parts


def _hold(run: Run, row: Row, now: float) -> str:
    """The hold, for a local rank that of its container."""
    outer = holding.holder(run, row.key, now)
    if outer is None or outer.hold_left is None or outer.hold_until is None:
        return ""
    whose = f"{holding.called(run, row.key)}: " if outer.key != row.key else ""
    return f"{whose}{text.countdown(outer.hold_left)} left, until {text.time_of_day(outer.hold_until, now)}"


def _pids(row: Row) -> str:
    command = f"command {row.pid}" if row.pid is not None else ""
    launcher = f"launcher {row.launcher_pid}" if row.launcher_pid is not None else ""
    return ", ".join(part for part in (command, launcher) if part)


def _output(row: Row) -> str:
    if row.output_bytes is None:
        return ""
    lines = f"{row.output_lines:,} lines, " if row.output_lines is not None else ""
    age = text.ago(row.last_output_age)
    return f"{lines}{text.size(row.output_bytes)}" + (f", last {age}{'' if age == 'now' else ' ago'}" if age else "")


def _start_facts(start: Event | None) -> list[tuple[str, str]]:
    if start is None:
        return []
    container = start.extra.get("container")
    facts = container.items() if isinstance(container, dict) else ()
    told = " ".join(f"{key}={value}" for key, value in facts if value)
    return [
        ("user", start.text("user")),
        ("container", told or (container if isinstance(container, str) else "")),
        ("launcher", start.text("launcher_version")),
    ]


def _usage(ended: Event | None) -> list[tuple[str, str]]:
    if ended is None:
        return []
    user, system = ended.number("cpu_user"), ended.number("cpu_system")
    cpu = f"{_seconds(user)} user, {_seconds(system or 0.0)} system" if user is not None else ""
    kills = ended.integer("oom_kills")
    return [
        ("cpu", cpu),
        ("memory", f"{text.size(ended.integer('max_rss'))} at most" if ended.integer("max_rss") else ""),
        ("oom kills", str(kills) if kills else ""),
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else text.duration(seconds)


def _offset(attempt: Attempt) -> str:
    offset = attempt.status.clock_offset if attempt.status is not None else None
    if offset is None or abs(offset) < 0.05:
        return ""
    return f"{abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} the file server's"


def _attempts(run: Run, attempt: Attempt) -> str:
    own = attempt.key
    same = [key for key in sorted(run.attempts) if (key.rank, key.local_rank) == (own.rank, own.local_rank)]
    if len(same) < 2:
        return ""
    numbers = [key.local_attempt if attempt.nested else key.attempt for key in same]
    return ", ".join(f"{n} (this one)" if key == own else str(n) for n, key in zip(numbers, same, strict=True))


def moment(at: float | None, now: float) -> str:
    """A time of day, with the date unless it is today's."""
    return "" if at is None else text.time_of_day(at, now)


def phases(attempt: Attempt, now: float, width: int) -> list[Part]:
    """Each phase with how long it lasted, and a bar of its share."""
    if not attempt.phases:
        return [("no phase yet", "$tw-muted")]
    status = attempt.status
    until = clock.worker_time(status, now) if status is None or status.exited is None else status.exited
    ends = [phase.ended if phase.ended is not None else until for phase in attempt.phases]
    lengths = [max(0.0, end - phase.started) for end, phase in zip(ends, attempt.phases, strict=True)]
    total = max(sum(lengths), 0.001)
    name_width = min(max(cell_len(clean(phase.name)) for phase in attempt.phases), max(12, min(width // 2, width - 39)))
    bar_width = max(4, width - name_width - 9 - 7 - 7)
    parts: list[Part] = []
    for phase, length in zip(attempt.phases, lengths, strict=True):
        lasting = phase.ended is None and (status is None or status.exited is None)
        name = fit(clean(phase.name), name_width)
        style = "bold" if lasting else ("$tw-muted" if phase.source == "launcher" else "")
        parts += [
            (name, style),
            (f"  {text.duration(length):>7}", ""),
            (f"  {length / total:>4.0%}  ", "$tw-muted"),
            (bar(length / total, bar_width), "$tw-accent" if lasting or phase.source != "launcher" else "$tw-muted"),
            ("\n", ""),
        ]
    return parts


def events(attempt: Attempt, now: float, width: int) -> list[Part]:
    """Events, the newest last, each on one line."""
    parts: list[Part] = []
    story = tell_all(attempt)
    shown = story[-SHOWN_EVENTS:]
    if len(shown) < len(story):
        parts.append((f"{len(story) - len(shown)} earlier events\n", "$tw-muted"))
    for time, told in shown:
        stamp = moment(clock.server_time(attempt.status, time), now)
        title = fit(clean(told.title), 13)
        room = max(10, width - len(stamp) - 2 - 13 - 1)
        parts += [
            (f"{stamp}  ", "$tw-muted"),
            (f"{title} ", TONES.get(told.tone, "")),
            (fit_most(clean(told.detail), room) + "\n", ""),
        ]
    return parts or [("no event yet", "$tw-muted")]
