"""Lines that come in pages: of several logs in the order of time, or those of a log that pass a filter.

A window of them is known, which grows at its ends and loses at the other one what is far from the eye. Pure. A call
that needs a line beyond the window raises `Missing` with the way to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainwatch.widgets.log_lines import Line, Missing
from trainwatch_launcher.reader.pages import Entry

UP, END, DOWN, TOP = -1, 0, 1, 2
"""Which page is missing: the one above the window, the last one, the one below, the first one."""
KEEP = 4000
"""Lines kept."""
EPOCH = 1 << 40
"""Numbers of lines never come again in another window."""
FOLD_SECONDS = 30.0
"""Lines of different ranks that say the same are one only when they came within so many seconds."""
_OWN = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[ T]|\d\d:\d\d:\d\d(?:[.,]\d+)?|\[?(?:default|rank|RANK)[ _:=]?\d+\]?:?"
    rb"|(?:cuda|GPU|device)[ :=]\d+|pid[ =:]\d+"
)
"""What differs in the same line of other ranks: times, ranks, devices, processes."""


class PagedLines:
    """A window of entries; where it begins and ends in each log is told by its cuts (see the engine's `cuts`)."""

    def __init__(self) -> None:
        self.size = 0
        self.entries: list[Entry] = []
        self.low: list[int] = []
        self.high: list[int] = []
        self.at_top = self.at_end = False
        self.near_end = False
        """Whether what follows the window is little, so that the end is best reached from here."""
        self.groups: Sequence[int] = ()
        """Which logs are parts of one file, and so have the same cuts: those with the same number."""
        self.span = (0.0, 0.0)
        """When the first and the last line of all were written."""
        self.folded = False
        """Whether lines that other ranks say too are one."""
        self._torn = 0
        """So many of the last lines may have grown."""
        self._first = EPOCH
        self._hidden: set[int] = set()
        self._same: dict[int, list[int]] = {}

    # The window

    def reset(
        self, entries: Sequence[Entry], low: Sequence[int], high: Sequence[int], at_top: bool, at_end: bool
    ) -> None:
        """Another window."""
        self._first += EPOCH
        self.entries = list(entries)
        self.low, self.high = list(low), list(high)
        self.at_top, self.at_end = at_top, at_end
        self._torn = 0
        self._fold()

    def extend(self, entries: Sequence[Entry], cuts: Sequence[int], down: bool, at_end: bool) -> None:
        """What lies below the window, or above it."""
        if down:
            if self._torn:
                del self.entries[-self._torn:]
                self._torn = 0
            self.entries.extend(entries)
            self.high, self.at_end = list(cuts), at_end
            self.near_end = False  # there was more than a page: the end may be far
            self._drop_top(len(self.entries) - KEEP)
        else:
            self.entries[:0] = entries
            self._first -= len(entries)
            self.low, self.at_top = list(cuts), at_end
            self._drop_bottom(len(self.entries) - KEEP)
        self._fold()

    def _drop_top(self, count: int) -> None:
        if count > 0:
            for entry in self.entries[:count]:
                self._cut(self.low, entry.log, max(self.low[entry.log], entry.end + 1))
            del self.entries[:count]
            self._first += count
            self.at_top = False

    def _drop_bottom(self, count: int) -> None:
        if count > 0:
            for entry in self.entries[-count:]:
                self._cut(self.high, entry.log, min(self.high[entry.log], entry.start))
            self._torn = 0
            del self.entries[-count:]
            self.at_end = False

    def grow(self, near: bool) -> bool:
        """There is more below; whether all of it can be reached from here.

        A line without a line feed at the end of its log may have grown: it is read again.
        """
        if self.at_end:
            self._torn = 0
            for entry in reversed(self.entries):
                if entry.end != self.high[entry.log]:
                    break
                self._torn += 1
                self._cut(self.high, entry.log, entry.start)
            self.near_end = near and not self._is_torn()
        else:
            self.near_end = self.near_end and near
        self.at_end = False
        return self.near_end

    def _is_torn(self) -> bool:
        """Whether another line than the last ones may have grown."""
        seen: set[int] = set()
        for entry in reversed(self.entries[-KEEP // 4:len(self.entries) - self._torn]):
            if entry.log not in seen and entry.end == self.high[entry.log]:
                return True
            seen.add(entry.log)
        return False

    def number(self, at: int) -> int:
        """The number of one of the window's lines, counted from its top."""
        return self._first + at

    def cuts_above(self, start: int, below: bool = False) -> list[int]:
        """The cuts above one line of the window, or `below` it."""
        cuts = list(self.low)
        for entry in self.entries[:max(0, start - self._first)]:
            cuts[entry.log] = max(cuts[entry.log], entry.end + 1)
        own = self.entry(start)
        cuts[own.log] = own.end + 1 if below else own.start
        newest: dict[int, int] = {}
        for log, cut in enumerate(cuts):
            newest[self._group(log)] = max(cut, newest.get(self._group(log), 0))
        return [min(newest[self._group(log)], high) for log, high in enumerate(self.high)]

    def _group(self, log: int) -> int:
        return self.groups[log] if log < len(self.groups) else log

    def _cut(self, cuts: list[int], log: int, cut: int) -> None:
        """Set the cut of a log, and of all that are parts of the same file."""
        cuts[log] = cut
        if len(set(self.groups)) < len(self.groups):
            for other in range(len(cuts)):
                if self._group(other) == self._group(log):
                    cuts[other] = cut

    def find(self, log: int, offset: int) -> int | None:
        """The line of the window that holds a byte of a log; None when none does."""
        for at, entry in enumerate(self.entries):
            if entry.log == log and entry.start <= offset <= entry.end:
                return self._first + at
        return None

    def entry(self, start: int) -> Entry:
        """A line's entry. Raises Missing."""
        at = start - self._first
        if not 0 <= at < len(self.entries):
            raise Missing(UP if at < 0 else DOWN)
        return self.entries[at]

    # As a document

    def first(self) -> int:
        """The first line. Raises Missing."""
        if not self.at_top:
            raise Missing(TOP)
        return self._first

    def last(self) -> Line | None:
        """The last line; None when there is none. Raises Missing."""
        if not self.at_end:
            raise Missing(DOWN if self.near_end else END)
        return self.before(self._first + len(self.entries))

    def holds(self, start: int) -> bool:
        """Whether a line of the window."""
        return 0 <= start - self._first < len(self.entries)

    def is_first(self, start: int) -> bool:
        """Whether there is nothing above it."""
        return self.at_top and start <= self._first

    def line_at(self, start: int) -> Line:
        """A line by its number. Raises Missing."""
        return Line(start, self.entry(start).end)  # a line that has grown is another one

    def after(self, line: Line) -> int | None:
        """The next line; None when there is none. Raises Missing."""
        at = line.start + 1
        while at in self._hidden:
            at += 1
        if self.holds(at):
            return at
        if self.at_end:
            return None
        raise Missing(DOWN)

    def before(self, start: int) -> Line | None:
        """The line above; None at the top. Raises Missing."""
        at = start - 1
        while at in self._hidden:
            at -= 1
        if self.holds(at):
            return self.line_at(at)
        if self.at_top:
            return None
        raise Missing(UP)

    def text(self, line: Line) -> bytes:
        """A line's bytes, of a very long one the first ones. Raises Missing."""
        return self.entry(line.start).data

    def left_out(self, start: int) -> int:
        """How many bytes of a line there are beyond its text. Raises Missing."""
        entry = self.entry(start)
        return entry.end - entry.start - len(entry.data)

    def start_of(self, offset: int) -> int:
        """Numbers are lines."""
        return offset

    def is_passing(self, _line: Line) -> bool:
        """Lines are whole."""
        return False

    def share(self, start: int) -> float:
        """How far down a line is, 0 to 1, by its time."""
        first, last = self.span
        if not self.holds(start) or last <= first:
            return 1.0 if self.at_end else 0.0
        return max(0.0, min(1.0, (self.entry(start).time - first) / (last - first)))

    def place(self, start: int) -> tuple[int, int]:
        """Which log a line is of, and at which offset it begins there."""
        entry = self.entry(start)
        return entry.log, entry.start

    # Folding

    def fold(self, folded: bool) -> None:
        """Show lines that several ranks say once, or each."""
        self.folded = folded
        self._fold()

    def others(self, start: int) -> int:
        """How many other ranks say the same as a line, when such lines are folded."""
        return len(self._same.get(start, ()))

    def _fold(self) -> None:
        self._hidden.clear()
        self._same.clear()
        if not self.folded:
            return
        leaders: dict[bytes, tuple[int, float, set[int]]] = {}
        for at, entry in enumerate(self.entries, self._first):
            said = _OWN.sub(b"", entry.data)
            leader = leaders.get(said)
            if said and leader and entry.log not in leader[2] and entry.time - leader[1] <= FOLD_SECONDS:
                leader[2].add(entry.log)
                self._hidden.add(at)
                self._same.setdefault(leader[0], []).append(entry.log)
            else:
                leaders[said] = (at, entry.time, {entry.log})
