"""GPUs in the run directory: rows of the status, lines of metrics.jsonl, and how those are kept few."""
from __future__ import annotations

import errno
import os

import pytest

from builders import NOW
from trainwatch_launcher.gpu.metrics import MetricsFile
from trainwatch_launcher.gpu.series import Interval
from trainwatch_launcher.gpu.thinning import merge
from trainwatch_launcher.gpu.xid import MEANINGS, cause, meaning
from trainwatch_launcher.rundir.files import LineFile, decode, encode
from trainwatch_launcher.rundir.gpus import Gpu, GpuProcess, Metrics, gpus_of, metrics
from trainwatch_launcher.rundir.records import Status


def row(index=0, **values):
    return {"index": index, "util": 50, "memory_used": 10**9, "power": 300.0, "clock": 1500, **values}


def line(number, **values):
    return metrics(NOW + 10.0 * number, 10.0, gpus=[{"index": 0, "util": [number % 100, 100], **values}])


def test_a_status_carries_its_gpus_to_the_reader():
    processes = [{"pid": 7, "memory": 5, "ours": True}, {"pid": None, "ours": None}, "?"]
    gpu = row(3, processes=processes, throttle=["hw_thermal"])
    written = Status(time=NOW, **{"gpus": [gpu, {"index": "?", "new": 1}, 5]})
    read = gpus_of(decode(Status, encode(written)))
    assert [found.index for found in read] == [3, None]
    assert read[0].throttle == ["hw_thermal"]
    assert read[0].processes() == [GpuProcess(pid=7, memory=5, ours=True), GpuProcess()]
    assert read[0].temperature is None
    assert gpus_of(Status(time=NOW)) == []


def test_a_value_of_the_wrong_type_counts_as_unknown():
    gpu = Gpu.from_json({"index": 0, "util": "much", "power": True, "lost": 1, "throttle": "hot"})
    assert (gpu.util, gpu.power, gpu.lost, gpu.throttle) == (None, None, False, [])


def test_samples_become_a_mean_and_an_extreme_every_ten_seconds():
    interval = Interval()
    for second in range(10):
        interval.add([row(0, util=second * 10, clock=1500 - second, power=None), row(1)], NOW + second)
        assert interval.take(NOW + second) is None
    taken = interval.take(NOW + 10.0)
    assert (taken.time, taken.seconds) == (NOW + 10.0, 10.0)
    first, second = taken.gpus()
    assert first.pair("util") == (45.0, 90.0)
    assert first.pair("clock") == (1496.0, 1491.0)  # mean and lowest
    assert first.pair("power") is None
    assert second.pair("power") == (300.0, 300.0)
    assert interval.take(NOW + 30.0) is None


def test_throttling_is_kept_as_its_share_of_the_time():
    interval = Interval()
    for second in range(4):
        interval.add([row(throttle=["sw_power_cap"] if second else [])], NOW + second)
    assert interval.take(NOW + 4, closing=True).extra["gpus"][0]["throttle"] == {"sw_power_cap": 0.75}


def test_mig_instances_of_one_gpu_are_told_apart():
    interval = Interval()
    interval.add([row(0, mig="1/0", memory_used=1), row(0, mig="2/0", memory_used=2)], NOW)
    found = interval.take(NOW, closing=True).gpus()
    assert [(gpu.mig, gpu.pair("memory_used")) for gpu in found] == [("1/0", (1.0, 1.0)), ("2/0", (2.0, 2.0))]


def test_a_clock_that_was_set_back_does_not_stop_the_history():
    interval = Interval()
    interval.add([row()], NOW)
    interval.add([row()], NOW - 3600)
    taken = interval.take(NOW - 3590)
    assert taken is not None
    assert 0 <= taken.seconds <= 10


