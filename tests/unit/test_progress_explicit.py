"""What users say themselves: explicit lines, and expressions of their own."""
from __future__ import annotations

import pytest

import trainwatch_launcher.progress.explicit as module
from trainwatch_launcher.progress.explicit import Pattern, PatternError, explicit, patterns
from trainwatch_launcher.progress.latest import collect
from trainwatch_launcher.progress.stream import points


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("::trainwatch step=10 total=100 loss=2.31::", {"step": 10, "total": 100, "loss": 2.31}),
        ("[2025-11-28 12:00:00] [worker-0] ::trainwatch step=1,000, loss=nan::", {"step": 1000, "loss": "nan"}),
        ("::trainwatch step=7 eta_s=1:22:40 ms_per_iter=1.5s::", {"step": 7, "eta_s": 4960, "ms_per_iter": 1500}),
        ("::trainwatch step=7 eta_s=90 ms_per_iter=250::", {"step": 7, "eta_s": 90, "ms_per_iter": 250}),
        ('{"message": "::trainwatch step=3 epoch=0.5::"}', {"step": 3, "epoch": 0.5}),
        ("::trainwatch step=1:: and ::trainwatch step=2::", {"step": 2}),
        ("\u6b65 ::trainwatch step=7 colour=red::", {"step": 7}),
        ("::trainwatch step=x loss=::", None),
        ("::trainwatch step=5", None),
        ("+ echo '::trainwatch step=5::'", None),
        ('echo "::trainwatch step=5::"', None),
        ("print('::trainwatch step=5::')", None),
    ],
)
def test_an_explicit_line_says_what_it_says(line, values):
    assert explicit(line) == values


def test_explicit_lines_win_over_what_the_framework_prints():
    text = "::trainwatch step=10 loss=2.5::\nstep 999 loss 9.9 lr 0.1\n"
    progress = collect(points(text))
    assert progress.values == {"step": 10, "loss": 2.5, "lr": 0.1}
    assert progress.format == "explicit"


def test_a_users_expression_comes_before_the_known_formats():
    own = patterns([r"at (?P<step>\d+) of (?P<total>\d+): L=(?P<loss>\S+)"])
    text = "hello\nat 5 of 10: L=0.25\nat 6 of 10: L=nan\nstep 7 loss 3.0\n"
    found = [(point.line, point.format, point.values) for point in points(text, own)]
    assert found == [
        (2, "pattern", {"step": 5, "total": 10, "loss": 0.25}),
        (3, "pattern", {"step": 6, "total": 10, "loss": "nan"}),
        (4, "generic", {"loss": 3.0, "step": 7}),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "is no regular expression"),
        (r"step (\d+)", "no named group"),
        (r"(?P<setp>\d+)", "'setp'"),
        (r"(a+)+(?P<step>\d)", "take for ever"),
        (r"(?:\d+,?)*(?P<loss>x)", "take for ever"),
        (r".*a.*a.*a.*(?P<step>\d)", "take for ever"),
    ],
)
def test_an_expression_that_cannot_work_is_refused_with_the_reason(text, why):
    with pytest.raises(PatternError, match=why):
        Pattern(text)


def test_an_expression_that_turns_out_slow_is_not_used_again(monkeypatch):
    pattern = Pattern(r"at (?P<step>\d+)")
    assert pattern.read("at 5") == {"step": 5}
    monkeypatch.setattr(module, "TOO_SLOW", 0)
    pattern.read("at 6")
    assert pattern.gave_up
    assert pattern.read("at 7") is None


@pytest.mark.parametrize(
    "text",
    [
        r"(?P<step>\d+)/(?P<total>\d+).*loss[:=]\s*(?P<loss>\S+).*lr[:=]\s*(?P<lr>\S+)",
        r"step (?P<step>[\d,]+) of (?P<total>[\d,]+): (?P<loss>[-\d.e+]+)",
    ],
)
def test_ordinary_expressions_are_accepted(text):
    assert Pattern(text).text == text
