"""`trainwatch shell`: a shell, or one command, at the side of a rank."""
from __future__ import annotations

import argparse
import os
import sys
import time

from trainwatch.commands.targets import Followed, TargetError, run_directory
from trainwatch.model.rows import Row, rows
from trainwatch.sources.base import SourceError
from trainwatch.sources.shells import plan
from trainwatch_launcher.reader.changes import AttemptKey

DESCRIPTION = "Open a shell in the working directory and environment of a rank, or run a command there."
EPILOG = """\
The environment is the live launcher's, as the platform made it. A rank that is gone gives its directory and your own
environment, which is said.

exit codes:
  the shell's or the command's own; 1 when there is no way in; 2 when TARGET or RANK is not there;
  126 and 127 as a shell gives them when COMMAND cannot be run or is not found

examples:
  trainwatch shell RUN --rank 2
  trainwatch shell RUN/rank-00002
  trainwatch shell RUN --rank 2 -- nvidia-smi
"""


def main(argv: list[str]) -> int:
    """Become the shell; returns an exit code only when that is not possible. Raises TargetError."""
    own, dashes, command = _split(argv)
    parser = argparse.ArgumentParser(
        prog="trainwatch shell", description=DESCRIPTION, epilog=EPILOG,
        usage="trainwatch shell TARGET [--rank RANK] [-- COMMAND [ARG ...]]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", help="a run directory, or that of a rank or attempt in it")
    parser.add_argument("--rank", metavar="RANK", help="the rank, as the table shows it: 2, 2·1 or 2.0")
    options = parser.parse_args(own)
    if dashes and not command:
        parser.error("nothing after --")
    target = run_directory(options.target)
    followed = Followed(target.path)
    row = _choose(rows(followed.run, time.time()), options.rank, target.key)
    try:
        way = plan(followed.run.attempts[row.key].directory, row.key, tuple(command))
    except SourceError as error:
        print(f"trainwatch: {error}", file=sys.stderr)
        return 1
    print(f"trainwatch: {way.note}", file=sys.stderr, flush=True)
    try:
        if way.cwd is not None:
            os.chdir(way.cwd)
        os.execvpe(way.argv[0], way.argv, way.env if way.env is not None else os.environ)
    except OSError as error:
        print(f"trainwatch: cannot run {way.argv[0]}: {error.strerror or error}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


def _split(argv: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in argv:
        return argv, False, []
    at = argv.index("--")
    return argv[:at], True, argv[at + 1 :]


def _choose(found: tuple[Row, ...], rank: str | None, key: AttemptKey | None) -> Row:
    """The row that was meant: by its label, by a path into the run, or the only one. Raises TargetError."""
    if rank is not None:
        matches = [row for row in found if row.label == rank or (rank == str(row.key.rank) and not row.nested)]
        exact = [row for row in matches if not row.superseded] or matches
    elif key is not None:
        exact = [row for row in found if row.key == key or (not key.attempt and row.key.rank == key.rank)]
        exact = [row for row in exact if row.key == key or not (row.superseded or row.nested)]
    else:
        exact = [row for row in found if not row.superseded and not row.nested]
    if rank is None and key is None and len(exact) > 1:
        raise TargetError(f"which rank? Name one with --rank: {_labels(exact)}")
    if not exact:
        there = f"; there are {_labels(list(found))}" if found else "; no rank has come yet"
        raise TargetError(f"no rank {rank if rank is not None else ''} in this run{there}".replace("  ", " "))
    return exact[-1]


def _labels(found: list[Row]) -> str:
    labels = [row.label for row in found]
    return ", ".join(labels if len(labels) <= 12 else [*labels[:10], "…", labels[-1]])
