"""All ranks at this moment, kept up to date at a cost that follows what changed, not how many they are. Pure.

A look at a run of thousands renews the rows that are seen and those with news at once, and of the others a part: their
ages and numbers are a few seconds old at most. What compares ranks with each other is worked out once in a round.
"""
from __future__ import annotations

from collections.abc import Iterable

from trainwatch.model import findings
from trainwatch.model.findings import Finding, Findings, Notes
from trainwatch.model.rows import Row, row_of
from trainwatch.model.state import Attempt, Run
from trainwatch.model.whole import Whole, whole
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import BAD

AT_ONCE = 400
"""So many rows are renewed in each look, whatever they say; in a run of no more ranks all of them are."""
NEWS_EVERY = 1.0
"""Seconds between two searches for news in a larger run."""
STUDY_EVERY = 4.0
"""Seconds between two comparisons of all its ranks."""
CALM_AFTER, CALM = 3.0, 4
"""After so many seconds without a change all this comes one part in so many as often: only time goes on then."""

News = tuple[object, ...]


class Board:
    """The rows of a run and what is noteworthy about them. `now` is the reader's clock, in Unix seconds."""

    def __init__(self) -> None:
        self.found: tuple[Finding, ...] = ()
        """What is noteworthy, the most urgent first."""
        self.whole = Whole()
        self._order: tuple[AttemptKey, ...] = ()
        self._known: dict[AttemptKey, tuple[News, Row]] = {}
        self._serial = -1
        self._labels: object = None
        self.is_calm = False
        """Whether nothing had changed for a while at the last look."""
        self._changed_at = 0.0
        self._next = 0
        self._news_at = self._study_at = 0.0
        self._watch = Findings()
        self._notes = Notes()

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows by rank, then attempt, with what is noteworthy about each. Made for whoever asks: keep them."""
        return tuple([self._notes.on(self._known[key][1]) for key in self._order])

    @property
    def is_small(self) -> bool:
        """Whether all of it is renewed in each look."""
        return len(self._order) <= AT_ONCE

    def __len__(self) -> int:
        return len(self._order)

    def of(self, row: Row) -> Row:
        """The newest row of the same rank."""
        known = self._known.get(row.key)
        return row if known is None else self._notes.on(known[1])

    def on(self, row: Row) -> Row:
        """A row with what is noteworthy about it."""
        return self._notes.on(row)

    def renew(self, run: Run, now: float, seen: Iterable[AttemptKey] = ()) -> None:
        """Bring it up to date with a run; the rows in `seen` are on the screen."""
        known, grown = self._known, len(run.order) != len(self._order)
        if run.serial != self._serial:
            self._changed_at = now
        self.is_calm = now - self._changed_at > CALM_AFTER
        if len(run.order) < len(known):  # another run
            known.clear()
        for key in self._due(run, now, seen):
            known[key] = (_news_of(run.attempts[key]), row_of(run, key, now))
        self._order, self._labels, self._serial = run.order, run.labels, run.serial
        if self.is_small or grown or not 0 < self._study_at - now <= STUDY_EVERY * CALM:
            self._study_at = now + STUDY_EVERY * (CALM if self.is_calm else 1)
            self._study([known[key][1] for key in run.order], now)

    def _due(self, run: Run, now: float, seen: Iterable[AttemptKey]) -> Iterable[AttemptKey]:
        """Whose rows to renew: all of a small run; else those seen, those with news, and the next part of the rest."""
        order, known, attempts = run.order, self._known, run.attempts
        if len(order) <= AT_ONCE:
            return order
        due = dict.fromkeys([key for key in seen if key in attempts])
        grown = len(order) != len(self._order)
        if not self.is_calm and (grown or not 0 < self._news_at - now <= NEWS_EVERY):
            self._news_at = now + NEWS_EVERY
            for key in order:
                old = known.get(key)
                if old is None or old[0] != _news_of(attempts[key]):
                    due[key] = None
        if self._labels is not run.labels:
            due.update(dict.fromkeys([key for key in order if key in known and _is_renamed(known[key][1], run)]))
        first = self._next if self._next < len(order) else 0
        self._next = first + AT_ONCE
        due.update(dict.fromkeys(order[first : self._next]))
        return due

    def _study(self, rows: list[Row], now: float) -> None:
        """Compare the ranks with each other, and take them together."""
        self.found = self._watch.of(rows, now)
        if any(row.state in BAD and not row.superseded for row in rows):
            # what the others do after a failure is no news; what may be its cause is
            self.found = tuple(one for one in self.found if one.kind in findings.CAUSES)
        self._notes = Notes(self.found, rows)
        self.whole = whole(rows)


def _is_renamed(row: Row, run: Run) -> bool:
    return row.label != run.label(row.key) or row.superseded != (row.key in run.superseded)


def _news_of(attempt: Attempt) -> News:
    """What nobody should see late, beside the numbers that change all the time. Not the attempt itself: thousands of
    old ones would stay in memory.
    """
    status = attempt.status
    if status is None:
        return (attempt.problem,)
    return (
        status.phase, status.exited, status.ended, status.pid, status.stalled_since, status.hold_until, status.warning,
        status.loss_text, status.stacks, attempt.problem,
    )  # fmt: skip
