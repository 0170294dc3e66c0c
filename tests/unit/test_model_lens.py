"""What the grid's colours say of each rank."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder
from trainwatch.model import lens
from trainwatch.model.hues import HUES, hues_of
from trainwatch.model.state import EMPTY, Run, apply
from trainwatch.model.timeline import timeline
from trainwatch_launcher.reader.directory import Reader


def gpu(**facts):
    return [{"index": 0, "uuid": "GPU-0", "memory_total": 100, **facts}]


@pytest.fixture
def builder(tmp_path):
    return RunBuilder(tmp_path / "run", world_size=3)


def seen(builder: RunBuilder, through: lens.Lens) -> lens.View:
    run: Run = apply(EMPTY, Reader(str(builder.directory)).poll())
    return lens.look(run, run.order, through, NOW, hues_of(run))


def shades(view: lens.View) -> list[str]:
    return list(view.shades.values())


def test_states_are_counted_in_the_legend(builder):
    builder.rank(0).start()
    builder.rank(1).start().fail(1)
    builder.rank(2).start().finish()
    view = seen(builder, lens.STATE)
    assert shades(view) == ["running", "held", "finished"]
    assert ("held", "held", 1) in view.legend


def test_the_rank_that_failed_first_stands_out_among_those_that_are_held(builder):
    for rank in range(3):
        builder.rank(rank).start().fail(1)
    run: Run = apply(EMPTY, Reader(str(builder.directory)).poll())
    view = lens.look(run, run.order, lens.STATE, NOW, hues_of(run), run.order[1])
    assert shades(view) == ["held", "root", "held"]
    assert view.legend == (("root", "failed first", 1), ("held", "held", 2))


def test_each_phase_has_a_colour_and_rare_ones_share_the_last(builder):
    for rank in range(10):
        builder.rank(rank).start().phase(f"Phase {rank % 8}")
    view = seen(builder, lens.PHASE)
    assert len(set(shades(view))) == HUES
    assert view.legend[-1][1] == "3 others"
    assert sum(count for _, _, count in view.legend) == 10


def test_a_phase_has_one_colour_wherever_it_is_drawn(builder):
    builder.rank(0).start().phase("Zip", NOW - 90).phase("Load", NOW - 60).phase("Train", NOW - 30)
    builder.rank(1).start().phase("Load", NOW - 70).phase("Train", NOW - 20).phase("Eval", NOW - 10)
    run: Run = apply(EMPTY, Reader(str(builder.directory)).poll())
    drawn = timeline(run, NOW).hues
    assert drawn == hues_of(run)
    assert shades(seen(builder, lens.PHASE)) == [f"phase-{drawn.of('Train')}", f"phase-{drawn.of('Eval')}"]


def test_an_idle_gpu_and_a_full_one_are_at_the_ends_of_the_scale(builder):
    builder.rank(0).start().set(gpus=gpu(util=99))
    builder.rank(1).start().set(gpus=gpu(util=0))
    builder.rank(2).start()
    assert shades(seen(builder, lens.UTIL)) == ["heat-0", "heat-4", lens.UNKNOWN]


def test_the_worst_gpu_of_a_rank_counts(builder):
    builder.rank(0).start().set(gpus=gpu(temperature=55) + gpu(temperature=91))
    builder.rank(1).start().set(gpus=gpu(memory_used=98))
    assert shades(seen(builder, lens.HEAT)) == ["heat-4", lens.UNKNOWN]
    assert shades(seen(builder, lens.MEMORY)) == [lens.UNKNOWN, "heat-4"]


def test_lag_is_counted_from_the_rank_that_is_ahead(builder):
    for rank, step in enumerate((120, 118, 40)):
        builder.rank(rank).start().set(step=step)
    assert shades(seen(builder, lens.LAG)) == ["heat-0", "heat-2", "heat-4"]


def test_silence_counts_only_while_the_command_runs(builder):
    builder.rank(0).start().output(b"x\n", NOW - 1)
    builder.rank(1).start().output(b"x\n", NOW - 4000)
    builder.rank(2).start().output(b"x\n", NOW - 4000).fail(1)
    assert shades(seen(builder, lens.SILENCE)) == ["heat-0", "heat-4", lens.UNKNOWN]
