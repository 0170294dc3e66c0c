"""A log of any size, in pieces of any size, is read the same way, in bounded memory and in time that grows with it."""
from __future__ import annotations

import json
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_house import LAUNCHER, modules_after

from support.pythons import every_python, version_of
from support.training_noise import blocks
from trainwatch_launcher.progress.stream import MAX_CARRY, Reader, points

DATA = Path(__file__).resolve().parents[1] / "data" / "progress" / "reference.jsonl"
TEXT = "".join(
    json.loads(line)["text"] for line in DATA.read_text(encoding="utf-8").splitlines() if '"keras' not in line
)  # fmt: skip


def facts(found):
    return [(point.line, point.format, point.values) for point in found]


@given(st.lists(st.integers(1, len(TEXT)), max_size=20))
def test_however_the_text_is_cut_the_points_are_the_same(cuts):
    data = TEXT.encode()
    places = [0, *sorted(set(cuts)), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    assert facts(points(pieces)) == facts(points(TEXT))


def test_lines_may_be_given_one_by_one_as_text():
    assert facts(points(TEXT.splitlines(keepends=True))) == facts(points(TEXT))


def test_lines_are_counted_by_newlines_alone():
    text = "a\rb\x0bc\u2028d\n\n" + "x" * 5000 + "\nstep 1 loss 2.5\n"
    assert [point.line for point in points(text)] == [4]


def test_a_last_line_without_newline_counts():
    assert [point.values["step"] for point in points("step 1 loss 2.5\nstep 2 loss 2.4")] == [1, 2]


def test_the_last_state_of_a_bar_counts_however_long_its_line_is():
    bar = "\rEpoch 3:  45%|####5     | {}/99999 [02:15<02:45,  3.33it/s]"
    reader = Reader()
    for step in range(0, 40000, 100):
        reader.feed("".join(bar.format(n) for n in range(step, step + 100)).encode())
        assert reader._carried <= MAX_CARRY + (100 << 10)
    assert [point.values["step"] for point in reader.finish()] == [39999]


def test_evaluation_in_between_does_not_take_the_place_of_training():
    text = (
        "  0%|          | 0/100 [00:00<?, ?it/s]\r  1%|          | 1/100 [00:02<03:20,  2.00s/it]\n"
        "  0%|          | 0/40 [00:00<?, ?it/s]\r 50%|#####     | 20/40 [00:10<00:10,  2.00it/s]\n"
        "  2%|          | 2/100 [00:04<03:18,  2.00s/it]\n"
        "100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n"
    )
    assert [(point.line, point.values["step"]) for point in points(text)] == [(1, 1), (3, 2)]


def test_a_slow_loop_before_training_does_not_hide_the_training():
    text = (
        "  5%|5         | 5/100 [00:10<03:10,  2.00s/it]\n"
        "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': 0.5}\n"
        "  1%|          | 20/1752 [00:57<1:22:40,  2.86s/it]\n"
    )
    assert [point.values.get("step") for point in points(text)] == [5, None, 20]


@pytest.mark.parametrize("rate", ["1893.45it/s", "120.10 examples/s", "40.8MB/s", "3.10files/s"])
def test_a_bar_without_a_name_that_is_too_fast_or_counts_something_else_is_no_training(rate):
    assert not list(points(f" 12%|#2        | 150/1250 [02:10<15:54, {rate}]\n"))


HOSTILE = [
    "loss: ", "'loss': ", "{'loss': ", "1,234", "[ 1/ 1]", "12%|  |", "step 1 ", "::trainwatch a", "1:11:", "1 day, ",
    "a/", "epoch 1/1 ", "iteration 1/", "\r1%|", "\x1b[", "\x1b]", "tensor(", "val loss ", " ", "\xff", "step:1 - a/b:",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("length", [4000, 2 << 20])
def test_hostile_lines_cost_time_in_proportion_to_their_length(unit, length):
    line = "step 1 loss: 2 | iteration 1/ 1 | " + unit * (length // len(unit)) + " loss %| it/s\n"
    data = (line * ((2 << 20) // length)).encode()
    began = time.process_time()
    list(points(data[start : start + (1 << 18)] for start in range(0, len(data), 1 << 18)))
    # a twentieth of this is what it takes; anything that grows with the square of a line's length takes hours
    assert time.process_time() - began < 20


def test_noise_of_training_frameworks_holds_no_sample():
    reader = Reader()
    size = 0
    for block in blocks(seed=1):
        found = reader.feed(block)
        assert not found, block.splitlines()[found[0].line - reader.lines - 1]
        size += len(block)
        if size > 3 << 20:
            break
    assert not reader.finish()


@every_python
def test_it_reads_the_same_on_every_promised_python(python):
    code = (
        f"import sys, json; sys.path.insert(0, {str(LAUNCHER.parent)!r}); "
        "from trainwatch_launcher.progress.stream import points; "
        "print(json.dumps([[p.line, p.format, p.values] for p in points(sys.stdin.buffer.read())]))"
    )
    done = subprocess.run([python, "-I", "-S", "-c", code], input=TEXT.encode(), capture_output=True, check=True)
    assert [tuple(found) for found in json.loads(done.stdout)] == facts(points(TEXT)), version_of(python)


@every_python
def test_it_imports_nothing_slow(python):
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "logging", "pathlib", "subprocess", "typing"}
    assert not slow & modules_after(python, "import trainwatch_launcher.progress.latest", LAUNCHER.parent)
