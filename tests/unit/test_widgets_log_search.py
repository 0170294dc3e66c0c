"""What is highlighted in a line on screen: matches, errors, numbers; never for long."""
from __future__ import annotations

import pytest

from trainwatch.widgets import log_kinds
from trainwatch.widgets.limited import TooSlowError
from trainwatch.widgets.log_search import spans
from trainwatch_launcher.reader.query import Query


def test_matches_on_screen_leave_out_empty_ones():
    assert spans(Query("o"), "foo") == [(1, 2), (2, 3)]
    assert spans(Query("x*", True), "axb") == [(1, 2)]


@pytest.mark.parametrize("text", ["(a|a)*$x", r"(\w+\s?)*!", ".*.*.*.*.*!", "(a|aa)+!", "(a*)*b", "([a-z]+)*!"])
def test_an_expression_that_would_never_end_is_given_up(text):
    with pytest.raises(TooSlowError):
        spans(Query(text, True), "a" * 16_000)


@pytest.mark.parametrize("line", [
    "Traceback (most recent call last):", "ValueError: boom", "torch.OutOfMemoryError: CUDA out of memory",
    "[ERROR] cannot", "2025-11-30 ERROR: x", "error: x", "FATAL x", "Segmentation fault (core dumped)", "Killed",
    "terminate called: panic: x", "KeyboardInterrupt, RuntimeError",
])  # fmt: skip
def test_errors_are_told(line):
    assert log_kinds.is_error(line)


@pytest.mark.parametrize("line", [
    "error_rate=0.1", "0 errors found", "mean squared error 0.3", "INFO ErrorHandler ready", "loss 0.5", "",
    "NoErrorsHere", "terror: strikes", "Killed processes: 0",
])  # fmt: skip
def test_what_only_sounds_like_an_error_is_none(line):
    assert not log_kinds.is_error(line)


def test_errors_take_linear_time():
    log_kinds.is_error("a" * 1_000_000)
    log_kinds.warnings("a." * 500_000)
    log_kinds.numbers("1," * 500_000)


def test_numbers_and_warnings_are_found_where_they_are():
    line = "WARNING: step 1,024 loss 2.5e-3 v1.2.3 50%"
    assert [line[a:b].strip(" :") for a, b in log_kinds.warnings(line)] == ["WARNING"]
    assert [line[a:b] for a, b in log_kinds.numbers(line)] == ["1,024", "2.5e-3", "50%"]
