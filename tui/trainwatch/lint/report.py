"""What was found, as text for people, as JSON, for GitHub, and as SARIF."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainwatch.lint.findings import ERROR, RULES, STYLE, WARNING, Finding, NotFollowed, Report
from trainwatch.model.text import printable, width

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {ERROR: "error", WARNING: "warning", STYLE: "note"}
"""Severities as SARIF names them."""
GITHUB = {ERROR: "error", WARNING: "warning", STYLE: "notice"}
"""Severities as GitHub's workflow commands name them."""


@dataclass(frozen=True)
class Paint:
    """Colours, or none."""

    on: bool

    def __call__(self, code: str, text: str) -> str:
        """The text in a colour (an SGR parameter)."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


COLOURS = {ERROR: "1;31", WARNING: "1;33", STYLE: "1;36"}


def as_text(report: Report, checked: int, paint: Paint, columns: int) -> Iterator[str]:
    """Lines for people: each finding with its source line, a caret, why, and the fix."""
    for one in report.findings:
        place = f"{printable(one.file)}:{one.line}:{one.column}:"
        yield f"{paint('1', place)} {paint(COLOURS[one.severity], one.severity)} {one.rule}: {printable(one.message)}"
        yield from _excerpt(one, paint, columns)
        yield f"    {paint('32', 'fix:')} {printable(one.fix)}"
    for other in report.not_followed:
        what = f"{printable(other.script)}: " if other.script else ""
        yield f"{printable(other.file)}:{other.line}: {paint('2', 'not followed:')} {what}{printable(other.why)}"
    yield _summary(report, checked)


def _excerpt(one: Finding, paint: Paint, columns: int) -> Iterator[str]:
    line = one.source_line
    room = max(columns - 6, 30)
    start = max(0, one.column - 1 - room // 2) if len(line) > room else 0
    shown = printable(line[start : start + room])
    if not shown.strip():
        return
    before = printable(line[start : one.column - 1])
    yield f"    {shown}"
    yield f"    {' ' * width(before)}{paint('1;35', '^')}"


def _summary(report: Report, checked: int) -> str:
    count, files = len(report.findings), len({one.file for one in report.findings})
    if not count:
        return "nothing found" if checked == 1 else f"nothing found in {checked} files"
    kinds = [(severity, sum(one.severity == severity for one in report.findings)) for severity in LEVELS]
    names = ", ".join(f"{number} {severity}" for severity, number in kinds if number)
    where = "" if files == 1 else f" in {files} files"
    return f"{count} finding{'s' if count > 1 else ''}{where}: {names}"


def as_json(report: Report) -> dict[str, Any]:
    """What --json prints."""
    return {
        "findings": [
            {"rule": one.rule, "file": one.file, "line": one.line, "column": one.column, "severity": one.severity,
             "message": one.message, "fix": one.fix}
            for one in report.findings
        ],
        "not_followed": [_not_followed(one) for one in report.not_followed],
    }  # fmt: skip


def _not_followed(one: NotFollowed) -> dict[str, Any]:
    return {"file": one.file, "line": one.line, "script": one.script or None, "why": one.why}


def as_github(report: Report) -> Iterator[str]:
    """Workflow commands, which GitHub shows beside the lines of a change."""
    for one in report.findings:
        place = f"file={_property(one.file)},line={one.line},col={one.column},title={_property(one.rule)}"
        yield f"::{GITHUB[one.severity]} {place}::{_data(f'{one.message}. Fix: {one.fix}')}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(report: Report, version: str) -> dict[str, Any]:
    """SARIF 2.1.0, which code scanners read."""
    rules = [
        {"id": rule.name, "shortDescription": {"text": rule.why}, "help": {"text": rule.fix},
         "defaultConfiguration": {"level": LEVELS[rule.severity]}}
        for rule in RULES.values()
    ]  # fmt: skip
    results = [
        {"ruleId": one.rule, "level": LEVELS[one.severity],
         "message": {"text": f"{one.message}. Fix: {one.fix}"},
         "locations": [{"physicalLocation": {
             "artifactLocation": {"uri": one.file},
             "region": {"startLine": one.line, "startColumn": one.column}}}]}
        for one in report.findings
    ]  # fmt: skip
    driver = {"name": "trainwatch lint", "version": version, "rules": rules}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def dumps(value: dict[str, Any]) -> str:
    """JSON for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False)
