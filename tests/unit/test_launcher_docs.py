"""docs/launcher.md says what the launcher does: its options, variables and engines, no more and no less."""
from __future__ import annotations

from pathlib import Path

import pytest

from trainwatch_launcher.attempt import ATTEMPT_VARIABLE
from trainwatch_launcher.identity import ENGINES, EXPORTED, RUN_ID_VARIABLES
from trainwatch_launcher.options import OPTIONS, Options
from trainwatch_launcher.usage import help_text

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "launcher.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, its two head rows left out."""
    below = PAGE.split(f"\n{heading}\n", 1)[1].splitlines()
    start = next(number for number, line in enumerate(below) if line.startswith("|"))
    rows = []
    for line in below[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]


@pytest.mark.parametrize("group", OPTIONS)
def test_every_option_and_its_variable_is_described_and_no_other(group):
    said = [(option.strip("`"), variable.strip("`")) for option, variable, _ in table(f"### {group}")]
    assert said == [(f"{o.flag} {o.value}".rstrip(), o.env) for o in OPTIONS[group]]


def test_defaults_are_the_ones_that_the_launcher_has():
    said = {option.split()[0].strip("`"): meaning for group in OPTIONS for option, _, meaning in table(f"### {group}")}
    defaults = Options()
    for flag, field in (("--hold", "hold"), ("--drain-timeout", "drain_timeout"), ("--grace", "grace"),
                        ("--heartbeat", "heartbeat")):
        assert f"default {getattr(defaults, field):g}" in said[flag]
        assert f"default {getattr(defaults, field):g}" in help_text()
    assert defaults.spool_max == 4 << 30
    assert "default 4G" in said["--spool-max"]


def test_the_table_of_engines_is_the_launcher_s():
    def names(text: str) -> str:
        return " ".join(f"`{name}`" for name in text.split())

    assert table("## Who it is") == [
        [e.name, names(" ".join(e.when)), names(e.rank), names(e.world_size), names(e.local_rank), names(e.node)]
        for e in ENGINES
    ]
    positions = [PAGE.index(f"`{variable}`", PAGE.index("The run's name is")) for variable, _ in RUN_ID_VARIABLES]
    assert positions == sorted(positions)


def test_what_the_command_gets_is_said():
    said = " ".join(row[0] for row in table("## What the command gets"))
    assert all(f"`{name}`" in said for name in (*EXPORTED, ATTEMPT_VARIABLE))