def test_merging_weighs_means_and_keeps_extremes_and_all_that_is_unknown():
    one = metrics(NOW, 10.0, gpus=[{"index": 0, "util": [10, 20], "clock": [900, 800], "throttle": {"display": 1.0}}],
                  progress={"step": 1})
    two = metrics(NOW + 30, 30.0, gpus=[{"index": 0, "util": [50, 60], "clock": [700, 600], "ecc_corrected": 2}, "?"],
                  progress={"step": 2})
    both = merge([one, two])
    assert (both.time, both.seconds, both.extra["progress"]) == (NOW + 30, 40.0, {"step": 2})
    assert both.extra["gpus"] == [
        {"index": 0, "util": [40.0, 60], "clock": [750, 600], "throttle": {"display": 0.25}, "ecc_corrected": 2}]


def lines_of(path):
    return LineFile(str(path)).read(Metrics)


def append_many(file, count):
    for number in range(count):
        file.append(line(number))


def test_a_run_of_weeks_leaves_a_small_history_from_its_beginning_to_its_end(tmp_path):
    path = tmp_path / "history"
    file = MetricsFile(str(path), max_size=20_000)
    for number in range(6000):
        file.append(line(number))
        assert path.stat().st_size < 21_000
    found = lines_of(path)
    times = [record.time for record in found]
    assert times == sorted(times)
    assert times[-1] == NOW + 10.0 * 5999
    assert times[0] < NOW + 6000  # the beginning is still there, coarser
    assert found[-1].seconds == 10.0
    assert found[0].seconds > 20.0
    assert sum(record.seconds for record in found) == pytest.approx(60_000)
    assert [name for name in os.listdir(tmp_path) if name != "history"] == []


def test_lines_that_are_none_do_not_survive_thinning_and_do_not_stop_it(tmp_path):
    path = tmp_path / "history"
    file = MetricsFile(str(path), max_size=10_000)
    file.append(line(0))
    with path.open("ab") as torn:
        torn.write(b'no json\n{"v":1,"time":"?"}\n{"v":1,"ti')
    for number in range(1, 300):
        file.append(line(number))
    assert sum(record.seconds for record in lines_of(path)) == 3000.0
    assert b"no json" not in path.read_bytes()


def test_a_torn_line_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "history"
    path.write_bytes(b'{"v":1,"ti')
    MetricsFile(str(path)).append(line(1))
    assert lines_of(path) == [line(1)]


def test_a_deleted_file_is_made_again_with_the_mode_it_must_have(tmp_path):
    path = tmp_path / "history"
    file = MetricsFile(str(path), 0o640)
    file.append(line(1))
    path.unlink()
    file.append(line(2))
    assert lines_of(path) == [line(2)]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_full_disk_is_reported_and_the_line_may_come_again(tmp_path, monkeypatch):
    path = tmp_path / "history"
    file = MetricsFile(str(path))
    file.append(line(1))
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:10]))
    with pytest.raises(OSError, match="part of a line"):
        file.append(line(2))
    monkeypatch.undo()
    file.append(line(2))
    assert lines_of(path) == [line(1), line(2)]


def test_a_disk_that_is_full_while_thinning_does_not_stop_the_history_nor_let_it_grow_for_ever(tmp_path, monkeypatch):
    path = tmp_path / "history"
    file = MetricsFile(str(path), max_size=5_000)
    while not path.exists() or path.stat().st_size <= 5_000:
        file.append(line(len(lines_of(path))))
    before = lines_of(path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    file.append(line(999))
    assert lines_of(path) == [*before, line(999)]
    assert os.listdir(tmp_path) == ["history"]
    with pytest.raises(OSError, match="No space"):
        append_many(file, 1000)
    assert path.stat().st_size < 11_000
    monkeypatch.undo()
    file.append(line(2000))
    assert path.stat().st_size < 5_000
    assert lines_of(path)[-1] == line(2000)


def test_xids_have_a_meaning_and_unknown_ones_say_that_they_are_unknown():
    assert "fallen off the bus" in meaning(79)
    assert (cause(79), cause(31), cause(74), cause(119)) == ("gpu", "application", "link", "driver")
    assert "catalog" in meaning(9999)
    assert cause(9999) == ""
    assert all(len(words) < 100 for _, words in MEANINGS.values())
