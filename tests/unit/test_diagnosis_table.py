"""The table of kinds: what single messages are, no words that can never be found, no alarm for healthy training."""
from __future__ import annotations

import json
import warnings

import pytest

from support.failures import DATA
from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.diagnose import diagnose
from trainwatch_launcher.diagnosis.statements import kind_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from re import _parser as parser  # Python 3.11
    except ImportError:
        import sre_parse as parser

MESSAGES = [line.split("\t") for line in (DATA / "exceptions.tsv").read_text(encoding="utf-8").splitlines()]
PROGRESS = DATA.parent / "progress"
GAP = "\0"


@pytest.mark.parametrize(("kind", "message"), MESSAGES, ids=lambda value: value[:60])
def test_a_message_is_of_its_kind(kind, message):
    assert kind_of(message)[0].name == kind


def skeletons(parsed) -> list[str]:
    """What an expression can match, one text for each of its alternatives, with a GAP for what may be anything."""
    found = [""]
    for code, value in parsed:
        name = str(code)
        if name == "LITERAL":
            more = [chr(value)]
        elif name == "SUBPATTERN":
            more = skeletons(value[3])
        elif name == "BRANCH":
            more = [text for branch in value[1] for text in skeletons(branch)]
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            more = skeletons(value[2]) + ([""] if value[0] == 0 else [])
        elif name in ("AT", "ASSERT", "ASSERT_NOT"):
            more = [""]
        else:
            more = [GAP]
        found = [text + end for text in found for end in more][:400]
    return found


def may_hold(text: str, literal: str) -> bool:
    places = range(len(text) - len(literal) + 1)
    return any(all(a in (b, GAP) for a, b in zip(text[at:], literal, strict=False)) for at in places)


def test_no_alternative_of_an_expression_is_missed_for_want_of_its_literal():
    """A line is only looked at when it has one of a pattern's literals; so each alternative must have one."""
    dead = [
        (row.name, pattern.literals, text.replace(GAP, "…"))
        for row in table.KINDS
        for pattern in {*row.raises, *row.prints, *row.softly}
        for text in skeletons(parser.parse(pattern.expression))
        if not any(may_hold(text.lower(), literal) for literal in pattern.literals)
    ]
    assert not dead


def test_logs_of_healthy_training_give_no_alarm():
    samples = [
        json.loads(line) for path in sorted(PROGRESS.rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]  # fmt: skip
    texts = [sample["text"] for sample in samples if isinstance(sample, dict) and "text" in sample]
    assert len(texts) > 30
    alarms = [(found.kind, found.summary) for text in texts if (found := diagnose(text.encode())).failed]
    assert not alarms
