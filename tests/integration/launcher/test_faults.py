"""Real faults: full disks, hung mounts, deleted directories, killed launchers. Each says what would have been lost."""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.waiting import wait_until
from trainwatch_launcher.rundir import paths

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


COUNT = "import sys\nfor i in range(200000): print('line', i)\nsys.stdout.flush()\nprint('done', flush=True)\n"
COUNTED = b"".join(b"line %d\n" % i for i in range(200000)) + b"done\n"


@as_root
def test_a_full_disk_that_is_freed_again_gets_the_whole_log(launch, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(600_000))
    (small_disk / "more").mkdir()
    script = COUNT.replace("200000", "80000") + "sys.stdin.read()"
    reader, writer = os.pipe()
    launched = launch.start(sys.executable, "-c", script, options=[f"--run-dir={small_disk / 'run'}"], stdin=reader)
    os.close(reader)
    launched.run = small_disk / "run"
    wait_until(lambda: b"No space left on device" in launched_events(launched), what="a warning that the disk is full")
    wait_until(lambda: launched.log() and not launched.log().endswith(b"done\n"))
    ballast.unlink()
    launched.wait_for_output(b"done\n")
    os.close(writer)
    assert launched.wait().code == 0
    expected = b"".join(b"line %d\n" % i for i in range(80000)) + b"done\n"
    assert launched.log() == expected, "output would be lost"
    assert launched.out == expected


def launched_events(launched) -> bytes:
    """The events as they lie on the disk, which may be torn while it is full."""
    with contextlib.suppress(OSError):
        return (launched.attempt() / paths.EVENTS).read_bytes() + (launched.attempt() / paths.STATUS).read_bytes()
    return b""


@as_root
def test_a_disk_that_stays_full_costs_the_log_but_not_the_training_nor_the_console(launch, small_disk):
    launched = launch.start(sys.executable, "-c", COUNT + "sys.exit(7)", options=[f"--run-dir={small_disk / 'run'}"])
    launched.run = small_disk / "run"
    assert launched.wait(timeout=30).code == 7
    assert launched.out == COUNTED
    log = launched.log()
    assert COUNTED.startswith(log), "the log is a whole beginning of the output"
    assert b"bytes were lost" in launched.err


@pytest.fixture
def mount(tmp_path):
    """A FUSE mount that `hang()` makes hang, as an NFS server that went away does, and `wake()` continues."""
    mount = Mount(tmp_path)
    yield mount
    mount.close()


class Mount:
    SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/usr/libexec/openssh/sftp-server")

    def __init__(self, place: Path) -> None:
        self.path, self.remote, ssh = place / "mount", place / "remote", place / "ssh"
        self.path.mkdir()
        self.remote.mkdir()
        server = next(path for path in self.SERVERS if os.access(path, os.X_OK))
        ssh.write_text(f"#!/bin/sh\nexec {server}\n")  # sshfs only needs something that speaks SFTP on a pipe
        ssh.chmod(0o755)
        self.command = ["sshfs", "-f", "-o", f"ssh_command={ssh}", f"host:{self.remote}", str(self.path)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.ismount(self.path), what="the mount")

    def die(self) -> None:
        """End the daemon; all that is open in the mount fails from now on."""
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.wake()
        subprocess.run(["fusermount", "-uz", str(self.path)], check=False)
        self.process.kill()
        self.process.wait()


@as_root
def test_while_the_log_s_file_system_hangs_the_training_and_the_console_go_on_and_the_log_catches_up(launch, mount):
    stop = mount.path.parent / "stop"
    script = f"i=0; while [ ! -e {stop} ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exit 4"
    console = mount.path.parent / "console"
    with console.open("wb") as file:
        launched = launch.start("sh", "-c", script, options=[f"--run-dir={mount.path / 'run'}"], stdout=file)
    launched.run = mount.path / "run"
    wait_until(lambda: console.read_bytes().count(b"\n") > 20, what="output")
    mount.hang()
    before = console.read_bytes().count(b"\n")
    wait_until(lambda: console.read_bytes().count(b"\n") > before + 100, timeout=20, what="output during the hang")
    mount.wake()
    stop.touch()
    assert launched.wait(timeout=30).code == 4
    assert launched.log() == console.read_bytes()
    assert launched.events("warning")
    assert launched.events("recovered")


