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
STUDY_EVERY = 2.0
"""Seconds between two comparisons of all ranks in a larger run."""


class Board:
    """The rows of a run and what is noteworthy about them. `now` is the reader's clock, in Unix seconds."""

    def __init__(self) -> None:
        self.rows: tuple[Row, ...] = ()
        """All rows by rank, then attempt, with what is noteworthy about each."""
        self.found: tuple[Finding, ...] = ()
        """What is noteworthy, the most urgent first."""
        self.whole = Whole()
        self._known: dict[AttemptKey, tuple[Attempt, Row]] = {}
        self._labels: object = None
        self._next = 0
        self._study_at = 0.0
        self._watch = Findings()
        self._notes = Notes()

    @property
    def is_small(self) -> bool:
        """Whether all of it is renewed in each look."""
        return len(self.rows) <= AT_ONCE

    def on(self, row: Row) -> Row:
        """A row with what is noteworthy about it."""
        return self._notes.on(row)

    def renew(self, run: Run, now: float, seen: Iterable[AttemptKey] = ()) -> None:
        """Bring it up to date with a run; the rows in `seen` are on the screen."""
        known = self._known
        if len(known) > len(run.order):  # another run
            known.clear()
        for key in self._due(run, seen):
            known[key] = (run.attempts[key], row_of(run, key, now))
        self._labels = run.labels
        rows = [known[key][1] for key in run.order]
        if len(rows) <= AT_ONCE or len(rows) != len(self.rows) or not 0 <= self._study_at - now <= STUDY_EVERY:
            self._study_at = now + STUDY_EVERY
            self._study(rows, now)
        self.rows = tuple(map(self._notes.on, rows))

    def _due(self, run: Run, seen: Iterable[AttemptKey]) -> Iterable[AttemptKey]:
        """Whose rows to renew: all of a small run; else those seen, those with news, and the next part of the rest."""
        order, known, attempts = run.order, self._known, run.attempts
        if len(order) <= AT_ONCE:
            return order
        due = dict.fromkeys(key for key in seen if key in attempts)
        for key in order:
            old = known.get(key)
            if old is None or (old[0] is not (attempt := attempts[key]) and _has_news(old[0], attempt)):
                due[key] = None
        if self._labels is not run.labels:
            rows = ((key, known[key][1]) for key in order if key in known)
            named = (k for k, row in rows if (row.label, row.superseded) != (run.label(k), k in run.superseded))
            due.update(dict.fromkeys(named))
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


def _has_news(before: Attempt, after: Attempt) -> bool:
    """Whether something happened that nobody should see late, beside the numbers that change all the time."""
    old, new = before.status, after.status
    if old is None or new is None:
        return True
    return (
        old.phase != new.phase or old.exited != new.exited or old.ended != new.ended or old.pid != new.pid
        or old.stalled_since != new.stalled_since or old.hold_until != new.hold_until or old.warning != new.warning
        or old.loss_text != new.loss_text or before.problem != after.problem
    )  # fmt: skip
