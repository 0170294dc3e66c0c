"""What all parts of one launcher's life share: who it is, where it writes, and how it speaks."""
from __future__ import annotations

import os
import time

from trainwatch_launcher import child, signals
from trainwatch_launcher.attempt import claim, copy_to
from trainwatch_launcher.backlog import Backlog
from trainwatch_launcher.cgroup import oom_kills
from trainwatch_launcher.departure import leave_behind
from trainwatch_launcher.helpers import Helpers
from trainwatch_launcher.peers import Peers
from trainwatch_launcher.quick import Lock, deque, signal, start
from trainwatch_launcher.recorder import Recorder
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.records import Status
from trainwatch_launcher.sink import GONE, Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from trainwatch_launcher.attempt import Attempt, Place
    from trainwatch_launcher.child import Process
    from trainwatch_launcher.identity import Identity
    from trainwatch_launcher.options import Options
    from trainwatch_launcher.rundir.records import Request

PATIENCE = 2.0
"""Longest time, in seconds, that a file system may delay a start or an end."""
CONSOLE_ERRORS = GONE | {5}  # EIO: its terminal hung up


class Worker:
    """One launcher: its options and identity, its two sinks, its recorder, its voice, and what people asked of it.

    Made in the main thread before the command is started. Methods that begin with `_on` are called from other threads.
    """

    def __init__(self, options: Options, identity: Identity, place: Place, taken: signals.Taken) -> None:
        self.options, self.identity, self.place, self.taken = options, identity, place, taken
        self.helpers = Helpers()
        self.voice = Sink("stderr", 2, lambda *_: None, CONSOLE_ERRORS, self.helpers)
        self.console = Sink("console", 1, self._on_sink, CONSOLE_ERRORS, self.helpers, backlog=self._backlog())
        self.log = Sink("log", -1, self._on_sink, frozenset(), self.helpers, patient=True, backlog=self._backlog())
        self.oom_kills = oom_kills()
        """Our control group's count of killed processes when we started."""
        self.requests: deque[Request] = deque()
        self.stop: tuple[int, dict[str, object]] | None = None
        """The first stop signal that came while the command ran, and who sent it."""
        self.gpu_events: list[tuple[str, str]] = []
        """(where to look first, message) of the first GPU errors; see `gpu.xid`."""
        self.recorder = Recorder(
            place,
            self._first_status(),
            lambda: claim(place, identity, options),
            self._on_attempt,
            self._on_request,
            self._on_trouble,
            self._on_removed,
            self._on_failure,
            self.helpers,
        )
        self.peers = Peers(self)
        self.processes: Callable[[], list[Process]] = list
        """The processes of the command that live; none before it was started."""
        self.stacks = 0
        """How often stacks were taken."""
        self.children: set[int] = set()
        """Processes of ours that are not to outlive us."""
        self._taking = Lock()
        self.stopped_for = ""
        """Why the command was stopped for another rank's failure; empty when it was not."""

    def say(self, text: str, *arguments: object) -> None:
        """Tell the person at the console. Never waits, never goes into the log, and not at all with --quiet."""
        if self.options.quiet:
            return
        self.warn(text, *arguments)

    def warn(self, text: str, *arguments: object) -> None:
        """As `say`, but what a person must know even with --quiet."""
        words = text % arguments if arguments else text
        self.voice.post(("trainwatch: %s\n" % words).encode("utf-8", "backslashreplace"))

    def take_stacks(self, by: str, request: str = "") -> str:
        """Have the stacks of the command's processes taken, beside everything else: `done`, or why not.

        That it has begun is all that `done` says; the `stacks` event says what came of it. For any thread.
        """
        if not self._taking.acquire(blocking=False):
            return "stacks are being taken already"
        self.stacks += 1
        number = self.stacks

        def take() -> None:
            try:
                from trainwatch_launcher.stacks.taking import take

                take(self, number, by, request)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not touch the training; it is told
                self.recorder.event("warning", kind="stacks", message="no stacks: %r" % error)
            finally:
                self._taking.release()

        try:
            start(take)  # in none of the threads in reserve: it may hang in a file system
        except (RuntimeError, MemoryError):
            self._taking.release()
            return "no thread can be started for it: the container's limit on processes is reached"
        return "done"

    def new_oom_kills(self) -> int | None:
        """Processes that the kernel killed for memory in our control group since we started; None when unknown."""
        now = oom_kills() if self.oom_kills is not None else None
        return None if now is None or self.oom_kills is None else now - self.oom_kills

    def read_back(self, offset: int, length: int) -> bytes:
        """Bytes of the output from the log; none when they are not all there. May take as long as the disk does."""
        attempt = self.recorder.attempt
        if attempt is None or self.log.lost:
            return b""
        try:
            return os.pread(attempt.output, length, offset)
        except OSError:
            return b""

    def leave(self, code: int) -> int:
        """Write what is left, wait for nobody longer than PATIENCE, and say that we end with `code`."""
        vitals = self.recorder.vitals
        if vitals is not None:
            vitals.close()
        for sinks in ((self.log, self.console), (self.voice,)):  # the voice last: it tells what the others lost
            for sink in sinks:
                sink.close()
            self._await(sinks)
            for sink in sinks:
                sink.finish()
        self.recorder.event("end", code=code)
        self.recorder.update(ended=time.time(), end_code=code)
        child.kill_each(tuple(self.children), signal.SIGKILL)
        all_written = self.recorder.close(PATIENCE)
        if vitals is not None:
            vitals.stop()
        attempt = self.recorder.attempt
        if attempt is not None and (not all_written or self.log.hangs):
            leave_behind([attempt.events, attempt.index, attempt.output])
        return code

    def _await(self, sinks: tuple[Sink, ...]) -> None:
        """Until all sinks have written what they have, or hang; after another stop signal PATIENCE longer at most."""
        deadline: float | None = None
        pause = 0.001
        while not all(sink.finished(PATIENCE) for sink in sinks):
            info = signal.sigtimedwait(self.taken.numbers, pause)
            pause = min(pause * 2, 0.05)
            child.reap()
            if info is not None and info.si_signo in signals.STOPS and deadline is None:
                deadline = time.monotonic() + PATIENCE
            if deadline is not None and time.monotonic() >= deadline:
                return

    def _backlog(self) -> Backlog:
        return Backlog(spool_max=self.options.spool_max)

    def _first_status(self) -> Status:
        who = self.identity
        return Status(
            time=time.time(),
            interval=self.options.heartbeat,
            run_id=who.run_id,
            rank=who.rank,
            local_rank=who.local_rank,
            world_size=who.world_size,
            host=who.host,
            launcher_pid=os.getpid(),
            output_lines=0,
        )

    def _on_attempt(self, attempt: Attempt) -> None:
        self.log.attach(attempt.output)

    def _on_failure(self, why: str) -> None:
        self.log.abandon(why)
        self.warn("WARNING: no run directory: %s: %s", self.place.run_dir, why)
        self.warn("WARNING: no log file, no events, no control; the command runs all the same, on this console only")

    def _on_removed(self, attempt: Attempt) -> None:
        """Give the log sink a new file with all that the deleted one has. Raises OSError."""

        def make(old: int) -> int:
            attempt.output = copy_to(attempt.path(paths.OUTPUT), old, self.place.file_mode)
            return attempt.output

        self.log.exchange(make)

    def _on_request(self, request: Request) -> None:
        self.requests.append(request)
        signals.wake_main()

    def _on_trouble(self, trouble: str) -> None:
        if trouble:
            self.warn("WARNING: cannot write the run directory: %s; trying again", trouble)
            self.recorder.event("warning", kind="run-directory", message=trouble)
        else:
            self.recorder.event("recovered", kind="run-directory", message="written again")
        self.recorder.update(warning=trouble)

    def _on_sink(self, sink: Sink, recovered: bool, message: str) -> None:
        kind = "recovered" if recovered else "warning"
        if sink is self.log:
            self.recorder.log_troubled = not recovered
        self.recorder.event(kind, kind=sink.name, message=message, lost=sink.lost)
        self.recorder.update(warning="" if recovered else "%s: %s" % (sink.name, message))
        if sink is self.log and self.recorder.attempt is not None:
            self.warn("%s: log file: %s", "all well again" if recovered else "WARNING", message)
