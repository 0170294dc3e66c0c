"""Phases of all ranks over time: who was where when, and which ranks keep the others waiting."""

from __future__ import annotations

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content

from trainwatch import actions
from trainwatch.model import bill, text
from trainwatch.model.timeline import HOLD, LAUNCHER, Lane, Span, Spread, Timeline, timeline
from trainwatch.screens.feed import Feed
from trainwatch.screens.run_screen import MANY, Plain, RunScreen
from trainwatch.widgets import header
from trainwatch.widgets.header import Bar, Part, fit_most
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.timeline_view import TimelineView
from trainwatch_launcher.reader.changes import AttemptKey

BILL_EVERY = 10.0
"""What the GPUs cost is added up every so many seconds."""
MOST_SPREADS = 8
"""Lines of the table of phases."""
NAME = 28
EVERY = 3.0
"""Seconds between two renderings of more than `MANY` ranks."""


class TimelineScreen(RunScreen):
    """Header, lanes, what is under the cursor, and each phase over all ranks."""

    BINDINGS = actions.bindings(actions.TIMELINE)
    SCOPES = (actions.TIMELINE, actions.LANES)

    def __init__(self, feed: Feed, key: AttemptKey | None) -> None:
        super().__init__(feed)
        self._first = key
        self._cost, self._billed_at = "", float("-inf")
        self._shown: object = None
        self._shown_at = 0.0

    @property
    def key(self) -> AttemptKey | None:
        """The selected rank's newest attempt."""
        lane = self.view.lane
        return lane.key if lane is not None else None

    @property
    def view(self) -> TimelineView:
        """The lanes."""
        return self.query_one(TimelineView)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Bar(id="header")
        yield TimelineView(id="lanes")
        yield Bar(id="selected", classes="pane-title")
        yield Plain(id="spreads")
        yield KeyBar(actions.TIMELINE, actions.LANES, actions.APP)

    def on_mount(self) -> None:
        """Keys go to the lanes."""
        self.view.focus()
        if self._first is not None:
            self.view.select(self._first)

    def run_changed(self) -> None:
        """All anew: time has passed for every rank. With thousands that is work, and bars of minutes can wait."""
        run, now = self.feed.run, self.feed.now()
        size = (self.size, len(run.order))
        if len(run.order) > MANY and size == self._shown and 0 <= now - self._shown_at < EVERY:
            return
        self._shown, self._shown_at = size, now
        line = timeline(run, now)
        state = self.summary_at(now)
        self.set_class(state.first is not None, "alarm")
        note = header.trouble_note(run.trouble) or (self.feed.problem and "source lost")
        problems = len(run.problems) - bool(run.trouble)
        parts = header.header_parts(state, self.feed.name, now, self.size.width, problems, note, self.feed.links)
        self.query_one("#header", Bar).show(parts)
        self.view.show(line)
        if self._first is not None and line.lanes:
            self.view.select(self._first)
            self._first = None
        spreads = spread_parts(line, self.size.width, MOST_SPREADS if self.size.height > 30 else 4)
        if not 0 <= now - self._billed_at < BILL_EVERY:
            self._billed_at, hours = now, bill.gpu_hours(run)
            self._cost = "" if hours is None else bill.words(hours)
        if self._cost:
            spreads.append((f"\n {fit_most(self._cost, self.size.width - 2)}", "$tw-muted"))
        self.query_one("#spreads", Plain).update(Content.assemble(*spreads))
        self._show_cursor()

    @on(TimelineView.Moved)
    def _show_cursor(self) -> None:
        view = self.view
        self.query_one("#selected", Bar).show(cursor_parts(view.lane, view.span, view.moment, view.line))

    @property
    def attempt_seen(self) -> AttemptKey | None:
        """The attempt to which the cursor points: the rank's newest, or the one whose phase is under it."""
        key, span = self.key, self.view.span
        if key is None or span is None or key.local_rank >= 0:
            return key
        older = AttemptKey(key.rank, span.attempt)
        return older if older in self.feed.run.attempts else key

    def action_open(self) -> None:
        """The rank's details."""
        key = self.attempt_seen
        if key is not None:
            from trainwatch.screens.rank import RankScreen

            self.app.push_screen(RankScreen(self.feed, key))

    def action_log(self) -> None:
        """The rank's log."""
        key = self.attempt_seen
        if key is not None:
            from trainwatch.screens.log import LogScreen

            self.app.push_screen(LogScreen(self.feed, key))


def cursor_parts(lane: Lane | None, span: Span | None, moment: float, line: Timeline) -> list[Part]:
    """What the selected rank did at the cursor, from when to when."""
    if lane is None:
        return [(" no rank has come yet", "$tw-muted")]
    parts: list[Part] = [(f" rank {lane.label}", "bold"), (f"  {text.moment(moment, '%H:%M:%S')}", "$tw-muted")]
    if span is None:
        return [*parts, ("  nothing", "$tw-muted")]
    said = "held" if span.kind == HOLD else f"launcher: {span.name}" if span.kind == LAUNCHER else clean(span.name)
    lasts = f"{text.duration(span.duration)}{' so far' if span.open else ''}"
    since = f"{text.moment(span.start, '%H:%M:%S')} – {'now' if span.open else text.moment(span.end, '%H:%M:%S')}"
    parts += [("  ", ""), (fit_most(said, 40), "bold"), (f"  {since}  ", "$tw-muted"), (lasts, "")]
    if any(other.attempt != span.attempt for other in lane.spans):
        parts.append((f"  attempt {span.attempt}", "$tw-muted"))
    return parts


def spread_parts(line: Timeline, width: int, most: int) -> list[Part]:
    """Each phase over all ranks: when the first came and the last left, and who took longest."""
    if not line.spreads:
        return [(" no phase yet: a phase begins with a line  === [Phase] NAME ===", "$tw-muted")]
    parts: list[Part] = [(f" {'phase':<{NAME}}  ranks  first in   last in    last out   typical  longest", "$tw-muted")]
    for spread in line.spreads[-most:]:
        hue = f"$shade-phase-{line.hue(spread.name)}"
        parts += [("\n ■ ", hue), *_spread_cells(spread)]
        used = NAME + 65
        if spread.slowest and width > used + 10:
            parts.append((fit_most(f"  rank {', '.join(spread.slowest)}", width - used), "$tw-muted"))
    return parts


def _spread_cells(spread: Spread) -> list[Part]:
    name = fit_most(clean(spread.name), NAME - 2)
    out = f"{spread.still} in it" if spread.still else text.moment(spread.last_out, "%H:%M:%S")
    entered = [text.moment(moment, "%H:%M:%S") for moment in (spread.first_in, spread.last_in)]
    cells = f"  {spread.ranks:>5}  {entered[0]:<10} {entered[1]:<10} {out:<10}"
    times = f"{text.duration(spread.median):>8} {text.duration(spread.longest):>8}"
    return [(name + " " * (NAME - 2 - cell_len(name)), ""), (cells, ""), (times, "bold")]
