"""Lanes of phases over time, drawn line by line, with a cursor on one rank and one moment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from trainwatch import actions
from trainwatch.model import idle as idles
from trainwatch.model import text
from trainwatch.model.phases import OMITTED
from trainwatch.model.timeline import HOLD, LAUNCHER, Lane, Span, Timeline
from trainwatch.widgets.fit import fit
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

if TYPE_CHECKING:
    from trainwatch.model.idle import Spans

BAR, IDLE_BAR, HELD_BAR = "█", "░", "▒"
LAUNCHER_BAR, IDLE_LAUNCHER_BAR = "─", "┄"
"""While the command has told no phase."""
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Seconds between two marks of the ruler."""
TICK_ROOM = 12
"""Columns from one mark to the next, at least."""
SHORTEST = 5.0
"""The least number of seconds on screen."""
MOST_DRAWN = 512
"""Bars that are kept as they were drawn."""


class TimelineView(ScrollView, can_focus=True):
    """A ruler, and below it a line for each rank."""

    BINDINGS = actions.bindings(actions.LANES)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "timeline--label", "timeline--ruler", "timeline--cursor", "timeline--lane", "timeline--launcher", "state--held",
        *(f"shade--phase-{number}" for number in range(6)),
    }  # fmt: skip
    DEFAULT_CSS = "TimelineView { overflow-x: hidden; scrollbar-size-vertical: 1; padding: 0; }"

    @dataclass
    class Moved(Message):
        """The cursor is somewhere else."""

    @dataclass
    class Scrolled(Message):
        """Other ranks are on screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.line = Timeline((), 0.0, 0.0, ())
        self._from = self._to = 0.0
        self._whole = True
        """Whether all of the time is shown, and goes on being shown."""
        self.selected = 0
        self.moment = 0.0
        self._idle: Mapping[AttemptKey, Spans] = {}
        self._label = 10
        self._drawn: dict[object, list[Segment]] = {}
        """Bars as they were drawn; a cursor that moves changes none."""

    # What is shown

    def show(self, line: Timeline) -> None:
        """Show a run; while all of it is shown, its newest moment too."""
        first = not self.line.lanes
        stays = self.lane.key if self.lane is not None else None
        self.line = line
        if self._whole or first:
            self._from, self._to = line.start, max(line.end, line.start + SHORTEST)
        if first:
            self.moment = line.end
        self._keep(stays)
        self._measure()
        self._drawn.clear()
        self.refresh()

    def show_idle(self, idle: Mapping[AttemptKey, Spans]) -> None:
        """When the GPUs of ranks were idle, by the key of their lanes."""
        if idle != self._idle:
            self._idle = idle
            self._drawn.clear()
            self.refresh()

    def _measure(self) -> None:
        """How wide names are, and how much there is to scroll."""
        longest = max((len(lane.label) + cell_len(lane.host) + 2 for lane in self.line.lanes), default=8)
        self._label = min(longest, max(8, self.size.width // 5)) + 2
        self.virtual_size = Size(self.size.width, len(self.line.lanes) + 1)

    def _keep(self, key: AttemptKey | None) -> None:
        keys = [lane.key for lane in self.line.lanes]
        self.selected = keys.index(key) if key in keys else max(0, min(self.selected, len(keys) - 1))

    @property
    def seen(self) -> Sequence[Lane]:
        """The ranks on screen."""
        top = round(self.scroll_y)
        return self.line.lanes[top : top + max(1, self.size.height - 1)]

    @property
    def idle(self) -> float | None:
        """Which share of the selected rank's GPUs was idle at the cursor; None when nobody knows."""
        return idles.at(self._idle.get(self.lane.key, ()), self.moment) if self.lane is not None else None

    @property
    def lane(self) -> Lane | None:
        """The selected rank."""
        return self.line.lanes[self.selected] if self.selected < len(self.line.lanes) else None

    @property
    def span(self) -> Span | None:
        """What the selected rank did at the cursor."""
        return self.lane.at(self.moment) if self.lane is not None else None

    def select(self, key: AttemptKey) -> None:
        """Select a rank."""
        self._keep(key)
        self._into_view()

    # The cursor

    def _move(self, lanes: int) -> None:
        self.selected = max(0, min(self.selected + lanes, len(self.line.lanes) - 1))
        self._into_view()

    def _into_view(self) -> None:
        top, height = round(self.scroll_y), max(1, self.size.height - 1)
        if self.selected < top:
            self.scroll_to(y=self.selected, animate=False)
        elif self.selected >= top + height:
            self.scroll_to(y=self.selected - height + 1, animate=False)
        self.refresh()
        self.post_message(self.Moved())

    def action_lane_down(self) -> None:
        """To the rank below."""
        self._move(1)

    def action_lane_up(self) -> None:
        """To the rank above."""
        self._move(-1)

    def action_lane_first(self) -> None:
        """To the first rank."""
        self._move(-len(self.line.lanes))

    def action_lane_last(self) -> None:
        """To the last rank."""
        self._move(len(self.line.lanes))

    def action_lane_page_down(self) -> None:
        """A page down."""
        self._move(max(1, self.size.height - 2))

    def action_lane_page_up(self) -> None:
        """A page up."""
        self._move(-max(1, self.size.height - 2))

    def _step(self, columns: float) -> None:
        """Move the cursor in time; at the edge the picture moves."""
        second = (self._to - self._from) / max(1, self._columns)
        self.moment = max(self.line.start, min(self.moment + columns * second, self.line.end))
        for edge, beyond in ((self._from, self.moment < self._from), (self._to, self.moment > self._to)):
            if beyond:
                shift = self.moment - edge
                self._from, self._to = self._from + shift, self._to + shift
        self.refresh()
        self.post_message(self.Moved())

    def action_time_forward(self) -> None:
        """A column later."""
        self._step(1)

    def action_time_back(self) -> None:
        """A column earlier."""
        self._step(-1)

    def action_time_next(self) -> None:
        """To where the selected rank does something else."""
        span = self.span
        if span is not None and span.end < self.line.end:
            self._step((span.end - self.moment) * self._columns / (self._to - self._from) + 1e-6)
        else:
            self._step(math.inf)

    def action_time_previous(self) -> None:
        """To where the selected rank began what it does."""
        span = self.span
        target = span.start if span is not None and span.start < self.moment - 1e-3 else self.line.start
        earlier = [s.start for s in (self.lane.spans if self.lane else ()) if s.start < self.moment - 1e-3]
        target = max(earlier, default=target)
        self._step((target - self.moment) * self._columns / (self._to - self._from))

    def action_zoom_in(self) -> None:
        """Half the time on screen, around the cursor."""
        self._zoom(0.5)

    def action_zoom_out(self) -> None:
        """Twice the time on screen."""
        self._zoom(2.0)

    def action_zoom_all(self) -> None:
        """All of the run."""
        self._zoom(math.inf)

    def _zoom(self, by: float) -> None:
        whole = max(SHORTEST, self.line.end - self.line.start)
        length = max(SHORTEST, (self._to - self._from) * by)
        self._whole = length >= whole
        if self._whole:
            self._from, self._to = self.line.start, self.line.start + whole
        else:
            share = (self.moment - self._from) / max(1e-9, self._to - self._from)
            self._from = self.moment - length * min(1.0, max(0.0, share))
            self._to = self._from + length
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if 0 < offset.y <= len(self.line.lanes) - round(self.scroll_y):
            self.selected = offset.y - 1 + round(self.scroll_y)
        column = offset.x - self._label
        if column >= 0:
            self.moment = min(self.line.end, self._time_of(column + 0.5))
        self._into_view()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """With ctrl: zoom out."""
        if event.ctrl:
            event.stop()
            self.action_zoom_out()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """With ctrl: zoom in."""
        if event.ctrl:
            event.stop()
            self.action_zoom_in()

    # Drawing

    @property
    def _columns(self) -> int:
        return max(1, self.size.width - self._label - 1)

    def _time_of(self, column: float) -> float:
        return self._from + (self._to - self._from) * column / self._columns

    def _column_of(self, moment: float) -> int:
        return math.floor((moment - self._from) / (self._to - self._from) * self._columns)

    def on_resize(self) -> None:
        """More or fewer lanes."""
        self._measure()
        self._drawn.clear()
        self._into_view()
        self.post_message(self.Scrolled())

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Other lanes are seen."""
        super().watch_scroll_y(old, new)
        self.post_message(self.Scrolled())

    def notify_style_update(self) -> None:
        """Colours changed."""
        super().notify_style_update()
        self._drawn.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The ruler, or a lane."""
        width, base = self.size.width, self.rich_style
        if y == 0:
            return Strip(self._ruler(base)).adjust_cell_length(width, base)
        index = y - 1 + round(self.scroll_y)
        if index >= len(self.line.lanes):
            return Strip.blank(width, base)
        lane, chosen = self.line.lanes[index], index == self.selected
        style = base + self.get_component_rich_style("timeline--lane", partial=True) if chosen else base
        label = style + self.get_component_rich_style("timeline--label", partial=True)
        name = f"{'▌' if chosen else ' '}{lane.label} {clean(lane.host)}"
        segments = [Segment(fit(name, self._label - 1) + " ", label), *self._bars(lane, style, chosen)]
        return Strip(segments).simplify().adjust_cell_length(width, style)

    def _bars(self, lane: Lane, base: Style, chosen: bool) -> list[Segment]:
        """What a rank did, and the cursor."""
        place = (lane.key, chosen, self._from, self._to, self._columns)
        if place not in self._drawn:
            if len(self._drawn) > MOST_DRAWN:
                self._drawn.clear()
            self._drawn[place] = self._cells(lane, base)
        cells = list(self._drawn[place])
        cursor = min(self._column_of(self.moment), self._columns - 1)
        if chosen and cursor >= 0:
            mark = self.get_component_rich_style("timeline--cursor", partial=True)
            cells[cursor] = Segment("┃", base + mark)
        return cells

    def _cells(self, lane: Lane, base: Style) -> list[Segment]:
        """A column at a time: what lasted longest in it, shaded where the GPUs were idle."""
        count = self._columns
        cells = [Segment(" ", base)] * count
        weight = [0.0] * count
        per_column = (self._to - self._from) / count
        known = idles.columns(self._idle.get(lane.key, ()), self._from, per_column, count)
        idle = [share is not None and share >= idles.SHADED for share in known]
        for span in lane.spans:
            first, last = max(0, self._column_of(span.start)), min(count - 1, self._column_of(span.end))
            drawn = self._looks(span)
            for column in range(first, last + 1):
                begin = self._time_of(column)
                share = min(span.end, begin + per_column) - max(span.start, begin)
                if share > weight[column]:
                    weight[column], cells[column] = share, drawn[idle[column]]
        return cells

    def _looks(self, span: Span) -> tuple[Segment, Segment]:
        """A column of a span while GPUs work, and while they are idle. Never on the chosen rank's ground: with 16
        colours that is one of the phases'."""
        if span.kind == HOLD:
            pair, name = (HELD_BAR, HELD_BAR), "state--held"
        elif span.kind in (LAUNCHER, OMITTED):
            pair, name = (LAUNCHER_BAR, IDLE_LAUNCHER_BAR), "timeline--launcher"
        else:
            pair, name = (BAR, IDLE_BAR), f"shade--phase-{self.line.hues.of(span.name)}"
        style = self.rich_style + self.get_component_rich_style(name, partial=True)
        return Segment(pair[0], style), Segment(pair[1], style)

    def _ruler(self, base: Style) -> list[Segment]:
        """Times of day, at round moments."""
        style = base + self.get_component_rich_style("timeline--ruler", partial=True)
        line = [" "] * (self._label + self._columns)
        span = self._to - self._from
        if span <= 0:
            return [Segment("".join(line), style)]
        room = span * TICK_ROOM / self._columns
        tick = next((seconds for seconds in TICKS if seconds >= room), TICKS[-1])
        form = "%H:%M:%S" if tick < 60 else "%H:%M" if span < 86400 else "%m-%d %H:%M"
        moment = math.ceil(self._from / tick) * tick
        while moment < self._to:
            at = self._label + self._column_of(moment)
            said = f"╷{text.moment(moment, form)}"
            if at + len(said) <= len(line):
                line[at : at + len(said)] = said
            moment += tick
        return [Segment("".join(line), style)]
