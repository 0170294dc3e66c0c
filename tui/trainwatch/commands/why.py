"""`trainwatch why`: which rank failed first, why, and what to do about it; for runs and for any logs."""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainwatch import loglist
from trainwatch.commands.targets import Followed, TargetError, find, is_remote, named, run_directory
from trainwatch.commands.why_text import lines_of
from trainwatch.model import text
from trainwatch.model.cause import Cause, find_cause
from trainwatch.model.failure import cause_of, unexplained
from trainwatch.model.inside import inside
from trainwatch.model.parties import Party
from trainwatch.model.state import Run
from trainwatch.model.stillness import who_is_behind
from trainwatch.sources.base import SourceError
from trainwatch_launcher.diagnosis.answer import NONE, Diagnosis
from trainwatch_launcher.diagnosis.diagnose import MOST_TEXT, diagnose
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.runs import find_runs

DESCRIPTION = "Say which rank failed first, why, and what to do about it."
EPILOG = """\
TARGET is a run as for `trainwatch`. LOGs need no launcher: any file, - for standard input, or a directory of
rank-N.log (or N/stderr.log, worker-N.out, …) with what runs the ranks beside them: slurm.log, launcher.log, dmesg.log,
events.log.

exit codes:
  0  a cause was found, or nothing failed
  3  something failed, and the cause is not clear
  2  nothing could be read

with --json one object is printed: {"kind", "family", "summary", "file", "line", "frame", "exit_code",
"root_cause_rank", "collateral_ranks", "ranks": {"0": kind, ...}, "confidence", "hint", "evidence": [{"file", "line",
"text"}, ...], "why", "runner_up", "same_fault_ranks", "inner_rank", "label", "time"}. kind is "none" when nothing
failed; what is not known is null or empty.

examples:
  trainwatch why /shared/runs/7b-42
  trainwatch why train.log
  trainwatch why --json logs/ | jq -r .kind
"""
MOST_READ = 64
"""Logs of so many attempts are read, of those whose launchers did not say why."""
UNCLEAR = 3


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    made = argparse.ArgumentParser(
        prog="trainwatch why", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("target", metavar="TARGET|LOG", nargs="*", help="a run, log files, or a directory of logs")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    logs = logs_meant(options.target)
    answer = of_logs(logs) if logs is not None else of_run(options.target[0] if options.target else None)
    if options.json:
        print(json.dumps(as_json(answer), indent=2, allow_nan=False))
    else:
        colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        print("\n".join(lines_of(answer.cause, answer.file, answer.what, answer.hosts, colours)))
    return 0 if answer.cause is None or answer.cause.clear else UNCLEAR


class Answer:
    """What was found: the cause (None when nothing failed), the file of its line, and what was looked at."""

    def __init__(self, cause: Cause | None, file: str | None, what: str, kinds: dict[int, str]) -> None:
        self.cause, self.file, self.what, self.kinds = cause, file, what, kinds
        self.hosts: dict[int, str] = {}


def as_json(answer: Answer) -> dict[str, Any]:
    """What --json prints."""
    cause = answer.cause
    ranks = {str(rank): kind for rank, kind in sorted(answer.kinds.items())}
    if cause is None:
        return {
            "kind": NONE, "family": NONE, "summary": "nothing failed", "file": None, "line": None, "frame": None,
            "exit_code": None, "root_cause_rank": None, "collateral_ranks": [], "ranks": ranks, "confidence": 0.0,
            "hint": "", "evidence": [], "why": "", "runner_up": "", "same_fault_ranks": [], "inner_rank": None,
            "label": "", "time": None,
        }  # fmt: skip
    return {
        "kind": cause.kind,
        "family": cause.family,
        "summary": cause.summary,
        "file": answer.file,
        "line": cause.line,
        "frame": cause.frame or None,
        "exit_code": cause.exit_code,
        "root_cause_rank": cause.rank,
        "collateral_ranks": list(cause.collateral),
        "ranks": {**ranks, **{str(rank): kind for rank, kind in cause.kinds}},
        "confidence": cause.confidence,
        "hint": cause.hint,
        "evidence": [{"file": answer.file, "line": one.line, "text": one.text} for one in cause.evidence],
        "why": cause.why,
        "runner_up": cause.runner_up,
        "same_fault_ranks": list(cause.same),
        "inner_rank": cause.inner_rank,
        "label": cause.label,
        "time": cause.time,
    }


# -- logs


def logs_meant(written: Sequence[str]) -> list[loglist.LogFile] | None:
    """The logs that were named; None when a run was. Raises TargetError."""
    if not written:
        return None
    found: list[loglist.LogFile] = []
    for name in written:
        if name == "-":
            found.append(loglist.LogFile("-", "standard input"))
        elif os.path.isfile(name) or _is_pipe(name):  # noqa: PTH113 - also for /dev/stdin and the like
            found.append(loglist.LogFile(name, os.path.basename(name), loglist.rank_in(name)))  # noqa: PTH119
        elif os.path.isdir(name) and not _is_run(name):  # noqa: PTH112
            found += _directory(name)
        elif len(written) > 1:
            found.append(loglist.LogFile(name, name))  # that it cannot be read is told when it is read
        else:
            return None
    return found


def _is_pipe(name: str) -> bool:
    return os.path.exists(name) and not os.path.isdir(name)  # noqa: PTH110, PTH112


def _is_run(name: str) -> bool:
    """Whether a directory is a run or a root of runs."""
    try:
        if is_remote(named(name)):
            return True
        target = find(name)
    except TargetError:
        return False
    return not target.is_root or bool(find_runs(target.path))


def _directory(name: str) -> list[loglist.LogFile]:
    try:
        logs = loglist.logs_in(name)
    except OSError as error:
        raise TargetError(f"{name}: {error.strerror or error}") from None
    if not logs:
        raise TargetError(f"{name} holds neither a run nor logs (*.log, *.out, *.err, *.txt)")
    return logs


def of_logs(logs: Sequence[loglist.LogFile]) -> Answer:
    """Why what wrote these logs failed. Raises TargetError when none can be read."""
    parties: list[Party] = []
    errors: list[str] = []
    for file in logs:
        try:
            parties.append(loglist.read(file))
        except OSError as error:
            errors.append(f"{file.name}: {error.strerror or error}")
    for trouble in errors:
        print(f"trainwatch why: {text.printable(trouble)}", file=sys.stderr)
    if not parties:
        raise TargetError(errors[0] if len(errors) == 1 else "none of the logs can be read")
    paths = {file.name: file.path for file in logs}
    what = logs[0].name if len(logs) == 1 else f"{len(logs)} logs"
    if len(parties) == 1:
        return _of_one(logs[0], parties[0], what)
    now = time.time()
    parties = loglist.settled(loglist.merged(parties), now)
    cause = find_cause(parties)
    if cause is None:
        still = loglist.silent_hang(parties, now)
        cause = who_is_behind(parties, still) if still is not None else None
    where = paths.get(cause.source, cause.source) if cause is not None and cause.source else None
    return Answer(cause, where, what, {party.rank: party.kind for party in parties if party.rank is not None})


def _of_one(file: loglist.LogFile, party: Party, what: str) -> Answer:
    """One log alone: its own diagnosis; of a rank's that says nothing, what the logs beside it say of its end."""
    kinds = {party.rank: party.kind} if party.rank is not None else {one.rank or 0: one.kind for one in inside([party])}
    cause = find_cause([party])
    if cause is None and party.rank is not None and not party.diagnosis.finished:
        cause = _from_beside(file, party)
        kinds = {party.rank: cause.kind if cause is not None else NONE}
    if cause is not None and party.rank is not None:
        cause = replace(cause, rank=party.rank)
    return Answer(cause, file.path if cause is not None else None, what, kinds)


def _from_beside(file: loglist.LogFile, party: Party) -> Cause | None:
    directory = os.path.dirname(os.path.abspath(file.path))  # noqa: PTH100, PTH120
    try:
        beside = [one for one in loglist.logs_in(directory) if one.rank is None and loglist.is_beside(one)]
        others = [loglist.read(one) for one in beside[:20] if "/" not in one.name]
    except OSError:
        return None
    found = find_cause([party, *others])
    if found is None or party.rank is None:
        return None
    if party.rank in found.collateral:
        why = f"ended because of {found.kind}, says {found.source}: {found.summary}"
        return replace(found, kind="peer_lost", family="comm", summary=why, line=None, offset=None, collateral=())
    return found if found.rank == party.rank else None


# -- runs


def of_run(written: str | None) -> Answer:
    """Why a run failed. Raises TargetError when it cannot be read."""
    path = run_directory(written).path
    followed = Followed(path)
    try:
        run, now = followed.run, time.time()
        read = read_missing(followed, run) if cause_of(run, now) is not None else {}
        cause = cause_of(run, now, read)
        return about(run, cause, path)
    finally:
        followed.close()


def about(run: Run, cause: Cause | None, name: str) -> Answer:
    """The answer on a run whose cause is known. `name` is what the user called it."""
    file = None
    if cause is not None and cause.key is not None:
        file = log_path(run.attempts[cause.key].directory)
    answer = Answer(cause, file, run.run_id or name, {})
    answer.hosts = {attempt.key.rank: attempt.host for attempt in run.current() if not attempt.nested}
    answer.kinds = {attempt.key.rank: NONE for attempt in run.current() if not attempt.nested}
    return answer


def read_missing(followed: Followed, run: Run) -> dict[AttemptKey, Diagnosis]:
    """Diagnoses from the logs of attempts that went wrong without one: older launchers, or ones that were killed."""
    found: dict[AttemptKey, Diagnosis] = {}
    for attempt in unexplained(run)[:MOST_READ]:
        try:
            size = followed.log_size(attempt.key)
            start = max(0, size - MOST_TEXT)
            data = followed.read_log(attempt.key, start, size - start)
        except (SourceError, OSError):
            continue
        told = diagnose(data).at(None if start else 0, start)
        if told.kind != NONE:
            found[attempt.key] = told
    return found
