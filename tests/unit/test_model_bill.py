"""What a run's GPUs cost, and each phase of it."""
from __future__ import annotations

import pytest

from builders import NOW, STARTED, RunBuilder
from trainwatch.commands.targets import Followed
from trainwatch.model.bill import GpuHours, gpu_hours, phase_costs, words
from trainwatch.model.phases import Phase
from trainwatch_launcher.rundir.gpus import metrics

HOUR = 3600.0


def gpus(*numbers):
    return [{"index": number, "uuid": f"GPU-{number}"} for number in numbers]


def seconds(total, idle=0.0, setup=None, training=None, held=0.0, first=None):
    return {"gpu_seconds": total, "gpu_seconds_idle": idle, "gpu_seconds_setup": setup, "first_step": first,
            "gpu_seconds_training": training, "gpu_seconds_held": held}  # fmt: skip


def used(attempt, numbers, began=STARTED, **facts):
    return attempt.start(began).event("gpus", began, gpus=gpus(*numbers)).set(**seconds(**facts))


def hours(run):
    """In seconds times GPUs, for tests to be read."""
    found = gpu_hours(Followed(str(run.directory)).run)
    return None if found is None else [
        value if value is None else pytest.approx(value * HOUR) for value in vars(found).values()]


def test_nobody_knows_without_gpus(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().finish()
    assert hours(run) is None


def test_ranks_add_up(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(2):
        used(run.rank(rank), [2 * rank, 2 * rank + 1], total=600, idle=100, setup=200, training=300, held=100)
    assert hours(run) == [1200, 200, 400, 600, 200]


def test_a_gpu_that_several_ranks_of_a_host_report_counts_once(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(4):
        used(run.rank(rank, host="gpu-00"), range(4), total=1200, idle=400, setup=400, training=800)
    assert hours(run) == [1200, 400, 400, 800, 0]


def test_a_restart_is_paid_for_too_and_only_the_time_in_common_counts_once(tmp_path):
    run = RunBuilder(tmp_path / "run")
    used(run.rank(0), [0], total=100, setup=100, training=0)
    used(run.rank(0, attempt=2), [0], STARTED + 150, total=100, setup=20, training=80)
    assert hours(run) == [200, 0, 120, 80, 0]
    used(run.rank(0, attempt=3), [0], STARTED + 200, total=100, setup=50, training=50)
    assert hours(run)[0] == 250


def test_a_container_speaks_for_its_local_ranks(tmp_path):
    run = RunBuilder(tmp_path / "run")
    used(run.rank(0), [0, 1], total=400, setup=100, training=200, held=100)
    for local in range(2):
        used(run.local(0, local), [local], total=150, setup=75, training=75)
    assert hours(run) == [400, 0, 100, 200, 100]


def test_local_ranks_count_where_their_container_knows_of_no_gpus(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    used(run.local(0, 0), [0], total=150, setup=50, training=100)
    assert hours(run) == [150, 0, 50, 100, 0]


def test_a_rank_that_tells_no_steps_has_those_of_the_others(tmp_path):
    run = RunBuilder(tmp_path / "run")
    used(run.rank(0), [0], total=100, setup=40, training=60, first=STARTED + 40)
    used(run.rank(1), [1], STARTED + 10, total=90)
    used(run.rank(2), [2], STARTED - 500, total=100, held=20)  # it had ended before there was any
    assert hours(run) == [290, 0, 40 + 30 + 80, 60 + 60, 20]


def test_without_any_step_nobody_knows_what_was_setup(tmp_path):
    run = RunBuilder(tmp_path / "run")
    used(run.rank(0), [0], total=100, held=10)
    assert hours(run) == [100, 0, None, None, 10]


def test_a_gpu_without_a_name_is_its_host_s(tmp_path):
    run = RunBuilder(tmp_path / "run")
    for rank in range(2):
        run.rank(rank, host="one").start().set(**seconds(100, setup=0, training=100), gpus=[{"index": 0}])
    run.rank(2, host="other").start().set(**seconds(100, setup=0, training=100), gpus=[{"index": 0}])
    assert hours(run)[0] == 200


def test_nonsense_costs_nothing_and_breaks_nothing(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().set(**seconds(-5.0, idle=1e17, held=1e17), gpus="x")
    assert hours(run) is None
    run.rank(1).start().set(**seconds(10.0, idle=1e17, setup=1e17, held=1e17), gpus=[{"uuid": 3}, 7])
    assert hours(run) == [10, 10, 0, 0, 10]


def test_in_words_and_in_money():
    spent = GpuHours(1234.56, 0.04, 0.9, 1000.0, 3.0)
    assert words(spent) == "1,234.6 GPU-hours, 0.9 before the first step, 3.0 held"
    assert words(GpuHours(0.02, 0.0, None, None, 0.01)) == "0.020 GPU-hours, 0.010 held"
    assert spent.at(2.5).total == pytest.approx(3086.4)
    assert GpuHours(1.0, 0.0, None, None, 0.0).at(2.0) == GpuHours(2.0, 0.0, None, None, 0.0)


def line(end, *utils, seconds=10.0):
    return metrics(end, seconds, gpus=[{"index": at, "util": [util, 100]} for at, util in enumerate(utils)])


def test_each_phase_has_its_gpu_time_and_how_it_was_used():
    phases = (Phase("Install", 0.0, 20.0, 0, "marker"), Phase("Train", 20.0, 50.0, 9, "marker"))
    lines = [line(10.0, 0, 0), line(25.0, 0, 100), line(40.0, 90, 100), metrics(45.0, 5.0, progress={"step": 3})]
    install, train, hold = phase_costs(phases, lines, 2, until=80.0)
    assert (install.name, install.seconds, install.gpu_seconds) == ("Install", 20.0, 40.0)
    assert install.utilisation == pytest.approx(500 / 30)  # 10 s of nothing, and 5 s of the second line
    assert install.idle_seconds == 25.0
    assert (train.gpu_seconds, train.idle_seconds) == (60.0, 5.0)
    assert train.utilisation == pytest.approx((5 * 100 + 10 * 190) / 30)
    assert (hold.name, hold.seconds, hold.gpu_seconds, hold.utilisation) == ("Hold", 30.0, 60.0, None)


def test_a_phase_that_lasts_ends_now():
    (train,) = phase_costs((Phase("Train", 10.0, None, 0, "marker"),), [], 4, until=15.0)
    assert (train.ended, train.gpu_seconds, train.utilisation, train.idle_seconds) == (15.0, 20.0, None, None)
    assert phase_costs((), [line(10.0, 5)], 4, until=NOW) == ()
