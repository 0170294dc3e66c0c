"""The pump: reads the command's one pipe and gives every byte, in order, to each sink, finding phases on the way.

It runs in a thread of its own, so that a file that hangs in the kernel never holds up signals. When a sink's write
hangs, the main thread notices (`check`) and starts a second pump that goes on from there; the hanging thread becomes
that sink's drainer. So the fast path needs no queue and no hand-over, and a hang costs one check interval.
"""
from __future__ import annotations

import os
import select
import time

from trainwatch_launcher.phases import PhaseScanner
from trainwatch_launcher.quick import Lock
from trainwatch_launcher.recent import Recent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

    from trainwatch_launcher.helpers import Helpers
    from trainwatch_launcher.lines import LineCounter
    from trainwatch_launcher.sink import Sink

CHUNK = 128 << 10
"""Bytes read at once: above this nothing gets faster, and memory grows."""
STUCK = 0.25
"""A write that takes longer than this, in seconds, hangs."""
HURRY = 0.0003
STREAK = 32
MOMENT = 0.0003
"""After STREAK reads of less than a chunk, each within HURRY seconds of the one before, a MOMENT (s) is waited; then
before each such read, until one comes late."""
TAIL = 2048
LAST_READS = 64
"""Chunks still read when the pump is told to stop: more than a pipe of 1 MiB holds."""


class Pump:
    """Copies the pipe to the sinks until its end.

    Each sink has a transform of the bytes that it gets, or None. `on_phase(time, name, offset)` and `on_end()` are
    called from the pump's thread.
    """

    def __init__(
        self,
        fd: int,
        sinks: Sequence[Sink],
        lines: LineCounter,
        transforms: Sequence[Callable[[bytes], bytes] | None],
        on_phase: Callable[[float, str, int], None],
        on_end: Callable[[], None],
        helpers: Helpers,
    ) -> None:
        self.lines = lines
        self.last_output: float | None = None
        self.recent = Recent()
        self.floods = False
        """Whether the newest chunk was a whole one: output may come faster than we can pass it on."""
        self.started = self.ended = False
        self.scanner_fault = ""
        """Why phases are no longer looked for, empty when all is well."""
        self.fd = fd
        self._sinks = list(sinks)
        self._transforms = list(transforms)
        self._helpers = helpers
        self._on_phase = on_phase
        self._on_end = on_end
        self._scanner = PhaseScanner()
        self._lock = Lock()
        self._generation = 0
        self._busy: tuple[int, float, bytes] | None = None
        self._last_read = 0.0
        self._streak = 0
        self._stopping = False
        self._last_reads = LAST_READS
        self._stop_reader, self._stop_writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(fd, False)
        self._poller = select.poll()
        self._poller.register(fd, select.POLLIN)
        self._poller.register(self._stop_reader, select.POLLIN)

    @property
    def tail(self) -> bytes:
        """The newest bytes, for the status's last line."""
        return self.recent.last(TAIL)

    def start(self) -> None:
        """Begin to copy."""
        self.started = self._helpers.run(lambda: self._run(0, b"", 0))
        if not self.started:
            raise RuntimeError("no thread for the output")

    def stop(self) -> None:
        """Take what is in the pipe now and end, although somebody still holds its other side open."""
        self._stopping = True
        os.write(self._stop_writer, b"x")

    def has_input(self) -> bool:
        """Whether the command has written what was not read yet. Does not wait."""
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        return any(event & select.POLLIN for _, event in poller.poll(0))

    def check(self) -> None:
        """Find out whether a write hangs, and go on without it if so. Called by the main thread every STUCK seconds."""
        with self._lock:
            if self._busy is None or time.monotonic() - self._busy[1] < STUCK:
                return
            sink, _, data = self._busy
            generation = self._generation + 1
            if not self._helpers.run(lambda: self._run(generation, data, sink + 1)):
                return  # no thread to be had: the command waits for this file, as it would without us
            self._busy = None
            self._generation = generation
            self._sinks[sink].take_over()

    def _run(self, generation: int, data: bytes, first: int) -> None:
        while True:
            if not self._deliver(generation, data, first):
                return
            first = 0
            data = self._read()
            if not data:
                break
            self._note(data)
        self._find_phases(time.time(), None)
        self.ended = True
        self._on_end()

    def _read(self) -> bytes:
        """The next chunk; nothing at the pipe's end, or when we were told to stop and took what was there."""
        while True:
            if self._stopping:
                self._last_reads -= 1
                if self._last_reads < 0:
                    return b""
            try:
                data = os.read(self.fd, CHUNK)
                self._gather(len(data))
                return data
            except BlockingIOError:
                if self._stopping:
                    return b""
                self._poller.poll()
            except OSError:
                return b""  # a pseudo-terminal says EIO when its last user has closed it

    def _gather(self, size: int) -> None:
        """When small pieces come so fast that each costs a wake-up, wait a moment so that the next is a larger one."""
        now = time.monotonic()
        self.floods = size == CHUNK
        if now - self._last_read >= HURRY:
            self._streak = 0
        elif size < CHUNK:
            self._streak += 1
            if self._streak >= STREAK:
                time.sleep(MOMENT)
                now = time.monotonic()
        self._last_read = now

    def _note(self, data: bytes) -> None:
        """Keep account of a chunk before it is passed on."""
        now = time.time()
        self.recent.add(data)  # first: who sees that there is more of it looks at its end once, and must find it there
        self.lines.note(now, data, self._sinks[0].lost_bytes)
        self.last_output = now
        self._find_phases(now, data)

    def _find_phases(self, now: float, data: bytes | None) -> None:
        """Phases in a chunk, or in what is left at the end (None). A fault in here must not cost a byte of output."""
        if self.scanner_fault:
            return
        try:
            found = self._scanner.finish() if data is None else self._scanner.feed(data)
            for offset, name in found:
                self._on_phase(now, name, offset)
        except Exception as error:  # noqa: BLE001 - the training's output comes first; the fault is reported
            self.scanner_fault = "phases are no longer looked for: %r" % error

    def _deliver(self, generation: int, data: bytes, first: int) -> bool:
        """Give a chunk to the sinks from number `first` on; False when another pump has taken over meanwhile."""
        if not data:
            return True
        for number in range(first, len(self._sinks)):
            sink, transform = self._sinks[number], self._transforms[number]
            shown = transform(data) if transform is not None else data
            if sink.queued and sink.enqueue(shown):
                continue
            with self._lock:
                self._busy = (number, time.monotonic(), data)
            sink.write(shown)
            with self._lock:
                replaced = generation != self._generation
                if not replaced:
                    self._busy = None
            if replaced:
                sink.taken_over()
                return False
        return True
