"""The table at scale: groups that fold, chosen columns, saved filters, and that all of it is there again."""
from __future__ import annotations

import os

import pytest

from builders import RunBuilder, crashed_run
from support.screens import app_on, press, screen_text, settle
from trainwatch import taste
from trainwatch.model.look import Look, look_of
from trainwatch.model.order import Group
from trainwatch.taste import Taste
from trainwatch.widgets.rank_table import RankTable

SIZE = (140, 40)


def table(pilot) -> RankTable:
    return pilot.app.screen.query_one(RankTable)


def lines(pilot) -> list[str]:
    return [one.name if isinstance(one, Group) else one.label for one in table(pilot)._entries]


async def test_z_groups_by_host_state_and_phase_and_groups_fold_by_enter_space_and_mouse(tmp_path):
    crashed_run(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert lines(pilot) == ["0", "1", "2", "3"]
        await press(pilot, "z", "z")
        assert lines(pilot) == ["held", "0", "2", "3", "ended", "1"]
        assert "▾ held  3 ranks" in screen_text(pilot)
        assert table(pilot).selected.rank == 2
        await press(pilot, "space")
        assert lines(pilot) == ["held", "ended", "1"]
        assert "▸ held  3 ranks" in screen_text(pilot)
        await press(pilot, "enter")
        assert lines(pilot) == ["held", "0", "2", "3", "ended", "1"]
        await pilot.click(table(pilot), offset=(1, 1))
        await settle(pilot)
        assert lines(pilot) == ["held", "ended", "1"]
        await press(pilot, "Z")
        assert lines(pilot) == ["held", "ended"]
        await press(pilot, "z", "z")
        assert lines(pilot) == ["0", "1", "2", "3"]


async def test_nothing_is_done_to_a_rank_while_a_group_is_selected(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "z", "z", "g", "x", "e", "s", "l", "m")
        assert app._source.requests == []
        assert pilot.app.screen.key is None
        assert "held" in screen_text(pilot)


async def test_columns_are_chosen_and_ordered_and_all_of_it_is_there_at_the_next_start(tmp_path):
    crashed_run(tmp_path / "run")
    file = tmp_path / "state" / "table.json"
    app = app_on(tmp_path / "run")
    app._taste = Taste(taste.load(file), keep=lambda look: taste.save(look, file))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "C")
        assert "space shows or hides" in screen_text(pilot)
        await press(pilot, "space", "j", "J", "enter")  # no host; state behind phase
        assert table(pilot).titles[:4] == ["rank", "phase", "state", "age"]
        await press(pilot, "r", "z")
    assert taste.load(file) == Look("rank", True, "host", tuple(table_titles := taste.load(file).columns))
    assert table_titles[:3] == ("phase", "state", "age")
    again = app_on(tmp_path / "run")
    again._taste = Taste(taste.load(file))
    async with again.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert table(pilot).titles[:4] == ["rank", "phase", "state", "age"]
        assert lines(pilot)[0] == "gpu-03"
        await press(pilot, "C", "a")
        assert table(pilot).titles[:3] == ["rank", "host", "state"]


async def test_a_saved_filter_is_typed_by_its_name_or_picked_from_the_palette(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run")
    app._taste = Taste(filters={"first": "exit:1 -state:ended"})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"@fi")
        await pilot.press("right")  # what stands there in grey
        await press(pilot, "enter")
        assert lines(pilot) == ["2"]
        await press(pilot, "escape")
        assert len(lines(pilot)) == 4
        await press(pilot, "colon", *"filter @first", "enter")
        await settle(pilot)
        assert lines(pilot) == ["2"]
        await press(pilot, "slash", *" @none")
        assert "no filter is saved as 'none'; there are first" in screen_text(pilot)


async def test_rows_in_an_order_that_changes_all_the_time_keep_their_places_for_a_moment(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=3)
    ranks = [run.rank(rank, host="n0").start().set(step=10 * rank, phase="Train") for rank in range(3)]
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        pilot.app.screen._look(sort="step", reverse=True)
        assert lines(pilot) == ["2", "1", "0"]
        ranks[0].set(step=1000)
        app._source.look()
        await settle(pilot)
        assert lines(pilot) == ["2", "1", "0"]
        assert "1000" in screen_text(pilot)
        await press(pilot, "r", "r")
        assert lines(pilot) == ["0", "2", "1"]


WRONG = '{"sort": 3, "group": [], "columns": "x", "reverse": 1}'


@pytest.mark.parametrize("kept", ["", "[]", "{", "null", WRONG, "[" * 5000])
def test_whatever_is_in_the_file_of_the_last_look_the_screen_starts(tmp_path, kept):
    file = tmp_path / "table.json"
    file.write_text(kept)
    assert taste.load(file) == Look()


def test_a_home_that_cannot_be_written_to_costs_nothing_but_the_memory(tmp_path):
    (tmp_path / "file").write_text("")
    taste.save(Look("step"), tmp_path / "file" / "table.json")
    assert os.listdir(tmp_path) == ["file"]
    assert look_of(Look("step", True, "phase", ("gpu",)).to_json()) == Look("step", True, "phase", ("gpu",))
