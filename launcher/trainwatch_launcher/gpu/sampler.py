"""The launcher's side of the GPUs: starts the process that asks the driver, and keeps what it says.

Nothing here waits for the driver. The thread reads a pipe; if the process hangs, crashes or was never there, the
launcher has a note that says so.
"""
from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time

from trainwatch_launcher.gpu.series import Interval
from trainwatch_launcher.gpu.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from trainwatch_launcher.rundir.gpus import Metrics

STALE = 10.0
"""Seconds after which numbers are not of the moment any more, and not shown."""
LASTING = ("index", "uuid", "name", "mig", "lost", "memory_total")
"""What stays true while the driver does not answer."""
LOOK_FOR_DRIVER = 60.0
RESTART, LONGEST_RESTART = 60.0, 3600.0
"""Seconds before a process that ended is started again; they double."""
HANGS = 5.0
"""Seconds after which a call that has not returned hangs."""
RETRY = 10.0
"""Seconds between two tries to reach the driver; they double."""
MAX_LINE = 1 << 20
PACKED = 3
DESCRIPTOR = "/proc/self/fd/"
SIGNS = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg")
"""By which a driver is known to be there; the last is WSL's."""
LIBRARY = "libnvidia-ml.so.1"

CODE = "import sys; sys.path[:] = %r; from trainwatch_launcher.gpu.probe import main; main(%d)"


