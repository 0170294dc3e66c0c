"""The recorder: a thread through which all writing to the run directory goes, save the log itself.

Whatever happens to the run directory (hung, full, removed) happens to this thread alone: the others hand it facts and
go on. What could not be written is kept and tried again.
"""
from __future__ import annotations

import errno
import os
import struct
import time

from trainwatch_launcher.attempt import clock_offset, restore
from trainwatch_launcher.control import ControlBox
from trainwatch_launcher.quick import Condition, Flag, Lock, deque
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import LineWriter, replace_file
from trainwatch_launcher.rundir.records import INDEX_RECORD, Status, event
from trainwatch_launcher.textline import last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from trainwatch_launcher.attempt import Attempt, Place
    from trainwatch_launcher.gpu.metrics import MetricsFile
    from trainwatch_launcher.helpers import Helpers
    from trainwatch_launcher.output import Pump
    from trainwatch_launcher.rundir.records import Event, Request
    from trainwatch_launcher.vitals import Vitals

TICK = 1.0
"""Seconds between two looks at what changed."""
SETTLED = 0.9
"""Seconds that a command must have run before its vital signs are looked at: starting is not to be made slower."""
UNBOUNDED = frozenset(("phase", "signal", "warning", "recovered", "stall"))
"""Events that a command or its surroundings can make without end."""
DELETED, GONE = "deleted", "gone"
LITTLE = 16 << 20
"""Bytes in which lines are counted in some milliseconds."""
MANY = 10_000
"""So many of those are recorded as they come; after that one a second."""


