"""What attempts are called, and who is meant by such a name: `3`, `3#2` (its second attempt), `3.0` (a local rank)."""
from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainwatch_launcher.reader.changes import AttemptKey

FORMS = "3, 0-7, 0-7,12, 3#2 (the second attempt of rank 3) or 3.0 (its local rank 0)"
"""What can be written, for messages."""
_SPAN = re.compile(r"(\d+)-(\d*)")
_ONE = re.compile(r"(\d+)(?:#(\d+))?(?:\.(\d+)(?:#(\d+))?)?")
_LONGEST = 18


class NamingError(ValueError):
    """What was written names no rank; `part` is what is wrong with it."""

    def __init__(self, part: str) -> None:
        super().__init__(f"{part!r} is no rank; write {FORMS}" if part else f"no rank is named; write {FORMS}")
        self.part = part


@dataclass(frozen=True)
class Name:
    """One name as it was written: a rank or several, and perhaps which attempt and which local rank."""

    written: str
    first: int
    last: int
    attempt: int | None = None
    local_rank: int | None = None
    local_attempt: int | None = None

    @property
    def is_span(self) -> bool:
        """Whether it is written as several ranks."""
        return "-" in self.written

    def covers(self, key: AttemptKey) -> bool:
        """Whether an attempt is one of those: what a name leaves open may be anything."""
        said = (self.attempt, self.local_rank, self.local_attempt)
        is_ = (key.attempt, key.local_rank, key.local_attempt)
        return self.first <= key.rank <= self.last and all(s in (None, i) for s, i in zip(said, is_, strict=True))


def parse(written: str) -> tuple[Name, ...]:
    """The names in `3`, `0-7,12` (`8-`: from 8 on), `3#2`, `3.0`, `3#2.0#1`. Raises NamingError."""
    names = tuple(_name(part) for part in written.replace(" ", "").split(",") if part)
    if not names:
        raise NamingError("")
    return names


def _name(part: str) -> Name:
    span, one = _SPAN.fullmatch(part), _ONE.fullmatch(part)
    numbers = (span or one).groups() if span or one else ()  # type: ignore[union-attr]
    if not numbers or not part.isascii() or any(len(number or "") > _LONGEST for number in numbers):
        raise NamingError(part)
    if span is not None:
        return Name(part, int(numbers[0]), int(numbers[1]) if numbers[1] else sys.maxsize)
    rank, *rest = (None if number is None else int(number) for number in numbers)
    assert rank is not None
    return Name(part, rank, rank, *rest)


def newest(keys: Iterable[AttemptKey]) -> Mapping[tuple[int, ...], int]:
    """The newest attempt of each rank, by `(rank,)`, and of each local rank, by what leads to it."""
    found: dict[tuple[int, ...], int] = {}
    for key in keys:
        nest = key[:3]
        found[key[:1]] = max(key.attempt, found.get(key[:1], 0))
        found[nest] = max(key.local_attempt, found.get(nest, 0))
    return found


def label(key: AttemptKey, newest_attempt: int = 0, newest_local: int = 0) -> str:
    """What an attempt is called: its number is said where there is another one that could be meant."""
    name = str(key.rank) + (f"#{key.attempt}" if max(key.attempt, newest_attempt) > 1 else "")
    if key.local_rank < 0:
        return name
    again = max(key.local_attempt, newest_local) > 1
    return f"{name}.{key.local_rank}" + (f"#{key.local_attempt}" if again else "")


def labels(keys: Iterable[AttemptKey]) -> dict[AttemptKey, str]:
    """A name of its own for each attempt, which `parse` understands."""
    all_keys = list(keys)
    last = newest(all_keys)
    return {key: label(key, last[key[:1]], last[key[:3]]) for key in all_keys}


def spans(ranks: Iterable[int]) -> str:
    """Ranks in few words: `0-3, 7`."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


NAMED = 3
"""So many ranks, or spans of them, are named."""


def ranks(keys: Sequence[AttemptKey], labels: Mapping[AttemptKey, str]) -> str:
    """Ranks in few words: `rank 3`, `ranks 0-63`, `9 ranks, the first 3.0`."""
    names = [labels.get(key) or label(key) for key in keys]
    if len(names) == 1:
        return f"rank {names[0]}"
    if all(name.isdigit() for name in names):
        written = spans(int(name) for name in names)
        if written.count(",") < NAMED:
            return f"ranks {written}"
    if len(names) <= NAMED:
        return f"ranks {', '.join(names)}"
    return f"{len(names)} ranks, the first {names[0]}"
