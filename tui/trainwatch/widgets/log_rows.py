"""How a log's rows are drawn: colours of the log, matches, phases, and the part of a line that is between the edges."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from trainwatch.widgets import log_search, logtext
from trainwatch.widgets.limited import TooSlowError
from trainwatch.widgets.log_lines import Line, Row

KEEP = 600
"""Lines kept ready; more than any screen has rows."""


class Ready(NamedTuple):
    """A line made ready to draw."""

    pieces: logtext.Pieces
    text: str
    cuts: list[int]


class RowPainter:
    """Draws rows `columns` cells wide. Whoever changes how lines are cut calls `forget`.

    `style` gives the style of a component class of the view, `read` a line's bytes.
    """

    def __init__(self, style: Callable[[str], Style], read: Callable[[Line], bytes]) -> None:
        self.columns = 1
        self.x = 0
        self.wrapped = False
        self.pattern: log_search.Pattern | None = None
        self.hit: int | None = None
        self.phases: frozenset[int] = frozenset()
        self._style, self._read = style, read
        self._ready: OrderedDict[Line, Ready] = OrderedDict()

    def forget(self) -> None:
        """Lines are cut another way, or are other lines."""
        self._ready.clear()

    def rows_of(self, line: Line) -> int:
        """How many rows a line takes. Raises Missing."""
        return len(self.ready(line).cuts) if self.wrapped else 1

    def ready(self, line: Line) -> Ready:
        """A line ready to draw. Raises Missing."""
        ready = self._ready.get(line)
        if ready is None:
            pieces = logtext.parse(self._read(line))
            text = "".join(part for part, _ in pieces)
            cuts = logtext.wrap_cuts(text, self.columns) if self.wrapped else []
            ready = self._ready[line] = Ready(pieces, text, cuts)
            while len(self._ready) > KEEP:
                self._ready.popitem(last=False)
        else:
            self._ready.move_to_end(line)
        return ready

    def width_of(self, line: Line) -> int:
        """The cells of a whole line."""
        return cell_len(self.ready(line).text)

    def draw(self, row: Row, base: Style) -> Strip:
        """One row, exactly as wide as there are columns."""
        ready = self.ready(row.line)
        pieces = ready.pieces
        if row.line.start in self.phases:
            base = base + self._style("log-view--phase")
        if found := self._hits_in(ready.text):
            pieces = logtext.highlight(pieces, found, self._style("log-view--match"))
        if row.line.start == self.hit:
            base = base + self._style("log-view--hit")
        strip = logtext.strip_of(pieces)
        if self.wrapped:
            first = ready.cuts[row.row - 1] if row.row else 0
            strip = strip.crop(first, ready.cuts[min(row.row, len(ready.cuts) - 1)])
        else:
            strip = self._cropped(strip)
        return strip.apply_style(base).adjust_cell_length(self.columns, base)

    def _hits_in(self, text: str) -> list[tuple[int, int]]:
        """Where the pattern is in a line; nowhere any more, once it has proved too slow to be drawn."""
        if self.pattern is None:
            return []
        try:
            return log_search.spans(self.pattern, text)
        except TooSlowError:
            self.pattern = None
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
