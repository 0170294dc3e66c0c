"""metrics.jsonl: what happened in each ten seconds, for history's sake; kept small however long a run lasts."""
from __future__ import annotations

import os

from trainwatch_launcher.gpu.thinning import coarser, line_start, lines, merged
from trainwatch_launcher.rundir.files import LineWriter, encode, open_append, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.rundir.gpus import Metrics

MAX_SIZE = 8 << 20
"""Bytes at which the file is thinned: to half of it, of which one half are the newest lines, as they were."""


class MetricsFile:
    """The file of one attempt. It is opened for each line: it may be deleted, and its disk may come and go."""

    def __init__(self, path: str, mode: int = 0o600, max_size: int = MAX_SIZE) -> None:
        self._path, self._mode, self._max = path, mode, max_size
        self._thin_at = max_size

    def append(self, line: Metrics) -> None:
        """Append a line, and thin the file before when it has grown large. Raises OSError: nothing was appended."""
        fd = open_append(self._path, self._mode)
        try:
            size = os.fstat(fd).st_size
            if size <= self._thin_at:
                if size and os.pread(fd, 1, size - 1) != b"\n":
                    os.write(fd, b"\n")  # a full disk cut the last line
                LineWriter(fd).append(line)
                return
        finally:
            os.close(fd)
        try:
            self.thin()
            self._thin_at = self._max
        except OSError:
            if size > 2 * self._max:
                raise  # better no history than one that grows for ever
            self._thin_at = size + self._max // 8  # not again with each line
        self.append(line)

    def thin(self) -> None:
        """Merge the older lines into fewer, longer ones. Readers see the old file or the new one. Raises OSError."""
        temporary = "%s.%d.tmp" % (self._path, os.getpid())
        try:
            with open(self._path, "rb") as old, open(temporary, "wb", opener=self._opener) as new:
                size = os.fstat(old.fileno()).st_size
                cut = line_start(old.fileno(), max(0, size - self._max // 4))
                seconds = coarser(old.fileno(), cut, self._max // 4)
                for record in merged(lines(old, cut), seconds):
                    new.write(encode(record))
                new.flush()
                old.seek(cut)
                write_all(new.fileno(), old.read())
            os.replace(temporary, self._path)
        except OSError:
            try:
                os.unlink(temporary)
            except OSError:
                pass
            raise

    def _opener(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, self._mode)
