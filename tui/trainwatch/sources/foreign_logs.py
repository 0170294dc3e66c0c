"""One file that no launcher wrote: the ranks in it, and the statuses and events that its text amounts to."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from trainwatch.sources.base import LogFile, SourceError
from trainwatch.sources.combined import SAMPLE, Combined, form_of
from trainwatch.sources.foreign_files import Named
from trainwatch_launcher.diagnosis.diagnose import diagnose
from trainwatch_launcher.phases import PhaseScanner
from trainwatch_launcher.progress.latest import Watcher
from trainwatch_launcher.reader import log
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    EventsAppended,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.reader.stamps import Stamps
from trainwatch_launcher.rundir.records import Event, Status, event
from trainwatch_launcher.textline import last_line

TAIL = 64 << 10
"""Bytes of the end that tell how it stands."""
SCANNED_AT_ONCE = 32 << 20
"""Bytes that are looked through for phases at one look."""
QUIET = 5.0
"""Seconds without growth after which is asked why it failed."""
SILENT = 600.0
"""Seconds without growth after which nobody seems to write it any more."""
DIAGNOSED = 1 << 20
LOOKED_AT = 2000
"""Bytes of a phase's line in which its time and rank are looked for."""


class ForeignLog:
    """A file, looked at again and again."""

    def __init__(self, named: Named, may_claim: Callable[[ForeignLog, Sequence[AttemptKey]], bool]) -> None:
        self.path, self.name = named.path, named.name
        self.keys: list[AttemptKey] = [named.key]
        self._key = named.key
        self._may_claim = may_claim
        self._form: Combined | None = None
        self._number = self._size = -1
        self._modified = 0.0
        self._asked_why = False
        self._trouble = ""
        """Why it cannot be read; empty when it can."""
        self._scanner = PhaseScanner()
        self._scanned = 0
        self._watchers: dict[AttemptKey, Watcher] = {}
        self._phases: dict[AttemptKey, tuple[str, float, int]] = {}
        self._told: set[AttemptKey] = set()

    def file(self) -> LogFile:
        """The file as it is now. Raises SourceError."""
        try:
            facts = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return LogFile(0, 0)
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror or error}") from None
        return LogFile(facts.st_size, facts.st_ino)

    def only(self, keys: Sequence[AttemptKey]) -> str:
        """An expression for lines of these ranks; nothing when all lines are meant."""
        if self._form is None or set(keys) >= set(self.keys):
            return ""
        return self._form.only(key.rank for key in keys)

    def key_of(self, line: bytes) -> AttemptKey | None:
        """Whose line it is; None when it does not say."""
        rank = self._form.rank_of(line) if self._form is not None else None
        return None if rank is None else AttemptKey(rank)

    def look(self, now: float) -> list[Change]:
        """What is new."""
        try:
            facts = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return []
        except OSError as error:
            return self._cannot_read(error)
        grown = (facts.st_ino, facts.st_size) != (self._number, self._size)
        if facts.st_ino != self._number or facts.st_size < self._size:
            self._begin_anew()
        self._number, self._size, self._modified = facts.st_ino, facts.st_size, facts.st_mtime
        real = os.path.realpath(self.path)
        changes = self._scan(real) if self._scanned < self._size else []
        quiet = now - self._modified >= QUIET
        if grown or (quiet and not self._asked_why) or not self._told or self._trouble:
            try:
                tail = log.read(real, max(0, self._size - TAIL), TAIL)
            except OSError as error:
                return self._cannot_read(error)
            if self._trouble:
                self._trouble = ""
                changes.append(Unreadable(self.name, "", self._key))
            self._find_ranks(real, tail)
            self._asked_why = quiet
            changes = [*self._statuses(real, tail, quiet), *changes]
        return changes

    def _cannot_read(self, error: OSError) -> list[Change]:
        """The rank is there, and why its log is not; said once."""
        trouble, before = f"cannot read it: {error.strerror or error}", self._trouble
        self._trouble = trouble
        if trouble == before:
            return []
        return [*self._statuses(self.path, b"", False), Unreadable(self.name, trouble, self._key)]

    def _begin_anew(self) -> None:
        self._scanner, self._scanned = PhaseScanner(), 0
        self._asked_why = False

    def _find_ranks(self, real: str, tail: bytes) -> None:
        """Whether the file holds several ranks, and which."""
        if self._form is None and self._told and self._size > SAMPLE * 4:
            return
        found = form_of(log.read(real, 0, SAMPLE) + b"\n" + tail)
        if found is None:
            return
        ranks = [AttemptKey(rank) for rank in found.ranks]
        if self._may_claim(self, ranks):
            self._form = found
            known = [] if self.keys == [self._key] and not self._told else self.keys
            self.keys = sorted({*known, *ranks})

    def _statuses(self, real: str, tail: bytes, quiet: bool) -> list[Change]:
        changes: list[Change] = []
        for key in self.keys:
            own, offset = self._own_lines(key, tail), self._phases.get(key)
            status = self._status(key, own, offset, quiet, real)
            if key not in self._told:
                self._told.add(key)
                changes.append(AttemptFound(key, self.path, self._modified))
            changes.append(StatusChanged(key, status))
        return changes

    def _own_lines(self, key: AttemptKey, tail: bytes) -> bytes:
        if self._form is None or len(self.keys) == 1:
            return tail
        lines = tail.split(b"\n")
        return b"\n".join(line for line in lines if self.key_of(line) == key) + b"\n"

    def _status(
        self, key: AttemptKey, tail: bytes, phase: tuple[str, float, int] | None, quiet: bool, real: str
    ) -> Status:
        progress = self._watchers.setdefault(key, Watcher()).look(tail)
        whole = len(self.keys) == 1
        status = Status(
            time=self._modified, interval=SILENT / 3, rank=key.rank, attempt=key.attempt,
            local_rank=key.local_rank if key.local_rank >= 0 else None, host=self.name, pid=0,
            output_bytes=self._size if whole else 0, last_output=self._modified, last_line=last_line(tail),
        )  # fmt: skip
        if phase is not None:
            status = status.replace(phase=phase[0], phase_since=phase[1], phase_count=phase[2])
        if progress is not None:
            status = status.replace(**progress.as_fields())
        return self._judged(status, real, tail) if quiet else status

    def _judged(self, status: Status, real: str, tail: bytes) -> Status:
        """What a log that has come to rest says of its end."""
        data = tail
        if len(self.keys) == 1:
            try:
                data = log.read(real, max(0, self._size - DIAGNOSED), DIAGNOSED)
            except OSError:
                return status
        found = diagnose(data, rank=status.rank)
        if found.finished and not found.failed:
            return status.replace(exited=self._modified, exit_code=0, ended=self._modified, end_code=0)
        if not found.failed:
            return status
        code = found.exit_code if found.exit_code is not None else 1
        return status.replace(
            reason=found.summary, exited=self._modified, ended=self._modified, exit_code=code, end_code=code
        )

    def _scan(self, real: str) -> list[Change]:
        """Phases in what has not been looked through yet."""
        stamps, events = Stamps(self._modified), dict[AttemptKey, list[Event]]()
        end = min(self._size, self._scanned + SCANNED_AT_ONCE)
        while self._scanned < end:
            try:
                data = log.read(real, self._scanned, min(1 << 20, end - self._scanned))
            except OSError:
                return []
            if not data:
                break
            self._scanned += len(data)
            for offset, name in self._scanner.feed(data):
                line = log.read(real, offset, LOOKED_AT).partition(b"\n")[0]
                key = self.key_of(line) or self._key
                when = stamps.of(line) or self._modified
                count = self._phases.get(key, ("", 0.0, 0))[2] + 1
                self._phases[key] = (name, when, count)
                events.setdefault(key, []).append(event("phase", when, name=name, offset=offset, source="marker"))
        return [EventsAppended(key, tuple(found)) for key, found in events.items()]
