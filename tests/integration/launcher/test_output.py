"""Every byte reaches console and log, in order, and neither pays for the other's faults."""
from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys

import pytest

from support.pythons import every_python
from support.waiting import wait_until
from trainwatch_launcher.rundir import paths, records

NASTY = b"\0\x1b[31mred\x1b[0m\r10%\r20%\xff\xfe\x80\xe4\xb8\xad\xf0\x9f\x98\x80\x1b]0;title\x07no newline at the end"


@every_python
def test_any_bytes_arrive_unchanged_on_both_sides(launch, python, tmp_path):
    data = NASTY + bytes(range(256)) * 5000
    (tmp_path / "data").write_bytes(data)
    launched = launch("cat", str(tmp_path / "data"), python=python)
    assert launched.out == data
    assert launched.log() == data


def test_stdout_and_stderr_keep_their_order(launch):
    launched = launch("sh", "-c", "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done")
    assert launched.log() == b"".join(b"out%d\nerr%d\n" % (i, i) for i in range(1, 6))
    assert launched.out == launched.log()


def test_a_hundred_megabytes_in_one_line(launch):
    script = "import os\nfor _ in range(800): os.write(1, b'x' * 131072)"
    launched = launch(sys.executable, "-c", script)
    assert launched.code == 0
    assert hashlib.sha256(launched.log()).digest() == hashlib.sha256(b"x" * 800 * 131072).digest()
    assert launched.log() == launched.out
    assert launched.status().output_bytes == 800 * 131072


def test_all_lines_before_a_sigkill_are_kept(launch):
    script = "for i in range(100000): print('line', i)\nimport os, sys; sys.stdout.flush(); os.kill(os.getpid(), 9)"
    launched = launch(sys.executable, "-c", script)
    assert launched.code == 137
    assert launched.log().splitlines()[-1] == b"line 99999"
    assert launched.status().output_lines == 100000


def test_our_own_words_never_reach_the_log_or_stdout(launch):
    launched = launch("sh", "-c", "echo only this; exit 3", options=["--hold=0.2"])
    assert launched.log() == launched.out == b"only this\n"
    assert b"failed with exit code 3" in launched.err


@pytest.mark.parametrize("unread", ["closed", "full"])
def test_a_broken_console_does_not_touch_the_command_or_the_log(launch, unread):
    command = "i=0; while [ $i -lt 3000 ]; do echo line $i of some length to fill a pipe; i=$((i+1)); done; exit 4"
    if unread == "closed":
        reader, console = os.pipe()
        os.close(reader)
    else:
        console = os.open("/dev/full", os.O_WRONLY)
    launched = launch.start("sh", "-c", command, stdout=console).wait()
    os.close(console)
    assert launched.code == 4
    assert len(launched.log().splitlines()) == 3000
    warning = next(event for event in launched.events("warning") if event.text("kind") == "console")
    assert warning.text("message")


def test_a_console_that_nobody_reads_does_not_stop_the_command(launch):
    reader, console = os.pipe()
    launched = launch.start("sh", "-c", "head -c 3000000 /dev/zero; exit 4", stdout=console, stderr=subprocess.DEVNULL)
    launched.wait(timeout=20)
    os.close(console)
    assert launched.code == 4
    assert launched.log() == bytes(3000000)
    assert any(event.text("message") == "does not take output" for event in launched.events("warning"))
    lost = launched.events("warning")[-1].extra["lost"]
    assert lost[-1][1] == 3000000, "the console's account says what it never got"
    os.close(reader)


def test_a_slow_console_gets_everything_in_order(launch):
    reader, console = os.pipe()
    launched = launch.start("sh", "-c", "seq 1 200000; sleep 1.5; seq 1 1000", stdout=console)
    os.close(console)
    launched.wait_for_output(b"200000\n")
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"".join(b"%d\n" % i for i in [*range(1, 200001), *range(1, 1001)])
    assert launched.wait().code == 0


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_standard_descriptors_do_not_matter(launch, closed):
    redirections = " ".join(f"{fd}>&-" for fd in closed)
    before = ["sh", "-c", f'exec "$@" {redirections}', "sh"]
    launched = launch("sh", "-c", "echo one; echo two >&2; exit 3", before=before)
    assert launched.code == 3
    assert launched.log() == b"one\ntwo\n"


def test_stdin_is_passed_through(launch):
    reader, writer = os.pipe()
    launched = launch.start("cat", stdin=reader)
    os.close(reader)
    os.write(writer, NASTY)
    os.close(writer)
    assert launched.wait().log() == NASTY


