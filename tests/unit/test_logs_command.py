"""`trainwatch logs`: what comes out of it, for pipes and scripts."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from builders import NOW, RunBuilder
from support.waiting import wait_until
from trainwatch import cli

TRAINWATCH = [sys.executable, "-m", "trainwatch"]
ENVIRONMENT = {**os.environ, "TZ": "UTC", "COLUMNS": "100"}


def run_of(directory, ranks=3, seconds=20):
    run = RunBuilder(directory, world_size=ranks)
    for rank in range(ranks):
        attempt = run.rank(rank).start()
        for second in range(seconds):
            if second == 10:
                attempt.phase("Train", NOW - 90)
            attempt.output(b"%d of %d\n" % (second, rank), NOW - 100 + second + rank / 8)
    return run


@pytest.fixture
def logs(tmp_path, capfdbinary, monkeypatch):
    """Runs the command on a run of three ranks: (exit code, lines, stderr)."""
    run_of(tmp_path / "run")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def go(*options):
        try:
            code = cli.main(["logs", str(tmp_path / "run"), *options])
        except SystemExit as left:
            code = left.code
        out, err = capfdbinary.readouterr()
        return code, out.decode().splitlines(), err.decode()

    yield go
    monkeypatch.undo()
    time.tzset()


def lines(seconds, ranks, prefix=True):
    return [(f"[{rank}] " if prefix else "") + f"{second} of {rank}" for second in seconds for rank in ranks]


def test_one_rank_comes_as_it_is_and_several_one_after_the_other(logs):
    assert logs("--rank", "1") == (0, lines(range(20), [1], prefix=False), "")
    assert logs()[1] == lines(range(20), [0]) + lines(range(20), [1]) + lines(range(20), [2])


def test_merged_lines_come_in_the_order_of_time(logs):
    assert logs("--merge")[1] == lines(range(20), range(3))
    assert logs("--merge", "--rank", "0,2", "--tail", "3")[1] == lines(range(18, 20), [0, 2])[1:]
    assert logs("--tail", "1")[1] == lines([19], range(3))
    assert logs("--merge", "--since", "-3s")[1] == lines(range(16, 20), range(3))[2:]


def test_only_what_matches_comes_with_what_is_around(logs):
    assert logs("--merge", "--grep", "^1[23] of")[1] == lines([12, 13], range(3))
    assert logs("--rank", "0", "--grep", "^7 OF", "-i", "-C", "1")[1] == lines([6, 7, 8], [0], prefix=False)
    assert logs("--rank", "0", "--grep", "^7 OF") == (1, [], "")
    assert logs("--rank", "0", "--grep", "1", "-v", "--tail", "2")[1] == lines([8, 9], [0], prefix=False)
    assert logs("--rank", "0", "--grep", "^7", "-F") == (1, [], "")


def test_only_what_was_written_in_a_phase_comes(logs):
    assert logs("--rank", "2", "--phase", "train")[1] == lines(range(10, 20), [2], prefix=False)
    code, _, err = logs("--phase", "Nap")
    assert code == 2
    assert err == "trainwatch: there is no phase Nap; there are Train\n"


def test_json_tells_who_when_and_where(logs):
    _, out, _ = logs("--json", "--merge", "--grep", "^19", "--rank", "0-1")
    assert [json.loads(line) for line in out] == [
        {"rank": rank, "attempt": 1, "local_rank": None, "label": str(rank), "time": NOW - 81 + rank / 8, "line": 20,
         "offset": 10 * 7 + 9 * 8, "text": f"19 of {rank}"} for rank in (0, 1)]


@pytest.mark.parametrize(("options", "why"), [
    (["--rank", "7"], "there is no rank 7; there are 0-2"), (["--grep", "("], "no regular expression"),
    (["--rank", "x"], "is no rank"), (["--since", "soon"], "--since soon"), (["-i"], "there is none"),
    (["--tail", "-1"], "a number of lines"),
])  # fmt: skip
def test_what_makes_no_sense_is_said_and_exits_2(logs, options, why):
    code, out, err = logs(*options)
    assert (code, out) == (2, [])
    assert why in err


def test_long_lines_and_any_bytes_come_whole(tmp_path):
    data = b"\x1b[31m" + b"x" * 100_000 + b"\xff\x00\r\n" + b"torn"
    RunBuilder(tmp_path / "run").rank(0).start().output(data)
    for options in ([], ["--grep", "x|t"], ["--merge", "--tail", "9"]):
        done = subprocess.run([*TRAINWATCH, "logs", tmp_path / "run", *options], stdout=subprocess.PIPE, check=True)
        assert done.stdout in (data, data + b"\n")


def test_a_reader_that_leaves_ends_it_quietly(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"line\n" * 500_000)
    for options in ([], ["--grep", "line"], ["--json"]):
        command = [*TRAINWATCH, "logs", tmp_path / "run", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == cli.BROKEN_PIPE


def test_a_terminal_gets_nothing_that_acts_on_it(tmp_path, terminal_output):
    RunBuilder(tmp_path / "run").rank(0).start().output(b"\x1b]0;owned\x07\x1b[2Jtext\x1b[31mred\n1%\r100%\n")
    assert terminal_output([*TRAINWATCH, "logs", str(tmp_path / "run")]).split() == [b"textred", b"100%"]


@pytest.fixture
def terminal_output():
    """What a command prints to a terminal."""
    import pty

    def run(command):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(command[0], command, ENVIRONMENT)
        data = b""
        try:
            while more := os.read(fd, 1 << 16):
                data += more
        except OSError:
            pass  # Linux's way to say that the other end is closed
        os.close(fd)
        os.waitpid(pid, 0)
        return data

    return run


@pytest.mark.parametrize("remote", [False, True], ids=["here", "agent"])
def test_what_is_followed_comes_whole_in_order_and_once_until_the_run_has_ended(tmp_path, remote, monkeypatch):
    run = run_of(tmp_path / "run", ranks=2)
    target = str(tmp_path / "run")
    environment = dict(ENVIRONMENT)
    if remote:  # any command that leads to a shell is a container for us
        docker = tmp_path / "docker"
        docker.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
        docker.chmod(0o755)
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
        target = f"docker:box{tmp_path / 'run'}"
    command = [*TRAINWATCH, "logs", target, "-f", "--grep", "of|new"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        out: list[bytes] = []
        reader = threading.Thread(target=lambda: out.extend(process.stdout))
        reader.start()
        try:
            wait_until(lambda: len(out) == 10)
            assert [line.decode().strip() for line in out] == lines(range(15, 20), [0, 1])
            attempts = [run.rank(rank) for rank in range(2)]
            for turn in range(5):
                attempts[turn % 2].output(b"ne", NOW - 50 + turn)
                attempts[1 - turn % 2].output(b"noise\nnew %d and\n" % turn, NOW - 50 + turn)
                time.sleep(0.05)
                attempts[turn % 2].output(b"w %d\n" % turn, NOW - 50 + turn)
            wait_until(lambda: len(out) == 20)
            for attempt in attempts:
                attempt.output(b"new end").finish().end()
            process.wait(30)
        finally:
            process.kill()
            reader.join(10)
        assert process.returncode == 0, process.stderr.read()
    text = [line.decode().rstrip("\n") for line in out]
    assert sorted(text[10:20]) == sorted(
        f"[{rank}] new {turn}{' and' * (rank != turn % 2)}" for turn in range(5) for rank in range(2))
    assert text[20:] == ["[0] new end", "[1] new end"]


@pytest.fixture
def command(capfdbinary):
    """Runs the command on any targets: (exit code, lines, stderr)."""

    def go(*words):
        code = cli.main(["logs", *map(str, words)])
        out, err = capfdbinary.readouterr()
        return code, out.decode().splitlines(), err.decode()

    return go


def test_logs_that_no_launcher_wrote_are_printed_as_those_of_a_run(tmp_path, command):
    for rank in (0, 1):
        text = "".join(f"2025-11-30 10:00:0{s}.{rank} {s} of {rank}\n" for s in range(3))
        (tmp_path / f"slurm-7-{rank}.out").write_text(text)
    files = sorted(tmp_path.glob("*.out"))
    in_order = [f"[{rank}] 2025-11-30 10:00:0{s}.{rank} {s} of {rank}" for s in range(3) for rank in (0, 1)]
    assert command(*files, "--merge") == (0, in_order, "")
    assert command(tmp_path, "--tail", "1", "--merge") == (0, in_order[-1:], "")
    assert command(files[0], "--grep", "2 of", files[1]) == (0, in_order[-2:], "")
    assert command(files[1]) == (0, files[1].read_text().splitlines(), "")


def test_of_a_log_of_several_ranks_only_the_lines_that_are_meant_are_printed(tmp_path, command):
    log = tmp_path / "all.log"
    log.write_text("".join(f"[rank{n % 2}]: step {n}\n" for n in range(6)))
    assert command(log, "--rank", "1")[1] == [f"[rank1]: step {n}" for n in (1, 3, 5)]
    assert command(log, "--merge")[1] == [f"[{n % 2}] [rank{n % 2}]: step {n}" for n in range(6)]


def test_a_target_that_is_neither_run_nor_log_is_said(tmp_path, command):
    (tmp_path / "a.log").write_text("x\n")
    assert command(tmp_path / "none.log")[::2] == (
        2, f"trainwatch: {tmp_path}/none.log does not exist; name the directory that trainwatch-launch was given\n")
    assert command(tmp_path / "a.log", tmp_path / "none.log")[::2] == (
        2, f"trainwatch: {tmp_path}/none.log does not exist\n")


def test_a_log_that_is_rotated_while_it_is_followed_goes_on_from_the_new_files_top(tmp_path):
    log, out = tmp_path / "rank-0.log", tmp_path / "out"
    log.write_text("old 1\n")
    with out.open("wb") as sink, subprocess.Popen([*TRAINWATCH, "logs", str(log), "-f"], stdout=sink) as process:
        try:
            wait_until(lambda: out.read_bytes() == b"old 1\n")
            log.rename(tmp_path / "rank-0.log.1")
            log.write_text("new and longer 1\nnew 2\n")
            wait_until(lambda: out.read_bytes() == b"old 1\nnew and longer 1\nnew 2\n")
            log.write_text("")
            log.write_text("3\n")
            wait_until(lambda: out.read_bytes().endswith(b"new 2\n3\n"))
        finally:
            process.kill()
