"""What a row says of its GPUs, and which row says it."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainwatch.model.gpus import NO_GPUS, Gpus, ail_of, ail_text, gpus_in, mean_util, name_of, owners
from trainwatch.model.rows import rows
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.changes import AttemptKey, StatusChanged
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.records import Status

GB = 10**9


def status(*gpus, **facts):
    return Status(**{"time": NOW, "pid": 7, "gpus": [gpu.to_json() for gpu in gpus], **facts})


def gpu(number=0, **facts):
    return Gpu(**{"index": number, "uuid": f"GPU-{number}", "util": 90, "memory_used": 40 * GB,
                  "memory_total": 80 * GB, "temperature": 60, **facts})  # fmt: skip


def test_the_mean_the_fullest_and_the_worst():
    found = gpus_in(status(gpu(0, util=100), gpu(1, util=50, memory_used=79 * GB), gpu(2, temperature=91)))
    assert (len(found), found.util, found.memory_used, found.ail) == (3, 80.0, 79 * GB, "hot")
    assert gpus_in(status(gpu(0, util=None), gpu(1, util=40))).util == 40
    assert gpus_in(status(gpu_note="no NVIDIA driver")) == Gpus(note="no NVIDIA driver")
    assert gpus_in(None) is NO_GPUS
    assert gpus_in(status()) is NO_GPUS


@given(st.lists(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                             lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(
                                 ["index", "util", "memory_used", "memory_total", "throttle", "lost", "clock"]), inner),
                             max_leaves=12)))  # fmt: skip
def test_whatever_is_said_of_gpus_makes_a_row(said):
    found = gpus_in(Status(time=NOW, gpus=said))
    assert all(isinstance(ail_text(one) + name_of(one), str) for one in found.each)


@pytest.mark.parametrize(("facts", "ail", "said"), [
    ({}, "", ""), ({"throttle": ["sw_power_cap"]}, "", ""),
    ({"temperature": 88}, "hot", "is hot at 88 °C"),
    ({"throttle": ["hw_thermal"], "temperature": 84}, "hot", "is hot at 84 °C, slowed down for it"),
    ({"throttle": ["sw_power_cap", "hw_slowdown"]}, "slowed", "is slowed down: hw_slowdown"),
    ({"ecc_uncorrected": 2, "temperature": 99}, "ecc", "has 2 uncorrected memory errors"),
    ({"ecc_corrected": 9}, "", ""), ({"remap_failed": True}, "ecc", "cannot replace a bad memory row"),
    ({"remap_pending": True}, "ecc", "will replace a bad memory row at its reset"),
    ({"lost": True, "ecc_uncorrected": 1}, "lost", "is lost: it fell off the bus"),
])  # fmt: skip
def test_what_a_gpu_suffers_from(facts, ail, said):
    assert (ail_of(gpu(**facts)), ail_text(gpu(**facts))) == (ail, said)


def test_a_gpu_that_several_report_is_drawn_by_one():
    container, local0, local1 = AttemptKey(0), AttemptKey(0, 1, 0, 1), AttemptKey(0, 1, 1, 1)
    other, strange = AttemptKey(1), AttemptKey(2)
    reported = [
        (container, gpus_in(status(gpu(0), gpu(1)))), (local0, gpus_in(status(gpu(0)))),
        (local1, gpus_in(status(gpu(1)))), (other, gpus_in(status(gpu(0), gpu(7)))),
        (strange, gpus_in(status(gpu(0, uuid="")))),
    ]  # fmt: skip
    assert owners(reported) == {container: local0}
    assert owners(reversed(reported)) == owners(reported)
    assert mean_util(reported) == (90, 4)
    assert mean_util([]) == (None, 0)


def test_only_what_is_there_now_is_shown():
    found = {}
    for name, facts in {"running": {}, "held": {"exit_code": 1, "hold_until": NOW + 60}, "lost": {"time": NOW - 99},
                        "ended": {"exit_code": 1, "ended": NOW}}.items():  # fmt: skip
        run = apply(EMPTY, [StatusChanged(AttemptKey(0), status(gpu(), **facts))])
        found[name] = len(rows(run, NOW)[0].gpus)
    assert found == {"running": 1, "held": 1, "lost": 0, "ended": 0}
