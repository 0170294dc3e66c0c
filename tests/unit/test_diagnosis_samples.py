"""Failures as frameworks, schedulers and kernels print them, and what a person should be told of each."""
from __future__ import annotations

import os
import time

import pytest

from support.failures import samples
from trainwatch.commands.why import of_logs
from trainwatch.loglist import logs_in
from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.diagnose import diagnose

HARMLESS = "2026-06-12 02:00:00 INFO warming up, error rate 0.01, failed 0, timeout 1800\n"
SINGLE, SEVERAL = list(samples()), list(samples("ranks"))


def answers(found, expected):
    """What a diagnosis says of the things that a sample expects."""
    said = {
        "rank": str(found.rank), "exit": str(found.exit_code), "frame": found.frame,
        "collateral": ",".join(map(str, found.collateral_ranks)),
    }  # fmt: skip
    return {name: said[name] for name in expected}


@pytest.mark.parametrize("before", [0, 1500], ids=["alone", "after-much"])
@pytest.mark.parametrize("sample", SINGLE, ids=lambda sample: sample.name)
def test_a_log_is_understood(sample, before):
    found = diagnose(HARMLESS.encode() * before + sample.text)
    line = None if sample.line is None else sample.line + before
    assert (found.kind, found.line if line else None) == (sample.kind, line), found.summary
    assert answers(found, sample.expected) == sample.expected
    if found.failed:
        assert found.summary
        assert found.hint
        assert found.family == table.kind(found.kind).family


@pytest.mark.parametrize("sample", SINGLE, ids=lambda sample: sample.name)
def test_a_log_of_a_command_that_ended_well_gives_no_alarm(sample):
    from trainwatch_launcher.diagnosis.facts import Facts

    assert diagnose(sample.text, Facts(exit_code=0)).kind == "none"


@pytest.mark.parametrize("sample", SEVERAL, ids=lambda sample: sample.name)
def test_the_rank_that_began_it_is_found_among_the_logs_of_several(sample, tmp_path):
    for name, text in sample.logs.items():
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (time.time() - 9999,) * 2)
    answer = of_logs(logs_in(str(tmp_path)))
    cause = answer.cause
    if sample.kind == "none":
        assert cause is None
        return
    root = "none" if cause.rank is None else str(cause.rank)
    assert (cause.kind, root, ",".join(map(str, cause.collateral))) == (
        sample.kind, sample.expected["root"], sample.expected["collateral"]), cause.summary  # fmt: skip
    assert (os.path.basename(answer.file), cause.line) == (sample.file, sample.line)


def test_every_kind_of_the_table_has_a_sample_and_says_what_to_do():
    shown = {sample.kind for sample in [*SINGLE, *SEVERAL]}
    assert {row.name for row in table.KINDS} <= shown
    assert all(row.hint.endswith(".") and len(row.hint) < 260 for row in table.KINDS)
