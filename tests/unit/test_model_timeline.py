"""Phases of all ranks over time, on one clock."""
from __future__ import annotations

import pytest

from builders import NOW, STARTED, RunBuilder
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.timeline import HOLD, LAUNCHER, MARKER, Timeline, timeline
from trainwatch_launcher.reader.directory import Reader


@pytest.fixture
def builder(tmp_path):
    return RunBuilder(tmp_path / "run", world_size=3)


def seen(builder: RunBuilder, now: float = NOW) -> Timeline:
    return timeline(apply(EMPTY, Reader(str(builder.directory)).poll()), now)


def spans(line: Timeline, lane: int = 0) -> list[tuple[str, str, float, float, bool]]:
    found = line.lanes[lane].spans
    return [(span.name, span.kind, span.start - NOW, span.end - NOW, span.open) for span in found]


def test_a_phase_lasts_until_the_next_one_and_the_last_until_now(builder):
    builder.rank(0).start().phase("Load", NOW - 200).phase("Train", NOW - 100)
    assert spans(seen(builder)) == [
        ("Start", LAUNCHER, -300, -200, False), ("Load", MARKER, -200, -100, False), ("Train", MARKER, -100, 0, True),
    ]  # fmt: skip


def test_a_failure_ends_the_phase_and_the_hold_goes_on(builder):
    builder.rank(0).start().phase("Train", NOW - 100).fail(1, NOW - 40, hold=600)
    assert spans(seen(builder))[1:] == [("Train", MARKER, -100, -40, False), ("held", HOLD, -40, 0, True)]


def test_attempts_of_a_rank_share_its_lane(builder):
    builder.rank(0).start(NOW - 250).phase("Train", NOW - 240).fail(1, NOW - 200, hold=None)
    builder.rank(0, attempt=2).start(NOW - 100).phase("Train", NOW - 90)
    line = seen(builder)
    assert len(line.lanes) == 1
    assert [span.attempt for span in line.lanes[0].spans] == [1, 1, 2, 2]
    assert line.spreads[0].first_in == NOW - 90, "an old attempt's phases say nothing of this one's"


def test_hosts_whose_clocks_differ_are_put_on_one(builder):
    builder.rank(0).start().phase("Train", NOW - 100)
    builder.rank(1, clock_offset=-300.0, time=NOW + 300).start(STARTED + 300).phase("Train", NOW + 200)
    starts = [lane.spans[-1].start for lane in seen(builder).lanes]
    assert starts == [NOW - 100, NOW - 100]


def test_the_spread_of_a_phase_names_the_slowest_ranks(builder):
    for rank, begin in enumerate((200, 190, 150)):
        builder.rank(rank).start().phase("Load", NOW - 250).phase("Train", NOW - begin)
    load, train = seen(builder).spreads
    assert (load.name, load.ranks, load.longest, load.slowest[0], load.still) == ("Load", 3, 100.0, "2", 0)
    assert (train.first_in, train.last_in, train.still) == (NOW - 200, NOW - 150, 3)


def test_equal_ranks_have_no_slowest(builder):
    for rank in range(3):
        builder.rank(rank).start().phase("Load", NOW - 250).phase("Train", NOW - 200)
    assert seen(builder).spreads[0].slowest == ()


def test_a_lost_rank_did_nothing_after_its_last_sign_of_life(builder):
    builder.rank(0, time=NOW - 100).start().phase("Train", NOW - 200)
    assert spans(seen(builder))[-1][3] == -100


def test_of_a_run_without_a_rank_there_is_no_lane(builder):
    line = seen(builder)
    assert (line.lanes, line.spreads) == ((), ())
    assert line.start == line.end == NOW


def test_what_a_rank_did_at_a_moment(builder):
    builder.rank(0).start().phase("Load", NOW - 200).phase("Train", NOW - 100)
    lane = seen(builder).lanes[0]
    assert [span.name if (span := lane.at(NOW + at)) else None for at in (-301, -150, -100, 1)] == [
        None, "Load", "Train", None]  # fmt: skip


def test_common_phases_have_colours_of_their_own_and_rare_ones_share_one(builder):
    for number in range(9):
        builder.rank(0).phase(f"P{number}", NOW - 200 + number)
    line = seen(builder)
    assert len({line.hues.of(f"P{number}") for number in range(9)}) == 6
