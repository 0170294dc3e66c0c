"""Loss, rate, step time, GPU utilisation and power over time, of one rank or of several overlaid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from trainwatch import actions
from trainwatch.model import clock, history, text
from trainwatch.model.history import MEASURES, Measure, Sample, Series
from trainwatch.model.progress import loss_text
from trainwatch.screens.feed import Feed
from trainwatch.screens.history import History
from trainwatch.screens.run_screen import RunScreen
from trainwatch.widgets.chart import LINES, Chart, Line, Picture
from trainwatch.widgets.header import Bar, Part, fit_most, trouble_note
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

SPANS: tuple[float | None, ...] = (900.0, 3600.0, 6 * 3600.0, None)
"""Seconds that are shown; None: all that there is."""
ROOMY = (110, 30)
"""From so many columns and rows on all measures are shown at once, unless one is chosen."""


@dataclass(frozen=True)
class _Known:
    """What is known of one of the ranks that are charted."""

    key: AttemptKey
    label: str
    variable: str
    samples: tuple[Sample, ...]
    ahead: float
    """Seconds that the file server's clock is ahead of the worker's."""


class Panel(Vertical):
    """One measure: a line with the newest value of each rank, and the chart."""

    def __init__(self, measure: Measure) -> None:
        super().__init__(id=f"panel-{measure.name}")
        self.measure = measure

    def compose(self) -> ComposeResult:
        """The line above, the chart below."""
        yield Bar(classes="chart-title")
        yield Chart(id=f"chart-{self.measure.name}")

    def show(self, title: list[Part], picture: Picture) -> None:
        """Show this."""
        self.query_one(Bar).show(title)
        self.query_one(Chart).show(picture)


class ChartScreen(RunScreen):
    """All measures where there is room, else one after the other."""

    BINDINGS = actions.bindings(actions.CHART)
    SCOPES = (actions.CHART,)

    def __init__(self, feed: Feed, keys: Sequence[AttemptKey]) -> None:
        super().__init__(feed)
        self._keys = tuple(keys)[:LINES]
        self._left_out = max(0, len(keys) - LINES)
        self._history = History(feed)
        self._chosen: int | None = None
        """Which measure alone is shown; None: all where there is room, else the first."""
        self._span = len(SPANS) - 1

    @property
    def key(self) -> AttemptKey:
        """The attempt that is charted, of several the first."""
        return self._keys[0]

    @property
    def is_complete(self) -> bool:
        """Whether all that there is has been read and drawn."""
        panels = [panel for panel in self.query(Panel) if panel.display]
        return self._history.has(self._keys) and all(panel.query_one(Chart).is_drawn for panel in panels)

    def compose(self) -> ComposeResult:
        """Title, panels, footer."""
        yield Bar(id="header")
        with Container(id="panels"):
            for measure in MEASURES:
                yield Panel(measure)
        yield KeyBar(actions.CHART, actions.APP)

    def on_resize(self) -> None:
        """There is room for more or for less."""
        self.call_after_refresh(self.show)

    def run_changed(self) -> None:
        """Draw what is known; read what is new when it is time."""
        known = self._known()
        begin, end = self._shown_span(known)
        self._show_header(begin, end)
        alone = self._alone()
        self.set_class(alone is None, "all")
        for place, panel in enumerate(self.query(Panel)):
            panel.display = alone in (None, place)
            if panel.display:
                panel.show(*self._panel(panel.measure, known, begin, end))
        if self._history.take_turn():
            self.run_worker(self._renew(), group="history")

    async def _renew(self) -> None:
        await self._history.renew(self._keys)
        self.show()

    def _alone(self) -> int | None:
        """The place of the one measure that is shown; None when all are."""
        if self._chosen is not None:
            return self._chosen
        return None if self.size.width >= ROOMY[0] and self.size.height >= ROOMY[1] else 0

    def _known(self) -> list[_Known]:
        run, found = self.feed.run, []
        for place, key in enumerate(self._keys):
            attempt = run.attempts.get(key)
            status = attempt.status if attempt is not None else None
            ahead = clock.server_time(status, 0.0)
            found.append(_Known(key, run.label(key), f"tw-line-{place}", self._history.of(key), ahead))
        return found

    def _shown_span(self, known: Sequence[_Known]) -> tuple[float, float]:
        """From when to when, on our clock: up to the newest sample, or now while the run goes on."""
        times = [one.samples[at].time + one.ahead for one in known if one.samples for at in (0, -1)]
        end = max(times, default=self.feed.now())
        span = SPANS[self._span]
        begin = min(times, default=end - 60.0)
        if span is not None:
            begin = max(begin, end - span)
        return (begin, end) if end - begin >= 1.0 else (end - 60.0, end)

    # What is shown

    def _show_header(self, begin: float, end: float) -> None:
        run, now = self.feed.run, self.feed.now()
        names = ", ".join(run.label(key) for key in self._keys)
        ranks = f"rank{'s' if len(self._keys) > 1 else ''} {names}"
        if self._left_out:
            ranks += f" (of {len(self._keys) + self._left_out} marked)"
        span = SPANS[self._span]
        shown = "all" if span is None else f"last {text.roughly(span)}"
        parts: list[Part] = [(" chart  ", "$tw-muted"), (fit_most(ranks, max(16, self.size.width - 44)), "bold")]
        times = f"  {text.time_of_day(begin, now)} – {text.time_of_day(end, now)}"
        parts += [("   ", ""), (shown, ""), (times, "$tw-muted")]
        trouble = trouble_note(run.trouble) or (self.feed.problem and "source lost")
        if trouble:
            parts.append((f"  ! {clean(trouble)}", "bold $warning"))
        self.query_one("#header", Bar).show(parts)

    def _panel(self, measure: Measure, known: Sequence[_Known], begin: float, end: float) -> tuple[list[Part], Picture]:
        """A panel's title and picture."""
        lines = tuple(
            Line(one.label, one.variable, series)
            for one in known
            if (series := measure.of(one.samples).shifted(one.ahead).since(begin)).times
        )
        note = "" if lines else self._why_nothing(measure)
        width = self.size.width // (2 if self._alone() is None else 1)
        return self._title(measure, known, lines, width), Picture(measure, lines, begin, end, note)

    def _title(self, measure: Measure, known: Sequence[_Known], lines: Sequence[Line], width: int) -> list[Part]:
        unit = measure.unit
        if measure is history.RATE:
            unit = next((history.rate_unit(one.samples) for one in known if one.samples), "")
        parts: list[Part] = [(f" {measure.title}", "bold"), (f" {unit} " if unit else " ", "$tw-muted")]
        if self._alone() is not None:
            parts.insert(0, (f" {MEASURES.index(measure) + 1}/{len(MEASURES)}", "$tw-muted"))
        used = sum(cell_len(part) for part, _ in parts)
        newest = {line.label: line.series for line in lines}
        for one in known:
            said = self._newest(measure, one, newest.get(one.label, Series()))
            piece = f"  ━ {one.label} {said}"
            if used + len(piece) > width:
                break
            parts.append((piece, f"${one.variable}"))
            used += len(piece)
        return parts

    def _newest(self, measure: Measure, one: _Known, series: Series) -> str:
        """The newest value of a rank; of a loss that is no number that it is none."""
        if measure is history.LOSS:
            attempt = self.feed.run.attempts.get(one.key)
            if attempt is not None and attempt.progress.is_bad:
                return loss_text(attempt.progress.loss)
        return measure.say(series.values[-1]) if series.values else "–"

    def _why_nothing(self, measure: Measure) -> str:
        """Why there is nothing to draw."""
        if not self._history.has(self._keys):
            return "reading history …"
        problems = {problem for key in self._keys if (problem := self._history.problem(key))}
        if problems:
            return clean(min(problems))
        if not any(self._history.of(key) for key in self._keys):
            return "no history yet: launchers write a point every ten seconds"
        attempts = [self.feed.run.attempts.get(key) for key in self._keys]
        notes = {attempt.gpus.note for attempt in attempts if attempt is not None and attempt.gpus.note}
        if measure in (history.UTIL, history.POWER) and notes:
            return clean(min(notes))
        return f"nothing to draw: {measure.missing}"

    # Actions

    def action_next_measure(self) -> None:
        """The next measure alone."""
        self._choose(1)

    def action_previous_measure(self) -> None:
        """The measure before it alone."""
        self._choose(-1)

    def _choose(self, step: int) -> None:
        alone = self._alone()
        self._chosen = (0 if step > 0 else len(MEASURES) - 1) if alone is None else (alone + step) % len(MEASURES)
        self._again()

    def action_all_measures(self) -> None:
        """All measures at once."""
        self._chosen = None
        if self._alone() is not None:
            self.notify(f"All at once needs {ROOMY[0]} columns and {ROOMY[1]} rows.")
        self._again()

    def action_longer(self) -> None:
        """A longer time."""
        self._span = min(len(SPANS) - 1, self._span + 1)
        self.show()

    def action_shorter(self) -> None:
        """A shorter time."""
        self._span = max(0, self._span - 1)
        self.show()

    def _again(self) -> None:
        self.show()
        self.call_after_refresh(self.show)  # charts are drawn as large as they have become
