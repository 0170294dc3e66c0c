"""Facts as short words."""
from __future__ import annotations

import math
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model import text


@pytest.mark.parametrize(("seconds", "said"), [
    (0, "0s"), (0.99, "0s"), (8.4, "8s"), (59.9, "59s"), (60, "1m00s"), (252, "4m12s"), (3599, "59m59s"),
    (3600, "1h00m"),
    (9660, "2h41m"), (86399, "23h59m"), (86400, "1d00h"), (3 * 86400 + 4 * 3600, "3d04h"), (-5, "0s"), (None, ""),
])  # fmt: skip
def test_durations(seconds, said):
    assert text.duration(seconds) == said


@given(st.floats(allow_nan=False))
def test_any_duration_is_short(seconds):
    assert len(text.duration(seconds)) <= 12


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "now"), (1.0, "1s"), (75, "1m15s"), (None, "")])
def test_ages(seconds, said):
    assert text.ago(seconds) == said


@pytest.mark.parametrize(("count", "said"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1234, "1.2 kB"), (9949, "9.9 kB"), (9951, "10 kB"),
    (34_000_000, "34 MB"),
    (999_499, "999 kB"), (999_999, "1.0 MB"), (5_100_000_000, "5.1 GB"), (2**63, "9 EB"), (None, ""),
])  # fmt: skip
def test_sizes(count, said):
    assert text.size(count) == said


def test_signal_names_are_those_of_linux():
    for number, name in text.SIGNALS.items():
        assert name in {item.name for item in signal.Signals} or name == "SIGSTKFLT"
        assert getattr(signal, name, number) == number
    assert text.signal_name(34) == "SIGRTMIN"
    assert text.signal_name(37) == "SIGRTMIN+3"
    assert text.signal_name(99) == "signal 99"


@pytest.mark.parametrize(("code", "number", "said"), [
    (0, None, "0"), (1, None, "1"), (137, 9, "137 SIGKILL"), (139, None, "139 SIGSEGV"), (128, None, "128"),
    (200, None, "200"), (9, 9, "9 SIGKILL"), (None, None, ""),
])  # fmt: skip
def test_exit_codes(code, number, said):
    assert text.exit_text(code, number) == said


@pytest.mark.parametrize(("typed", "seconds"), [
    ("600", 600), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), (" 2H ", 7200), ("1d", 86400),
    ("0.5h", 1800), ("", None), ("h", None), ("-5", None), ("0", None), ("ten", None), ("9" * 40, None), ("1h30", None),
])  # fmt: skip
def test_durations_that_people_type(typed, seconds):
    assert text.parse_duration(typed) == seconds


@given(st.text(max_size=12))
def test_anything_typed_is_a_length_of_time_or_none(typed):
    seconds = text.parse_duration(typed)
    assert seconds is None or (seconds > 0 and math.isfinite(seconds))


def test_moments_that_no_calendar_has_are_question_marks():
    assert text.moment(None) == ""
    assert text.moment(1e300) == text.moment(-1e300) == "?"
    assert text.moment(0.0, "%Y") in ("1969", "1970")


@given(st.text())
def test_printable_text_never_acts_on_a_terminal(written):
    shown = text.printable(written)
    assert shown.isprintable() or not shown
    shown.encode("utf-8")


def test_printable_text_keeps_what_people_read():
    assert text.printable("损失 loss=0.5 ▂▄▆ é") == "损失 loss=0.5 ▂▄▆ é"
    assert text.printable("a\x1b[31mb\tc\u202ed\udce9\x9b2J") == "a [31mb cd\ufffd 2J"


def test_widths_are_in_cells():
    assert (text.width("abc"), text.width("损失"), text.width("e\u0301")) == (3, 4, 1)


@pytest.mark.parametrize("number", [1e308, -1e308, math.inf, -math.inf, math.nan, 10**400])
def test_no_number_is_too_odd_to_be_said(number):
    for said in (text.countdown, text.duration, text.ago, text.size, text.number, text.moment):
        assert isinstance(said(number), str)
