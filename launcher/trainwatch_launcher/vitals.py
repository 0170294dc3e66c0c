"""What a command's output and GPUs say while it runs: progress, stalls, GPU numbers, and what they cost.

All of it is done by the recorder's thread, in its rounds, and begins when the command has run for a while. A fault in
a part ends that part, with a warning, and nothing else.
"""
from __future__ import annotations

import time
from collections import deque

from trainwatch_launcher.bill import Bill, in_words
from trainwatch_launcher.recent import KEPT
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.stall import Stall
from trainwatch_launcher.textline import last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.gpu.sampler import Sampler
    from trainwatch_launcher.output import Pump
    from trainwatch_launcher.progress.latest import Watcher
    from trainwatch_launcher.rundir.gpus import Metrics
    from trainwatch_launcher.rundir.records import Status
    from trainwatch_launcher.worker import Worker

SHORT = 2.0
"""Seconds that a command must have run for its last progress to be read at its end."""
LINE = 10.0
"""Seconds that a line of metrics.jsonl covers."""
KEPT_LINES = 360
"""Lines that wait while they cannot be written: an hour."""


class Vitals:
    """The vital signs of one command. `close`, `stop` and `words` are for the main thread, all else for the recorder.

    `started`: when the command was, in Unix seconds.
    """

    def __init__(self, worker: Worker, pump: Pump, started: float) -> None:
        self._worker, self._pump = worker, pump
        self._recorder, self._options = worker.recorder, worker.options
        self._began = tick = time.monotonic() - max(0.0, time.time() - started)
        self._period = worker.options.heartbeat
        """Seconds between two looks at the output's end."""
        self._look_at = tick + self._period
        self._bill = Bill(tick)
        self._stall: Stall | None = None
        if self._options.stall_after != 0:
            alone = (worker.identity.world_size or 1) <= 1
            self._stall = Stall(self._options.stall_after, alone, tick)
        self._gpu: Sampler | None = None
        self._gpu_wanted = not self._options.no_gpu
        self._gpus = 0
        self._watcher: Watcher | None = None
        self._seen = 0
        """Bytes of output when its end was last looked at."""
        self._progress: dict[str, Any] = {}
        self._stepped = self._fresh = self._ended = False
        self._first_look = True
        self._parts = [self._look_at_gpus, self._look_at_progress, self._look_at_end, self._look_for_stall]
        self._line_from = started
        self._lines: deque[Metrics] = deque(maxlen=KEPT_LINES)

    # -- in the recorder's rounds

    def look(self, status: Status, closing: bool) -> dict[str, Any]:
        """One look at all; what has changed of the status."""
        now, tick = time.time(), time.monotonic()
        changes: dict[str, Any] = {}
        if self._first_look and status.phase_count:
            self.phase(status.phase or "", status.phase_since or now)
        self._first_look = False
        self._stepped = False
        for part in list(self._parts):
            try:
                changes.update(part(status, now, tick, closing))
            except Exception as error:  # noqa: BLE001 - a fault of ours must not touch the training nor the other parts
                self._parts.remove(part)
                name = part.__name__.rpartition("_")[2]
                message = "internal error, no more of %s: %r" % (name, error)
                self._recorder.event("warning", kind=name, message=message)
        return changes

    def phase(self, name: str, when: float) -> None:
        """The command has told a phase, at `when` (Unix seconds)."""
        self._bill.phase(name, time.monotonic() - max(0.0, time.time() - when))

    def facts(self) -> dict[str, Any]:
        """What the status has of GPUs at this moment; not worth a new one by itself."""
        gpu = self._gpu
        if gpu is None:
            return {"gpu_note": "not read: --no-gpu"} if self._options.no_gpu else {}
        found: dict[str, Any] = {"gpu_note": gpu.note, **self._costs()}
        rows = gpu.snapshot()
        if rows:
            found["gpus"] = rows
        return found

    def lines(self, closing: bool) -> deque[Metrics]:
        """Lines of metrics.jsonl that are to be written; the caller takes from the left what it has written."""
        now = time.time()
        line, patience = None, LINE
        if self._gpu is not None:
            line = self._gpu.take_metrics(now, closing)
            patience = 2 * LINE if self._gpu.snapshot() else LINE  # theirs comes soon
        if line is None and self._fresh and (closing or not self._line_from <= now < self._line_from + patience):
            from trainwatch_launcher.rundir.gpus import metrics

            line = metrics(round(now, 3), round(min(max(0.0, now - self._line_from), LINE), 3))
        if line is not None:
            if self._fresh:
                said = {name: value for name, value in self._progress.items() if value not in (None, "")}
                line.extra["progress"] = said
            self._fresh, self._line_from = False, now
            self._lines.append(line)
        return self._lines

    # -- for the main thread

    def close(self) -> None:
        """Let the process that reads the GPUs end."""
        if self._gpu is not None:
            self._gpu.close()
        self._gpu_wanted = False

    def stop(self) -> None:
        """Wait a moment for that end."""
        if self._gpu is not None:
            self._gpu.stop()

    def words(self) -> str:
        """What the GPUs cost so far, for people; empty when there are none, or nothing is known of them."""
        try:
            return in_words(self._costs())
        except Exception:  # noqa: BLE001 - nothing of this may stand between a command and its exit code
            return ""

    # -- its parts

    def _look_at_gpus(self, status: Status, now: float, tick: float, closing: bool) -> dict[str, Any]:
        if self._gpu is None and self._gpu_wanted and not closing:
            from trainwatch_launcher.gpu.attach import attach

            self._gpu_wanted = False
            self._gpu = attach(self._worker)
        if self._gpu is not None:
            self._gpus = max(self._gpus, len(self._gpu.facts().get("gpus", ())))
        return {}

    def _look_at_progress(self, status: Status, now: float, tick: float, closing: bool) -> dict[str, Any]:
        last = closing or (self._pump.ended and not self._ended)
        size = self._pump.lines.size
        if size == self._seen or not (tick >= self._look_at or (last and tick - self._began >= SHORT)):
            return {}
        self._look_at, self._seen = tick + self._period, size
        if self._watcher is None:
            from trainwatch_launcher.progress.latest import Watcher

            self._watcher = Watcher(self._options.progress_patterns)
        found = self._watcher.look(self._pump.recent.last(), size <= KEPT)
        if found is None:
            return {}
        fields = kept(self._progress, found.as_fields())
        return self._progressed(fields, status, now, tick) if fields != self._progress else {}

    def _progressed(self, fields: dict[str, Any], status: Status, now: float, tick: float) -> dict[str, Any]:
        """Values of progress that are not those of before."""
        before, self._progress, self._fresh = self._progress, fields, True
        stepped = fields["step"] is None or fields["step"] != before.get("step")
        changes = dict(fields)
        if fields["loss_text"] and status.loss_bad_since is None:
            changes["loss_bad_since"] = fields["step"]
        elif fields["loss"] is not None and status.loss_bad_since is not None:
            changes["loss_bad_since"] = None
        if stepped:
            self._stepped = True
            changes["progress_since"] = now
        if status.first_step is None and (fields["step"] is not None or fields["loss"] is not None):
            changes["first_step"] = now
            self._bill.stepped(tick)
        return changes

    def _look_at_end(self, status: Status, now: float, tick: float, closing: bool) -> dict[str, Any]:
        if status.exited is not None:
            self._bill.ended(tick - max(0.0, now - status.exited))
            self._ended = self._pump.ended
        return {}

    def _look_for_stall(self, status: Status, now: float, tick: float, closing: bool) -> dict[str, Any]:
        stall = self._stall
        if stall is None:
            return {}
        if status.exited is not None or closing:
            self._stall = None
            return {"stalled_since": None} if stall.stalled else {}
        before, busy_at = stall.moved, self._gpu.usage()[1] if self._gpu is not None else None
        if not stall.look(tick, self._pump.lines.size, self._stepped, busy_at):
            return {}
        if not stall.stalled:
            message = "it moves again after %d s" % (tick - before)
            self._recorder.event_at(now, "recovered", kind="stall", message=message)
            return {"stalled_since": None}
        since = now - (tick - stall.moved)
        last = last_line(self._pump.tail)
        facts = {"since": round(since, 3), "seconds": round(tick - stall.moved, 1), "last": last}
        facts.update(after=round(stall.limit(busy_at), 1), step=status.step, phase=status.phase)
        if self._options.stall_dump and self._worker.take_stacks("stall") == "done":
            facts["stacks"] = paths.stacks_name(self._worker.stacks)
        self._recorder.event_at(now, "stall", **facts)
        words = "WARNING: no output and no progress for %d s; the last line was: %s"
        self._worker.warn(words, tick - stall.moved, last or "(none)")
        return {"stalled_since": since}

    def _costs(self) -> dict[str, Any]:
        idle = self._gpu.usage()[0] if self._gpu is not None else 0.0
        return self._bill.fields(time.monotonic(), self._gpus, idle)


def kept(before: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The newest values, and of those that the newest output does not repeat the ones before, in the same words."""
    if fields["progress_format"] != before.get("progress_format"):
        return fields
    missing = {name for name, value in fields.items() if value is None} - {"eta_s"}
    if fields["loss_text"]:
        missing.discard("loss")
    elif "loss" in missing:
        missing.add("loss_text")
    return {**fields, **{name: before[name] for name in missing}}
