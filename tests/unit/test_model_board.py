"""All ranks of a large run, brought up to date a part at a time: what is seen and what is news is never late."""
from __future__ import annotations

import pytest

from builders import NOW
from trainwatch.model import board
from trainwatch.model.board import AT_ONCE, Board
from trainwatch.model.rows import rows
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.changes import AttemptKey, StatusChanged
from trainwatch_launcher.rundir.records import Status

MANY = 3 * AT_ONCE


def status(rank, at, **facts):
    values = {"pid": 1, "phase": "Train", "started": NOW - 60, "step": 10, "last_output": NOW, **facts}
    return StatusChanged(AttemptKey(rank), Status(time=at, rank=rank, **values))


@pytest.fixture
def run():
    return apply(EMPTY, [status(rank, NOW) for rank in range(MANY)])


def row(known, rank):
    return known.rows[rank]


def test_a_first_look_knows_all_ranks(run):
    known = Board()
    known.renew(run, NOW)
    assert known.rows == rows(run, NOW)
    assert known.whole.progress.step == 10


def test_what_is_seen_and_what_has_news_is_never_late_and_the_rest_follows(run, monkeypatch):
    known = Board()
    known.renew(run, NOW)
    later = apply(run, [
        *(status(rank, NOW + 2, step=11) for rank in range(MANY)),
        status(MANY - 1, NOW + 2, step=11, exited=NOW + 2, exit_code=1),
    ])  # fmt: skip
    known.renew(later, NOW + 2, seen=[AttemptKey(MANY - 5)])
    assert row(known, MANY - 1).state == "failed"
    assert row(known, MANY - 5).progress.step == 11
    assert row(known, MANY - 9).progress.step == 10
    for look in range(3):
        known.renew(later, NOW + 2.1 + look / 10)
    assert {each.progress.step for each in known.rows} == {11}


def test_a_look_costs_no_more_than_a_part_of_the_rows(run, monkeypatch):
    known = Board()
    known.renew(run, NOW)
    made = []
    real = board.row_of
    monkeypatch.setattr(board, "row_of", lambda *args: made.append(args[1]) or real(*args))
    known.renew(apply(run, [status(rank, NOW + 2, step=12) for rank in range(MANY)]), NOW + 2)
    assert len(made) == AT_ONCE


def test_ranks_that_come_later_and_other_attempts_are_there_at_once(run):
    known = Board()
    known.renew(run, NOW)
    again = AttemptKey(7, 2)
    grown = apply(run, [status(MANY, NOW + 0.1), StatusChanged(again, Status(time=NOW + 0.1, rank=7, pid=2))])
    known.renew(grown, NOW + 0.1)
    assert len(known.rows) == MANY + 2
    assert [(one.label, one.superseded) for one in known.rows if one.key.rank == 7] == [("7#1", True), ("7#2", False)]


def test_ranks_that_fall_silent_are_lost_also_while_nothing_changes(run):
    known = Board()
    known.renew(run, NOW)
    for second in range(1, 60):
        known.renew(run, NOW + second)
    assert {one.state for one in known.rows} == {"lost"}
