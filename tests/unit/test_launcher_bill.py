"""What the launcher says that GPUs cost."""
from __future__ import annotations

import pytest

from trainwatch_launcher.bill import Bill, in_words
from trainwatch_launcher.gpu.usage import Usage


def shares(bill, tick, gpus=8, idle=0.0):
    fields = bill.fields(tick, gpus, idle)
    return [fields.get("gpu_seconds" + name) for name in ("", "_setup", "_training", "_held")]


def test_seconds_are_parted_by_the_first_step_and_the_end():
    bill = Bill(100.0)
    assert shares(bill, 110.0) == [80, None, None, 0]
    bill.stepped(150.0)
    bill.stepped(160.0)
    assert shares(bill, 170.0) == [560, 400, 160, 0]
    bill.ended(200.0)
    assert shares(bill, 260.0) == [1280, 400, 400, 480]


def test_a_phase_tells_what_steps_do_not():
    bill = Bill(0.0)
    bill.phase("Download training data", 5.0)
    assert shares(bill, 10.0)[1] is None
    bill.phase("Train", 20.0)
    bill.phase("Training, second part", 30.0)
    assert shares(bill, 60.0) == [480, 160, 320, 0]
    bill.stepped(25.0)  # a step that can be read is surer than a name
    assert shares(bill, 60.0) == [480, 200, 280, 0]


@pytest.mark.parametrize(("name", "trains"), [
    ("Train", True), ("TRAINING epoch 3", True), ("Pre-training", True), ("Pretrain", True), ("Fine-tuning", True),
    ("SFT", True), ("Start training", True), ("开始训练", True), ("训练", True), ("模型微调", True),
    ("Training data", False), ("Trainer setup", False), ("Prepare training", False), ("准备训练数据", False),
    ("Download", False), ("Evaluate", False), ("Drain", False),
])  # fmt: skip
def test_which_phases_are_training(name, trains):
    bill = Bill(0.0)
    bill.phase(name, 1.0)
    assert ("gpu_seconds_setup" in bill.fields(2.0, 1, 0.0)) is trains


def test_a_command_that_ended_before_its_first_look_has_no_negative_parts():
    bill = Bill(10.0)
    bill.ended(12.0)
    bill.stepped(15.0)  # read at the very end
    assert shares(bill, 20.0, 1) == [10, 2, 0, 8]


def test_without_gpus_there_is_nothing_to_say():
    assert Bill(0.0).fields(10.0, 0, 0.0) == {}
    assert in_words({}) == ""


def test_in_words():
    bill = Bill(0.0)
    bill.stepped(405.0)
    assert in_words(bill.fields(1440.0, 8, 0.0)) == "3.2 GPU-hours, 0.9 before the first step"
    bill.ended(1440.0)
    assert in_words(bill.fields(1800.0, 8, 1300.0)) == (
        "4.0 GPU-hours, 0.9 before the first step, 0.4 idle, 0.8 held")
    assert in_words(Bill(0.0).fields(90.0, 2, 0.0)) == "3.0 GPU-minutes"
    assert in_words(Bill(0.0).fields(2.6, 2, 1.4)) == "5 GPU-seconds, 1 idle"


def test_idle_is_what_was_seen_to_be_idle():
    usage = Usage()
    usage.add([{"util": 0}, {"util": 90}], 10.0)
    assert (usage.idle, usage.busy_at) == (0.0, 10.0)
    usage.add([{"util": 4}, {"util": 5}], 11.0)
    usage.add([{"util": 0}, {"util": 0}], 13.0)
    assert (usage.idle, usage.busy_at) == (5.0, 11.0)
    usage.add([{"util": 0}, {"util": 0}], 100.0)  # the driver did not answer: nobody knows
    assert usage.idle == 5.0
    usage.add([{"lost": True}, {"util": None}, {}], 101.0)
    assert usage.idle == 6.0
