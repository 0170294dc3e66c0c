"""Tells which lines of a stream of bytes match a query, by grep where that says what `re` says, else by Python.

Both run as programs of their own, so that an expression that takes for ever can be stopped and no key waits for it.
They read lines and print, for each that matches, where it begins in what they have read, as `grep -b` does.
"""
from __future__ import annotations

import fcntl
import os
import re
import select
import subprocess
import sys
import time
from bisect import bisect_left
from collections import deque

from trainwatch_launcher.reader.query import QueryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Iterator

    from trainwatch_launcher.reader.pieces import Piece
    from trainwatch_launcher.reader.query import Query

    Hits = tuple[int, list[int]]
    """A log's number, and where lines that match begin in it."""

PIPE = 1 << 20
"""Bytes on their way to a program."""
MOST_KEPT = 16 << 20
"""Bytes of coloured pieces that one program's hits may still lie in; with more, another one is started."""
STUCK = 20.0
"""Seconds without any progress after which an expression is given up."""
SGR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
TOO_SLOW = "this expression takes too long here; write it with fewer repeats"

BYTES, TEXT, PYTHON = "bytes", "text", "python"
"""Who looks: grep for bytes, grep for UTF-8, or Python."""

_SET_PIPE_SIZE = 1031
_OFFSET = re.compile(rb"(?m)^(\d+):")
_MATCHER = r"""
import re, sys
pattern = re.compile(sys.argv[1], int(sys.argv[2]))
whole = re.compile(sys.argv[1], int(sys.argv[2]) | re.MULTILINE)
inverted, counting, count = sys.argv[3] == "v", sys.argv[4] == "c", 0
alone = inverted or any(mark in sys.argv[1] for mark in ("(?", r"\A", r"\Z", r"\z"))
source, sink, at, rest = sys.stdin.buffer, sys.stdout.buffer, 0, b""
while True:
    data = source.read1(1 << 20)
    rest += data
    end = rest.rfind(b"\n") + 1 if data else len(rest)
    block, rest = rest[:end], rest[end:]
    if block and (alone or whole.search(block.decode("utf-8", "replace"))):
        place = at
        for line in block.split(b"\n")[:None if not block.endswith(b"\n") else -1]:
            if (pattern.search(line.decode("utf-8", "replace")) is None) == inverted:
                if counting: count += 1
                else: sink.write(b"%d:\n" % place)
            place += len(line) + 1
        sink.flush()
    at += len(block)
    if not data: break
if counting: sink.write(b"%d\n" % count)
"""


class Cancelled(Exception):
    """Nobody wants to know any more."""


class Tools:
    """What this machine can look with; found out once, by trying it. `path` is where grep is looked for."""

    def __init__(self, path: str | None = None) -> None:
        self.path = os.environ.get("PATH", os.defpath) if path is None else path
        self._can: dict[str, bool] = {}

    def can(self, who: str) -> bool:
        """Whether grep can do what is asked of it here."""
        if who == PYTHON:
            return True
        if who not in self._can:
            text, pattern = ("ab", "^.b$") if who == BYTES else ("é1", r"(*UCP)^\w.$")
            argv, env = self._grep(pattern, who, ["-b"])
            try:
                done = subprocess.run(argv, input=(text + "\n").encode(), env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, timeout=STUCK)
                self._can[who] = done.stdout == ("0:%s\n" % text).encode()
            except (OSError, subprocess.SubprocessError):
                self._can[who] = False
        return self._can[who]

    def command(self, query: Query, who: str, counting: bool = False) -> tuple[list[str], dict[str, str]]:
        """What to run, and its environment."""
        if who == PYTHON:
            flags = str(int(query.pattern.flags & re.IGNORECASE))
            argv = [sys.executable, "-I", "-S", "-c", _MATCHER, query.source, flags, "v" if query.invert else "",
                    "c" if counting else ""]
            return argv, {"PATH": self.path, "PYTHONUTF8": "1"}
        options = ["-i"] * query.ignore_case + ["-v"] * query.invert
        source = _escaped(query.text) if not query.regex else query.source
        return self._grep("(*UCP)" + source if who == TEXT else source, who, ["-c" if counting else "-b", *options])

    def _grep(self, pattern: str, who: str, options: list[str]) -> tuple[list[str], dict[str, str]]:
        env = {"PATH": self.path, "LC_ALL": "C.UTF-8" if who == TEXT else "C"}
        # an expression comes after -e and no file is named, so that nothing in it is taken for an option
        return ["grep", "-a", "-P", "--color=never", *options, "-e", pattern], env


HERE = Tools()


def count(query: Query, pieces: Iterable[Piece], cancelled: Callable[[], bool], tools: Tools = HERE) -> int:
    """How many lines match: the cheaper answer, where there are many. Raises as `sift` does."""
    return sum(number for _, found in sift(query, pieces, cancelled, tools, counting=True) for number in found)


def sift(
    query: Query, pieces: Iterable[Piece], cancelled: Callable[[], bool], tools: Tools = HERE, counting: bool = False
) -> Iterator[Hits]:
    """The lines that match, in the order of the pieces, as they are found.

    Raises QueryError when the expression takes too long, Cancelled, and whatever `pieces` raises.
    """
    stream: _Stream | None = None
    try:
        for piece in pieces:
            if not piece.length:
                continue
            who, data = _chosen(query, piece, tools)
            if stream is None or stream.who != who or stream.kept > MOST_KEPT:
                if stream is not None:
                    yield from stream.finish()
                    stream.kill()
                stream = _Stream(tools.command(query, who, counting), who, cancelled, counting)
            yield from stream.feed(piece, data)
        if stream is not None:
            yield from stream.finish()
    finally:
        if stream is not None:
            stream.kill()


