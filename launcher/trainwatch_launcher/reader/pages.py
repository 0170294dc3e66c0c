"""Lines of one or several logs in the order of time, those that pass some queries, a page at a time, both ways.

A page is made from windows that grow until they hold enough: few bytes are read where lines are many, and where few
pass much is looked through at once. What has been found is given at once, with how far one has looked.
"""
from __future__ import annotations

import struct
import time as clocks
from bisect import bisect_left

from trainwatch_launcher.reader import cuts as cuts_
from trainwatch_launcher.reader.pieces import Piece, blocks
from trainwatch_launcher.reader.sieve import HERE, sift

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

    from trainwatch_launcher.reader.cuts import Cuts
    from trainwatch_launcher.reader.query import Query
    from trainwatch_launcher.reader.sieve import Tools
    from trainwatch_launcher.reader.timeline import TimedLog
else:
    from collections import namedtuple

FIRST = 1 << 12
"""Bytes of each log in the first window."""
FIRST_SIFTED = 1 << 18
"""The same when lines have to pass queries."""
LARGEST = 32 << 20
"""Bytes in a window, of all logs together."""
LONGEST = 1 << 14
"""Bytes of a line that are shown; of a longer one the rest is left out."""

if TYPE_CHECKING:
    class Entry(NamedTuple):
        """One line: when, whose (the log's number), from where to where, whether it passed or is only near one."""

        time: float
        log: int
        start: int
        end: int
        hit: bool
        data: bytes
else:
    Entry = namedtuple("Entry", "time log start end hit data")

_HEAD = struct.Struct("<dIQQ?H")


class Page:
    """Lines that were found, in order, and how far one has looked."""

    def __init__(self, entries: list[Entry], cuts: Cuts, at_end: bool, done: int) -> None:
        self.entries = entries
        self.cuts = cuts
        """Where the next page begins."""
        self.at_end = at_end
        """Whether there is nothing further that way."""
        self.done = done
        """Bytes that were looked through for this page so far."""

    def encode(self) -> bytes:
        """The entries as bytes."""
        return b"".join(
            _HEAD.pack(entry.time, entry.log, entry.start, entry.end, entry.hit, len(entry.data)) + entry.data
            for entry in self.entries
        )

    @staticmethod
    def decode(data: bytes) -> list[Entry]:
        """Entries from such bytes. Raises ValueError."""
        entries, at = [], 0
        try:
            while at < len(data):
                time, number, start, end, hit, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                entries.append(Entry(time, number, start, end, hit, data[at:at + length]))
                at += length
        except struct.error as error:
            raise ValueError("a page is damaged: %s" % error) from None
        return entries


class Wanted:
    """What a page is to hold."""

    def __init__(
        self, down: bool, count: int, queries: Sequence[Query] = (), context: int = 0, seconds: float = 0.0,
    ) -> None:
        self.down, self.count, self.queries, self.context = down, count, list(queries), context
        self.seconds = seconds
        """After so many seconds it is given as it is; 0 for no limit."""