class Sampler:
    """Samples the GPUs of this rank every second. All public methods return at once unless they say otherwise.

    `on_event(when, event, facts)` is called from the sampler's thread: `warning` and `recovered` as in events.jsonl,
    and `gpus` with `facts()` when they are known or have changed.
    `local_rank` is None unless this launcher stands, or may stand, for one local rank of several; `alone` says that it
    surely does.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        local_rank: int | None,
        on_event: Callable[[float, str, dict[str, Any]], None],
        *,
        alone: bool = False,
        period: float = 1.0,
    ) -> None:
        self.pid = 0
        """The process that asks the driver, while it runs: a child of ours that does not belong to the command."""
        self._environ, self._on_event, self._period = environ, on_event, period
        self._local = None if local_rank is None else [local_rank, alone]
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []
        self._taken = 0.0
        self._facts: dict[str, Any] = {}
        self._note = ""
        self._end = ""
        self._interval = Interval()
        self._usage = Usage()
        self._lifeline = -1
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own; without one, where the container allows no more, there is a note instead."""
        try:
            self._thread.start()
        except RuntimeError:
            self._stopping.set()
            self._forget("GPUs are not read: no thread could be started")

    def snapshot(self) -> list[dict[str, Any]]:
        """A row for each GPU, as `rundir.gpus.Gpu` has it; only what lasts when the driver has not answered lately."""
        with self._lock:
            rows, age = self._rows, time.monotonic() - self._taken
        if age <= STALE + 2 * self._period:
            return rows
        return [{name: row[name] for name in LASTING if name in row} for row in rows]

    @property
    def note(self) -> str:
        """Why there are no GPUs to show, or what to know about them; empty when there is nothing to say."""
        with self._lock:
            rows, note, age = self._rows, self._note, time.monotonic() - self._taken
        if rows and age > STALE + 2 * self._period and not self._stopping.is_set():
            return "the driver has not answered for %d s" % age
        return note or ("" if rows or not self.pid else "waiting for the driver")

    def facts(self) -> dict[str, Any]:
        """`driver`, `cuda` (versions), `gpus` (each: index, uuid, name, pci, mig, memory_total); empty until known."""
        with self._lock:
            return dict(self._facts)

    def usage(self) -> tuple[float, float | None]:
        """Seconds times GPUs in which they were seen to be idle; when one last worked (monotonic), None for never."""
        with self._lock:
            return self._usage.idle, self._usage.busy_at

    def take_metrics(self, now: float, closing: bool = False) -> Metrics | None:
        """The next line of metrics.jsonl when it is due: every ten seconds, and what is left at the end."""
        with self._lock:
            return self._interval.take(now, closing)

    def close(self) -> None:
        """Let the process end. The last rows stay, as the GPUs were at the end."""
        self._stopping.set()
        self._let_go()

    def stop(self, seconds: float = 0.5) -> None:
        """`close`, and wait for the end at most so long; a process whose call hangs stays behind until it returns."""
        runs = self.pid  # asked before: as soon as it has ended there is none, though nobody has collected it yet
        self.close()
        if runs:
            self._thread.join(seconds)

    def _run(self) -> None:
        pause = RESTART
        while not self._stopping.is_set():
            if not driver_in_sight(self._environ):
                self._forget("no NVIDIA driver here")
                self._stopping.wait(LOOK_FOR_DRIVER)
                continue
            started = time.monotonic()
            try:
                reader = self._spawn()
            except OSError as error:
                self._forget("GPUs cannot be read: %s" % (error.strerror or error))
                return
            self._read(reader)
            os.close(reader)
            self._collect()
            if self._stopping.is_set():
                return
            if self._end:
                self._forget(self._end)
                return
            self._forget("the process that reads the GPUs ended; it is started again")
            pause = RESTART if time.monotonic() - started > LONGEST_RESTART else pause
            self._stopping.wait(pause)
            pause = min(pause * 2, LONGEST_RESTART)

    def _spawn(self) -> int:
        """Start the process; the descriptor that its lines come from. Raises OSError."""
        theirs_in, ours_out = os.pipe2(os.O_CLOEXEC)
        ours_in, theirs_out = os.pipe2(os.O_CLOEXEC)
        path, packed = import_path()
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        if packed >= 0:
            actions.append((os.POSIX_SPAWN_DUP2, packed, PACKED))
        settings = {"local": self._local, "launcher": os.getpid(), "period": self._period}
        settings.update(hangs=HANGS, retry=RETRY)
        code = CODE % (path, PACKED + 1 if packed >= 0 else PACKED)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", code, json.dumps(settings)]
        try:
            # signals stay blocked as they are with us: what is sent to all of a container must not end it before us
            self.pid = os.posix_spawn(sys.executable, argv, self._environment(), file_actions=actions, setpgroup=0)
        except (OSError, ValueError) as error:
            os.close(ours_in)
            os.close(ours_out)
            raise error if isinstance(error, OSError) else OSError(str(error)) from error
        finally:
            for fd in (theirs_in, theirs_out, packed):
                if fd >= 0:
                    os.close(fd)
        with self._lock:
            self._lifeline = ours_out
        if self._stopping.is_set():
            self._let_go()
        return ours_in

    def _environment(self) -> dict[str, str]:
        """Ours, but without what marks the processes of a command: this is none of them, also not of an outer one's."""
        return {name: value for name, value in self._environ.items() if not name.startswith("TRAINWATCH_")}

    def _read(self, reader: int) -> None:
        """Take lines until the process ends."""
        rest = b""
        while True:
            try:
                data = os.read(reader, 1 << 16)
            except OSError:
                return
            if not data:
                return
            lines = (rest + data).split(b"\n")
            rest = lines.pop()[:MAX_LINE]
            for line in lines:
                try:
                    said = json.loads(line.decode("ascii", "replace"))
                    self._take(said)
                except (ValueError, TypeError, KeyError):
                    continue

    def _take(self, said: dict[str, Any]) -> None:
        if "sample" in said:
            with self._lock:
                self._rows, self._taken = said["sample"], time.monotonic()
                self._usage.add(self._rows, self._taken)
                self._interval.add(said["sample"], float(said["time"]))
        elif "event" in said:
            event, when = said.pop("event"), float(said.pop("time"))
            self._on_event(when, event, said)
        elif "end" in said:
            self._end = said["end"]
        else:
            with self._lock:
                changed = said.get("facts", self._facts) != self._facts
                self._facts, self._note = said.get("facts", self._facts), said["note"]
                if "facts" not in said:
                    self._rows = []
            if changed:
                self._on_event(time.time(), "gpus", {**self._facts, "note": said["note"]})

    def _forget(self, note: str) -> None:
        with self._lock:
            self._rows, self._note = [], note

    def _collect(self) -> None:
        """The process has ended: leave no zombie, if nobody collected it yet."""
        pid, self.pid = self.pid, 0
        try:
            os.waitpid(pid, 0)
        except OSError:
            pass
        self._let_go()

    def _let_go(self) -> None:
        """Close the pipe by whose end the process knows that it is to end."""
        with self._lock:
            lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)


def driver_in_sight(environ: Mapping[str, str]) -> bool:
    """Whether it makes sense to start a process that looks for GPUs: on most machines without any it does not."""
    places = environ.get("LD_LIBRARY_PATH", "").split(":")
    return any(os.path.exists(path) for path in (*SIGNS, *(os.path.join(place, LIBRARY) for place in places if place)))


def import_path() -> tuple[list[str], int]:
    """(sys.path for the process, a descriptor to be its PACKED: a copy of that of our packed file, or -1)."""
    path, packed = [], -1
    for entry in sys.path:
        number = entry[len(DESCRIPTOR):]
        if entry.startswith(DESCRIPTOR) and number.isdigit():
            # above what it is copied to: dup2(2) onto itself would leave it to be closed
            packed = fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, PACKED + 1)
            entry = "%s%d" % (DESCRIPTOR, PACKED)
        path.append(entry)
    return path, packed
