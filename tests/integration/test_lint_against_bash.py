"""What the linter says agrees with what bash does, and real scripts of the system are no trouble to it."""
from __future__ import annotations

import shutil
import subprocess

import pytest

from support.linting import World, cases, lint, scripts_of_this_machine
from trainwatch.lint.findings import STYLE

HIDES = {"pipe-masks-exit", "or-true", "exit-status-lost", "stale-status", "background-no-wait", "wait-loses-status",
         "trap-masks-exit", "subshell-exit", "strict-not-inherited", "errexit-suppressed"}  # fmt: skip
UNSUITABLE = ("while true", "docker", "kubectl", "ssh ", "xargs", "trainwatch: ignore", "#!/bin/bash -e",
              "if [ -n \"$X\" ]")  # fmt: skip
"""Scripts that need more of the world than stubs, that never end, or where the linter was told to be silent."""


def runnable(case):
    return not case.script.startswith(("#!/bin/sh", "#!/usr/bin/env sh")) and not any(
        word in case.script for word in UNSUITABLE
    )


def test_scripts_without_findings_fail_when_their_training_fails(tmp_path):
    world, trained = World(tmp_path), 0
    for case in cases():
        if {rule for rule, _ in case.finds} & HIDES or not runnable(case):
            continue
        code, ran, output = world.run(case.script)
        trained += ran
        assert not ran or code != 0, f"{case.title}: bash hides the failure, the linter says nothing\n{output}"
    assert trained > 60


@pytest.mark.parametrize(
    "title",
    ["PIPESTATUS late", "pipe in if without pipefail", "or echo", "or :", "or warn", "and or", "multi-line or",
     "echo then exit", "set -e between", "only printed", "exit 0", "rm after", "main function", "and echo",
     "if only talk", "if not talk", "wait loop lost", "wait last", "trap exit 0", "trap stale", "three tries",
     "or exit 0", "command in variable", "script in time", "paren tee"],
)  # fmt: skip
def test_scripts_with_findings_hide_a_failed_training(title, tmp_path):
    case = next(case for case in cases() if case.title == title)
    assert {rule for rule, _ in case.finds} & HIDES
    script = case.script.replace("$LAUNCHER", "torchrun").replace("./x.sh\n", "")
    code, ran, output = World(tmp_path).run(script)
    assert (code, ran) == (0, True), output


def test_scripts_of_the_system_are_linted_and_only_what_holds_is_found():
    scripts = scripts_of_this_machine(200)
    found = []
    for path in scripts:
        report = lint(path.read_bytes(), str(path), str(path), "/")
        found += [(path, one) for one in report.findings if one.severity != STYLE]
    for path, one in found:
        if one.rule == "setup-on-gpu-time":
            assert b"train" in path.read_bytes().lower(), one
    checked = [one for _, one in found if one.rule == "sh-bashism"]
    for one in checked:
        assert _dash_refuses(one.message.partition(":")[0], one.source_line), one
    for path, one in found:
        if one.rule == "pipe-masks-exit":
            assert b"pipefail" not in path.read_bytes(), one


def _dash_refuses(what, line):
    """Whether dash has no such thing: tried on the least script that has it."""
    trial = {
        "an array": "a=(1)", "[[ ]]": "[[ a ]]", "source": "source /dev/null", "${!NAME}": "a=HOME; : ${!a}",
        "== in [": "[ a == a ]", "&>": "true &> /dev/null; false", "<<<": "cat <<< a", "(( ))": "((1))",
        "the word function": "function f { :; }", "builtin": "builtin echo", "process substitution": "cat <(true)",
    }.get(what)  # fmt: skip
    if trial is None and what.startswith("${NAME"):
        trial = "x=abc; : ${x:0:1}" if ":" in what else "x=abc; : ${x/a/b}"
    dash = shutil.which("dash")
    if trial is None or dash is None:
        return True
    return subprocess.run([dash, "-c", trial], capture_output=True).returncode != 0
