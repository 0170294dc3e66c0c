"""How files of a run directory are written and read: whole lines, atomic snapshots, nothing that a torn file breaks."""
from __future__ import annotations

import errno
import os

from trainwatch_launcher.rundir import jsontext
from trainwatch_launcher.rundir.record import NewerFormatError, RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from trainwatch_launcher.rundir.record import Record

    R = TypeVar("R", bound=Record)

GROUP = 0o070
MAX_SNAPSHOT = 1 << 20
"""A status, run or control file larger than this many bytes is not one of ours."""
MAX_LINE = 1 << 20
"""An event line longer than this many bytes is skipped."""
RECENT = 100
"""Lines that a writer remembers."""
READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How files of a run directory are opened: not through a link, and a FIFO in a file's place must not hold us."""


def encode(record: Record) -> bytes:
    """A record as one line of JSON, ASCII only, so that any byte of any command line survives the way."""
    return jsontext.dumps(record.facts()).encode("ascii") + b"\n"


def decode(kind: type[R], line: bytes) -> R:
    """A record from one line or file of JSON. Raises RecordError (also for text that is no JSON at all)."""
    try:
        data = jsontext.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise RecordError("no JSON: %s" % error) from None
    return kind.from_json(data)


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor to the last byte: a file system may take less than it is given. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


class LineWriter:
    """Appends records to a file, each with one write(2); a line that a full disk cut does not spoil the next."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._torn = False
        self._recent: list[bytes] = []

    def append(self, record: Record) -> None:
        """Append one record. Raises OSError when the file did not take all of it; the record may be given again."""
        self._write(encode(record))

    def move(self, fd: int) -> None:
        """Go on in another file, which has what the old one had: but for lines that it took and never stored.

        A network file system takes them into the kernel's memory, and may be gone before it gets them. Raises OSError.
        """
        size = os.fstat(fd).st_size
        stored = os.pread(fd, MAX_LINE, max(0, size - MAX_LINE))
        self.fd, self._torn = fd, not stored.endswith(b"\n") and size > 0
        missing = [line for line in self._recent if line not in stored]
        for line in missing:
            self._recent.remove(line)
            self._write(line)

    def _write(self, line: bytes) -> None:
        whole = (b"\n" if self._torn else b"") + line
        taken = os.write(self.fd, whole)
        self._torn = taken < len(whole)
        if self._torn:
            raise OSError(errno.ENOSPC, "the file took only a part of a line")
        self._recent.append(line)
        del self._recent[:-RECENT]


def open_append(path: str, mode: int = 0o600) -> int:
    """Open a file for appending and return its descriptor; it is made when absent. Raises OSError."""
    return _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOCTTY, mode)


def _open(path: str, flags: int, mode: int) -> int:
    """Open a file; one that the group is to share is made with exactly this mode, whatever the umask says."""
    fd = os.open(path, flags | os.O_CLOEXEC, mode)
    if mode & GROUP:
        try:
            os.fchmod(fd, mode)
        except OSError:
            pass  # another's file: its owner has decided
    return fd


def replace_file(path: str, record: Record, mode: int = 0o600) -> None:
    """Replace a small file with one record, as `replace_bytes` does. Raises OSError."""
    replace_bytes(path, encode(record), mode)


def replace_bytes(path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically: a reader sees the old one or the new one. Raises OSError.

    The temporary file lies beside it and carries our process id, so that two writers never share one.
    """
    temporary = "%s.%d.tmp" % (path, os.getpid())
    fd = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    os.replace(temporary, path)


def create_once(path: str, record: Record, mode: int = 0o600) -> bool:
    """Write a file unless it is there already; True when we wrote it. Raises OSError.

    Made complete under another name and then linked, so that nobody reads half of it; file systems without hard links
    get O_EXCL.
    """
    if os.path.lexists(path):
        return False
    # random: on shared storage many containers come at once, and all of them have the same process id
    temporary = "%s.%s.tmp" % (path, os.urandom(6).hex())
    try:
        _create_exclusive(temporary, record, mode)
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except OSError:
        return _create_exclusive(path, record, mode)
    finally:
        _remove(temporary)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _create_exclusive(path: str, record: Record, mode: int) -> bool:
    try:
        fd = _open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    try:
        write_all(fd, encode(record))
    except OSError:
        _remove(path)  # half a record would stay there for ever
        raise
    finally:
        os.close(fd)
    return True


def read_record(kind: type[R], path: str) -> R:
    """Read a small file that holds one record, not through a link. Raises OSError, RecordError or NewerFormatError."""
    fd = os.open(path, READ_FLAGS)
    try:
        data = os.read(fd, MAX_SNAPSHOT)
    finally:
        os.close(fd)
    return decode(kind, data)


class LineFile:
    """Reads a growing file of records from where it stopped, one call at a time, in bounded memory.

    A torn last line is "not there yet"; a corrupt line is skipped and counted in `corrupt`; lines of a newer format are
    counted in `newer`. When the file was truncated, reading starts again at its beginning; with `replaced` also when it
    is another file than before, which is only asked of files that are replaced: where a file system invents the numbers
    of its files (FUSE), the same one may seem to be another.
    """

    CHUNK = MAX_LINE

    def __init__(self, path: str, offset: int = 0, replaced: bool = False) -> None:
        self.path = path
        self.offset = offset
        """Where the next call reads, in bytes."""
        self.corrupt = 0
        self.newer = 0
        self.behind = False
        """Whether the last call stopped at `most` before the file's end."""
        self.again = False
        """Whether the last call started again at the beginning: what was read before does not count any more."""
        self._replaced = replaced
        self._inode: int | None = None
        self._skipping = False

    def read(self, kind: type[R], most: int | None = None) -> list[R]:
        """The complete records since the last call, of about `most` bytes at most. A missing file has none.

        Raises OSError when the file is there and cannot be read.
        """
        records: list[R] = []
        self.behind = self.again = False
        try:
            fd = os.open(self.path, READ_FLAGS)
        except FileNotFoundError:
            return records
        try:
            facts = os.fstat(fd)
            size = facts.st_size
            other = self._replaced and self._inode not in (None, facts.st_ino)
            self._inode = facts.st_ino
            if size < self.offset or other:
                self.again = self.offset > 0
                self.offset, self._skipping = 0, False
            stop = size if most is None else self.offset + most
            while self.offset < size:
                if self.offset >= stop:
                    self.behind = True
                    break
                data = os.pread(fd, min(self.CHUNK, size - self.offset), self.offset)
                if not data or not self._take(kind, data, records):
                    break
            return records
        finally:
            os.close(fd)

    def _take(self, kind: type[R], data: bytes, records: list[R]) -> bool:
        """Consume what is complete in `data`; False when it holds nothing but a line whose end is not there yet."""
        if self._skipping:
            end = data.find(b"\n") + 1
            self._skipping = end == 0
            self.offset += end or len(data)
            return True
        whole = data.rfind(b"\n") + 1
        if whole:
            self._decode(kind, data[:whole], records)
        elif len(data) == self.CHUNK:
            self.corrupt += 1
            self._skipping = True
            whole = len(data)
        self.offset += whole
        return whole > 0

    def _decode(self, kind: type[R], data: bytes, records: list[R]) -> None:
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                records.append(decode(kind, line))
            except NewerFormatError:
                self.newer += 1
            except RecordError:
                self.corrupt += 1
