"""How a log's rows are drawn: colours of the log, matches, kinds of lines, and the part of a line between the edges."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from trainwatch.model import text as words
from trainwatch.widgets import log_kinds, log_search, logtext
from trainwatch.widgets.limited import TooSlowError
from trainwatch.widgets.log_lines import Document, Line, Row
from trainwatch_launcher.reader.query import Query

KEEP = 600
"""Lines kept ready; more than any screen has rows."""
COLOURS = 8
"""Ranks' labels have so many colours."""
LONGEST_LABEL = 12
LINES, TIMES = "lines", "times"
GUTTERS = ("", LINES, TIMES)
"""What can stand before each line: nothing, its number, or its time."""
WIDTHS = {"": 0, LINES: 11, TIMES: 13}

Place = tuple[int, int]
"""A line's log and its offset there."""
Fact = tuple[int | None, float | None]
"""A line's number and its time, as far as they are known."""


class Ready(NamedTuple):
    """A line made ready to draw."""

    pieces: logtext.Pieces
    text: str
    cuts: list[int]
    error: bool
    place: Place
    context: bool
    """Whether it is shown only because it stands near a line that passes a filter."""


class RowPainter:
    """Draws rows `width` cells wide in all. Whoever changes how lines are cut calls `forget`.

    `style` gives the style of a component class of the view, `document` the lines.
    """

    def __init__(self, style: Callable[[str], Style], document: Callable[[], Document]) -> None:
        self.width = 1
        self.x = 0
        self.wrapped = False
        self.states = False
        """Whether all states of a `\\r` bar are shown."""
        self.gutter = ""
        self.facts: Mapping[int, Fact] = {}
        """What is known of lines, for the gutter."""
        self.labels: Sequence[str] = ()
        self.query: Query | None = None
        self.hit: Place | None = None
        self.phases: frozenset[Place] = frozenset()
        self.others: Callable[[int], int] = lambda start: 0
        """How many other ranks say the same as a line."""
        self.is_context: Callable[[int], bool] = lambda start: False
        self.left_out: Callable[[int], int] = lambda start: 0
        """How many bytes of a line are not among its text, because it is very long."""
        self._style, self._document = style, document
        self._ready: OrderedDict[Line, Ready] = OrderedDict()

    def forget(self) -> None:
        """Lines are cut another way, or are other lines."""
        self._ready.clear()

    @property
    def lead(self) -> int:
        """Cells before a line's text."""
        label = min(LONGEST_LABEL, max((cell_len(label) for label in self.labels), default=0))
        return (label + 3 if len(self.labels) > 1 else 0) + WIDTHS[self.gutter]

    @property
    def columns(self) -> int:
        """Cells for a line's text."""
        return max(1, self.width - self.lead)

    def rows_of(self, line: Line) -> int:
        """How many rows a line takes. Raises Missing."""
        if not self.states and self._document().is_passing(line):
            return 0
        return len(self.ready(line).cuts) if self.wrapped else 1

    def ready(self, line: Line) -> Ready:
        """A line ready to draw. Raises Missing."""
        ready = self._ready.get(line)
        if ready is None:
            pieces = logtext.parse(self._document().text(line), self.states)
            if left := self.left_out(line.start):
                note = f" … {words.size(left)} more: ⏎ shows the line whole"
                pieces = [*pieces, (note, self._style("log-view--others"))]
            text = "".join(part for part, _ in pieces)
            cuts = logtext.wrap_cuts(text, self.columns) if self.wrapped else []
            place, context = self._document().place(line.start), self.is_context(line.start)
            ready = Ready(self._marked(pieces, text), text, cuts, log_kinds.is_error(text), place, context)
            self._ready[line] = ready
            while len(self._ready) > KEEP:
                self._ready.popitem(last=False)
        else:
            self._ready.move_to_end(line)
        return ready

    def _marked(self, pieces: logtext.Pieces, text: str) -> logtext.Pieces:
        """Numbers and warnings stand out; where the log has colours of its own, these stay."""
        if found := log_kinds.numbers(text):
            pieces = logtext.highlight(pieces, found, self._style("log-view--number"), under=True)
        if found := log_kinds.warnings(text):
            pieces = logtext.highlight(pieces, found, self._style("log-view--warning"))
        return pieces

    def width_of(self, line: Line) -> int:
        """The cells of a whole line."""
        return cell_len(self.ready(line).text)

    def draw(self, row: Row, base: Style) -> Strip:
        """One row, exactly as wide as it may be."""
        return Strip.join([self._lead(row, base), self.draw_text(row, base)])

    def draw_text(self, row: Row, base: Style) -> Strip:
        """The same without what is said before the line."""
        ready = self.ready(row.line)
        pieces, start = ready.pieces, row.line.start
        place = ready.place
        if place in self.phases:
            base = base + self._style("log-view--phase")
        elif ready.error:
            base = base + self._style("log-view--error")
        elif ready.context:
            base = base + self._style("log-view--muted")
        if found := self._hits_in(ready.text):
            pieces = logtext.highlight(pieces, found, self._style("log-view--match"))
        if place == self.hit:
            base = base + self._style("log-view--hit")
        if count := self.others(start):
            note = f"  ＝ {count} other rank{'' if count == 1 else 's'}"
            pieces = [*pieces, (note, self._style("log-view--others"))]
        strip = logtext.strip_of(pieces)
        if self.wrapped:
            first = ready.cuts[row.row - 1] if row.row else 0
            last = min(row.row, len(ready.cuts) - 1)
            # what is said behind a line stands in its last row, where there is room
            end = ready.cuts[last] if last < len(ready.cuts) - 1 else first + self.columns
            strip = strip.crop(first, min(end, strip.cell_length))
        else:
            strip = self._cropped(strip)
        return strip.apply_style(base).adjust_cell_length(self.columns, base)

    def _lead(self, row: Row, base: Style) -> Strip:
        """Whose line it is, and its number or time; nothing in the rows that it goes on in."""
        segments = []
        start = row.line.start
        if self.gutter:
            said = self._gutter_text(start) if row.row == 0 else ""
            segments.append(Segment(said.rjust(WIDTHS[self.gutter] - 1) + " ", base + self._style("log-view--muted")))
        if len(self.labels) > 1:
            number = self.ready(row.line).place[0]
            label = logtext.clean(self.labels[number]) if row.row == 0 else ""
            room = self.lead - WIDTHS[self.gutter] - 3
            shown = Strip([Segment(label)]).adjust_cell_length(room).text
            colour = self._style(f"log-view--rank-{number % COLOURS}")
            segments.append(Segment(shown + " ▏ ", base + colour))
        return Strip(segments)

    def _gutter_text(self, start: int) -> str:
        number, time = self.facts.get(start, (None, None))
        if self.gutter == LINES:
            return "" if number is None else f"{number + 1:,}"
        return "" if not time else words.moment(time, "%H:%M:%S") + f"{time % 1:.3f}"[1:4]

    def _hits_in(self, text: str) -> list[tuple[int, int]]:
        """Where the query is in a line; nowhere any more, once it has proved too slow to be drawn."""
        if self.query is None:
            return []
        try:
            return log_search.spans(self.query, text)
        except TooSlowError:
            self.query = None
            return []

    def _cropped(self, strip: Strip) -> Strip:
        """The part of a line between the edges, with marks where it goes on."""
        length, width = strip.cell_length, self.columns
        muted = self._style("log-view--muted")
        if self.x:
            strip = Strip([Segment("‹", muted), *strip.crop(min(self.x + 1, length), length)])
        if strip.cell_length > width:
            strip = Strip([*strip.crop(0, width - 1), Segment("›", muted)])
        return strip


def overlaid(strip: Strip, first: int, last: int, style: Style) -> Strip:
    """A strip with a style over some of its cells; `last` -1 is its end."""
    end = strip.cell_length if last == -1 else min(last, strip.cell_length)
    if first >= end:
        return strip
    marked = Strip([Segment(part.text, (part.style or Style.null()) + style) for part in strip.crop(first, end)])
    return Strip.join([strip.crop(0, first), marked, strip.crop(end)])


def with_chip(strip: Strip, chip: str, style: Style) -> Strip:
    """A strip with a few words over its end."""
    at = max(0, strip.cell_length - cell_len(chip))
    return Strip([*strip.crop(0, at), Segment(chip, style)]).crop(0, strip.cell_length)
