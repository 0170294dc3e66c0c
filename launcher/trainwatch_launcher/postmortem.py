"""After a failure: the diagnosis, from the end of the log and what the launcher knows, in a bounded time.

It is made in a thread of its own, and what it needs is imported there: it never delays the exit by more than PATIENCE,
and whatever goes wrong with it costs nothing but itself.
"""
from __future__ import annotations

import os

from trainwatch_launcher.quick import Flag, Lock
from trainwatch_launcher.signals import name_of
from trainwatch_launcher.textline import last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.answer import Diagnosis
    from trainwatch_launcher.diagnosis.facts import Facts
    from trainwatch_launcher.ending import Outcome
    from trainwatch_launcher.worker import Worker

PATIENCE = 1.0
"""Longest time, in seconds, that the exit waits for a diagnosis."""
SETTLE = 0.2
"""Of these, for output that is still on its way into the log."""
MOST_TEXT = 1 << 20
LONGEST_REASON = 200
AT_A_GLANCE = frozenset(("killed", "native_crash"))
"""Kinds of which the signal's name says more than the line."""


def examine(worker: Worker, outcome: Outcome) -> None:
    """Give an outcome its diagnosis, if it can be had in time, and its reason in one line."""
    if not outcome.exit.code:
        return
    made: list[Diagnosis] = []
    done, gone_on = Flag(), Lock()

    def work() -> None:
        try:
            found = _diagnose(worker, outcome)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the training its exit; it is told
            worker.recorder.event("warning", kind="diagnosis", message="no diagnosis: %r" % error)
            done.set()
            return
        with gone_on:
            late = done.is_set()
            made.append(found)
            done.set()
        if late:
            _tell_late(worker, found)

    if worker.helpers.run(work):
        done.wait(PATIENCE)
    with gone_on:
        done.set()
    if made:
        outcome.diagnosis = made[0]
    if not outcome.reason:
        outcome.reason = reason_of(made[0]) if made else brief(outcome)


def _tell_late(worker: Worker, found: Diagnosis) -> None:
    """The exit went on without it: what is held still has use of it."""
    from trainwatch_launcher.hold import diagnosis_lines

    worker.recorder.event("diagnosis", reason=reason_of(found), diagnosis=found.as_json())
    worker.recorder.update(reason=reason_of(found))
    for line in ("why      %s" % reason_of(found), *diagnosis_lines(found)):
        worker.warn("%s", line)


def reason_of(diagnosis: Diagnosis) -> str:
    """A diagnosis in one line, for a table."""
    return " ".join(diagnosis.summary.split())[:LONGEST_REASON]


def brief(outcome: Outcome) -> str:
    """What can be said without a diagnosis: the signal, else the last line."""
    ended = outcome.exit
    if ended.signal is not None:
        return "killed by %s%s" % (name_of(ended.signal), ", core dumped" if ended.core_dumped else "")
    last = last_line(outcome.pump.tail) if outcome.pump else ""
    return "last line: %s" % last if last else ""


def _diagnose(worker: Worker, outcome: Outcome) -> Diagnosis:
    from trainwatch_launcher.diagnosis.diagnose import diagnose

    worker.log.settle(SETTLE)
    text, before, offset = _text(worker, outcome)
    return diagnose(text, _facts(worker, outcome)).at(before, offset)


def _text(worker: Worker, outcome: Outcome) -> tuple[bytes, int | None, int | None]:
    """The end of the output, the lines before it (None when nobody has counted them) and its offset in the log.

    Of a log that has lost bytes, or is not there, only what the pump still has: its place in the log is not known.
    """
    pump, attempt = outcome.pump, worker.recorder.attempt
    if pump is None:
        return b"", None, None
    if attempt is None or worker.log.lost:
        return pump.tail, None, None
    try:
        size = os.fstat(attempt.output).st_size
        start = max(0, size - MOST_TEXT)
        text = _read(attempt.output, start, size)
    except OSError:
        return pump.tail, None, None
    if len(text) < len(pump.tail):
        return pump.tail, None, None  # a log that has not caught up has not the words that matter
    if not start:
        return text, 0, 0
    lines = pump.lines
    lines.catch_up(PATIENCE / 4)
    counted = lines.counted == size == lines.size
    return text, lines.lines - text.count(b"\n") if counted else None, start


def _read(fd: int, start: int, end: int) -> bytes:
    parts = []
    while start < end:
        data = os.pread(fd, end - start, start)
        if not data:
            break
        parts.append(data)
        start += len(data)
    return b"".join(parts)


def _facts(worker: Worker, outcome: Outcome) -> Facts:
    from trainwatch_launcher.diagnosis.facts import Facts

    ended = outcome.exit
    number, sender = worker.stop if worker.stop is not None else (None, {})
    pid, command = sender.get("pid"), sender.get("command")
    return Facts(
        exit_code=ended.code,
        signal=ended.signal,
        core_dumped=ended.core_dumped,
        oom_kills=worker.new_oom_kills(),
        stop_signal=number,
        stop_by=command if isinstance(command, str) else "",
        stop_pid=pid if isinstance(pid, int) else None,
        stopped_for=worker.stopped_for,
        gpu_events=tuple(worker.gpu_events),
        spawn_error=outcome.reason,
    )
