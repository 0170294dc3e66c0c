"""Nothing more to be had: descriptors, processes, memory. The command runs as it would without a launcher."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.launching import MAIN
from support.waiting import wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")


def bare(launch, limit: str, run: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a launcher with a limit of `ulimit` set, and nothing that Python itself would stumble over first."""
    launcher = [sys.executable, "-I", "-S", "-X", "utf8", str(MAIN), f"--run-dir={run}", "--hold=0", "--", *command]
    return subprocess.run(["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *launcher], capture_output=True, check=False,
                          env=launch.environment(), timeout=30)


def test_with_any_small_number_of_descriptors_the_command_runs_and_gives_its_code(launch, tmp_path):
    for limit in range(5, 20):
        done = bare(launch, f"-n {limit}", tmp_path / str(limit), "sh", "-c", "echo ran; exit 3")
        assert (limit, done.returncode, done.stdout) == (limit, 3, b"ran\n"), done.stderr
        assert b"Traceback" not in done.stderr, done.stderr


def test_without_the_module_that_measures_the_exit_code_is_returned_all_the_same(launch, tmp_path):
    # os.wait4 imports it when it has taken the code already: where that failed the code was lost, and nobody ever left
    run = ["-c", f"import sys, runpy; sys.modules['resource'] = None; sys.argv[0] = {str(MAIN)!r}; "
                 f"runpy.run_path({str(MAIN)!r}, run_name='__main__')"]
    command = [sys.executable, *run, f"--run-dir={tmp_path / 'run'}", "--hold=0", "--", "sh", "-c", "echo ran; exit 3"]
    done = subprocess.run(command, capture_output=True, check=False, env=launch.environment(), timeout=30)
    assert (done.returncode, done.stdout) == (3, b"ran\n"), done.stderr
    assert b"internal error" not in done.stderr


def test_a_launcher_that_must_become_the_command_gives_it_all_descriptors_back(launch, tmp_path):
    script = "exec 3</ 4</ 5</ 6</ && echo opened; exit 3"
    done = bare(launch, "-n 7", tmp_path / "run", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (3, b"opened\n"), done.stderr
    assert b"running it without log" in done.stderr


def test_with_little_memory_the_command_runs_and_gives_its_code(launch, tmp_path):
    for megabytes in (24, 40, 80, 160):
        run = tmp_path / str(megabytes)
        done = bare(launch, f"-v {megabytes << 10}", run, "sh", "-c", "echo ran; exit 3")
        assert (megabytes, done.returncode, done.stdout) == (megabytes, 3, b"ran\n"), done.stderr
        assert b"Traceback" not in done.stderr, done.stderr


class Group:
    """A control group with a limit on processes; `enter` is what a launcher is started by to be in it."""

    def __init__(self, limit: int) -> None:
        pids = Path("/sys/fs/cgroup/pids")
        self.path = (pids if pids.is_dir() else Path("/sys/fs/cgroup")) / f"trainwatch-{os.getpid()}"
        self.path.mkdir()
        (self.path / "pids.max").write_text(str(limit))
        self.enter = ["bash", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "bash"]

    def is_empty_after_a_kill(self) -> bool:
        left = (self.path / "cgroup.procs").read_text().split()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return not left


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Group]:
    group = Group(request.param)
    yield group
    wait_until(group.is_empty_after_a_kill, what="an empty group")
    group.path.rmdir()


@as_root
@pytest.mark.parametrize("group", [1, 2, 6, 7, 8, 9, 10], indirect=True)
def test_with_any_small_number_of_processes_the_command_runs_and_gives_its_code(launch, group):
    launched = launch("/bin/sh", "-c", "echo ran; exit 3", before=group.enter, timeout=15)
    assert (launched.code, launched.out) == (3, b"ran\n"), launched.err
    assert b"internal error" not in launched.err
    assert (b"running it without log" in launched.err) == (not launched.events("start"))


GREEDY = """
import os, sys, threading, time
stop = threading.Event()
try:
    while True:
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError:
    pass
os.write(1, b"all taken\\n" + b"x" * 300_000 + b"\\nend\\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
os._exit(3)
"""


@as_root
@pytest.mark.parametrize("group", [40], indirect=True)
def test_when_the_command_uses_up_all_processes_a_slow_console_still_gets_everything(launch, group, tmp_path):
    reader, console = os.pipe()
    command = [sys.executable, "-S", "-c", GREEDY, str(tmp_path / "go")]
    launched = launch.start(*command, before=group.enter, stdout=console)
    os.close(console)
    launched.wait_for_output(b"\nend\n")  # the console is full long before: its bytes wait for a thread of its own
    (tmp_path / "go").touch()
    with os.fdopen(reader, "rb") as file:
        seen = file.read()
    assert launched.wait(timeout=20).code == 3
    assert seen == launched.log() == b"all taken\n" + b"x" * 300_000 + b"\nend\n"
    assert b"Traceback" not in launched.err


FORKS = """
import os, time
if not os.fork():  # takes every place that becomes free, also the one of the command itself
    while os.getppid() != 1:
        try:
            if not os.fork():
                time.sleep(600)
        except OSError:
            time.sleep(0.0005)
time.sleep(0.5)
os._exit(3)
"""


@as_root
@pytest.mark.parametrize("group", [40], indirect=True)
def test_with_all_processes_used_up_a_hold_begins_and_ends(launch, group):
    options = ["--hold=600", "--leave-orphans", "--drain-timeout=0.2"]
    launched = launch.start(sys.executable, "-S", "-c", FORKS, before=group.enter, options=options)
    launched.wait_for_event("hold")
    launched.signal(15)
    assert launched.wait(timeout=15).code == 3
