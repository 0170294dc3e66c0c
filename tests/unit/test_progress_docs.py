"""docs/progress.md tells the truth: its helper works, its keys and formats are those of the code."""
from __future__ import annotations

import re
from pathlib import Path

from trainwatch_launcher.progress.dictionaries import DIALECTS
from trainwatch_launcher.progress.lines import EXPLICIT, FORMATS, PATTERN
from trainwatch_launcher.progress.stream import points
from trainwatch_launcher.progress.values import KEYS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "progress.md").read_text(encoding="utf-8")


def first_column(heading):
    """The words in code type in the first column of the table after a heading."""
    rows = TEXT.partition(heading)[2].partition("\n| --- |")[2].splitlines()[1:]
    table = rows[: next((n for n, row in enumerate(rows) if not row.startswith("|")), None)]
    return [word for row in table for word in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_every_key_is_explained():
    assert sorted(first_column("## Say it yourself")) == sorted(KEYS)


def test_every_format_is_listed_and_no_other():
    others = {
        "hf-trainer", "composer", "olmo", "keras", "ultralytics", "lightning", "torchtune", "tqdm", "generic", EXPLICIT,
        PATTERN,
    }  # fmt: skip
    known = {entry.name for _, entry in FORMATS} | {name for name, _ in DIALECTS} | others
    assert sorted(first_column("## What is known")) == sorted(known)


def test_the_helper_prints_what_is_read(capsys):
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL).group(1), names)
    names["trainwatch"](step=1_234_567, total=10**7, loss=2.31, lr=1e-5, epoch=None, reward=float("nan"))
    said = capsys.readouterr().out
    assert [point.values for point in points(said)] == [
        {"step": 1_234_567, "total": 10**7, "loss": 2.31, "lr": 1e-5, "reward": "nan"}
    ]
