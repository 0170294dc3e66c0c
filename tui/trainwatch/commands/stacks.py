"""`trainwatch stacks`: where the processes of all ranks are, folded; what to do when a run hangs."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from trainwatch.commands.arguments import ranks
from trainwatch.commands.targets import Followed, run_directory
from trainwatch.model import holding, naming, stacks, text
from trainwatch.model.state import Run
from trainwatch.sources.base import SourceError
from trainwatch.takings import ANSWER_WITHIN, TAKEN_WITHIN
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.stacks import Dump

DESCRIPTION = "Take the stacks of the ranks' processes, and say who is where: the many, and those who differ from them."
EPILOG = """\
Each launcher takes the stacks of its command and all its descendants, with py-spy, or with faulthandler where
--faulthandler has armed it, and writes them to stacks-N.txt in its attempt's directory. py-spy stops a process for some
milliseconds. Ranks that have ended are not asked.

exit codes:
  0  every rank that was meant has stacks, and they are shown
  1  one that was meant has none: it is not there, not running, did not answer, or could not take them; why is on stderr
  2  TARGET is no run that can be read, or the options make no sense

examples:
  trainwatch stacks RUN                       take them of all ranks that run
  trainwatch stacks RUN --rank 0-7,12 --full  whole stacks, not only where they end
  trainwatch stacks RUN --last                what was taken last: after the fact too
  trainwatch stacks RUN --json | jq -r '.groups[] | select(.odd) | .where'
"""
LOOK_EVERY = 0.1


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    followed = Followed(run_directory(options.target).path)
    try:
        keys, problems = meant(followed.run, options.rank, options.last, time.time())
        if not options.last:
            keys, wrong = take(followed, keys)
            problems += wrong
        dumps, wrong = read(followed, keys)
        problems += wrong
        labels = followed.run.labels
        groups = stacks.fold(dumps, labels)
        for said in (*problems, *stacks.notes(dumps, labels)):
            print(f"trainwatch: {text.printable(said)}", file=sys.stderr)
        if options.json:
            print(json.dumps(as_json(followed.run, dumps, groups, problems), indent=2, allow_nan=False))
        elif groups:
            print("\n".join(stacks.as_lines(groups, options.full)))
        return 1 if problems or not dumps else 0
    finally:
        followed.close()


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch stacks`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch stacks", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?",
                        help="a run directory, a directory of runs for its newest, or ssh://…")
    parser.add_argument("--rank", type=ranks, metavar="N", help="which ranks: 2, 0-7,12; 2#1, 2.0 (default: all)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--take", action="store_true", help="take them now (the default)")
    what.add_argument("--last", action="store_true", help="ask nobody: show what was taken last")
    parser.add_argument("--full", action="store_true", help="whole stacks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def meant(
    run: Run, names: Sequence[naming.Name] | None, last: bool, now: float
) -> tuple[list[AttemptKey], list[str]]:
    """The attempts that are meant, and what is wrong with the choice.

    Without names: all containers' newest attempts that run, or with `last` all whose stacks were taken.
    """
    if names is None:
        if last:
            found = [key for key in run.order if stacks.has_stacks(run, key)]
            return found, [] if found else ["no stacks were taken in this run: without --last they are taken now"]
        found = stacks.running(run, now)
        return found, [] if found else ["no rank runs; --last shows stacks that were taken before"]
    keys, problems = [], []
    for name in names:
        covered = [key for key in run.order if name.covers(key)]
        if name.local_rank is None:
            covered = [key for key in covered if key == holding.container(key)]
        if name.attempt is None and not last:
            covered = [key for key in covered if key not in run.superseded]
        keys += covered
        if not covered:
            problems.append(holding.not_there(run, name))
    return list(dict.fromkeys(keys)), problems


def take(followed: Followed, keys: Sequence[AttemptKey]) -> tuple[list[AttemptKey], list[str]]:
    """Have the stacks of some attempts taken; those that are, and why the others' are not."""
    problems: list[str] = []
    waiting: dict[AttemptKey, str] = {}
    for key in keys:
        try:
            waiting[key] = followed.request(key, "stacks")
        except SourceError as error:
            problems.append(f"rank {followed.run.label(key)}: {error}")
    taken: list[AttemptKey] = []
    begun: set[AttemptKey] = set()
    started = time.monotonic()
    while waiting:
        run, waited = followed.look(), time.monotonic() - started
        for key, identity in list(waiting.items()):
            attempt, name = run.attempts[key], f"rank {run.label(key)}"
            answer, done = attempt.answer(identity), attempt.stacks_of(identity)
            if answer is not None:
                begun.add(key)
            if done is not None:
                del waiting[key]
                if done.text("file"):
                    taken.append(key)
                else:
                    problems.append(f"{name}: {done.text('note') or 'it could not take them'}")
            elif answer is not None and answer.text("result") != "done":
                del waiting[key]
                problems.append(f"{name}: {answer.text('result')}")
            elif waited > (TAKEN_WITHIN if key in begun else ANSWER_WITHIN):
                del waiting[key]
                problems.append(f"{name}: {_unanswered(followed, key, identity, key in begun)}")
        time.sleep(LOOK_EVERY if waiting else 0)
    return sorted(taken), problems


def _unanswered(followed: Followed, key: AttemptKey, identity: str, begun: bool) -> str:
    if begun:
        return f"not through after {TAKEN_WITHIN:.0f} s; --last shows them when they are there"
    try:
        withdrawn = followed.withdraw(key, identity)
    except SourceError as error:
        return f"no answer; the request is still there: {error}"
    return "no answer; the request is taken back" if withdrawn else "no answer, though its launcher took the request"


def read(followed: Followed, keys: Sequence[AttemptKey]) -> tuple[dict[AttemptKey, Dump], list[str]]:
    """The newest stacks of some attempts, and of which there are none."""
    dumps: dict[AttemptKey, Dump] = {}
    problems = []
    for key in keys:
        try:
            found = followed.read_stacks(key, 1)
        except SourceError as error:
            problems.append(f"rank {followed.run.label(key)}: {error}")
            continue
        if found:
            dumps[key] = found[0]
        else:
            problems.append(f"rank {followed.run.label(key)}: no stacks of it were taken")
    return dumps, problems


def as_json(
    run: Run, dumps: dict[AttemptKey, Dump], groups: Sequence[stacks.Group], problems: Sequence[str]
) -> dict[str, Any]:
    """What --json prints."""
    return {
        "groups": [
            {
                "where": group.where, "role": group.role, "odd": group.odd, "ranks": list(group.labels),
                "processes": [{"rank": one.label, "pid": one.process.pid, "host": one.host} for one in group.members],
                "frames": [
                    {"function": one.function, "file": one.file, "line": one.line} for one in group.frames
                ],
            }
            for group in groups
        ],
        "ranks": {
            run.label(key): {
                "number": dump.number, "time": dump.time, "method": dump.method, "note": dump.note,
                "processes": len(dump.processes),
            }
            for key, dump in sorted(dumps.items())
        },
        "problems": list(problems),
    }  # fmt: skip
