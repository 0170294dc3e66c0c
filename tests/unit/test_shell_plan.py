"""A shell beside a rank: in its directory and environment while it lives, and an honest note when it does not."""
from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from builders import RunBuilder
from support.waiting import wait_until
from trainwatch.beside import between_words
from trainwatch.sources import shells
from trainwatch.sources.base import SourceError
from trainwatch_launcher.agent import containers, processes
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir import paths

HOST = socket.gethostname()
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
KEY = AttemptKey(0)

# Something that the kernel shows as a launcher does: "trainwatch" in its command line, its event file open.
PRETENDER = "import sys, time; f = open(sys.argv[2], 'a'); print('up', flush=True); time.sleep(600)"


@pytest.fixture
def started():
    running = []

    def start(argv, **environment):
        process = subprocess.Popen(argv, env={"PATH": os.environ["PATH"], **environment}, stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def attempt_in(tmp_path, host=HOST, **facts):
    return RunBuilder(tmp_path / "run").rank(0, host=host).start(cwd=str(tmp_path), **facts)


def launcher_of(attempt, started, **environment):
    events = str(attempt.directory / paths.EVENTS)
    return started([sys.executable, "-c", PRETENDER, "trainwatch-launch", events], **environment)


@LINUX
def test_the_shell_has_the_live_launchers_environment_and_its_directory(tmp_path, started):
    attempt = attempt_in(tmp_path)
    launcher = launcher_of(attempt, started, JOB_FACT="42", TRAINWATCH_ATTEMPT_DIR="/of/the/outer/launcher")
    attempt.set(launcher_pid=launcher.pid).fail(3, hold=600)
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.cwd == str(tmp_path)
    assert plan.env is not None
    assert plan.env["JOB_FACT"] == "42"
    assert plan.env["TRAINWATCH_ATTEMPT_DIR"] == str(attempt.directory)
    assert plan.env["TRAINWATCH_RUN_DIR"] == str(tmp_path / "run")
    assert (plan.env["TRAINWATCH_RANK"], plan.env["TRAINWATCH_RUN_ID"]) == ("0", "run-1")
    assert plan.argv[-1] == "-i"
    assert plan.note.startswith("rank 0 · exit code 3 · held until ")
    assert f"environment of the launcher (process {launcher.pid})" in plan.note


@LINUX
def test_the_launcher_is_found_whatever_it_calls_itself_in_its_container(tmp_path, started):
    attempt = attempt_in(tmp_path, host="a-containers-name", launcher_pid=1)
    launcher_of(attempt, started, JOB_FACT="43")
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.env is not None
    assert plan.env["JOB_FACT"] == "43"


@LINUX
def test_a_process_with_the_launchers_old_number_is_not_taken_for_it(tmp_path, started):
    attempt = attempt_in(tmp_path)
    other = started([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)", "trainwatch"],
                    WRONG="1")
    attempt.set(launcher_pid=other.pid)
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.env is not None
    assert "WRONG" not in plan.env
    assert "its launcher is gone: this is your own environment" in plan.note


@LINUX
def test_a_process_of_the_command_does_as_well_but_a_shell_of_ours_does_not(tmp_path, started):
    attempt = attempt_in(tmp_path)
    sleeper = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    here = str(attempt.directory)
    started(sleeper, TRAINWATCH_ATTEMPT_DIR=here, WHO="shell", **{processes.SHELL_MARK: "1"})
    assert "launcher is gone" in shells.plan(here, KEY).note
    child = started(sleeper, TRAINWATCH_ATTEMPT_DIR=here, WHO="command")
    plan = shells.plan(here, KEY)
    assert plan.env is not None
    assert plan.env["WHO"] == "command"
    assert f"a process of its command (process {child.pid})" in plan.note


def test_when_all_is_gone_the_note_says_so(tmp_path):
    attempt = attempt_in(tmp_path).fail(1, hold=None)
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.cwd == str(tmp_path)
    assert plan.env is not None
    assert plan.env["PATH"] == os.environ["PATH"]
    assert plan.note == "rank 0 · exit code 1 · its launcher is gone: this is your own environment"


def test_a_working_directory_that_is_gone_is_replaced_and_said(tmp_path):
    attempt = RunBuilder(tmp_path / "run").rank(0, host=HOST).start(cwd="/no/such/place")
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.cwd == str(attempt.directory)
    assert "its directory /no/such/place is gone: this is the attempt's" in plan.note


def test_a_rank_of_another_host_is_refused_with_what_to_type(tmp_path):
    attempt = attempt_in(tmp_path, host="gpu-77")
    with pytest.raises(SourceError, match=f"rank 0 ran on gpu-77, this is .*; type: ssh gpu-77, then: cd {tmp_path}"):
        shells.plan(str(attempt.directory), KEY)


def test_a_rank_of_a_pod_is_refused_with_the_way_into_the_pod(tmp_path):
    pod = {"POD_NAME": "train-0", "POD_NAMESPACE": "ml"}
    attempt = attempt_in(tmp_path, host="train-0", container=pod)
    with pytest.raises(SourceError, match="type: kubectl exec -it --namespace ml train-0 -- sh, then: cd"):
        shells.plan(str(attempt.directory), KEY)


def test_the_note_calls_the_attempt_what_the_table_calls_it(tmp_path):
    assert shells.plan(str(attempt_in(tmp_path).directory), KEY, label="0#2").note.startswith("rank 0#2 · ")


RUNTIME = """#!/bin/sh
[ "$1" = container ] && { [ "$5" = "{identity}" ] && echo true; exit; }
[ "$1 $2" = "exec -i" ] || exit 9
shift 2
while [ "$1" = -e ]; do shift 2; done
[ "$1" = "{identity}" ] || exit 8
shift
exec "$@"
"""


@LINUX
@pytest.mark.parametrize("seen", [True, False])
def test_a_container_is_entered_by_its_runtime_without_root(tmp_path, monkeypatch, started, seen):
    """With a stand-in runtime; tests/integration/remote has Docker itself."""
    identity = "0123456789abcdef" * 4
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(RUNTIME.replace("{identity}", identity))
    (tmp_path / "bin" / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    attempt = attempt_in(tmp_path, host="a-container", container={"container_id": identity}, executable=sys.executable)
    launcher = launcher_of(attempt, started, JOB_FACT="it's 44")
    attempt.set(launcher_pid=launcher.pid).fail(3, hold=600)
    monkeypatch.setattr(processes, "find", lambda *_: processes.Process(1, {}, True, ("mnt",)) if seen else None)
    plan = shells.plan(str(attempt.directory), KEY, ("sh", "-c", 'pwd; echo "$JOB_FACT"'))
    assert f"inside its container (docker {identity[:12]})" in plan.note
    assert not any("it's 44" in word for word in plan.argv)
    done = subprocess.run(plan.argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert done.stdout == f"{tmp_path}\nit's 44\n"


def test_what_is_no_containers_id_never_reaches_a_runtime(tmp_path):
    attempt = attempt_in(tmp_path, container={"container_id": "--privileged"})
    assert shells.plan(str(attempt.directory), KEY).cwd == str(tmp_path)
    assert not containers.is_identity("--privileged")
    assert not containers.is_identity("web")


def test_a_command_takes_the_shells_place(tmp_path):
    attempt = attempt_in(tmp_path)
    assert shells.plan(str(attempt.directory), KEY, ("nvidia-smi", "-L")).argv == ("nvidia-smi", "-L")


@pytest.mark.parametrize(("shell", "expected"), [
    ("/bin/sh", "/bin/sh"), ("/no/such/shell", "bash"), ("", "bash"), ("/bin/false", "bash"),
    ("/usr/sbin/nologin", "bash"),
])  # fmt: skip
def test_the_users_own_shell_comes_first(tmp_path, monkeypatch, shell, expected):
    monkeypatch.setenv("SHELL", shell)
    argv = shells.plan(str(attempt_in(tmp_path).directory), KEY).argv
    assert argv[0].endswith(expected)
    assert argv[1:] == ("-i",)


def test_the_terminal_is_ours_whatever_the_worker_had(tmp_path, started, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-ours")
    attempt = attempt_in(tmp_path)
    launcher = launcher_of(attempt, started, TERM="dumb")
    attempt.set(launcher_pid=launcher.pid)
    env = shells.plan(str(attempt.directory), KEY).env
    assert env is not None
    assert env["TERM"] == "xterm-ours"


@LINUX
def test_a_container_that_only_root_can_enter_is_named_with_the_way_in(tmp_path, monkeypatch):
    found = processes.Process(4711, {}, True, ("mnt", "pid"))
    monkeypatch.setattr(processes, "find", lambda *_: found)
    attempt = attempt_in(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SourceError, match="run trainwatch as root, or enter with: sudo nsenter --target 4711"):
        shells.plan(str(attempt.directory), KEY)


@LINUX
def test_a_container_of_this_machine_is_really_entered(tmp_path):
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us make namespaces")
    attempt = attempt_in(tmp_path, host="inside", launcher_pid=1)
    events = str(attempt.directory / paths.EVENTS)
    code = "mount -t tmpfs none /mnt && touch /mnt/only-inside && exec " + " ".join(
        [sys.executable, "-c", f'"{PRETENDER}"', "trainwatch-launch", events])
    container = subprocess.Popen([*unshare, "sh", "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert container.stdout is not None
        assert container.stdout.readline() == b"up\n"
        plan = wait_until(lambda: shells.plan(str(attempt.directory), KEY, ("sh", "-c", "ls /mnt; pwd; echo $$")))
        assert "inside its container" in plan.note
        done = subprocess.run(plan.argv, env=plan.env, cwd=plan.cwd, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[:2] == ["only-inside", str(tmp_path)]
        assert int(done.stdout.splitlines()[2]) < 100
    finally:
        container.kill()
        container.communicate()


def test_a_run_id_that_no_environment_can_hold_and_an_endless_hold_do_not_hinder_a_shell(tmp_path):
    attempt = attempt_in(tmp_path)
    attempt.set(run_id="a\0b\ud800c").fail(3, hold=600).set(hold_until=1e17)
    plan = shells.plan(str(attempt.directory), KEY)
    assert plan.env is not None
    assert plan.env["TRAINWATCH_RUN_ID"] == "abc"
    assert "held" in plan.note


def test_what_is_said_above_a_shell_breaks_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    note = "rank 2 · exit code 1 · held until 16:49:25\n\nThe run is still followed; exit comes back."
    first, then = ["rank 2 · exit code 1 · held until", "16:49:25"], ["The run is still followed; exit comes", "back."]
    assert between_words(note).split("\n") == [*first, "", *then]
