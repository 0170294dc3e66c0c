"""What the launcher sees in a start script by itself: two faults, and no false alarm."""
from __future__ import annotations

import pytest

from support.linting import DATA
from trainwatch_launcher.startcheck import Script, bare, faults, find, runs_bash, with_strict

TEE, GOES_ON = "pipes into tee", "no `set -e`"


def kinds(text, errexit=False, pipefail=False):
    found = faults(Script("x.sh", text, errexit, pipefail))
    return {kind for kind in (TEE, GOES_ON) for one in found if kind in one}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("torchrun train.py 2>&1 | tee log", {TEE}),
        ("set -e\ntorchrun train.py |& tee log", {TEE}),
        ("set -e\ntorchrun train.py \\\n  --x 1 \\\n  2>&1 |\n tee log", {TEE}),
        ("set -eo pipefail\ntorchrun train.py | tee log", set()),
        ("set -e\nset -o pipefail\ntorchrun train.py | tee log", set()),
        ("torchrun train.py | tee log\nexit ${PIPESTATUS[0]}", set()),
        ("torchrun train.py > >(tee log) 2>&1", set()),
        ("echo 'a | tee b' # | tee c\ntorchrun train.py", set()),
        ("cat <<EOF\na | tee b\nEOF\ntorchrun train.py", set()),
        ("python a.py\ntorchrun train.py", {GOES_ON}),
        ("cd x\npython train.py", {GOES_ON}),
        ("source env.sh\npython a.py\npython train.py | tee x", {TEE, GOES_ON}),
        ("set -e\npython a.py\npython train.py", set()),
        ("set -o errexit\npython a.py\npython train.py", set()),
        ("python a.py || exit 1\npython train.py", set()),
        ("python a.py\nif [ $? -ne 0 ]; then exit 1; fi\npython train.py", set()),
        ("echo start\nmkdir -p x\nexport A=$(python b.py)\npython train.py\n", set()),
        ("f() {\n  python a.py\n}\nf", {GOES_ON}),
        ("", set()),
        ("exec python train.py", set()),
    ],
)
def test_what_is_found(script, found):
    assert kinds(script) == found


def test_the_line_is_named():
    assert "line 3 pipes" in faults(Script("x", "set -e\n\nrun 2>&1 | tee log\n", False, False))[0]


def test_options_of_the_command_line_count(tmp_path):
    script = tmp_path / "x.sh"
    script.write_text("#!/bin/bash -e\na\nb\n")
    for command, errexit, pipefail in [
        (["bash", "x.sh"], False, False),
        (["bash", "-e", str(script)], True, False),
        (["/bin/bash", "-euo", "pipefail", str(script)], True, True),
        (["bash", "+e", "-o", "errexit", str(script)], True, False),
        (["bash", "-lc", "a; b"], False, False),
        ([str(script)], True, False),
    ]:
        found = find([str(script) if word == "x.sh" else word for word in command])
        assert found is not None
        assert (found.errexit, found.pipefail) == (errexit, pipefail), command
    assert find(["bash"]) is None
    assert find(["bash", "-c"]) is None


def test_clean_reference_scripts_are_no_trouble():
    for path in (DATA / "corpus").glob("clean-*.sh"):
        assert not kinds(path.read_text()), path.name


def test_any_text_is_read_to_its_end():
    for text in ("'", '"', "<<", "<<EOF\n", "\\", "a |", "`" * 9, "((((", "x" * 70000, "| tee" * 999, "\0\n#"):
        assert bare(text) is not None
        kinds(text)


def test_shellopts_are_joined_to_those_that_are_there():
    env = {b"SHELLOPTS": b"hashall:errexit"}
    with_strict(env)
    assert env[b"SHELLOPTS"] == b"hashall:errexit:nounset:pipefail"


def test_what_bash_runs(tmp_path):
    for name, line, expected in (("a", "#!/usr/bin/env bash", True), ("b", "#!/bin/sh", False)):
        path = tmp_path / name
        path.write_text(line + "\n")
        assert runs_bash([str(path)]) is expected
    assert runs_bash(["bash"])
    assert not runs_bash(["python"])
    assert not runs_bash(["./gone"])
