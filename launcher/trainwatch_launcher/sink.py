"""One place where output goes: the console, or the log. Each bears its own faults and never those of the other.

A sink writes directly, in the thread that read the bytes, as long as that is quick: this is as fast as a copy gets.
When its file is slow, full, hung or not there, the bytes wait in a backlog and a thread of the sink's own (the drainer)
writes them in order; when it has caught up, writing is direct again. Bytes are dropped only when the backlog is full or
the file is gone for good, and then the sink knows exactly which.
"""
from __future__ import annotations

import errno
import os
import select
import time

from trainwatch_launcher.backlog import Backlog, open_spool
from trainwatch_launcher.quick import Condition, Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from trainwatch_launcher.helpers import Helpers

RETRY = 0.5
"""Seconds between two tries to write to a file that refused."""
LINGER = 1.0
"""Seconds that a drainer stays after it has caught up: a slow file is seldom slow only once."""
SLOW = 0.05
"""A direct write that takes longer than this, in seconds, shows a slow file."""
PATIENCE = 2.0
"""Seconds without any progress after which a file hangs."""
MAX_RANGES = 100
GONE = frozenset((errno.EPIPE, errno.EBADF, errno.ENXIO, errno.ECONNRESET, errno.ENOTCONN))
"""Errors after which nobody will ever read on the other side."""


