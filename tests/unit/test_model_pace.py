"""Who holds the others up, and what is said of it."""
from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainwatch.model import findings
from trainwatch.model.gpus import Gpus, gpus_in
from trainwatch.model.progress import Progress
from trainwatch.model.rows import Row
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.records import Status

H100 = "NVIDIA H100 80GB HBM3"


def row(rank=0, step=100, step_time=1.0, age=0.5, *, util=97.0, clock=1755, stride=1, state="running", quiet=1.0,
        **facts):
    gpus = gpus_in(Status(time=NOW, gpus=[
        {"index": 0, "uuid": f"GPU-{rank}", "name": H100, "util": round(util), "clock": clock}]))
    progress = Progress(step=step, total=1000, seen_step_time=step_time, stride=stride, loss=2.0)
    key = AttemptKey(rank)
    return Row(key=key, label=str(rank), state=state, phase="Train", progress=progress, progress_age=age,
               last_output_age=quiet, gpus=gpus, **facts)  # fmt: skip


def kinds(rows):
    return {(one.kind, one.key.rank) for one in findings.find(rows, NOW)}


def said(rows):
    return [sentence for sentence, _ in findings.told(findings.find(rows, NOW))]


EQUAL = st.builds(
    row, step=st.integers(0, 10**9), step_time=st.floats(1e-4, 1e4), age=st.floats(0, 1e6), util=st.floats(0, 100),
    clock=st.integers(0, 3000), stride=st.none() | st.integers(1, 500), state=st.sampled_from(["running", "stalled"]),
)  # fmt: skip


@given(EQUAL, st.integers(1, 70))
def test_of_equal_ranks_none_is_noteworthy(one, count):
    rows = [replace(one, key=AttemptKey(rank), label=str(rank)) for rank in range(count)]
    assert kinds(rows) == set()


@given(EQUAL, EQUAL)
def test_of_two_ranks_neither_is_slow_or_idle(one, other):
    rows = [one, replace(other, key=AttemptKey(1), label="1")]
    assert {kind for kind, _ in kinds(rows)} <= {findings.BEHIND}