@as_root
def test_when_the_file_system_s_daemon_dies_and_it_is_mounted_again_the_log_is_whole(launch, mount):
    remote = mount.remote / "run"
    launched = launch.start("sh", "-c", "echo one; while read word; do echo $word; done; exit 4", stdin=subprocess.PIPE,
                            options=[f"--run-dir={mount.path / 'run'}"])
    launched.run = remote
    launched.wait_for_output(b"one\n")
    wait_until(lambda: launched.status() is not None, what="a status")
    mount.die()
    launched.process.stdin.write(b"two\n")
    launched.process.stdin.flush()
    assert launched.process.stdout.readline() == b"one\n"
    assert launched.process.stdout.readline() == b"two\n", "the console goes on meanwhile"
    subprocess.run(["fusermount", "-uz", str(mount.path)], check=True)
    time.sleep(1.5)  # time enough for it to look at what is below the mount point
    assert not list(mount.path.iterdir()), "out of sight later"
    mount.start()
    launched.wait_for_output(b"two\n")
    launched.wait_for_event("recovered")
    launched.process.stdin.write(b"three\n")
    launched.process.stdin.close()
    launched.process.stdin = None
    assert launched.wait(timeout=30).code == 4
    assert launched.log() == b"one\ntwo\nthree\n"
    kinds = [event.event for event in launched.events()]
    assert (kinds[0], kinds[-1], kinds.count("start"), kinds.count("exit")) == ("start", "end", 1, 1)
    assert launched.status().end_code == 4


@as_root
def test_a_temporary_directory_that_hangs_is_no_place_for_a_spool(launch, mount):
    mount.hang()
    reader, console = os.pipe()
    size = 60 << 20  # more than waits in memory
    launched = launch.start("head", "-c", str(size), "/dev/zero", stdout=console, env={"TMPDIR": str(mount.path)})
    os.close(console)
    wait_until(lambda: len(launched.log()) == size, timeout=60, what="the whole log")
    got = 0
    with os.fdopen(reader, "rb", buffering=0) as file:
        while data := file.read(1 << 20):
            got += len(data)
    assert launched.wait(timeout=30).code == 0
    assert got == size


@as_root
def test_a_hung_run_directory_delays_neither_start_nor_signals_nor_exit_by_more_than_two_seconds(launch, mount):
    mount.hang()
    started = time.monotonic()
    script = "import os, signal; signal.signal(15, lambda *_: os._exit(9)); print('up', flush=True); signal.pause()"
    launched = launch.start(sys.executable, "-c", script, options=[f"--run-dir={mount.path / 'run'}"])
    assert launched.process.stdout.readline() == b"up\n"
    assert time.monotonic() - started < 10, "2 s and what a start takes on a busy machine"
    signalled = time.monotonic()
    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=20).code == 9
    assert time.monotonic() - signalled < 10, "2 s and what an end takes on a busy machine"
    assert b"does not answer" in launched.err


@as_root
def test_a_hold_ends_in_time_while_its_run_directory_hangs(launch, mount):
    launched = launch.start("sh", "-c", "exit 3", options=[f"--run-dir={mount.path / 'run'}", "--hold=600"])
    launched.run = mount.path / "run"
    # quiet first: a request that a FUSE daemon has taken cannot be interrupted, by SIGKILL neither (fs/fuse/dev.c)
    wait_until(lambda: (status := launched.status()) is not None and status.hold_until is not None, what="the hold")
    mount.hang()
    signalled = time.monotonic()
    launched.signal(signal.SIGTERM)
    assert launched.process.wait(timeout=20) == 3
    assert time.monotonic() - signalled < 10, "2 s and what an end takes on a busy machine; the hang has no end"


