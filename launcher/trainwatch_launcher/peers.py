"""What the failures of other ranks mean for this one: told and read in the run directory, off the critical path.

A launcher whose command failed leaves a small file in the run's `failures/`. The others read them when they are asked
to: `--hold-policy root` (a rank that died of another one's failure is not held) and `--stop-on-peer-failure` (a command
is stopped when another rank has failed). Whatever cannot be read counts as not there.
"""
from __future__ import annotations

import os
import stat
import time

from trainwatch_launcher.quick import Flag
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import READ_FLAGS, decode, replace_file
from trainwatch_launcher.rundir.record import RecordError
from trainwatch_launcher.rundir.records import PeerFailure
from trainwatch_launcher.signals import wake_main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from trainwatch_launcher.ending import Outcome
    from trainwatch_launcher.hold import Hold
    from trainwatch_launcher.worker import Worker

MOST = 32
"""More failures than so many are not written down: who began it is among the first."""
MAX_SIZE = 64 << 10
LOOK_EVERY = (1.0, 5.0)
"""Seconds between two looks at the run directory, the shortest and the longest."""
PATIENCE = 1.0
"""Seconds that the exit waits for the first look."""
KEEP_LOOKING = (2.0, 3.0, 5.0, 10.0, 20.0, 20.0)
"""Pauses in seconds before the looks after that, while it is held: a cause may be told later than its effect."""
TOGETHER = 1.0
"""Clocks are not better than so many seconds."""