@given(st.lists(EQUAL, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_ranks_does_not_matter(rows, chance):
    rows = [replace(one, key=AttemptKey(rank), label=str(rank)) for rank, one in enumerate(rows)]
    mixed = list(rows)
    chance.shuffle(mixed)
    assert findings.find(rows, NOW) == findings.find(mixed, NOW)


@given(st.integers(0, 2**32))
def test_steps_and_clocks_that_differ_as_usual_are_not_noteworthy(seed):
    chance = random.Random(seed)
    rows = [
        row(rank, 5000 + chance.randint(-1, 1), 1.0 + chance.gauss(0, 0.02), chance.uniform(0, 3),
            clock=round(1755 + chance.gauss(0, 40)), util=chance.uniform(80, 100)) for rank in range(64)
    ]  # fmt: skip
    assert kinds(rows) == set()


def test_who_waits_and_for_whom_is_said():
    rows = [row(rank, 4120, age=252.0, quiet=252.0) for rank in range(64)]
    rows[12] = row(12, 4119, age=254.0, quiet=254.0)
    assert kinds(rows) == {("behind", 12)}
    assert said(rows) == ["63 ranks wait at step 4120 for rank 12 (at step 4119, last output 4m14s ago)"]
    one = findings.find(rows, NOW)[0]
    assert one.said == "is behind at step 4119, last output 4m14s ago; 63 ranks wait for it at step 4120"


def test_several_that_are_behind_are_said_together():
    rows = [row(rank, 4120, age=252.0) for rank in range(64)]
    for rank in (12, 40):
        rows[rank] = row(rank, 4110, age=300.0)
    assert said(rows) == ["62 ranks wait at step 4120 for ranks 12, 40"]


def test_of_two_ranks_one_can_wait_for_the_other():
    rows = [row(0, 4120, age=60.0), row(1, 4119, age=61.0)]
    assert said(rows) == ["rank 0 waits at step 4120 for rank 1 (at step 4119, last output 1s ago)"]
    # as long as nobody knows how often each says its step, the other one may just say it more rarely
    assert said([replace(one, progress=replace(one.progress, stride=None)) for one in rows]) == []


@pytest.mark.parametrize("rows", [
    [row(0, 405, age=90.0), *(row(rank, 400, age=90.0, stride=10) for rank in range(1, 8))],
    [*(row(rank, 405, age=90.0) for rank in range(7)), row(7, 400, age=90.0, stride=10)],
    [*(row(rank, 405, age=3.0) for rank in range(7)), row(7, 404, age=4.0)],
    [*(row(rank, 405, 30.0, age=90.0) for rank in range(7)), row(7, 404, 30.0, age=91.0)],
    [*(row(rank, 405, age=90.0) for rank in range(7)), row(7, 404, age=2.0)],
    [*(row(rank, 405, age=90.0) for rank in range(4)), *(row(rank, 404, age=90.0) for rank in range(4, 8))],
], ids=["prints oftener", "prints more rarely", "just now", "long steps", "goes on", "half of them"])  # fmt: skip
def test_nobody_is_said_to_wait_when_that_is_not_sure(rows):
    assert "behind" not in {kind for kind, _ in kinds(rows)}


def test_a_rank_that_has_ended_or_was_started_again_is_not_compared():
    rows = [row(rank, 4120, age=252.0) for rank in range(8)]
    for odd in (row(8, 7, state="failed"), row(8, 7, state="held"), replace(row(8, 7), superseded=True)):
        assert kinds([*rows, odd]) == set()


def test_a_container_is_not_compared_with_its_own_local_ranks():
    inner = [replace(row(0, 500, age=99.0), key=AttemptKey(0, 1, local, 1), label=f"0.{local}", nested=True)
             for local in range(4)]  # fmt: skip
    assert kinds([row(0, 499, age=99.0), *inner]) == set()


def test_slow_steps_are_said_beside_the_others():
    rows = [row(rank, step_time=0.31) for rank in range(8)]
    rows[3] = row(3, step_time=0.62)
    assert said(rows) == ["rank 3: is slow: 620 ms a step, the others 310 ms"]
    elsewhere = replace(rows[3], phase="Evaluate")
    assert said([*rows[:3], elsewhere, *rows[4:]]) == []


def test_a_rank_that_falls_behind_while_all_go_on():
    rows = [row(rank, 5000 + rank % 2, age=0.5) for rank in range(8)]
    rows[5] = row(5, 4900)
    assert ("lags", 5) in kinds(rows)
    assert ("lags", 5) not in kinds([*rows[:5], row(5, 4985), *rows[6:]])


def test_a_gpu_that_is_slower_than_its_peers_at_the_same_work():
    rows = [row(rank) for rank in range(8)]
    rows[6] = row(6, clock=1200)
    assert said(rows) == ["rank 6: GPU 0 is slow: 1200 MHz, its peers 1755"]
    rows[6] = row(6, clock=1200, util=20.0)
    assert said(rows) == []


def test_gpus_that_idle_while_their_peers_work():
    rows = [row(rank) for rank in range(8)]
    rows[1] = row(1, util=2.0, clock=300)
    assert said(rows) == ["rank 1: GPUs are idle while the others work"]
    assert kinds([row(rank, util=2.0) for rank in range(8)]) == set()


def test_what_may_be_a_moments_chance_is_said_only_when_it_lasts():
    watch = findings.Findings()
    slow = [*(row(rank) for rank in range(7)), row(7, step_time=3.0)]
    even = [row(rank) for rank in range(8)]
    assert watch.of(slow, NOW) == ()
    assert watch.of(even, NOW + 9) == ()
    assert watch.of(slow, NOW + 12) == ()
    assert [one.kind for one in watch.of(slow, NOW + 23)] == ["slow"]
    assert watch.of(even, NOW + 24) == ()


def test_losses_and_gpus_that_are_broken_are_said_at_once_and_first():
    rows = [row(rank) for rank in range(4)]
    bad = replace(rows[3].progress, loss=float("nan"), bad_since=1200)
    gone = Gpus((Gpu(index=5, lost=True),), ail="lost")
    rows = [*rows[:2], replace(rows[2], gpus=gone), replace(rows[3], progress=bad)]
    found = findings.Findings().of(rows, NOW)
    assert [(one.kind, one.key.rank, one.tone) for one in found] == [("loss", 3, "bad"), ("gpu", 2, "bad")]
    assert findings.told(found) == [
        ("rank 3: loss is nan since step 1200", "bad"),
        ("rank 2: GPU 5 is lost: it fell off the bus", "bad"),
    ]


def test_what_all_ranks_share_is_said_once():
    rows = [row(rank) for rank in range(64)]
    rows = [replace(one, progress=replace(one.progress, loss=float("nan"), bad_since=1200)) for one in rows]
    assert said(rows) == ["ranks 0-63: loss is nan since step 1200"]
    stalled = [replace(row(rank, state="stalled"), stalled_for=60.0 + rank, stalled_since=NOW - 60 - rank)
               for rank in range(3)]  # fmt: skip
    assert said(stalled)[0].startswith("ranks 0-2: no progress for 1m02s, since ")
