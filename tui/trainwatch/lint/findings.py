"""The rules by name, and what is found: places where the condition of one holds."""
from __future__ import annotations

from dataclasses import dataclass, field

from trainwatch.lint.source import Source

ERROR, WARNING, STYLE = "error", "warning", "style"


@dataclass(frozen=True)
class Rule:
    """One rule. `why` says in one sentence how it hurts, `fix` what to write instead."""

    name: str
    severity: str
    why: str
    fix: str


_TABLE = (
    ("pipe-masks-exit", ERROR,
     "the pipeline's status is that of its last command, so a failure before the `|` goes unseen",
     "put `set -o pipefail` before it, or let trainwatch-launch keep the log instead of a pipe"),
    ("no-errexit", STYLE,
     "without `set -e` the script goes on after a step that failed",
     "put `set -euo pipefail` at the top, or `|| exit 1` behind the step"),
    ("no-nounset", STYLE,
     "without `set -u` a variable that is not set is an empty word, and the command does something else",
     "put `set -u` at the top, and write ${NAME:-} where nothing is a value"),
    ("strict-not-inherited", WARNING,
     "a new shell starts without this one's `set -e`: a failure inside it goes unseen",
     "put `set -euo pipefail` into it too, or start it as `bash -euo pipefail`"),
    ("setup-on-gpu-time", WARNING,
     "installs and downloads run while the job's GPUs are paid for and idle",
     "do it before the job: in the image, or in a script of its own on a machine without GPUs"),
    ("no-phase-marker", STYLE,
     "nothing in the output says which stage runs, so a slow or stuck one cannot be told",
     'print a line before each stage: echo "=== [Phase] train ==="'),
    ("cd-unchecked", ERROR,
     "when `cd` fails, what follows works in the wrong directory",
     "write `cd DIR || exit 1`, or `set -e` before it"),
    ("rm-unguarded", ERROR,
     "with the variable empty this deletes what lies above it",
     "write ${NAME:?}, which stops the script when it is empty"),
    ("background-no-wait", ERROR,
     "the script ends without waiting for what it started with `&`: the job is over at once, with success",
     "wait for each process and pass its status on: pid=$!, then wait \"$pid\""),
    ("wait-loses-status", ERROR,
     "this `wait` does not tell that a process failed: without arguments it returns 0, with several the last one's",
     "wait for each process by itself: for pid in \"${pids[@]}\"; do wait \"$pid\" || status=$?; done"),
    ("missing-exec", STYLE,
     "the shell stays the container's first process and passes no signal on: a stop does not reach the training",
     "write `exec` before the last command"),
    ("trap-masks-exit", ERROR,
     "the handler replaces how the script ended: a failure or a stop looks like success",
     "keep the status: rc=$?; …; exit \"$rc\""),
    ("or-true", ERROR,
     "the failure of this step is taken for success",
     "let it fail, or keep its status: … || rc=$?"),
    ("stale-status", ERROR,
     "$? is the status of the command just before, not of the one that was meant",
     "save it in the next line after the command: rc=$?"),
    ("exit-status-lost", ERROR,
     "the script ends with the status of a later command, so its failure is reported as success",
     "end with its status: rc=$? behind it and exit \"$rc\" at the end, or `set -e` at the top"),
    ("subst-masks-exit", WARNING,
     "the status is that of `export` or `local`: when the command fails, its empty output is used",
     "assign first, then export: X=$(command); export X"),
    ("subshell-exit", ERROR,
     "`exit` in a pipe or in ( ) leaves only that subshell: the script goes on",
     "check the whole of it: … || exit 1, or read from < <(command) instead of a pipe"),
    ("redirect-order", WARNING,
     "stderr goes where stdout went before, not to the file: tracebacks are not in the log",
     "write > FILE 2>&1"),
    ("sh-bashism", ERROR,
     "this is bash, and the script is run by sh, which fails here or does something else",
     "start it by #!/bin/bash, or run it as `bash FILE`"),
    ("errexit-suppressed", WARNING,
     "`set -e` does nothing inside a command that is tested: after a failed step it goes on there",
     "call it plainly, or check each step inside it with || return 1"),
)  # fmt: skip
RULES = {name: Rule(name, severity, why, fix) for name, severity, why, fix in _TABLE}


@dataclass(frozen=True, order=True)
class Finding:
    """A rule's condition holds at a place. Lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int
    rule: str
    severity: str
    message: str
    fix: str
    source_line: str = field(default="", compare=False)


@dataclass(frozen=True, order=True)
class NotFollowed:
    """A script that is called, or a part of one, that could not be looked at, and why."""

    file: str
    line: int
    script: str
    why: str


@dataclass
class Mark:
    """A finding as an offset, before it is known whether it stands."""

    rule: str
    source: Source
    offset: int
    message: str = ""
    fix: str = ""


@dataclass
class Report:
    """All that was found."""

    findings: list[Finding] = field(default_factory=list)
    not_followed: list[NotFollowed] = field(default_factory=list)


def finding(mark: Mark) -> Finding:
    """A mark as people see it."""
    rule = RULES[mark.rule]
    line, column = mark.source.place(mark.offset)
    message = f"{mark.message}: {rule.why}" if mark.message else rule.why
    return Finding(mark.source.file.name, line, column, rule.name, rule.severity, message, mark.fix or rule.fix,
                   mark.source.line_text(line))  # fmt: skip
