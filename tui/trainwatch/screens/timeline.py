"""Phases of all ranks over time: who was where when, and which ranks keep the others waiting."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content

from trainwatch import actions
from trainwatch.model import bill, idle, text
from trainwatch.model.timeline import HOLD, LAUNCHER, Lane, Span, Spread, Timeline, timeline
from trainwatch.screens.feed import Feed
from trainwatch.screens.idleness import Idleness
from trainwatch.screens.run_screen import MANY, Plain, RunScreen
from trainwatch.widgets.header import Bar, Part, fit_most
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.timeline_view import BAR, HELD_BAR, IDLE_BAR, LAUNCHER_BAR, TimelineView
from trainwatch_launcher.reader.changes import AttemptKey

BILL_EVERY = 10.0
"""What the GPUs cost is added up every so many seconds."""
MOST_SPREADS = 8
"""Lines of the table of phases."""
NAME, SHORT_NAME = 28, 12
"""Columns of a phase's name in that table, as far as there is room; at least."""
BRIEF = 76
"""In fewer columns than these the table leaves out when ranks came into a phase."""
SAMPLED = 16
"""Ranks, spread over all of them, whose GPUs are looked at even when they are not on screen."""
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
        self._idleness = Idleness(feed)
        self._spreads: list[Part] = []

    @property
    def is_complete(self) -> bool:
        """Whether it is known of the ranks on screen when their GPUs were idle."""
        return not self._idleness.busy and not self._idleness.due(self._looked_at())

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
        yield Bar(id="banner")
        yield TimelineView(id="lanes")
        yield Bar(id="legend")
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
        failed = self.show_header(now).first is not None
        self.query_one(KeyBar).need(*(["why"] if failed else []))
        self.view.show(line)
        if self._first is not None and line.lanes:
            self.view.select(self._first)
            self._first = None
        if not 0 <= now - self._billed_at < BILL_EVERY:
            self._billed_at, hours = now, bill.gpu_hours(run)
            self._cost = "" if hours is None else bill.words(hours)
        self._show_idle()
        self._look_at_gpus()

    @on(TimelineView.Moved)
    def _show_cursor(self) -> None:
        view = self.view
        parts = cursor_parts(view.lane, view.span, view.moment, view.line, view.idle)
        self.query_one("#selected", Bar).show(parts)

    # The GPUs

    def _lanes_looked_at(self) -> list[Lane]:
        """The ranks on screen, and some of all."""
        lanes = self.view.line.lanes
        return [*self.view.seen, *lanes[:: max(1, len(lanes) // SAMPLED)]]

    def _looked_at(self) -> list[AttemptKey]:
        return [key for lane in self._lanes_looked_at() for key in lane.keys]

    @on(TimelineView.Scrolled)
    def _look_at_gpus(self) -> None:
        """Read what is missing of them, or has become old; one reading at a time."""
        due = [] if self._idleness.busy else self._idleness.due(dict.fromkeys(self._looked_at()))
        if due:
            self._idleness.busy = True
            self.run_worker(self._renew(due), group="idle", exit_on_error=False)

    async def _renew(self, keys: list[AttemptKey]) -> None:
        await self._idleness.renew(keys)
        if self.is_whole:
            self._show_idle()
            self._look_at_gpus()

    def _show_idle(self) -> None:
        """Shade what is known, and say how much of each phase that was."""
        line, width = self.view.line, self.size.width
        known = {lane.key: idle.of_lane(lane, self._idleness.known) for lane in self._lanes_looked_at()}
        known = {key: spans for key, spans in known.items() if spans}
        self.view.show_idle(known)
        self.query_one("#legend", Bar).show(legend_parts(self._gpu_note(len(known)), bool(known), width))
        most = MOST_SPREADS if self.size.height > 30 else 4 if self.size.height >= 20 else 2
        spreads = spread_parts(line, width, most, idle.of_phases(line, known))
        if self._cost:
            spreads.append((f"\n {fit_most(self._cost, width - 2)}", "$tw-muted"))
        if spreads != self._spreads:
            self._spreads = spreads
            self.query_one("#spreads", Plain).update(Content.assemble(*spreads))
        self._show_cursor()

    def _gpu_note(self, known: int) -> str:
        """What there is to say of how much is known of the GPUs."""
        lanes = len(self.view.line.lanes)
        if known:
            return f"GPUs of {known} of {lanes} ranks" if known < lanes else ""
        if self._idleness.problem:
            return clean(self._idleness.problem)
        if not lanes:
            return ""
        return "nothing known of GPUs" if self._idleness.known else "reading GPUs …"

    @property
    def attempt_seen(self) -> AttemptKey | None:
        """The attempt to which the cursor points: the rank's newest, or the one whose phase is under it."""
        key, span = self.key, self.view.span
        if key is None or span is None or key.local_rank >= 0:
            return key
        older = AttemptKey(key.rank, span.attempt)
        return older if older in self.feed.run.attempts else key


def legend_parts(note: str, is_shaded: bool, width: int) -> list[Part]:
    """What the bars mean; `note` is on the GPUs."""
    marks = [(BAR, "GPUs at work"), (IDLE_BAR, "idle")] if is_shaded else [(BAR, "phase")]
    marks += [(LAUNCHER_BAR, "no phase"), (HELD_BAR, "held")]
    parts: list[Part] = []
    for mark, meaning in marks:
        style = "$state-held" if mark == HELD_BAR else "$tw-muted" if mark == LAUNCHER_BAR else "$shade-phase-0"
        parts += [(f" {mark * 2}", style), (f" {meaning} ", "$tw-muted")]
    room = width - sum(cell_len(part) for part, _ in parts) - 2
    return [*parts, (f" {fit_most(note, room)}", "$tw-muted")] if note and room > 8 else parts


def cursor_parts(
    lane: Lane | None, span: Span | None, moment: float, line: Timeline, idle_share: float | None = None
) -> list[Part]:
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
    if idle_share:
        parts.append(("  GPUs idle" if idle_share > 0.99 else f"  {idle_share:.0%} of its GPUs idle", "$state-stalled"))
    return parts


def spread_parts(line: Timeline, width: int, most: int, idle_shares: Mapping[str, float]) -> list[Part]:
    """Each phase over all ranks: when the first came and the last left, who took longest, how idle the GPUs were."""
    if not line.spreads:
        return [(" no phase yet: a phase begins with a line  === [Phase] NAME ===", "$tw-muted")]
    idle_room, brief = 6 if idle_shares else 0, width < BRIEF
    used = (37 if brief else 57) + idle_room
    name = max(SHORT_NAME, min(NAME, width - used))
    entered = "" if brief else "first in  last in   "
    head = f" {'phase':<{name}}  ranks  {entered}last out   typical  longest"
    parts: list[Part] = [(head + (f"{'idle':>{idle_room}}" if idle_shares else ""), "$tw-muted")]
    for spread in line.spreads[-most:]:
        parts += [("\n ■ ", f"$shade-phase-{line.hues.of(spread.name)}"), *_spread_cells(spread, name, brief)]
        share = idle_shares.get(spread.name)
        if idle_room:
            said = f"{share:.0%}" if share is not None else ""
            parts.append((f"{said:>{idle_room}}", "bold $state-stalled" if share and share >= idle.SHADED else ""))
        room = width - used - name
        if spread.slowest and room > 10:
            parts.append((fit_most(f"  rank {', '.join(spread.slowest)}", room), "$tw-muted"))
    return parts


def _spread_cells(spread: Spread, width: int, brief: bool) -> list[Part]:
    name = fit_most(clean(spread.name), width - 2)
    out = f"{spread.still} in it" if spread.still else text.moment(spread.last_out, "%H:%M:%S")
    moments = () if brief else (spread.first_in, spread.last_in)
    entered = "".join(f"{text.moment(moment, '%H:%M:%S'):<10}" for moment in moments)
    cells = f"  {spread.ranks:>5}  {entered}{out:<10}"
    times = f"{text.duration(spread.median):>8} {text.duration(spread.longest):>8}"
    return [(name + " " * (width - 2 - cell_len(name)), ""), (cells, ""), (times, "bold")]
