"""What each framework prints is read right: samples of every format, their variations, and lines that are no step."""
from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from trainwatch_launcher.progress.stream import points
from trainwatch_launcher.progress.values import KEYS

DATA = Path(__file__).resolve().parents[1] / "data" / "progress"
WHOLE = {"step", "total", "epochs_total", "samples", "tokens"}


def samples(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


EVERY = [*samples("reference"), *samples("variations")]
every_sample = pytest.mark.parametrize("sample", EVERY, ids=[sample["id"] for sample in EVERY])


def is_same(key, wanted, got):
    if isinstance(wanted, str) or key in WHOLE:
        return wanted == got
    if key == "eta_s":
        return abs(wanted - got) <= 1
    return math.isclose(wanted, got, rel_tol=1e-4, abs_tol=1e-12)


@every_sample
def test_a_sample_gives_its_points_and_no_other(sample):
    found = {point.line: point.values for point in points(sample["text"])}
    assert sorted(found) == [point["line"] for point in sample["expect"]]
    for point in sample["expect"]:
        values = found[point["line"]]
        wrong = {
            key: (wanted, values.get(key))
            for key, wanted in point.items() if key != "line" and not is_same(key, wanted, values.get(key))
        }
        assert not wrong
        assert not set(values) & set(sample.get("never", ()))
        assert set(values) <= set(KEYS)


PREFIXES = ("[2025-11-28 12:00:00] [worker-0] ", "[rank3]: ", "3: ", "[1,3]<stdout>: ", "\x1b[32m", "[工作节点-0] ")
ONE_LINERS = [
    sample for sample in EVERY
    if sample["text"].count("\n") == 1 and "\r" not in sample["text"] and len(sample["expect"]) == 1
    and sample["framework"] not in ("pytorch-lm", "ultralytics")
]  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_platforms_and_launchers_put_before_a_line_changes_nothing(prefix):
    wrong = []
    for sample in ONE_LINERS:
        found = list(points(prefix + sample["text"]))
        if [point.values for point in found] != [point.values for point in points(sample["text"])]:
            wrong.append((sample["id"], found))
    assert not wrong


def test_a_missing_or_unknown_value_is_left_out_and_not_guessed():
    line = "step:  4  loss:  7.6  grad_norm: 26.6  memory: 66.91GiB(37.51%)  tps: N/A  tflops: nan%  mfu: -1.00%\n"
    assert [point.values for point in points(line)] == [{"step": 4, "loss": 7.6, "grad_norm": 26.6}]


HOME_MADE = "step 10/100 | loss: 2.5 | lr 1e-4"


@pytest.mark.parametrize(
    "word", ["eval", "Validation", "[VAL]", "test:", "best", "final", "Saved checkpoint", "Resuming from", "WARNING"]
)
def test_a_home_made_line_about_something_else_is_refused(word):
    assert list(points(f"{HOME_MADE}\n"))
    assert not list(points(f"{word} {HOME_MADE}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "step 10 loss 50%",
        "step 10 loss 3D",
        "step 10.5.1.2 loss 10.0.0.1",
        "loss at step 10",
        "step 2024-01-02 loss: 2024-01-03",
        "max steps: 100, loss: 2.5",
        "warmup_steps=100 loss=2.5",
        "total steps 100 val loss 2.5",
        "step 10 d_loss 0.5 g_loss 1.2",
        "step: 10, loss scale: 65536",
        "step 10: loss weight 2.0",
        "loss 2.5 after 10 steps",
        "step 1,5 loss 2,5",
    ],
)
def test_a_number_that_is_not_what_it_looks_like_is_not_taken(line):
    assert not list(points(line + "\n"))
