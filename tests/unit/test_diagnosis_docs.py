"""docs/diagnosis.md and docs/run-directory.md tell the truth about diagnoses."""
from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.answer import Collective, Diagnosis, Inner

DOCS = Path(__file__).resolve().parents[2] / "docs"


def rows(document, heading):
    """The rows of the table after some words, as lists of cells."""
    text = (DOCS / document).read_text(encoding="utf-8").partition(heading)[2]
    lines = text.partition("\n| --- |")[2].splitlines()[1:]
    end = next((number for number, line in enumerate(lines) if not line.startswith("|")), None)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[:end]]


def test_every_kind_is_explained_in_its_family():
    told = {(family, kind.strip("`")) for family, kind, _ in rows("diagnosis.md", "## Kinds")}
    assert told == {(row.family, row.name) for row in table.BY_NAME.values()}


def test_every_field_of_a_diagnosis_is_documented():
    text = "\n".join(" ".join(row) for row in rows("run-directory.md", "A `diagnosis` has these fields"))
    told = set(re.findall(r"`(\w+)`", text))
    for record in (Diagnosis, Inner, Collective):
        assert {field.name for field in fields(record)} - told <= {"finished"}  # of logs that did not fail


def test_every_field_that_why_prints_is_documented():
    from trainwatch.commands.why import Answer, as_json

    told = {name for row in rows("diagnosis.md", "## --json") for name in re.findall(r"`(\w+)`", row[0])}
    assert told == set(as_json(Answer(None, None, "", {})))
