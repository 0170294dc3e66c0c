"""Follows the small files of one run directory and says what changed since the last look."""
from __future__ import annotations

import os
import stat
import time

from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    Change,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import LineFile, read_record
from trainwatch_launcher.rundir.record import NewerFormatError, RecordError
from trainwatch_launcher.rundir.records import Event, RunInfo, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Signature = tuple[int, ...]

RESCAN = 10.0
"""Every so many seconds all directories are listed again, whatever their times say: clocks and caches may lie."""
RESCAN_SHARE = 200
"""… and more seldom where that takes more than one part in so many of a core."""
SETTLED = 2.0
"""A directory changed less than so many seconds before it was listed may change again without showing a new time."""
EVENTS_AT_ONCE = 1 << 20
"""About so many bytes of events are read in one poll, of all attempts together; the next poll goes on."""
GLANCE_AT_ONCE = 512
"""So many new statuses are given on at once: the old ones of others are in memory beside them."""
QUIET_POLLS = 3
"""After its end and so many polls without news an attempt is looked at only when all is scanned again."""

NOT_FOLLOWED = (paths.OUTPUT, paths.INDEX, paths.METRICS)
"""Files whose growth is no news of this reader."""

def concerns(path: str) -> bool:
    """Whether a change of this file can be news: not for output, which is read where it is shown, nor for drafts."""
    name = os.path.basename(path)
    return name not in NOT_FOLLOWED and not name.endswith(".tmp")


class _Folder:
    """A directory and what it looked like when it was listed last."""

    __slots__ = ("names", "signature")

    def __init__(self) -> None:
        self.signature: Signature | None = None
        self.names: list[tuple[int, str]] = []


class _Attempt:
    """What has been read of one attempt so far."""

    __slots__ = ("ended", "events", "events_size", "key", "path", "quiet", "status", "status_seen")

    def __init__(self, key: AttemptKey, path: str) -> None:
        self.key = key
        self.path = path
        self.status = os.path.join(path, paths.STATUS)
        self.events = LineFile(os.path.join(path, paths.EVENTS))
        self.events_size = 0
        self.status_seen: Signature | None = None
        self.ended = False
        self.quiet = 0


