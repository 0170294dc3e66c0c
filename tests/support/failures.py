"""Reads tests/data/failures: logs of failures and the right answers to them."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "failures"
MARK = "»"


@dataclass(frozen=True)
class Sample:
    """One sample: its logs by file name (one without a name when it is a single log) and what is expected."""

    name: str
    kind: str
    logs: dict[str, str]
    expected: dict[str, str]
    file: str
    """The log that the line to go to is in."""
    line: int | None

    @property
    def text(self) -> bytes:
        """The only log of a single one."""
        return self.logs[""].encode()


def samples(*names: str) -> Iterator[Sample]:
    """All samples of some files (without their suffix), by default of all but those with several logs."""
    for path in sorted(DATA.glob("*.txt")):
        if path.stem in names or (not names and path.stem != "ranks"):
            for block in re.split(r"^#### ", path.read_bytes().decode(), flags=re.MULTILINE)[1:]:
                head, _, text = block.partition("\n")
                yield _sample(head, text)


def _sample(head: str, text: str) -> Sample:
    name, _, wanted = head.partition(" | ")
    kind, _, rest = wanted.partition(" ")
    expected = {match[1]: match[2] for match in re.finditer(r"(\w+)=(.*?)(?= \w+=|$)", rest)}
    logs, file, line = {}, "", None
    parts = re.split(r"^--- (?=[\w.-]+\.log$)", text, flags=re.MULTILINE)[1:]
    for part in parts or ["\n" + text]:
        called, _, body = part.partition("\n")
        for number, one in enumerate(body.split("\n"), 1):
            if one.startswith(MARK):
                file, line = called, number
        logs[called] = body.replace(MARK, "")
    return Sample(name, kind, logs, expected, file, line)
