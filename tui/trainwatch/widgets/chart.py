"""A chart of lines over time, drawn by plotext in a thread so that keys never wait for it.

Not imported before somebody wants to see a chart: plotext takes its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import RenderResult
from textual.color import Color
from textual_plotext import PlotextPlot
from textual_plotext.plot import Plot

from trainwatch.model.history import Measure, Series
from trainwatch.widgets import axes

MARKER = "braille"
MIN_WIDTH, MIN_HEIGHT = 24, 5
LINES = 8
"""So many lines can be told apart."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    label: str
    variable: str
    """The theme's colour variable, without `$`."""
    series: Series


@dataclass(frozen=True)
class Picture:
    """All that a chart shows."""

    measure: Measure
    lines: tuple[Line, ...]
    begin: float
    end: float
    """Unix seconds on our clock."""
    note: str = ""
    """What it says instead, when there is nothing to draw."""


class Chart(PlotextPlot):
    """Shows a picture, as large as it is itself."""

    DEFAULT_CSS = "Chart { background: transparent; color: $tw-muted; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: Picture | None = None
        self._wanted: tuple[object, ...] = ()
        self._drawn = Text("")
        self._drawing = False

    @property
    def is_drawn(self) -> bool:
        """Whether it shows what it is to show."""
        return not self._drawing

    def show(self, picture: Picture) -> None:
        """Show this."""
        self._picture = picture
        self._draw()

    def on_mount(self) -> None:
        """Colours come from our theme, not from plotext's."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw())

    def on_resize(self) -> None:
        """Draw it as large as there is room."""
        self._draw()

    def render(self) -> RenderResult:
        """What was drawn last."""
        return self._drawn

    def _draw(self) -> None:
        wanted = (self._picture, self.size, self.app.theme)
        if self._picture is None or wanted == self._wanted:
            return
        self._wanted = wanted
        if not self._drawing:  # else it is drawn again after that: one figure, one thread
            self._drawing = True
            self.run_worker(self._redraw(), group=f"draw-{self.id}")

    async def _redraw(self) -> None:
        drawn: tuple[object, ...] = ()
        while drawn != self._wanted and self._picture is not None:
            drawn, picture, (width, height) = self._wanted, self._picture, self.size
            if picture.note or width < MIN_WIDTH or height < MIN_HEIGHT:
                note = picture.note or "no room for a chart"
                self._drawn = Text("\n" * max(0, height // 2 - 1) + note, justify="center")
            else:
                colors = [self._color(line.variable) for line in picture.lines]
                built = await asyncio.to_thread(build, self.plt, picture, colors, width, height)
                self._drawn = Text.from_ansi(built, no_wrap=True, end="")
        self._drawing = False
        self.refresh()

    def _color(self, variable: str) -> str | tuple[int, int, int]:
        """A colour of the theme as plotext wants it."""
        color = Color.parse(self.app.theme_variables.get(variable, "white"))
        if color.ansi is not None and color.ansi >= 0:
            return ANSI[color.ansi % len(ANSI)]
        return color.rgb


ANSI = ("black", "red", "green", "orange", "blue", "magenta", "cyan", "gray+", "gray", "red+", "green+", "orange+",
        "blue+", "magenta+", "cyan+", "white")  # fmt: skip
"""The terminal's 16 colours by plotext's names, in their order."""


def build(
    plot: Plot, picture: Picture, colors: Sequence[str | tuple[int, int, int]], width: int, height: int
) -> str:
    """The picture as lines of text with colours for a terminal."""
    low, high = axes.value_range([line.series for line in picture.lines], picture.measure.whole)
    plot.clear_figure()
    # else it is never larger than the terminal was at the start; there is no public name for it
    plot._limit_size(False, False)  # type: ignore[attr-defined]
    plot.plotsize(width, height)
    plot.theme("clear")
    for line, color in zip(picture.lines, colors, strict=True):
        series = line.series.thinned(2 * width)
        draw = plot.plot if len(series.times) > 1 else plot.scatter
        draw(list(series.times), list(series.values), marker=MARKER, color=color)
    plot.xaxes(True, False)
    plot.yaxes(True, False)
    plot.xlim(picture.begin, picture.end)
    plot.ylim(low, high)
    ticks = axes.value_ticks(low, high, height - 2)
    said = axes.labels(ticks, picture.measure.say)
    plot.yticks(ticks, said)
    moments = axes.time_ticks(picture.begin, picture.end, width - max(map(len, said), default=0) - 2)
    plot.xticks([moment for moment, _ in moments], [label for _, label in moments])
    return str(plot.build())
