"""All that can be asked of one or several logs where they lie: the same in the viewer and in an agent.

An answer is a stream of (facts, bytes): plain values and, for some, bytes that go with them. Whoever asks may leave
before its end. Offsets are in bytes, times in Unix seconds on the clock that the asker's shifts lead to.
"""
from __future__ import annotations

import sys
import time
from _thread import allocate_lock
from collections import OrderedDict

from trainwatch_launcher.reader import cuts, pages, searching
from trainwatch_launcher.reader.log import LogIndex, number
from trainwatch_launcher.reader.query import Query, QueryError
from trainwatch_launcher.reader.sieve import Cancelled
from trainwatch_launcher.reader.timeline import TimedLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, NamedTuple, Sequence

    Facts = dict[str, Any]
    Answer = Iterator[tuple[Facts, bytes]]
    Stop = Callable[[], bool]
else:
    from collections import namedtuple

KEPT = 512
"""Logs of which what is known of their indexes is kept."""
MOST_LINES = 2000
"""Lines in one page."""
MOST_PLACES = 2000
MOST_READ = 1 << 20
"""Bytes in one part of what is read."""
TELL_EVERY = 0.2
"""Seconds between two words on how far a count is."""

if TYPE_CHECKING:
    class LogName(NamedTuple):
        """Where a log lies: an attempt's directory, or a file that no launcher wrote; seconds to add to its times.

        `only`: an expression for the lines that are meant, when the file holds those of others too.
        """

        path: str
        is_attempt: bool
        shift: float
        only: str = ""
else:
    LogName = namedtuple("LogName", "path is_attempt shift only", defaults=("",))


class EngineError(Exception):
    """What was asked cannot be answered; the message is one line for a person."""


