"""Who holds for a row, and which launchers a person means."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder
from trainwatch.model import holding
from trainwatch.model.naming import parse
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader


def read(run):
    return apply(EMPTY, Reader(str(run.directory)).poll())


@pytest.fixture
def nested(tmp_path):
    """Rank 1 is a container whose local rank 0 failed; the container's launcher holds. Rank 0 runs, with one too."""
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start()
    run.local(0, 0).start()
    run.rank(1).start().fail(3, hold=600)
    run.local(1, 0).start().fail(3, hold=None)
    return read(run)


@pytest.fixture
def restarted(tmp_path):
    """Rank 0: the first attempt is held, the second runs; 1: both held; 2: two held, the third not; 3: held no more."""
    run = RunBuilder(tmp_path / "run", world_size=4)
    for rank, attempt in ((0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
        run.rank(rank, attempt).start().fail(1, hold=600)
    run.rank(0, 2).start()
    run.rank(2, 3).start().finish()
    run.rank(3, 1).start().fail(1, hold=600).end()
    return read(run)


def test_a_local_rank_is_held_by_its_container(nested):
    inner = AttemptKey(1, 1, 0, 1)
    assert holding.container(inner) == AttemptKey(1)
    assert holding.holder(nested, inner, NOW).state == "held"
    assert holding.hold_left(nested, inner, NOW) == holding.hold_left(nested, AttemptKey(1), NOW) == 570
    assert holding.called(nested, inner) == "rank 1's container"
    assert holding.called(nested, AttemptKey(1)) == "rank 1"


def test_one_stands_beside_the_container_once_the_local_rank_has_left(nested):
    key, said = holding.stand_beside(nested, AttemptKey(1, 1, 0, 1), NOW)
    assert (key, said) == (AttemptKey(1), "rank 1.0 has ended; this is beside rank 1's container")
    for own in (AttemptKey(0, 1, 0, 1), AttemptKey(0), AttemptKey(1)):
        assert holding.stand_beside(nested, own, NOW) == (own, "")


def test_a_local_rank_whose_container_is_unknown_has_no_holder(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.local(0, 0).start()
    found = read(run)
    inner = AttemptKey(0, 1, 0, 1)
    gone = apply(EMPTY, [change for change in Reader(str(run.directory)).poll()
                         if getattr(change, "key", None) != AttemptKey(0)])  # fmt: skip
    assert holding.holder(gone, inner, NOW) is None
    assert holding.stand_beside(gone, inner, NOW) == (inner, "")
    assert holding.holder(found, inner, NOW).key == AttemptKey(0)


def picked(run, written):
    found = holding.pick_held(run, parse(written), NOW)
    return [row.label for row in found.rows], " | ".join(found.notes), " | ".join(found.problems)


@pytest.mark.parametrize(("written", "labels", "note", "problem"), [
    ("0", ["0#1"], "rank 0#2, the newest attempt, is running; this is rank 0#1", ""),
    ("0#1", ["0#1"], "", ""),
    ("0#2", [], "", "rank 0#2 is running"),
    ("0#3", [], "", "no rank 0#3 in this run; of rank 0 there is 0#1, 0#2"),
    ("1", ["1#2"], "this is rank 1#2, the newest attempt; 1#1 is held too", ""),
    ("1#1", ["1#1"], "", ""),
    ("2", [], "", "several attempts of rank 2 are held, none of them the newest; name one: 2#1, 2#2"),
    ("3", [], "", "rank 3 is not held any more"),
    ("9", [], "", "no rank 9 in this run; there are 0-3"),
    ("3.0", [], "", "no rank 3.0 in this run; of rank 3 there is 3"),
    ("1,1#2", ["1#2"], "this is rank 1#2, the newest attempt; 1#1 is held too", ""),
])  # fmt: skip
def test_a_rank_is_its_newest_attempt_or_the_only_one_that_is_held(restarted, written, labels, note, problem):
    assert picked(restarted, written) == (labels, note, problem)


def test_of_many_ranks_those_that_are_held_are_meant(restarted):
    labels, _, problem = picked(restarted, "0-9")
    assert (labels, problem) == (["0#1", "1#2"], "")
    assert picked(restarted, "3-9")[2] == "none of the ranks 3 is held"


def test_a_local_ranks_name_means_its_container_which_is_said(nested):
    assert picked(nested, "1.0") == (["1"], "a local rank is held by its container: this is rank 1", "")
    assert picked(nested, "0.0")[2] == "rank 0, the container, is running"


@pytest.mark.parametrize(("written", "label", "note"), [
    ("0", "0#2", "this is rank 0#2, the newest attempt"), ("0#1", "0#1", ""),
    ("1", "1#2", "this is rank 1#2, the newest attempt"), ("3", "3", ""),
])  # fmt: skip
def test_a_shell_is_beside_the_newest_attempt(restarted, written, label, note):
    found = holding.pick_one(restarted, parse(written)[0], NOW)
    assert ([row.label for row in found.rows], " ".join(found.notes)) == ([label], note)


def test_a_shell_is_beside_the_attempt_that_is_still_held_when_the_newest_has_ended(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start().fail(1, hold=600)
    run.rank(0, 2).start().finish()
    found = holding.pick_one(read(run), parse("0")[0], NOW)
    assert [row.label for row in found.rows] == ["0#1"]
    assert found.notes == ("rank 0#2, the newest attempt, has finished; this is rank 0#1",)


def test_all_that_hold_are_launchers_of_containers(nested, restarted):
    assert [row.label for row in holding.held(nested, NOW)] == ["1"]
    assert [row.label for row in holding.held(restarted, NOW)] == ["0#1", "1#1", "1#2", "2#1", "2#2"]


def test_a_held_rank_whose_clock_makes_it_look_lost_can_still_be_asked(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0, time=NOW - 60).start().fail(3, NOW - 100, hold=5000)
    state = apply(EMPTY, Reader(str(run.directory)).poll())
    (row,) = holding.held(state, NOW)
    assert row.state == "lost"
    assert row.hold_left == pytest.approx(4900)
    assert holding.held(state, NOW + 5000) == ()