def test_a_run_directory_that_somebody_deletes_is_made_again_with_all_that_was_in_it(launch):
    launched = launch.start("sh", "-c", "seq 1 5000; echo up; read word; echo after; exit 6", stdin=subprocess.PIPE)
    launched.wait_for_output(b"up")
    away = launched.run.with_name("away")
    os.rename(launched.run, away)  # at once: what is removed name by name may get new ones meanwhile
    shutil.rmtree(away)
    wait_until(lambda: b"up" in launched.log(), what="the log to come back")
    launched.process.stdin.write(b"go\n")
    launched.process.stdin.flush()
    assert launched.wait().code == 6
    assert launched.log() == b"".join(b"%d\n" % i for i in range(1, 5001)) + b"up\nafter\n"
    kinds = [event.event for event in launched.events()]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert launched.status().exit_code == 6
    directories = [launched.run, *(path for path in launched.run.rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in directories} == {0o700}, "as private as it was"


@pytest.mark.parametrize("shape", [
    "alone", "under a shell", "in a session of its own", "in such a one, with a child", "a daemon", "left behind",
    "left behind in silence",
])
def test_when_the_launcher_is_killed_the_command_dies_with_it(launch, tmp_path, shape):
    pid_file = tmp_path / "pid"
    train = f"echo $$ > {pid_file}; echo up; exec sleep 600"
    command = {
        "alone": ["sh", "-c", train],
        "under a shell": ["sh", "-c", f"sh -c '{train}'; true"],
        "in a session of its own": ["sh", "-c", f"setsid --wait sh -c '{train}'; true"],
        # as torchrun's workers, which have dataloaders
        "in such a one, with a child": ["sh", "-c", f"setsid --wait sh -c 'sleep 600 & sleep 600 & {train}'; true"],
        "a daemon": ["sh", "-c", f"(setsid sh -c 'sleep 600 & {train}' &); sleep 600"],
        "left behind": ["sh", "-c", f"setsid sh -c '{train}' & exit 3"],
        "left behind in silence": [
            "sh", "-c", f"setsid sh -c 'trap \"\" TERM; {train} >/dev/null 2>&1' >/dev/null & "
                        f"until [ -s {pid_file} ]; do sleep 0.1; done; echo up; exit 3"],
    }[shape]
    launched = launch.start(*command)
    launched.wait_for_output(b"up")
    if shape == "left behind":
        wait_until(lambda: any(event.text("name") == "Drain" for event in launched.events("phase")))
    elif shape == "left behind in silence":
        wait_until(lambda: any(event.text("kind") == "left-behind" for event in launched.events("warning")))
    launched.process.kill()
    pid = int(pid_file.read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in state(pid), what="the training to die")
    assert launched.log() == b"up\n", "the log up to that moment is whole"


def state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


def test_what_a_hung_console_has_not_taken_waits_on_local_disk_beyond_memory(launch):
    reader, console = os.pipe()
    size = 100 << 20
    command = ["sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo end; exit 0"]
    launched = launch.start(*command, stdout=console, stderr=subprocess.DEVNULL)
    os.close(console)
    launched.wait_for_output(b"end\n", timeout=60)
    got = 0
    with os.fdopen(reader, "rb", buffering=0) as file:
        while data := file.read(1 << 20):
            assert not data.strip(b"x").strip(b"end\n")
            got += len(data)
    assert launched.wait().code == 0
    assert got == size + 4, "more than memory holds would be lost"


def test_without_any_spool_what_does_not_fit_is_lost_and_the_exact_range_is_said(launch):
    reader, console = os.pipe()
    launched = launch.start("head", "-c", "100000000", "/dev/zero", options=["--spool-max=0"], stdout=console)
    os.close(console)
    assert launched.wait(timeout=60).code == 0
    os.close(reader)
    assert len(launched.log()) == 100_000_000
    warning = launched.events("warning")[-1]
    assert warning.text("kind") == "console"
    assert warning.extra["lost"][-1][1] == 100_000_000


@as_root
def test_the_kernel_s_oom_killer_is_told_from_another_s_sigkill(launch, tmp_path):
    group = memory_group(limit=64 << 20)
    try:
        enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        hungry = launch(sys.executable, "-c", "x = bytearray(1 << 30)", before=enter, rank=1)
        killed = launch("sh", "-c", "kill -9 $$", before=enter, rank=2)
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), what="an empty group")
        group.rmdir()
    assert (hungry.code, killed.code) == (137, 137)
    assert hungry.events("exit")[0].integer("oom_kills") >= 1
    assert killed.events("exit")[0].integer("oom_kills") == 0
    assert "out of memory" in hungry.events("exit")[0].text("reason")
    assert "out of memory" not in killed.events("exit")[0].text("reason").replace("not counted as out of memory", "")


def memory_group(limit: int) -> Path:
    """A control group with a memory limit, of whichever version this machine has."""
    name = f"trainwatch-test-{os.getpid()}"
    v1 = Path("/sys/fs/cgroup/memory")
    group = (v1 if v1.is_dir() else Path("/sys/fs/cgroup")) / name
    group.mkdir()
    (group / ("memory.limit_in_bytes" if v1.is_dir() else "memory.max")).write_text(str(limit))
    with contextlib.suppress(OSError):
        (group / ("memory.memsw.limit_in_bytes" if v1.is_dir() else "memory.swap.max")).write_text(
            str(limit) if v1.is_dir() else "0"
        )
    return group