class Engine:
    """Answers questions on logs. Any number of threads may ask."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._indexes: OrderedDict[tuple[str, bool], LogIndex] = OrderedDict()

    def ask(self, operation: str, names: Sequence[LogName], asked: Facts, stop: Stop) -> Answer:
        """The answer to one question; it ends early, without an error, once `stop()` is true. Raises EngineError."""
        try:
            logs = [TimedLog(self._index(name), name.shift, _only(name)) for name in names]
            yield from OPERATIONS[operation](logs, asked, stop)
        except Cancelled:
            return
        except QueryError as error:
            raise EngineError(str(error)) from None
        except OSError as error:
            where = error.filename if isinstance(error.filename, str) else "a log"
            raise EngineError("cannot read %s: %s" % (where, error.strerror or error)) from None
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise EngineError("not understood: %s: %s" % (operation, error)) from None

    def _index(self, name: LogName) -> LogIndex:
        with self._lock:
            key = (name.path, name.is_attempt)
            index = self._indexes.get(key)
            if index is None:
                index = LogIndex(name.path) if name.is_attempt else LogIndex.of_file(name.path)
                self._indexes[key] = index
                while len(self._indexes) > KEPT:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(key)
            return index


def _only(name: LogName) -> Query | None:
    return Query(name.only, regex=True, case=True) if name.only else None


def _ends(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """`ends`: bytes in each log now, and `files`: the numbers of these files, which tell that another is in its place.

    When `whole` is asked for also where the last whole line of each ends.
    """
    ends = [log.size() for log in logs]
    files = [number(log.path) for log in logs]
    whole = {"whole": [log.line_start(end) for log, end in zip(logs, ends)]} if asked.get("whole") else {}
    yield {"ends": ends, "files": files, **whole}, b""


def _cuts(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """The `cuts` above a line (`log`, `offset` of any byte in it) or above a moment (`time`), and the `ends`.

    With `share` (0 to 1) those above a moment between the first line's and the last one's.
    """
    ends = [log.size() for log in logs]
    if "time" in asked:
        found = cuts.at_time(logs, float(asked["time"]), ends)
    elif "share" in asked:
        first, last = _range(logs, ends)
        found = cuts.at_time(logs, first + (last - first) * float(asked["share"]), ends)
    else:
        number, offset = int(asked["log"]), max(0, int(asked["offset"]))
        found = cuts.above(logs, number, logs[number].line_start(min(offset, ends[number])), ends)
    yield {"cuts": found, "ends": ends}, b""


def _range(logs: list[TimedLog], ends: list[int]) -> tuple[float, float]:
    """When the first and the last line of all were written."""
    some = [(log, end) for log, end in zip(logs, ends) if end]
    if not some:
        return 0.0, 0.0
    first = min(log.time_of(0) for log, _ in some)
    return first, max(log.time_of(log.line_start(end - 1)) for log, end in some)


def _span(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """`first` and `last`: when the first and the last line were written."""
    first, last = _range(logs, [log.size() for log in logs])
    yield {"first": first, "last": last}, b""


def _page(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """Lines `down` from `cuts` (null: from the beginning or the end), at most `count`, that pass `queries`.

    Parts have `cuts` (where it goes on), `at_end`, `done` (bytes looked through), `ends`, and entries as bytes.
    """
    sizes = [log.size() for log in logs]
    ends = [min(end, size) for end, size in zip(asked.get("ends") or sizes, sizes)]
    down = bool(asked["down"])
    begun = asked.get("cuts") or ([0] * len(logs) if down else ends)
    begun = [_aligned(log, int(cut), end, down) for log, cut, end in zip(logs, begun, ends)]
    queries = [Query.from_json(query) for query in asked.get("queries") or []]
    wanted = pages.Wanted(down, min(int(asked["count"]), MOST_LINES), queries, min(int(asked.get("context") or 0), 100),
                          float(asked.get("seconds") or 0))
    for page in pages.pages(logs, begun, ends, wanted, stop):
        yield {"cuts": page.cuts, "at_end": page.at_end, "done": page.done, "ends": ends}, page.encode()
        if stop():
            return


def _aligned(log: TimedLog, cut: int, end: int, down: bool) -> int:
    """A cut between lines: one inside of a line counts as below it, or going up as above it."""
    if not 0 < cut < end:
        return max(0, min(cut, end))
    return log.first_start(cut, end) if down else log.line_start(cut)


def _search(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """How many lines pass all `queries`, from `at` (null: the end) on, `down` or up, then in the rest.

    Only what is below `froms`, if given. Parts are blocks: `log`, `from`, `to`, `count`, `told`, and the lines'
    beginnings as 64-bit numbers, least byte first, unless there are too many to be `told`.
    """
    ends = [log.size() for log in logs]
    froms = [min(int(start), end) for start, end in zip(asked.get("froms") or [0] * len(logs), ends)]
    at = [int(place) for place in asked.get("at") or ends]
    queries = [Query.from_json(query) for query in asked["queries"]]
    yield {"ends": ends, "total": sum(ends) - sum(froms)}, b""
    for found in searching.search(logs, froms, ends, at, queries, bool(asked.get("down")), stop):
        starts = found.starts
        if starts is not None and sys.byteorder == "big":
            starts.byteswap()
        block = {"log": found.log, "from": found.low, "to": found.high, "count": found.count}
        yield {**block, "told": starts is not None}, starts.tobytes() if starts is not None else b""


def _count(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """Makes lines known that no index tells: `done` and `size` in bytes, as it goes on, and at the end `lines`."""
    log = logs[0]
    told = time.monotonic()
    for done, size in log.index.count():
        if stop():
            return
        if time.monotonic() - told >= TELL_EVERY:
            told = time.monotonic()
            yield {"done": done, "size": size}, b""
    yield {"lines": log.index.line_count()}, b""


def _places(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """`lines` and `times` of the lines that begin at `offsets`, and the `offsets` where lines `numbers` begin.

    A line that nobody has counted up to yet is null.
    """
    log = logs[0]
    log.size()
    offsets = [int(offset) for offset in (asked.get("offsets") or [])[:MOST_PLACES]]
    near = bool(offsets) and all(log.index.is_near(offset) for offset in (offsets[0], offsets[-1]))
    numbers = [int(number) for number in (asked.get("numbers") or [])[:MOST_PLACES]]
    yield {
        "lines": [log.index.offset_to_line(offset) if near else None for offset in offsets],
        "times": [log.time_of(offset) for offset in offsets],
        "offsets": [log.index.line_to_offset(number) for number in numbers],
    }, b""


def _read(logs: list[TimedLog], asked: Facts, stop: Stop) -> Answer:
    """The bytes of `log` from `start` to `end`, in parts, as far as there are so many."""
    log, at, end = logs[int(asked["log"])], int(asked["start"]), int(asked["end"])
    while at < end and not stop():
        data = log.read(at, min(MOST_READ, end - at))
        if not data:
            return
        yield {}, data
        at += len(data)


OPERATIONS: dict[str, Callable[[list[TimedLog], Facts, Stop], Answer]] = {
    "ends": _ends, "cuts": _cuts, "span": _span, "page": _page, "search": _search, "count": _count, "places": _places,
    "read": _read,
}  # fmt: skip