class Peers:
    """The other ranks of a worker's run, as far as they have failed."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._directory = os.path.join(worker.place.run_dir, paths.FAILURES)
        self._due_at: float | None = None
        self._failed: PeerFailure | None = None

    # -- telling

    def announce(self, outcome: Outcome) -> None:
        """Have it written down that our command failed. Returns at once."""
        own = self.own_failure(outcome)
        if own is not None:
            self._worker.recorder.write_also(lambda: self._write(own))

    def own_failure(self, outcome: Outcome) -> PeerFailure | None:
        """Our own failure as the others are told; None when it is none that they should know."""
        worker, found = self._worker, outcome.diagnosis
        if not outcome.exit.code or outcome.stop_asked or worker.place.nested:
            return None
        offset = worker.recorder.clock_offset or 0.0
        attempt = worker.recorder.attempt
        level, mark = 2.5, ""
        if found is not None:
            from trainwatch_launcher.diagnosis.levels import level_of
            from trainwatch_launcher.diagnosis.ranks import fingerprint

            level, mark = level_of(found, outcome.exit.code), "%s: %s" % (found.kind, fingerprint(found.summary))
        return PeerFailure(
            rank=worker.identity.rank,
            attempt=attempt.number if attempt is not None else 1,
            time=outcome.exited + offset,
            host=worker.identity.host,
            kind=found.kind if found is not None else "",
            summary=outcome.reason,
            level=level,
            mark=mark,
        )

    def _write(self, own: PeerFailure) -> None:
        """Write it down, unless enough others have that are as near to the cause. Raises OSError."""
        known = self.failures()
        if len(known) >= MOST and own.level >= min(failure.level for failure in known):
            return
        paths.make_directory(self._directory, self._worker.place.directory_mode)
        name = paths.failure_name(own.rank, own.attempt)
        replace_file(os.path.join(self._directory, name), own, self._worker.place.file_mode)

    # -- reading

    def failures(self, since: float = 0.0) -> list[PeerFailure]:
        """What is written down of other ranks from a time on (file server's clock), the earliest first."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            return []
        found = []
        for name in names[: 8 * MOST]:
            failure = self._read(os.path.join(self._directory, name))
            if failure is not None and failure.rank != self._worker.identity.rank and failure.time >= since:
                found.append(failure)
        return sorted(found, key=lambda failure: (failure.time, failure.rank))

    def _read(self, path: str) -> PeerFailure | None:
        try:
            fd = os.open(path, READ_FLAGS)
        except OSError:
            return None
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_SIZE or not self._trusted(facts):
                return None
            return decode(PeerFailure, os.read(fd, MAX_SIZE))
        except (OSError, RecordError):
            return None
        finally:
            os.close(fd)

    def _trusted(self, facts: os.stat_result) -> bool:
        """Ours, root's, or of whoever the file server takes us for; with --share-group our group's."""
        owners = {os.geteuid(), 0}
        attempt = self._worker.recorder.attempt
        if attempt is not None:
            owners.add(os.fstat(attempt.events).st_uid)
        groups = {os.getegid(), *os.getgroups()} if self._worker.options.share_group else set()
        return facts.st_uid in owners or facts.st_gid in groups

    def to_blame(self, own: PeerFailure, since: float) -> PeerFailure | None:
        """The other rank that ours died of; None when ours may be the cause itself."""
        blamed = [failure for failure in self.failures(since) if is_cause_of(failure, own)]
        return min(blamed, key=lambda failure: (failure.level, failure.time, failure.rank)) if blamed else None

    # -- --hold-policy root

    def excuse(self, outcome: Outcome) -> PeerFailure | None:
        """The rank for whose failure ours need not be held, if one is found within PATIENCE."""
        own = self.own_failure(outcome)
        found: list[PeerFailure | None] = []
        done = Flag()

        def look() -> None:
            if own is not None:
                found.append(self.to_blame(own, self._since(outcome.started)))
            done.set()

        if self._run(look):
            done.wait(PATIENCE)
        return found[0] if found else None

    def release_later(self, outcome: Outcome, hold: Hold) -> None:
        """Go on looking for a while, and end the hold when another rank turns out to be the cause. Returns at once."""
        own = self.own_failure(outcome)

        def look() -> None:
            for pause in KEEP_LOOKING:
                time.sleep(pause)
                if hold.why or own is None:
                    return
                blamed = self.to_blame(own, self._since(outcome.started))
                if blamed is not None:
                    hold.release("policy", "rank %d" % blamed.rank)
                    wake_main()
                    return

        self._run(look)

    # -- --stop-on-peer-failure

    def watch(self, seconds: float) -> None:
        """From now on look for failures of others; `due` tells of one so many seconds later. Returns at once."""
        shortest, longest = LOOK_EVERY
        pause = min(longest, max(shortest, seconds / 2))
        started = time.time()

        def look() -> None:
            seen: tuple[int, int] | None = None
            while self._failed is None:
                time.sleep(pause * (0.8 + os.urandom(1)[0] / 640))  # not all ranks at the same moment
                state = changed(self._directory)
                if state is None or state == seen:
                    continue
                seen = state
                failed = [one for one in self.failures(self._since(started)) if not self._started_again(one)]
                if failed:
                    self._due_at = time.monotonic() + seconds
                    self._failed = failed[0]

        self._run(look)

    def due(self) -> PeerFailure | None:
        """The failure for which our command is to be stopped now; None while there is none. Cheap."""
        if self._failed is None or self._due_at is None or time.monotonic() < self._due_at:
            return None
        self._due_at = None
        return self._failed

    def _run(self, job: Callable[[], None]) -> bool:
        """Do something in a thread; a fault of ours in it costs nothing but itself."""

        def safely() -> None:
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the training comes first; it is told
                self._worker.recorder.event("warning", kind="peers", message="other ranks are not seen: %r" % error)

        return self._worker.helpers.run(safely)

    def _since(self, started: float) -> float:
        """From when on failures concern us: those of an earlier start of the job do not. File server's clock."""
        return started + (self._worker.recorder.clock_offset or 0.0) - TOGETHER

    def _started_again(self, failure: PeerFailure) -> bool:
        rank = os.path.join(self._worker.place.run_dir, paths.rank_name(failure.rank))
        return os.path.exists(os.path.join(rank, paths.attempt_name(failure.attempt + 1)))


def is_cause_of(other: PeerFailure, own: PeerFailure) -> bool:
    """Whether ours came from another rank's failure: nearer to a cause and not later, or the same and earlier."""
    from trainwatch_launcher.diagnosis.levels import WAITING

    if other.level < own.level:
        return other.time <= own.time + TOGETHER or own.level >= WAITING
    same = other.level == own.level and other.mark == own.mark and own.mark != ""
    return same and (other.time, other.rank) < (own.time, own.rank)


def changed(directory: str) -> tuple[int, int] | None:
    """What differs when something in a directory does; None when it is not there."""
    try:
        facts = os.stat(directory)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino


def stop_words(failure: PeerFailure) -> str:
    """Why a command is stopped, for people."""
    what = ": %s" % failure.summary if failure.summary else ""
    return "rank %d on %s failed%s" % (failure.rank, failure.host or "?", what)

