"""The thread that looks at the run directory. Only it touches the reader, so only it hangs when a mount does."""
from __future__ import annotations

import os
import time

from trainwatch_launcher.agent import clocks, pace
from trainwatch_launcher.agent.resume import Resumption
from trainwatch_launcher.agent.waiting import Signal, start
from trainwatch_launcher.reader.changes import AttemptFound, AttemptKey, Change, StatusChanged
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

    Send = Callable[[Sequence[Change], bool], None]

USUAL = 2.0
"""A look takes so many seconds until we know better."""


class Follower:
    """Looks at one run directory, at a pace that its changes and the file system's speed set.

    `send(changes, complete)` is called from the thread; it may block until the viewer has taken what it got, and then
    nothing is looked at. `complete` says that all that there is has been told.
    """

    def __init__(self, directory: str, shared: bool, send: Send, clock: Callable[[], float] = time.time) -> None:
        self.reader = Reader(directory)
        self.server = clocks.Bounds()
        """The file server's clock against this host's; nothing known where both are one."""
        self._shared, self._send, self._clock = shared, send, clock
        self._resumption: Resumption | None = None
        self._live: set[AttemptKey] = set()
        self._ended: set[AttemptKey] = set()
        self._hot: dict[AttemptKey, None] = {}
        self._wake = Signal()
        self._stop = False
        self._looking_since: float | None = None
        self._usual = USUAL
        self._last_look = 0.0
        self._changed_at = -pace.CALM

    def start(self, resumption: Resumption) -> None:
        """Begin; what `resumption` knows the viewer to have is left out."""
        self._resumption = resumption
        start(self._run)

    def stop(self) -> None:
        """Look no more; the thread ends when it can."""
        self._stop = True
        self._wake.set()

    def look_soon(self, key: AttemptKey) -> None:
        """Something is about to change there."""
        self._hot[key] = None
        self._wake.set()

    def late(self) -> float:
        """Seconds for which the file system has not answered, beyond what it usually takes; 0 when all is well."""
        since = self._looking_since
        return 0.0 if since is None else max(0.0, time.monotonic() - since - self._usual)

    def _run(self) -> None:
        due = 0.0
        while not self._stop:
            self._wake.clear()
            if time.monotonic() >= due:
                due = self._look_at_all()
            elif self.reader.behind:
                self._tell(self._timed([]))
            else:
                self._look_at_some()
            if not self.reader.behind and not self._wake.is_set():
                # where looking at everything is seldom, what changed last is looked at between
                self._wake.wait(min(max(0.0, due - time.monotonic()), pace.SHARED))
            else:
                self._wake.wait(0.02)  # a request needs a moment to be answered, and a flood some air

    def _look_at_all(self) -> float:
        """One look at everything; returns when the next is due, on the monotonic clock."""
        started, cpu, first = time.monotonic(), time.thread_time(), not self._last_look
        changes = self._timed(None)
        took, cpu = time.monotonic() - started, time.thread_time() - cpu
        self._tell(changes)
        asked = pace.operations(len(self._live), len(self._ended))
        now = time.monotonic()
        if changes and not first:  # what was there before we came is no sign that more will come soon
            self._changed_at = now
        return now + pace.pause(self._shared, cpu, took, asked, now - self._changed_at)

    def _look_at_some(self) -> None:
        hot = [self.reader.attempt_directory(key) for key in list(self._hot)]
        changed = [os.path.join(directory, paths.STATUS) for directory in hot if directory is not None]
        if changed:
            self._tell(self._timed(changed))

    def _timed(self, changed: list[str] | None) -> list[Change]:
        before = self._clock()
        self._looking_since = started = time.monotonic()
        try:
            if self._shared:
                self._freshen(changed)
            changes = self.reader.poll(changed)
            if self._shared and self._last_look:
                self._compare_clocks(changes)
        finally:
            self._looking_since = None
        self._usual = max(USUAL, (time.monotonic() - started) * 2, self._usual * 0.9)
        self._last_look = before
        return changes

    def _freshen(self, changed: list[str] | None) -> None:
        """Make NFS ask its server: it believes what it knows of a directory for up to a minute, unless one opens it."""
        if changed is None:
            directories = [self.reader.attempt_directory(key) for key in self._live]
        else:
            directories = [os.path.dirname(path) for path in changed]
        for directory in directories:
            if directory is not None:
                try:
                    os.close(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                except OSError:
                    pass  # the reader will say what is wrong

    def _compare_clocks(self, changes: list[Change]) -> None:
        """Learn from the newest status that just changed."""
        key = next((change.key for change in reversed(changes) if isinstance(change, StatusChanged)), None)
        directory = self.reader.attempt_directory(key) if key is not None else None
        if directory is not None:
            try:
                modified = os.stat(os.path.join(directory, paths.STATUS)).st_mtime
            except OSError:
                return
            self.server.note(*clocks.of_server(modified, self._last_look, self._clock()))

    def _tell(self, changes: list[Change]) -> None:
        self._note(changes)
        complete = not self.reader.behind
        resumption = self._resumption
        if resumption is not None:
            changes = resumption.new(changes)
            if complete:
                changes += resumption.finish()
                self._resumption = None
        if changes or (complete and resumption is not None):
            self._send(changes, complete)

    def _note(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, AttemptFound):
                self._live.add(change.key)
            elif isinstance(change, StatusChanged):
                ended = change.status.ended is not None
                (self._ended if ended else self._live).add(change.key)
                (self._live if ended else self._ended).discard(change.key)
                self._hot.pop(change.key, None)  # the newest last
                self._hot[change.key] = None
        while len(self._hot) > pace.HOT:
            del self._hot[next(iter(self._hot))]
