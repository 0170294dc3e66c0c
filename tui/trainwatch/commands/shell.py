"""`trainwatch shell`: a shell, or one command, at the side of a rank."""
from __future__ import annotations

import argparse
import os
import sys
import time

from trainwatch.beside import failed
from trainwatch.commands.kept import run_kept
from trainwatch.commands.targets import Followed, TargetError, run_directory
from trainwatch.config import load
from trainwatch.model import holding, naming, text
from trainwatch.model.state import Run
from trainwatch.sources.base import SourceError
from trainwatch_launcher.reader.changes import AttemptKey

DESCRIPTION = "Open a shell in the working directory and environment of a rank, or run a command there."
EPILOG = """\
The environment is the live launcher's, as the platform made it. A rank that is gone gives its directory and your own
environment, which is said. While the shell or the command is open, the rank's hold is extended so that at least 15
minutes are left; not with --no-keep-hold, or with keep_hold = false under [shell] in config.toml.

exit codes:
  the shell's or the command's own; 1 when there is no way in; 2 when TARGET or RANK is not there;
  126 and 127 as a shell gives them when COMMAND cannot be run or is not found

examples:
  trainwatch shell RUN --rank 2              its newest attempt, or the only one that is still held
  trainwatch shell RUN --rank '2#1'          its first attempt
  trainwatch shell RUN/rank-00002
  trainwatch shell RUN --rank 2 -- nvidia-smi
"""


def main(argv: list[str]) -> int:
    """Open the shell; returns its exit code. Where no hold is to be kept, become the shell. Raises TargetError."""
    own, dashes, command = _split(argv)
    words = parser()
    options = words.parse_args(own)
    if dashes and not command:
        words.error("nothing after --")
    target = run_directory(options.target)
    followed = Followed(target.path)
    run, now = followed.run, time.time()
    key, notes = _choose(run, now, options.rank, target.key)
    beside, said = holding.stand_beside(run, key, now)
    for note in filter(None, (*notes, said)):
        print(f"trainwatch: {text.printable(note)}", file=sys.stderr)
    try:
        way = followed.shell(beside, tuple(command))
    except SourceError as error:
        print(f"trainwatch: {text.printable(str(error))}", file=sys.stderr)
        return 1
    row = holding.holder(run, beside, now)
    keep = not options.no_keep_hold and load().shell.keep_hold
    keep = keep and row is not None and (row.live or holding.may_hold(row))
    kept = "; the hold is kept while this is open" if keep else ""
    print(f"trainwatch: {text.printable(way.note)}{kept}", file=sys.stderr, flush=True)
    try:
        if way.cwd is not None:
            os.chdir(way.cwd)
    except OSError as error:
        print(f"trainwatch: its directory {text.printable(str(way.cwd))}: {error.strerror or error}", file=sys.stderr)
        return 1
    try:
        if keep:
            started = time.monotonic()
            code = run_kept(followed, way, beside)
            said = "" if command else failed(way.argv, code, time.monotonic() - started)
            if said:
                print(f"trainwatch: {said}", file=sys.stderr)
            return code
        followed.close()
        os.execvpe(way.argv[0], way.argv, way.env if way.env is not None else os.environ)
    except OSError as error:
        print(f"trainwatch: cannot run {way.argv[0]}: {error.strerror or error}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch shell`, before its `--`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch shell", description=DESCRIPTION, epilog=EPILOG,
        usage="trainwatch shell TARGET [--rank RANK] [--no-keep-hold] [-- COMMAND [ARG ...]]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", help="a run directory, or that of a rank or attempt in it")
    parser.add_argument("--rank", metavar="RANK", help="the rank, as the table shows it: 2, 2#1 or 2.0")
    parser.add_argument("--no-keep-hold", action="store_true", help="do not extend the rank's hold while this is open")
    return parser


def _split(argv: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in argv:
        return argv, False, []
    at = argv.index("--")
    return argv[:at], True, argv[at + 1 :]


def _choose(run: Run, now: float, rank: str | None, inside: AttemptKey | None) -> tuple[AttemptKey, tuple[str, ...]]:
    """The attempt that was meant: by its name, by a path into the run, or the only one. Raises TargetError.

    With it, what is to be said about the choice.
    """
    picked = holding.pick_one(run, _name(run, rank, inside), now)
    if not picked.rows:
        raise TargetError("; ".join(picked.problems))
    return picked.rows[0].key, picked.notes


def _name(run: Run, written: str | None, inside: AttemptKey | None) -> naming.Name:
    if written is None:
        ranks = [inside.rank] if inside is not None else sorted({key.rank for key in run.order})
        if len(ranks) != 1:
            which = f"which rank? Name one with --rank: {naming.spans(ranks)}" if ranks else "no rank has come yet"
            raise TargetError(which)
        if inside is None:
            return naming.Name(str(ranks[0]), ranks[0], ranks[0])
        local = inside.local_rank if inside.local_rank >= 0 else None
        label = run.label(inside)
        return naming.Name(label, inside.rank, inside.rank, inside.attempt or None, local, inside.local_attempt or None)
    try:
        names = naming.parse(written)
    except naming.NamingError as error:
        raise TargetError(f"--rank: {error}") from None
    if len(names) > 1 or names[0].is_span:
        raise TargetError(f"--rank {written}: a shell is beside one rank; name one")
    return names[0]
