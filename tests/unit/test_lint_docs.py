"""docs/lint.md has every rule, with an example that it finds and one that it does not."""
from __future__ import annotations

from pathlib import Path

import pytest

from support.linting import lint, pairs
from trainwatch.lint.findings import RULES, STYLE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lint.md").read_text(encoding="utf-8")
SECTIONS = {
    head.split(" ")[0]: (head, body.split("\n## ")[0])
    for head, _, body in (part.partition("\n") for part in PAGE.split("\n### ")[1:])
}


def blocks(text: str) -> list[str]:
    return [part.split("\n```", 1)[0] + "\n" for part in text.split("```bash\n")[1:]]


def test_every_rule_is_described_and_no_other():
    assert sorted(head for head, _ in SECTIONS.values()) == sorted(f"{r.name} ({r.severity})" for r in RULES.values())


@pytest.mark.parametrize("rule", RULES)
def test_the_examples_are_what_they_say(rule):
    bad, good = blocks(SECTIONS[rule][1])
    found = pairs(lint(bad), style=True)
    assert rule in {name for name, _ in found}
    assert {name for name, _ in found if RULES[name].severity != STYLE} == {rule} - {
        name for name, one in RULES.items() if one.severity == STYLE}  # fmt: skip
    better = pairs(lint(good), style=True)
    assert rule not in {name for name, _ in better}
    assert not {name for name, _ in better if RULES[name].severity != STYLE}
