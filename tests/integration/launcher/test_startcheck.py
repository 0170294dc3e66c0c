"""The launcher says what its start script hides, and --strict lets it hide nothing."""
from __future__ import annotations

from pathlib import Path

import pytest

LAX = "false | tee copy\ntrue\necho end\n"
UNTIL_SEEN = "while [ ! -e seen ]; do sleep 0.05; done\n"
"""A short command may end before anybody has looked at it."""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.sh"
    path.write_text("#!/bin/bash\n" + LAX)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("how", ["file", "string", "itself"])
def test_a_hidden_failure_is_told_in_one_line_and_one_event_and_changes_nothing(launch, script, how):
    Path(script).write_text("#!/bin/bash\n" + LAX + UNTIL_SEEN)
    command = {"file": ["bash", script], "string": ["bash", "-c", LAX + UNTIL_SEEN], "itself": [script]}[how]
    launched = launch.start(*command)
    warning = launched.wait_for_event("warning")
    (launch.directory / "seen").touch()
    launched.wait()
    assert launched.code == 0
    assert warning.text("kind") == "lint"
    assert "pipes into tee" in warning.text("message")
    said = [line for line in launched.err.decode().splitlines() if "NOTE" in line]
    assert len(said) == 1
    assert "--no-lint" in said[0]
    assert b"NOTE" not in launched.log()


def test_it_is_silent_when_it_is_told_to_be_and_about_other_commands(launch, script):
    gone = script + "-gone"
    for options, command in ((["--no-lint"], ["bash", script]), ([], ["cat", script]), ([], ["bash", gone])):
        launched = launch(*command, options=options)
        assert b"NOTE" not in launched.err
        assert not [event for event in launched.events("warning") if event.text("kind") == "lint"]


def test_strict_ends_a_script_and_its_bash_children_at_the_first_failure(launch, script, tmp_path):
    parent = tmp_path / "parent.sh"
    parent.write_text(f"#!/bin/bash\nbash {script}\necho not reached\n")
    inner = "bash -c 'false; echo no'; echo no"
    for command in (["bash", script], [script], ["bash", str(parent)], ["bash", "-c", inner]):
        launched = launch(*command, options=["--strict"])
        assert launched.code == 1, command
        assert launched.out == b""
    launched = launch("bash", "-c", "echo $NOT_SET", env={"TRAINWATCH_STRICT": "1"})
    assert launched.code == 1
    assert b"unbound variable" in launched.out


def test_strict_says_when_there_is_no_bash_script(launch):
    launched = launch("env", options=["--strict"])
    assert launched.code == 0
    assert b"SHELLOPTS" not in launched.log()
    assert b"the command is no bash script" in launched.err
