"""How files of a run directory are written and read: whole lines, atomic snapshots, and nothing that a torn file breaks."""
from __future__ import annotations

import json
import os

from trainwatch_launcher.rundir.record import NewerFormatError, RecordError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Type, TypeVar

    from trainwatch_launcher.rundir.record import Record

    R = TypeVar("R", bound=Record)

MAX_SNAPSHOT = 1 << 20
"""A status, run or control file larger than this many bytes is not one of ours."""
MAX_LINE = 1 << 20
"""An event line longer than this many bytes is skipped."""


def encode(record: Record) -> bytes:
    """A record as one line of JSON, ASCII only, so that any byte of any command line survives the way."""
    return json.dumps(record.to_json(), separators=(",", ":")).encode("ascii") + b"\n"


def decode(kind: Type[R], line: bytes) -> R:
    """A record from one line or file of JSON. Raises RecordError (also for text that is no JSON at all)."""
    try:
        data = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise RecordError("no JSON: %s" % error) from None
    return kind.from_json(data)


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor to the last byte: a file system may take less than it is given. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def append_line(fd: int, record: Record) -> None:
    """Append one record with one write(2) to a descriptor opened with O_APPEND. Raises OSError."""
    write_all(fd, encode(record))


def open_append(path: str, mode: int = 0o600) -> int:
    """Open a file for appending and return its descriptor; it is made when absent. Raises OSError."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, mode)


def replace_file(path: str, record: Record, mode: int = 0o600) -> None:
    """Replace a small file atomically: a reader sees the old one or the new one. Raises OSError.

    The temporary file lies beside it and carries our process id, so that two writers never share one.
    """
    temporary = "%s.%d.tmp" % (path, os.getpid())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        write_all(fd, encode(record))
    finally:
        os.close(fd)
    os.replace(temporary, path)


def create_once(path: str, record: Record, mode: int = 0o600) -> bool:
    """Write a file unless it is there already; True when we wrote it. Raises OSError.

    Made complete under another name and then linked, so that nobody reads half of it; file systems without hard links
    get O_EXCL.
    """
    if os.path.exists(path):
        return False
    temporary = "%s.%d.tmp" % (path, os.getpid())
    replace_file(temporary, record, mode)
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except OSError:
        return _create_exclusive(path, record, mode)
    finally:
        os.unlink(temporary)


def _create_exclusive(path: str, record: Record, mode: int) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return False
    try:
        write_all(fd, encode(record))
    finally:
        os.close(fd)
    return True


def read_record(kind: Type[R], path: str) -> R:
    """Read a small file that holds one record. Raises OSError, RecordError or NewerFormatError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO in its place must not hold us
    try:
        data = os.read(fd, MAX_SNAPSHOT)
    finally:
        os.close(fd)
    return decode(kind, data)


class LineFile:
    """Reads a growing file of records from where it stopped, one call at a time, in bounded memory.

    A torn last line is "not there yet"; a corrupt line is skipped and counted in `corrupt`; lines of a newer format are
    counted in `newer`. When the file was truncated, reading starts again at its beginning.
    """

    CHUNK = 1 << 18

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.corrupt = 0
        self.newer = 0

    def read(self, kind: Type[R]) -> list[R]:
        """All complete records since the last call. A file that cannot be opened has none."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return []
        try:
            size = os.fstat(fd).st_size
            if size < self.offset:
                self.offset = 0
            records = []  # type: list[R]
            while self.offset < size:
                data = os.pread(fd, self.CHUNK, self.offset)
                whole = data.rfind(b"\n") + 1
                if whole == 0:
                    if len(data) < self.CHUNK:
                        break
                    if not self._skip_long_line(fd, size):
                        break
                    continue
                self._decode(kind, data[:whole], records)
                self.offset += whole
            return records
        finally:
            os.close(fd)

    def _decode(self, kind: Type[R], data: bytes, records: list[R]) -> None:
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                records.append(decode(kind, line))
            except NewerFormatError:
                self.newer += 1
            except RecordError:
                self.corrupt += 1

    def _skip_long_line(self, fd: int, size: int) -> bool:
        """Step over a line of more than CHUNK bytes; False when its end is not there yet."""
        position = self.offset
        while position < size:
            data = os.pread(fd, self.CHUNK, position)
            if not data:
                return False
            end = data.find(b"\n")
            if end >= 0:
                self.offset = position + end + 1
                self.corrupt += 1
                return True
            position += len(data)
        return False