class Sink:
    """Writes a stream of bytes to a descriptor, in order, and keeps account of what could not be written.

    `report(sink, recovered, message)` is called from any thread when trouble begins and when it ends. `lost` holds
    [from, to) offsets in the stream. When the backlog is full, a `patient` sink makes the pump wait as long as its file
    takes anything at all; others, and files that hang, lose bytes.
    """

    def __init__(
        self,
        name: str,
        fd: int,
        report: Callable[[Sink, bool, str], None],
        terminal_errors: frozenset[int],
        helpers: Helpers,
        patient: bool = False,
        backlog: Backlog | None = None,
    ) -> None:
        self.name = name
        self.fd = fd
        self.gone = False
        self.lost: list[list[int]] = []
        self.queued = fd < 0
        """Bytes must go through the backlog: a hint without the lock, the truth with it."""
        self._report = report
        self._terminal_errors = terminal_errors
        self._helpers = helpers
        self._patient = patient
        self._lock = Lock()
        self._wake = Condition(self._lock)
        self._backlog = backlog if backlog is not None else Backlog()
        self._position = 0
        self._writing: tuple[int, int] | None = None
        """The [from, to) of a direct write that goes on now."""
        self._make: Callable[[int], int] | None = None
        self._spool_asked = False
        self._draining = self._drain_owed = False
        self._closing = False
        self._progress = time.monotonic()
        self._fault = ""

    @property
    def position(self) -> int:
        """Bytes of the stream that this sink was given."""
        return self._position

    @property
    def lost_bytes(self) -> int:
        """Bytes of the stream that this sink dropped so far."""
        return sum(end - start for start, end in self.lost) if self.lost else 0

    @property
    def hangs(self) -> bool:
        """Whether a write to the file waits in the kernel, as far as we know."""
        return self._writing is not None or (self._draining and self.gone)

    @property
    def behind(self) -> int:
        """Bytes waiting in the backlog."""
        return self._backlog.size

    def enqueue(self, data: bytes) -> bool:
        """Put bytes behind the backlog; False when there is none any more and they should be written directly."""
        with self._lock:
            if not self.queued:
                return False
            self._append(data)
            return True

    def write(self, data: bytes) -> None:
        """Write bytes directly. What the file refuses goes to the backlog, and a drainer starts to care for it."""
        with self._lock:
            if self.queued:
                self._append(data)
                return
            end = self._position + len(data)
            self._writing = (self._position, end)
            self._position = end  # before the write: bytes that are queued while it hangs come after these
            started = self._progress = time.monotonic()
        rest, error = self._write(data)
        with self._lock:
            self._writing = None
            if self.gone:
                return  # given up meanwhile, and counted as lost
            if rest:
                self._backlog.push_front(end - len(rest), bytes(rest))
            if rest or self._make is not None or time.monotonic() - started > SLOW:
                self.queued = True
                self._start_drainer()
            if self.queued:
                self._wake.notify_all()
        if error is not None:
            self._trouble(os.strerror(error))

    def post(self, data: bytes) -> None:
        """Write bytes without ever waiting for them: for words of our own."""
        with self._lock:
            self.queued = True
            self._append(data)

    def settle(self, seconds: float) -> None:
        """Wait until nothing is left to write, at most so long, and not for a file that hangs."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while self._is_busy() and time.monotonic() < min(deadline, self._progress + PATIENCE):
                self._wake.wait(0.05)

    def take_over(self) -> None:
        """A direct write hangs in the kernel: from now on bytes queue up, and the hanging thread becomes the drainer.

        That thread must call `taken_over` when its write returns.
        """
        with self._lock:
            # the write may have returned just now, late enough that a drainer was started: two would write all twice
            self._drain_owed = not self._draining
            self.queued = self._draining = True
        self._trouble("does not take output")

    def taken_over(self) -> None:
        """For the thread whose write hung when `take_over` was called: be the drainer, if there is none yet."""
        with self._lock:
            owed, self._drain_owed = self._drain_owed, False
        if owed:
            self.drain()

    def attach(self, fd: int) -> None:
        """Give a sink that was made without a descriptor its file; what waited is written first."""
        with self._lock:
            self.fd = fd
            if self._backlog:
                self._start_drainer()
            else:
                self.queued = False

    def exchange(self, make: Callable[[int], int]) -> None:
        """Replace the file soon: `make(old)` returns the new descriptor, in a moment when nobody writes.

        When it raises OSError, the old file stays.
        """
        with self._lock:
            self._make = make
            self.queued = True
            if self._writing is None:
                self._start_drainer()

    def abandon(self, why: str) -> None:
        """There will never be a file: drop the backlog and all that comes."""
        with self._lock:
            self.gone = self.queued = True
            self._drop_backlog()
            self._wake.notify_all()
        self._trouble(why)

    def drain(self) -> None:
        """Write the backlog until it is empty and stays so, then let bytes be written directly again."""
        while True:
            with self._lock:
                make, self._make = self._make, None
                if make is None and not self._backlog and not self.gone and not self._closing:
                    self._wake.wait(LINGER)
                    make, self._make = self._make, None
                if make is None and (self.gone or not self._backlog):
                    self._draining = False
                    self.queued = self.gone
                    self._wake.notify_all()
                    break
                data = self._first()
            if make is not None:
                self._exchange(make)
                continue
            rest, error = self._write(data)
            with self._lock:
                if not self.gone:  # else given up meanwhile: the backlog was dropped and counted
                    self._consume(len(data) - len(rest))
            if error is not None:
                self._refused(error)
        if not self.gone:
            self._recover()

    def close(self) -> None:
        """No more bytes will come, and a file that refuses now is not tried again. Does not wait; `finish` does."""
        with self._lock:
            self._closing = True
            if self._backlog and self._writing is None:
                self._start_drainer()
            self._wake.notify_all()

    def finished(self, patience: float) -> bool:
        """Whether all is written, or the file took nothing for `patience` seconds. Call `close` first."""
        with self._lock:
            return not self._is_busy() or time.monotonic() >= self._progress + patience

    def finish(self) -> None:
        """Give up what is not written; it counts as lost. Call `close` first, and wait until `finished`."""
        with self._lock:
            if self._is_busy():
                self.gone = self.queued = True
                if self._writing is not None:
                    self._lose(*self._writing)
                self._drop_backlog()
        if self.lost:
            self._report(self, False, "%d bytes were lost" % self.lost_bytes)

    def _is_busy(self) -> bool:
        """Whether bytes still wait or are on their way. The lock is held."""
        return not self.gone and (bool(self._backlog) or self._writing is not None)

    def _first(self) -> bytes | bytearray:
        """What is to be written next; what the spool's disk has lost is lost. The lock is held."""
        while self._backlog:
            data = self._backlog.first()[1]
            if data:
                return data
            self._lose(*self._backlog.drop_first())
        return b""

    def _exchange(self, make: Callable[[int], int]) -> None:
        try:
            self.fd = make(self.fd)
            size = os.fstat(self.fd).st_size
        except OSError as error:
            self._trouble(os.strerror(error.errno or errno.EIO))
            return
        with self._lock:
            written = self._position - self._backlog.size
            missing = written - self.lost_bytes - size
            if missing > 0:  # the old file took them, and its file system went away before it stored them
                self._lose(written - missing, written)

    def _append(self, data: bytes) -> None:
        """Queue bytes, or lose them. The lock is held."""
        if not self._backlog:
            self._progress = time.monotonic()
        while (
            self._patient
            and not self.gone
            and not self._backlog.has_room(len(data))
            and time.monotonic() < self._progress + PATIENCE
        ):
            self._wake.wait(0.1)
        if self._backlog.wants_spool and not self._spool_asked:
            self._spool_asked = self._helpers.run(self._open_spool)
        if self.gone or not self._backlog.append(self._position, data):
            self._lose(self._position, self._position + len(data))
        self._position += len(data)
        if self._writing is None:
            self._start_drainer()
        self._wake.notify_all()

    def _open_spool(self) -> None:
        """In a thread of its own: the directory for it may hang too."""
        fd = open_spool()
        with self._lock:
            self._backlog.give_spool(fd)
            self._wake.notify_all()

    def _consume(self, count: int) -> None:
        """So many bytes of the backlog were written. The lock is held."""
        if count:
            self._backlog.consume(count)
            self._progress = time.monotonic()
            self._wake.notify_all()

    def _start_drainer(self) -> None:
        """Start a drainer unless there is one; without a thread to be had, with the next bytes. The lock is held."""
        if not self._draining and not self.gone and self.fd >= 0:
            self._draining = self._helpers.run(self.drain)

    def _refused(self, error: int) -> None:
        """The file took less than it was given: try again later, or never."""
        self._trouble(os.strerror(error))
        if error in self._terminal_errors or self._closing:
            self.abandon(os.strerror(error))
            return
        with self._lock:
            self._wake.wait(RETRY)

    def _write(self, data: bytes | bytearray) -> tuple[memoryview, int | None]:
        """Write as much as the file takes; what it refused, and the error number when it did."""
        try:
            written = os.write(self.fd, data)
        except OSError:
            written = 0  # what it was comes again below, and is told there
        view = memoryview(data)[written:]
        while view:
            try:
                view = view[os.write(self.fd, view) :]
            except BlockingIOError:
                wait_writable(self.fd)
            except OSError as error:
                return view, error.errno or errno.EIO
        return view, None

    def _drop_backlog(self) -> None:
        for start, end in self._backlog.clear():
            self._lose(start, end)

    def _lose(self, start: int, end: int) -> None:
        """Count a range as lost; neighbours are joined, and the last two when there are too many."""
        ranges = sorted([*self.lost, [start, end]])
        joined = ranges[:1]
        for low, high in ranges[1:]:
            if low <= joined[-1][1] or len(joined) == MAX_RANGES:
                joined[-1][1] = max(joined[-1][1], high)
            else:
                joined.append([low, high])
        self.lost = joined

    def _trouble(self, message: str) -> None:
        if self._fault != message:
            self._fault = message
            self._report(self, False, message)

    def _recover(self) -> None:
        if self._fault:
            self._fault = ""
            self._report(self, True, "takes output again")


def wait_writable(fd: int) -> None:
    """Wait until a descriptor that its owner made non-blocking takes bytes again."""
    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    poller.poll(1000)