def _chosen(query: Query, piece: Piece, tools: Tools) -> tuple[str, bytes | None]:
    """Who looks through a piece, and its bytes without their colours; None when they are as they are."""
    data = SGR.sub(b"", piece.content) if piece.holds(b"\x1b") else None
    if query.agreed and tools.can(BYTES):
        if query.in_bytes or (piece.is_ascii if data is None else data.isascii()):
            return BYTES, data
        if tools.can(TEXT) and _is_text(piece.content if data is None else data):
            return TEXT, data
    return PYTHON, data


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Stream:
    """One program at work: pieces in, hits out."""

    def __init__(
        self, command: tuple[list[str], dict[str, str]], who: str, cancelled: Callable[[], bool], counting: bool
    ) -> None:
        self.who = who
        self._cancelled = cancelled
        self._counting = counting
        self.kept = 0
        self._fed = 0
        self._pieces: deque[tuple[int, int, int, bytes, bytes]] = deque()
        """(where it began in the stream, log, offset, its bytes, what was fed of them), the last two only where what
        was fed is not the same."""
        self._tail = b""
        self._in_line = False
        argv, env = command
        try:
            self._process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, bufsize=0)
        except (OSError, ValueError) as error:
            raise QueryError("cannot look for it: %s" % error) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        for fd in (self._in, self._out):
            try:
                fcntl.fcntl(fd, _SET_PIPE_SIZE, PIPE)
            except OSError:
                pass  # not Linux, or no more is allowed
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._moved = time.monotonic()

    def feed(self, piece: Piece, data: bytes | None) -> Iterator[Hits]:
        """A piece, or `data` in its place."""
        if data is None:
            self._pieces.append((self._fed, piece.log, piece.start, b"", b""))
            self._fed += piece.length
            yield from self._give(piece.give, piece.length)
            whole = piece.is_whole
        else:
            self._pieces.append((self._fed, piece.log, piece.start, piece.content, data))
            self._fed += len(data)
            self.kept += len(data) + piece.length
            view = memoryview(data)

            def give(sink: int, done: int) -> int:
                return done + os.write(sink, view[done:])

            yield from self._give(give, len(data))
            whole = data.endswith(b"\n")
        if not whole:
            self._fed += 1
            yield from self._give(lambda sink, done: os.write(sink, b"\n"), 1)

    def _give(self, give: Callable[[int, int], int], length: int) -> Iterator[Hits]:
        """Call `give` with the pipe and how much it took so far, which it returns anew, until all is given."""
        done = 0
        self._poll.register(self._in, select.POLLOUT)
        while done < length:
            for fd, happened in self._wait():
                if fd == self._out:
                    yield from self._read()
                elif happened & (select.POLLERR | select.POLLHUP):
                    self._poll.unregister(self._in)
                    yield from self.finish()
                    raise QueryError("what looks for it has ended: %s" % self._said())
                else:
                    try:
                        done = give(self._in, done)
                    except (BlockingIOError, BrokenPipeError):
                        pass
        self._poll.unregister(self._in)

    def finish(self) -> Iterator[Hits]:
        """No more comes: what is left to be told."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        open_ = True
        while open_:
            for _ in self._wait():
                yield from self._read()
                open_ = not self._ended
        if self._process.wait() not in ((0,) if self.who == PYTHON else (0, 1)):
            said = self._said()
            raise QueryError(TOO_SLOW if "limit" in said or "JIT" in said else "cannot look for it: %s" % said)

    def kill(self) -> None:
        """Whatever it does, it ends now."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    _ended = False

    def _wait(self) -> list[tuple[int, int]]:
        ready = self._poll.poll(100)
        if self._cancelled():
            raise Cancelled
        if ready:
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > STUCK:
            raise QueryError(TOO_SLOW)
        return ready

    def _said(self) -> str:
        assert self._process.stderr is not None
        text = self._process.stderr.read(2000).decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "no reason given"

    def _read(self) -> list[Hits]:
        """Hits in what it has printed; of a line only the number before the colon is of interest."""
        data = os.read(self._out, PIPE)
        if not data:
            self._ended = True
            return []
        if self._in_line:
            end = data.find(b"\n")
            if end < 0:
                return []
            self._in_line = False
            data = data[end + 1:]
        data = self._tail + data
        whole = data.rfind(b"\n") + 1
        self._tail = data[whole:]
        if self._counting:
            return [(0, [int(number) for number in data[:whole].split()])]
        places = [int(number) for number in _OFFSET.findall(data[:whole])]
        if b":" in self._tail:
            places.append(int(self._tail.partition(b":")[0]))
            self._tail, self._in_line = b"", True
        return list(self._placed(places))

    def _placed(self, places: list[int]) -> Iterator[Hits]:
        """Where places in the stream are in their logs."""
        while places:
            while len(self._pieces) > 1 and self._pieces[1][0] <= places[0]:
                self._pieces.popleft()
            begun, log, offset, original, fed = self._pieces[0]
            inside = len(places) if len(self._pieces) == 1 else bisect_left(places, self._pieces[1][0])
            here, places = places[:inside], places[inside:]
            if fed:
                yield log, [offset + place for place in _same_lines([p - begun for p in here], fed, original)]
            else:
                yield log, [place + offset - begun for place in here]


def _same_lines(places: list[int], fed: bytes, original: bytes) -> Iterator[int]:
    """Where lines begin in `original` that begin at `places` in the same text without its colours."""
    before = at = 0
    for place in places:
        for _ in range(fed.count(b"\n", before, place)):
            at = original.find(b"\n", at) + 1
        before = place
        yield at


def _escaped(text: str) -> str:
    """Plain text as an expression of PCRE's; a backslash before a letter would mean something."""
    return "".join("\\" + c if c.isascii() and not c.isalnum() and c != "_" else c for c in text)
