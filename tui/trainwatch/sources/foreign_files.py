"""Which files are meant by names on a command line, and which rank's log each of them is."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainwatch.loglist import STREAMS, LogFile, logs_in, rank_in
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.runs import TargetError

_DIGITS = re.compile(r"\d+")
MOST_RANK = 1_000_000


@dataclass(frozen=True)
class Named:
    """A log file, and what its rank and attempt are called."""

    path: str
    name: str
    key: AttemptKey


def found(paths: Sequence[str]) -> list[Named]:
    """The logs that paths of files and directories mean, by rank. Raises TargetError."""
    files: list[LogFile] = []
    for path in paths:
        try:
            if Path(path).is_dir():
                files += logs_in(path)
            elif Path(path).exists():
                files.append(LogFile(path, path if len(paths) > 1 else Path(path).name, _rank_of(path)))
            else:
                raise TargetError(f"{path} does not exist")
        except OSError as error:
            raise TargetError(f"{path}: {error.strerror or error}") from None
    if not files:
        raise TargetError(f"{paths[0]} holds no logs (*.log, *.out, *.err, *.txt)")
    return _keyed(ranked(list(dict.fromkeys(files))))


def _rank_of(path: str) -> int | None:
    """As for files of a directory: torchrun's `0/stdout.log` is of rank 0."""
    file = Path(path)
    if file.stem in STREAMS:
        parent = file.parent.name
        return int(parent) if parent.isdecimal() else rank_in(parent)
    return rank_in(file.name)


def ranked(files: Sequence[LogFile]) -> list[LogFile]:
    """The files with the ranks that their names say: of names that differ in one number only, that is the rank.

    So it is with Slurm's `slurm-%j-%t.out`, where no single name tells.
    """
    families: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for at, file in enumerate(files):
        if file.rank is None:
            numbers = tuple(_DIGITS.findall(Path(file.name).name))
            families.setdefault(_DIGITS.sub("#", file.name), []).append((at, numbers))
    result = list(files)
    for members in families.values():
        columns = list(zip(*(numbers for _, numbers in members), strict=False))
        varying = [column for column, values in enumerate(columns) if len(set(values)) > 1]
        if len(varying) == 1 and len(set(columns[varying[0]])) == len(members):
            for at, numbers in members:
                result[at] = replace(files[at], rank=int(numbers[varying[0]]))
    return result


def _keyed(files: Sequence[LogFile]) -> list[Named]:
    """A key for each: a rank's second file (stderr beside stdout) is told as a local rank, others come after all."""
    seen: dict[int, int] = {}
    named: list[Named] = []
    unranked = [file for file in files if file.rank is None or file.rank >= MOST_RANK]
    for file in sorted((file for file in files if file not in unranked), key=_order):
        assert file.rank is not None
        count = seen.get(file.rank, 0)
        seen[file.rank] = count + 1
        key = AttemptKey(file.rank) if not count else AttemptKey(file.rank, 1, count, 1)
        named.append(Named(file.path, file.name, key))
    first = max(seen, default=-1) + 1
    return named + [Named(file.path, file.name, AttemptKey(first + at)) for at, file in enumerate(unranked)]


def _order(file: LogFile) -> tuple[int, bool, str]:
    return file.rank or 0, "err" in Path(file.name).stem, file.name