def test_arguments_and_environment_arrive_as_they_are(launch):
    words = ["a b", "new\nline", "", "*", "$HOME", os.fsdecode(b"\xff\xfe"), "--hold", "中文"]
    script = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, [*sys.argv[1:], os.environ['ODD']])))"
    launched = launch(sys.executable, "-c", script, *words, env={"ODD": os.fsdecode(b"x\ny\xff")})
    assert launched.log() == b"\0".join([*map(os.fsencode, words), b"x\ny\xff"])


def test_python_is_unbuffered_unless_told_otherwise(launch):
    show = [sys.executable, "-c", "import os; print(os.environ.get('PYTHONUNBUFFERED'))"]
    assert launch(*show).log() == b"1\n"
    assert launch(*show, options=["--buffered"]).log(2) == b"None\n"


@pytest.mark.parametrize(("place", "why"), [
    ("{}/file", "{}/file: it is a file, not a directory"),
    ("{}/file/run", "{}/file/run: {}/file: it is a file, not a directory"),
    ("/proc/run", "/proc/run: No such file or directory"),
    ("/proc/runs/run", "/proc/runs/run: /proc/runs: No such file or directory"),
])  # fmt: skip
def test_without_a_run_directory_the_command_still_runs_and_the_cause_is_named(launch, tmp_path, place, why):
    (tmp_path / "file").write_text("in the way")
    launched = launch("sh", "-c", "echo trained; exit 5", options=[f"--run-dir={place.format(tmp_path)}"])
    assert (launched.code, launched.out) == (5, b"trained\n")
    assert f"WARNING: no run directory: {why.format(tmp_path, tmp_path)}\n".encode() in launched.err


def test_the_index_leads_from_times_to_places(launch):
    launched = launch("sh", "-c", "echo a; sleep 0.3; echo b; echo c; sleep 0.3; printf d")
    data = (launched.attempt() / paths.INDEX).read_bytes()
    found = [struct.unpack_from(records.INDEX_RECORD, data, at) for at in range(0, len(data), 24)]
    assert [(offset, line) for _, offset, line in found] == [(0, 0), (2, 1), (6, 3)]
    times = [time for time, _, _ in found]
    assert times == sorted(times)
    assert 0.25 < times[1] - times[0] < 5


def test_an_unwritable_status_heals_when_the_directory_can_be_written_again(launch):
    launched = launch.start("sh", "-c", "echo up; sleep 600")
    launched.wait_for_output(b"up")
    status = launched.attempt() / paths.STATUS
    wait_until(status.exists, what="first status")
    status.unlink()
    status.mkdir()  # a directory in its place: rename fails, for root too
    (status / "x").touch()
    launched.wait_for_event("warning")
    (status / "x").unlink()
    status.rmdir()
    launched.wait_for_event("recovered")
    launched.signal(15)
    assert launched.wait(timeout=20).code == 143


@pytest.mark.parametrize("umask", ["022", "077"])
def test_a_shared_run_is_the_group_s_whatever_the_umask(launch, umask):
    before = ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]
    launched = launch("sh", "-c", "echo hi; umask", options=["--share-group"], before=before)
    assert launched.log() == f"hi\n0{umask}\n".encode()
    modes = {path.name: path.stat().st_mode & 0o7777 for path in [launched.run, *launched.run.rglob("*")]}
    assert {modes[name] for name in ("run", "rank-00000", "attempt-1", "control")} == {0o2770}
    files = (paths.OUTPUT, paths.EVENTS, paths.STATUS, paths.RUN_FILE, paths.INDEX)
    assert {modes[name] for name in files} == {0o640}


def test_a_run_is_its_owner_s_alone_unless_shared(launch):
    launched = launch("true", before=["sh", "-c", 'umask 000; exec "$@"', "sh"])
    modes = {path.name: path.stat().st_mode & 0o7777 for path in [launched.run, *launched.run.rglob("*")]}
    assert {mode & 0o077 for mode in modes.values()} == {0}


def test_the_command_s_environment_gets_no_locale_from_us(launch):
    launched = launch("env", before=["env", "-i", f"PATH={os.environ['PATH']}"])
    names = {line.partition(b"=")[0] for line in launched.log().splitlines()}
    ours = {b"TRAINWATCH_" + name for name in (b"RUN_ID", b"RANK", b"RUN_DIR", b"ATTEMPT_DIR")}
    assert names == {b"PATH", b"PYTHONUNBUFFERED", *ours}