class Reader:
    """Reads one run directory incrementally. Cost follows change: what looks as it did is not opened again.

    It never raises for what it finds: a file that cannot be read or understood is one `Unreadable`, once, and the rest
    goes on. Not for use by two threads at a time.
    """

    def __init__(self, run_dir: str, rescan: float = RESCAN) -> None:
        self.run_dir = os.path.abspath(run_dir)
        self.behind = False
        """Whether the last poll left something for the next one, so that it should come at once."""
        self._rescan = rescan
        self._next_rescan = 0.0
        self._run_seen: Signature | None = None
        self._folders: dict[str, _Folder] = {}
        self._attempts: dict[AttemptKey, _Attempt] = {}
        self._unread: dict[_Attempt, None] = {}
        """Whose events are to be looked at, in this order."""
        self._glance: list[_Attempt] = []
        """Whom the next glance looks at, the last one first."""
        self._glanced = False
        self._problems: dict[str, str] = {}
        self._changes: list[Change] = []

    def poll(self, changed: Iterable[str] | None = None, glanced: bool = False) -> list[Change]:
        """What changed since the last poll; at the first one, everything there is.

        With `changed`, absolute paths from a watcher that saw them change, only their ranks are looked at; with
        `glanced` the statuses of attempts that live are left to `glance`. Statuses come before events: where there is
        much to read, the next polls go on (`behind`), and a table is full at once.
        """
        self._changes = []
        self._glanced = glanced
        if changed is None:
            now = time.monotonic()
            full = now >= self._next_rescan
            if full:
                self._next_rescan = now + self._rescan
            cpu = time.thread_time()
            self._check_run_file()
            for rank, path in self._numbered(self.run_dir, paths.RANK_PREFIX, full):
                self._check_rank(rank, path, full, touched=False)
            if full:
                self._next_rescan += (time.thread_time() - cpu) * RESCAN_SHARE
        else:
            self._check_touched(changed)
        self._read_events()
        return self._changes

    def glance(self, most: int = GLANCE_AT_ONCE) -> list[Change]:
        """What the attempts that live say newly, about `most` of them at once; the next call goes on (`glancing`).

        Cheaper than `poll` by half, which is to be called now and then for what this does not find: new attempts, and
        the last words of those that ended.
        """
        self._changes = []
        if not self._glance:
            self._glance = [attempt for attempt in self._attempts.values() if not attempt.ended]
            self._glance.reverse()
        while self._glance and len(self._changes) < most:
            attempt = self._glance.pop()
            if self._check_status(attempt):
                self._unread[attempt] = None
        self._read_events()
        return self._changes

    @property
    def glancing(self) -> bool:
        """Whether the last glance has not seen all of them."""
        return bool(self._glance)

    @property
    def live(self) -> int:
        """How many of the attempts that were found have not ended."""
        return sum(not attempt.ended for attempt in self._attempts.values())

    def attempt_directory(self, key: AttemptKey) -> str | None:
        """Where an attempt that has been found lies; None for another key."""
        attempt = self._attempts.get(key)
        return attempt.path if attempt is not None else None

    def _check_touched(self, changed: Iterable[str]) -> None:
        changed = list(changed)
        if not changed:
            return
        known = {attempt.path for attempt in self._attempts.values()}
        names: dict[str, bool] = {}  # entries of the run directory; whether something in them is new to us
        for path in changed:
            inside = os.path.relpath(path, self.run_dir)
            if concerns(path) and not inside.startswith(os.pardir):
                name = inside.split(os.sep, 1)[0]
                names[name] = names.get(name, False) or os.path.dirname(path) not in known
        if paths.RUN_FILE in names:
            self._check_run_file()
        for name in sorted(names):
            rank = paths.number_of(name, paths.RANK_PREFIX)
            if rank is not None:
                self._check_rank(rank, os.path.join(self.run_dir, name), full=names[name], touched=True)

    def _check_run_file(self) -> None:
        path = os.path.join(self.run_dir, paths.RUN_FILE)
        seen = _file_signature(path)
        if seen is None or seen == self._run_seen:
            return
        try:
            info = read_record(RunInfo, path)
        except FileNotFoundError:
            return
        except (OSError, RecordError) as error:
            self._report(path, error, None)
        else:
            self._clear(path, None)
            self._changes.append(RunFound(info))
        self._run_seen = seen

    def _check_rank(self, rank: int, path: str, full: bool, touched: bool) -> None:
        for attempt, directory in self._numbered(path, paths.ATTEMPT_PREFIX, full):
            key = AttemptKey(rank, attempt)
            self._check_attempt(key, directory, full or touched)
            for local, nest in self._numbered(directory, paths.LOCAL_PREFIX, full, by_links=True):
                for local_attempt, nested in self._numbered(nest, paths.ATTEMPT_PREFIX, full):
                    inner = AttemptKey(rank, attempt, local, local_attempt)
                    self._check_attempt(inner, nested, full or touched)

    def _numbered(self, path: str, prefix: str, full: bool, by_links: bool = False) -> Iterator[tuple[int, str]]:
        """The numbered subdirectories of `path`, from memory where it looks unchanged.

        With `by_links` only its number of subdirectories counts as a look, because files in it come and go all the
        time; where a file system keeps no such number, the next full scan finds them.
        """
        folder = self._folders.get(path)
        if folder is None:
            folder = self._folders[path] = _Folder()
        try:
            facts = os.stat(path)
            signature = (facts.st_nlink,) if by_links else (facts.st_nlink, facts.st_mtime_ns)
            if full or signature != folder.signature:
                folder.names = _one_each(paths.numbered(path, prefix))
                settled = by_links or abs(time.time() - facts.st_mtime) > SETTLED
                folder.signature = signature if settled else None
            self._clear(path, None)
        except (FileNotFoundError, NotADirectoryError) as error:
            if path == self.run_dir:
                self._report(path, error, None)
            folder.names, folder.signature = [], None
        except OSError as error:
            self._report(path, error, None)
            folder.signature = None
        return iter(folder.names)

    def _check_attempt(self, key: AttemptKey, path: str, thorough: bool) -> None:
        attempt = self._attempts.get(key)
        if attempt is None:
            try:
                facts = os.stat(path)
            except OSError:
                return  # gone again, or not ours to enter: then its rank has been reported
            if not stat.S_ISDIR(facts.st_mode):
                return
            attempt = self._attempts[key] = _Attempt(key, path)
            self._changes.append(AttemptFound(key, path, facts.st_mtime))
        if attempt.ended and attempt.quiet >= QUIET_POLLS and not thorough:
            return
        if not self._glanced or attempt.ended or attempt.status_seen is None:
            attempt.quiet = 0 if self._check_status(attempt) else attempt.quiet + 1
        self._unread[attempt] = None

    def _check_status(self, attempt: _Attempt) -> bool:
        """Read the status when it is another one; whether it is."""
        path = attempt.status
        seen = _file_signature(path)
        if seen is None or seen == attempt.status_seen:
            return False
        try:
            status = read_record(Status, path)
        except FileNotFoundError:
            return False
        except (OSError, RecordError) as error:
            self._report(path, error, attempt.key)
        else:
            self._clear(path, attempt.key)
            attempt.ended = status.ended is not None
            self._changes.append(StatusChanged(attempt.key, status))
        attempt.status_seen = seen
        return True

    def _read_events(self) -> None:
        """Read the events of the attempts in `_unread`, as far as one poll goes."""
        left = EVENTS_AT_ONCE
        for attempt in list(self._unread):
            if left <= 0:
                break
            left -= self._check_events(attempt, left)
            if not attempt.events.behind:
                del self._unread[attempt]
        self.behind = bool(self._unread)

    def _check_events(self, attempt: _Attempt, most: int) -> int:
        """Read about `most` bytes of an attempt's new events; how many were read."""
        log = attempt.events
        seen = _file_signature(log.path)
        if seen is None or (seen[0] == attempt.events_size and not log.behind):
            return 0
        before = log.offset
        try:
            events = log.read(Event, most)
        except OSError as error:
            self._report(log.path, error, attempt.key)
            return 0
        attempt.events_size = seen[0]
        if events:
            attempt.quiet = 0
            self._changes.append(EventsAppended(attempt.key, tuple(events)))
        if log.newer:
            self._report_text(log.path, "some events are of a newer format; upgrade trainwatch for them", attempt.key)
        elif log.corrupt:
            self._report_text(log.path, "lines that are no events were skipped; the others are shown", attempt.key)
        else:
            self._clear(log.path, attempt.key)
        return max(0, log.offset - before)

    def _report(self, path: str, error: Exception, key: AttemptKey | None) -> None:
        self._report_text(path, _sentence(error), key)

    def _report_text(self, path: str, message: str, key: AttemptKey | None) -> None:
        if self._problems.get(path) != message:
            self._problems[path] = message
            self._changes.append(Unreadable(self._relative(path), message, key))

    def _clear(self, path: str, key: AttemptKey | None) -> None:
        if self._problems.pop(path, None) is not None:
            self._changes.append(Unreadable(self._relative(path), "", key))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.run_dir)


def _file_signature(path: str) -> Signature | None:
    """What tells one version of a file from another, its size first; None when it is missing or out of reach."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return (facts.st_size, facts.st_mtime_ns, facts.st_ino)


def _one_each(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Each number once: `rank-3` beside `rank-00003` is not ours, and must not be shown as the same rank."""
    found: dict[int, str] = {}
    for number, path in numbered:
        found.setdefault(number, path)
    return list(found.items())


def _sentence(error: Exception) -> str:
    if isinstance(error, NewerFormatError):
        return "%s; upgrade trainwatch to see it" % error
    if isinstance(error, RecordError):
        return "not understood: %s" % error
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, FileNotFoundError):
        return "it is gone"
    return "cannot be read: %s" % (getattr(error, "strerror", None) or error)