def pages(
    logs: Sequence[TimedLog], cuts: Cuts, ends: Cuts, wanted: Wanted, cancelled: Callable[[], bool], tools: Tools = HERE
) -> Iterator[Page]:
    """Up to `wanted.count` lines below `cuts` (or above), in parts; the last part's cuts are where it goes on.

    Going up, later parts hold earlier lines; within a part lines are in order. `ends` bounds what is looked at. Raises
    QueryError, Cancelled and OSError.
    """
    maker = _Maker(logs, ends, wanted, cancelled, tools)
    sifted = bool(wanted.queries) or any(log.only is not None for log in logs)
    step = FIRST_SIFTED // len(logs) if sifted else FIRST
    started, found, done = clocks.monotonic(), 0, 0
    while True:
        edge = cuts_.further(logs, cuts, ends, step) if wanted.down else cuts_.back(logs, cuts, step)
        low, high = (cuts, edge) if wanted.down else (edge, cuts)
        entries, reached = maker.window(low, high, wanted.count - found)
        done += sum(high) - sum(low)
        found += len(entries)
        cuts = reached
        at_end = cuts == ends if wanted.down else not any(cuts)
        yield Page(entries, cuts, at_end, done)
        late = wanted.seconds and clocks.monotonic() - started > wanted.seconds
        if at_end or found >= wanted.count or late:
            return
        step = min(step * 4, max(FIRST, LARGEST // len(logs)))


class _Maker:
    """Makes windows of one page."""

    def __init__(
        self, logs: Sequence[TimedLog], ends: Cuts, wanted: Wanted, cancelled: Callable[[], bool], tools: Tools
    ) -> None:
        self._logs, self._ends, self._wanted, self._cancelled, self._tools = logs, ends, wanted, cancelled, tools
        self._is_sifted = bool(wanted.queries) or any(log.only is not None for log in logs)

    def window(self, low: Cuts, high: Cuts, most: int) -> tuple[list[Entry], Cuts]:
        """The first (or last) `most` lines between two cuts that are wanted, in order; and the cuts that they reach."""
        starts = self._passed(low, high) if self._is_sifted else None
        keyed: list[tuple[float, int, int, int, bool]] = []
        for number, log in enumerate(self._logs):
            if low[number] < high[number]:
                keyed += self._lines(number, log, low[number], high[number], starts, most + 1)
        keyed.sort()
        if len(keyed) <= most:
            return self._entries(keyed), high if self._wanted.down else low
        chosen, left = (keyed[:most], keyed[most:]) if self._wanted.down else (keyed[-most:], keyed[:-most])
        cuts = list(high if self._wanted.down else low)
        for _, number, start, end, _ in left:
            if self._wanted.down:
                cuts[number] = min(cuts[number], start)
            else:
                cuts[number] = max(cuts[number], min(end + 1, high[number]))
        return self._entries(chosen), cuts

    def _lines(
        self, number: int, log: TimedLog, low: int, high: int, passed: dict[int, list[int]] | None, most: int
    ) -> list[tuple[float, int, int, int, bool]]:
        """(time, log, start, end, hit) of the lines of one log between two offsets that are to be shown.

        Of those that have passed, where there are more than `most`, no more than the first (or last) so many.
        """
        if passed is None:
            data = log.read(low, high - low)
            starts = line_starts(low, data)
            times = log.times_of(starts, high, data)
            stops = [start - 1 for start in starts[1:]]
            stops.append(low + len(data) - data.endswith(b"\n"))
            return [(time, number, start, stop, True) for time, start, stop in zip(times, starts, stops)]
        hits = passed.get(number, [])
        first, last = bisect_left(hits, low), bisect_left(hits, high)  # beyond are those whose neighbours may be here
        hits = hits[:first + most] if self._wanted.down else hits[max(0, last - most):]
        shown = self._near(log, hits, low, high) if self._wanted.context else dict.fromkeys(hits, True)
        lines, time = [], 0.0
        starts = sorted(shown)
        for start in starts[:most] if self._wanted.down else starts[-most:]:
            stop = log.next_start(start, self._ends[number])
            if log.read(stop - 1, 1) == b"\n":
                stop -= 1
            time = max(time, log.time_of(start))  # a log's own order holds, whatever its lines say
            lines.append((time, number, start, stop, shown[start]))
        return lines

    def _near(self, log: TimedLog, hits: list[int], low: int, high: int) -> dict[int, bool]:
        """The lines between two offsets that pass or are near one that does, and whether they do."""
        shown: dict[int, bool] = {}
        end = log.end
        for hit in hits:
            at = log.lines_before(hit, self._wanted.context)
            stop = log.lines_after(hit, self._wanted.context + 1, end)
            while at < stop:
                if low <= at < high:
                    shown.setdefault(at, False)
                at = log.next_start(at, end)
            if low <= hit < high:
                shown[hit] = True
        return shown

    def _entries(self, keyed: list[tuple[float, int, int, int, bool]]) -> list[Entry]:
        return [
            Entry(time, number, start, end, hit, self._logs[number].read(start, min(LONGEST, end - start)))
            for time, number, start, end, hit in keyed
        ]  # fmt: skip

    def _passed(self, low: Cuts, high: Cuts) -> dict[int, list[int]]:
        """The beginnings of the lines that pass all queries, of each log, in order."""
        context = self._wanted.context
        if context:  # a line beyond the window may want its neighbours shown
            low = [log.lines_before(at, context) for log, at in zip(self._logs, low)]
            high = [log.lines_after(at, context, log.end) for log, at in zip(self._logs, high)]
        together = [number for number, log in enumerate(self._logs) if log.only is None]
        passed = self._sifted(together, self._wanted.queries, low, high)
        for number, log in enumerate(self._logs):
            if log.only is not None:
                passed.update(self._sifted([number], [log.only, *self._wanted.queries], low, high))
        return passed

    def _sifted(self, numbers: list[int], queries: list[Query], low: Cuts, high: Cuts) -> dict[int, list[int]]:
        pieces = (piece for at in numbers for piece in blocks(self._logs[at], at, low[at], high[at]))
        if not queries:
            starts: dict[int, list[int]] = {}
            for piece in pieces:
                starts.setdefault(piece.log, []).extend(line_starts(piece.start, piece.content))
            return starts
        return passing(queries, pieces, lambda number, start: self._logs[number].line(start),
                       self._cancelled, self._tools)


def passing(
    queries: Sequence[Query], pieces: Iterable[Piece], line: Callable[[int, int], bytes],
    cancelled: Callable[[], bool], tools: Tools = HERE,
) -> dict[int, list[int]]:
    """Where the lines begin that pass all queries, of each log by its number, in order. `line` reads one again."""
    passed: dict[int, list[int]] = {}
    for query in queries:
        found: dict[int, list[int]] = {}
        for number, starts in sift(query, pieces, cancelled, tools):
            found.setdefault(number, []).extend(starts)
        passed = found
        pieces = _lines_at(passed, line)
    return passed


def _lines_at(places: dict[int, list[int]], line: Callable[[int, int], bytes]) -> Iterator[Piece]:
    """Lines as pieces, many small ones."""
    for number, starts in places.items():
        for start in starts:
            yield Piece.of(number, start, line(number, start))


def line_starts(offset: int, data: bytes) -> list[int]:
    """Where the lines of some bytes begin, the first of which is at `offset`."""
    starts, at = [], 0
    while at < len(data):
        starts.append(offset + at)
        found = data.find(b"\n", at)
        if found < 0:
            break
        at = found + 1
    return starts