class Recorder:
    """Writes events, status, index; takes requests. All public methods return at once unless they say otherwise.

    `on_removed(attempt)` is called when the log must be made again, `on_failure(why)` when there will be no attempt.
    `claim()` makes the attempt (it may hang or raise OSError), `on_request` and `on_trouble(message)` are called from
    the recorder's thread, the latter with an empty message when all is well again.
    """

    def __init__(
        self,
        place: Place,
        status: Status,
        claim: Callable[[], Attempt],
        on_attempt: Callable[[Attempt], None],
        on_request: Callable[[Request], None],
        on_trouble: Callable[[str], None],
        on_removed: Callable[[Attempt], None],
        on_failure: Callable[[str], None],
        helpers: Helpers,
    ) -> None:
        self.attempt: Attempt | None = None
        self.failure = ""
        """Why there is no attempt, once that is certain."""
        self.clock_offset: float | None = None
        """The file server's clock minus ours, in seconds."""
        self.pump: Pump | None = None
        self.vitals: Vitals | None = None
        """Progress, GPUs, stalls and costs, once the command has run for a while."""
        self._make_vitals: Callable[[], Vitals] | None = None
        self._watch_from = 0.0
        self._metrics: MetricsFile | None = None
        self.log_troubled = False
        """Whether the log cannot be written."""
        self._place, self._claim = place, claim
        self._on_attempt, self._on_request, self._on_trouble = on_attempt, on_request, on_trouble
        self._on_removed, self._on_failure, self._helpers = on_removed, on_failure, helpers
        self._status = status
        self._changed = True
        self._written = 0.0
        self._events: deque[Event] = deque()
        self._many = self._left_out = 0
        self._ended = False
        self._last_of_many = 0
        self._lock = Lock()
        self._wake = Condition(self._lock)
        self._ready = Flag()
        self._done = Flag()
        self._closing = False
        self._busy_since = time.monotonic()
        """When the round of writing that goes on now, or the last one, began."""
        self._trouble = ""
        self._also: deque[Callable[[], None]] = deque()

    def start(self) -> None:
        """Begin: make the attempt, then write until `close`."""
        if not self._helpers.run(self._run):
            self._fail("no thread can be started: the container's limit on processes is reached")

    def wait_ready(self, seconds: float) -> Attempt | None:
        """Wait at most so long for the attempt; None when it failed or is not there yet."""
        self._ready.wait(seconds)
        return self.attempt

    def event(self, kind: str, /, **facts: Any) -> None:
        """Record an event that happens now."""
        self.event_at(time.time(), kind, **facts)

    def event_at(self, when: float, kind: str, /, **facts: Any) -> None:
        """Record an event that happened at `when` (Unix seconds).

        Of those that a command can make by the thousand only so many are kept; how many were left out is said.
        """
        with self._lock:
            if self._ended or (kind in UNBOUNDED and self._too_many(when)):
                self._left_out += 1
                return
            self._ended = kind == "end"
            if kind == "end" and self._left_out:
                message = "%d events were left out: they came by the thousand" % self._left_out
                self._events.append(event("warning", when, kind="events", message=message))
            self._events.append(event(kind, when, **facts))
            self._wake.notify()

    def _too_many(self, when: float) -> bool:
        """After MANY of them, one a second. The lock is held."""
        self._many += 1
        if self._many <= MANY:
            return False
        if int(when) == self._last_of_many:
            return True
        self._last_of_many = int(when)
        return False

    def write_also(self, job: Callable[[], None]) -> None:
        """Have something else written soon, in our thread; `job` may raise OSError, and is then left."""
        with self._lock:
            self._also.append(job)
            self._wake.notify()

    def update(self, **changes: Any) -> None:
        """Change fields of the status; it is written with the next tick."""
        with self._lock:
            self._status = self._status.replace(**changes)
            self._changed = True

    def watch(self, make: Callable[[], Vitals]) -> None:
        """The command was started: have its vital signs looked at soon, by what `make` makes in our thread."""
        self._watch_from, self._make_vitals = time.monotonic() + SETTLED, make

    def close(self, seconds: float) -> bool:
        """Write all that is left; False when a file system did not answer for `seconds`, counted also from before."""
        with self._lock:
            self._closing = True
            self._wake.notify()
        if self.failure:
            return True
        while not self._done.wait(0.05):
            if time.monotonic() > self._busy_since + seconds:
                return False
        return True

    def _run(self) -> None:
        self._busy_since = time.monotonic()
        try:
            attempt = self._claim()
        except OSError as error:
            a_file = isinstance(error, FileExistsError)
            why = "it is a file, not a directory" if a_file else error.strerror or str(error)
            elsewhere = error.filename not in (None, self._place.run_dir)  # above or below what is named anyway
            self._fail("%s: %s" % (error.filename, why) if elsewhere else why)
            return
        self.attempt = attempt
        self.clock_offset = clock_offset(attempt)
        self._on_attempt(attempt)
        self._ready.set()
        self._events_file = LineWriter(attempt.events)
        self._control = ControlBox(attempt.path(paths.CONTROL), self._place.file_mode != 0o600)
        while True:
            with self._lock:
                closing = self._closing
            self._busy_since = time.monotonic()
            self._write_all(attempt, closing)
            if closing:
                break
            with self._lock:
                if not self._closing and (not (self._events or self._also) or self._trouble):
                    self._wake.wait(TICK)
                self._busy_since = time.monotonic()
        self._done.set()

    def _fail(self, why: str) -> None:
        self.failure = why
        self._on_failure(why)
        self._ready.set()
        self._done.set()

    def _write_all(self, attempt: Attempt, closing: bool) -> None:
        """One round of writing; trouble in one file does not keep the others from theirs."""
        troubles = []
        steps = (
            self._check_files, self._look, self._write_events, self._write_others, self._write_index,
            self._write_status, self._write_metrics, self._take_requests,
        )  # fmt: skip
        for write in steps:
            try:
                write(attempt, closing)
            except OSError as error:
                troubles.append("%s: %s" % (error.filename or self._place.run_dir, error.strerror or error))
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end the recorder; it is reported
                troubles.append("internal error: %r" % error)
        if self.pump is not None and self.pump.scanner_fault:
            troubles.append(self.pump.scanner_fault)
        trouble = troubles[0] if troubles else ""
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(trouble)

    def _check_files(self, attempt: Attempt, closing: bool) -> None:
        """Make the files again that somebody deleted, or whose file system went away and came back.

        What is written into a deleted file goes nowhere, but what it had can still be read and is copied.
        """
        doubt = closing or self.log_troubled or bool(self._trouble)
        events_lost, output_lost = is_lost(attempt.events, doubt), is_lost(attempt.output, doubt)
        if GONE in (events_lost, output_lost) and not os.path.isdir(attempt.directory):
            # not made again: it would lie on the disk below the mount point, out of sight when that is mounted again
            raise OSError(errno.ENOTCONN, "its file system is gone", attempt.directory)
        if events_lost:
            restore(attempt, self._place)
            self._events_file.move(attempt.events)
            self._changed = True
            self.event("warning", kind="run-directory", message="its files were gone; they were made again")
        if output_lost:
            self._on_removed(attempt)

    def _look(self, attempt: Attempt, closing: bool) -> None:
        """Let the vital signs be looked at."""
        make = self._make_vitals
        if make is not None and not closing and time.monotonic() >= self._watch_from:
            self._make_vitals = None
            self.vitals = make()
        changes = self.vitals.look(self._status, closing) if self.vitals is not None else None
        if changes:
            self.update(**changes)

    def _write_events(self, attempt: Attempt, closing: bool) -> None:
        while True:
            with self._lock:
                if not self._events:
                    return
                first = self._events[0]
            self._events_file.append(first)
            if first.event == "phase" and self.vitals is not None and first.text("source") == "marker":
                self.vitals.phase(first.text("name"), first.time)
            with self._lock:
                if self._events and self._events[0] is first:
                    self._events.popleft()

    def _write_index(self, attempt: Attempt, closing: bool) -> None:
        if self.pump is None:
            return
        lines = self.pump.lines
        lines.catch_up(self._catch_up_time(closing))
        records = lines.take(closing)
        if not records:
            return
        data = b"".join(struct.pack(INDEX_RECORD, *record) for record in records)
        size = struct.calcsize(INDEX_RECORD)
        try:
            whole, torn = divmod(os.write(attempt.index, data), size)
            if torn:  # the disk is full: records must stay aligned for those that come later
                os.ftruncate(attempt.index, os.fstat(attempt.index).st_size - torn)
            lines.give_back(records[whole:])
        except OSError:
            lines.give_back(records)
            raise

    def _catch_up_time(self, closing: bool) -> float:
        """Seconds for counting lines: a tenth of our time; in a flood and at the end no more than anybody notices."""
        assert self.pump is not None
        if not closing:
            return TICK / 100 if self.pump.floods else TICK / 10
        lines = self.pump.lines
        if lines.size - lines.counted <= LITTLE:
            return TICK / 10  # far more than it takes
        return min(1.0, max(0.005, (time.time() - self._status.time) / 100))

    def _write_status(self, attempt: Attempt, closing: bool) -> None:
        now = time.time()
        progress = self._progress()
        with self._lock:
            status = self._status
            self._changed = self._changed or any(getattr(status, name) != new for name, new in progress.items())
            if not closing and not self._status_due(now):
                return
            self._changed = False
            self._status = status = status.replace(**progress)
        facts = {"time": now, "attempt": attempt.number, "clock_offset": self.clock_offset}
        if self.vitals is not None:
            facts.update(self.vitals.facts())
        try:
            replace_file(attempt.path(paths.STATUS), status.replace(**facts), self._place.file_mode)
        except OSError:
            self._changed = True
            raise
        self._written = now

    def _status_due(self, now: float) -> bool:
        """At most once a TICK, at least once a heartbeat, not before there is something to say. The lock is held."""
        status, age = self._status, now - self._written
        if status.pid is None and status.exited is None and now - status.time < TICK:
            return False  # the command starts any moment
        if age < 0:
            return True  # the clock was set back
        return age >= TICK * 0.9 and (self._changed or age >= status.interval)

    def _progress(self) -> dict[str, Any]:
        """The status fields that follow the output."""
        pump = self.pump
        if pump is None:
            return {}
        return {
            "output_bytes": pump.lines.size,
            "output_lines": pump.lines.total(),
            "last_output": pump.last_output,
            "last_line": last_line(pump.tail),
        }

    def _write_metrics(self, attempt: Attempt, closing: bool) -> None:
        lines = self.vitals.lines(closing) if self.vitals is not None else None
        while lines:
            if self._metrics is None:
                from trainwatch_launcher.gpu.metrics import MetricsFile

                self._metrics = MetricsFile(attempt.path(paths.METRICS), self._place.file_mode)
            self._metrics.append(lines[0])
            lines.popleft()

    def _write_others(self, attempt: Attempt, closing: bool) -> None:
        while self._also:
            self._also.popleft()()

    def _take_requests(self, attempt: Attempt, closing: bool) -> None:
        for request in self._control.take():
            self._on_request(request)


def is_lost(fd: int, doubt: bool) -> str:
    """Whether an open file was DELETED, or its file system is GONE (a FUSE or NFS server that restarted); else nothing.

    What fstat(2) says of a file may come from the kernel's cache. In `doubt` the server is asked, by statfs(2).
    """
    try:
        if doubt:
            os.fstatvfs(fd)
        return "" if os.fstat(fd).st_nlink else DELETED
    except OSError:
        return GONE
