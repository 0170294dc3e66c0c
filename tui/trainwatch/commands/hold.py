"""`trainwatch hold`: end or extend the holds of failed workers."""
from __future__ import annotations

import argparse
import sys
import time

from trainwatch.commands.arguments import ranks
from trainwatch.commands.targets import Followed, run_directory
from trainwatch.model import holding, text
from trainwatch.model.rows import Row, row_of
from trainwatch.sources.base import SourceError
from trainwatch_launcher.reader.changes import AttemptKey

DESCRIPTION = "End or extend the holds of failed workers, and wait for their answers."
EPILOG = """\
A released worker exits with the code of its command; its container then goes, and its GPUs are free.
A rank is named as the table shows it: 2, or 2#1 for its first attempt, or 2.0 for local rank 0, which its container
holds. 2 alone is its newest attempt; when that is not held, the only one that is.

exit codes:
  0  every worker that was asked has done it
  1  one that was named is not there or not held, could not be asked, said no, or did not answer within 5 seconds
  2  TARGET is no run that can be read, or the options make no sense

examples:
  trainwatch hold RUN --rank 2 --extend 2h
  trainwatch hold RUN --rank 0-3,7 --release
  trainwatch hold RUN --rank '2#1' --release
  trainwatch hold RUN --all --release
  trainwatch hold RUN --collateral --release      keep the rank that failed first, free all others
"""
ANSWER_WITHIN = 5.0
LOOK_EVERY = 0.1


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    target = run_directory(options.target)
    followed = Followed(target.path)
    now = time.time()
    picked = _picked(options, followed, now, target.key)
    for said in (*picked.notes, *picked.problems):
        print(f"trainwatch: {text.printable(said)}", file=sys.stderr)
    chosen = picked.rows
    command = "release" if options.release else "extend"
    asked: dict[AttemptKey, str] = {}
    for row in chosen:
        try:
            asked[row.key] = followed.request(row.key, command, options.extend)
        except SourceError as error:
            print(f"trainwatch: rank {row.label}: {text.printable(str(error))}", file=sys.stderr)
    done = _answers(followed, asked)
    followed.close()
    return 0 if done == len(chosen) and not picked.problems else 1


def _picked(options: argparse.Namespace, followed: Followed, now: float, inside: AttemptKey | None) -> holding.Picked:
    if options.all:
        return _all_held(followed, now, inside)
    if options.collateral:
        return holding.collateral(followed.run, now)
    return holding.pick_held(followed.run, options.rank, now)


def _all_held(followed: Followed, now: float, inside: AttemptKey | None) -> holding.Picked:
    """All that are held; of a path into the run, only its rank, or the one attempt that it leads to."""
    rows = holding.held(followed.run, now)
    if inside is None:
        return holding.Picked(rows, problems=() if rows else ("no rank is held",))
    rows = tuple(row for row in rows if row.key.rank == inside.rank and inside.attempt in (0, row.key.attempt))
    return holding.Picked(rows, problems=() if rows else (f"rank {inside.rank} is not held",))


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch hold`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch hold", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", help="a run directory, a directory of runs for its newest, or ssh://…")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--rank", type=ranks, metavar="N", help="which ranks: 2, 0-7 or 0-7,12; 2#1, 2.0")
    who.add_argument("--collateral", action="store_true", help="all that are held but the one that failed first")
    who.add_argument("--all", action="store_true", help="all that are held; of a rank's directory, that one")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--release", action="store_true", help="end the hold now")
    what.add_argument("--extend", type=_seconds, metavar="TIME", help="hold so much longer: 600 (seconds), 10m, 2h")
    return parser


def _seconds(written: str) -> float:
    seconds = text.parse_duration(written)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{written!r} is no length of time; write 600, 10m, 2h or 1h30m")
    return seconds


def _answers(followed: Followed, asked: dict[AttemptKey, str]) -> int:
    """Wait for the workers' answers and print each; returns how many have done it."""
    done = 0
    waiting = dict(asked)
    deadline = time.monotonic() + ANSWER_WITHIN
    while waiting and time.monotonic() < deadline:
        followed.look()
        run, now = followed.run, time.time()
        for key, identity in list(waiting.items()):
            answer = run.attempts[key].answer(identity)
            if answer is None:
                continue
            del waiting[key]
            result = answer.text("result")
            done += result == "done"
            said = _outcome(answer.text("command"), result, row_of(run, key, now), now)
            print(f"rank {run.label(key)}: {said}", flush=True)
        time.sleep(LOOK_EVERY if waiting else 0)
    for key, identity in waiting.items():
        said = f"rank {followed.run.label(key)} has not answered; {_taken_back(followed, key, identity)}"
        print(f"trainwatch: {text.printable(said)}", file=sys.stderr)
    return done


def _taken_back(followed: Followed, key: AttemptKey, identity: str) -> str:
    """Take a request back that nobody has answered; in words what became of it."""
    try:
        withdrawn = followed.withdraw(key, identity)
    except SourceError as error:
        return f"the request is still there: {error}"
    if withdrawn:
        return "the request is taken back; its launcher may be gone or slow"
    return "its launcher has taken the request and may be slow"


def _outcome(command: str, result: str, row: Row, now: float) -> str:
    if result != "done":
        return text.printable(result)
    if command == "release":
        return f"released; it exits with {row.exit_text}"
    if row.hold_left is None or row.hold_until is None:
        return "extended"
    return f"held for {text.duration(row.hold_left)} more, until {text.time_of_day(row.hold_until, now)}"
