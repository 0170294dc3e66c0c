"""`trainwatch demo` without its viewer: a real training of several workers that goes as planned, and leaves nothing."""
from __future__ import annotations

import array
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.pythons import every_python
from support.waiting import wait_until
from trainwatch.demo import job as demo_job
from trainwatch.demo.worker.collective import Group, PeerLostError
from trainwatch.demo.worker.shard import Shard, write_shard
from trainwatch_launcher.rundir import files, paths, records

DEMO = [sys.executable, "-c", "import sys; from trainwatch.demo.command import main; sys.exit(main(sys.argv[1:]))"]
TRAINWATCH = str(Path(sys.executable).parent / "trainwatch")


def demo(root: Path, *options: str, timeout: float = 90.0) -> subprocess.CompletedProcess[str]:
    command = [*DEMO, "--headless", f"--root={root}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def attempt(run: Path, rank: int) -> Path:
    return run / paths.rank_name(rank) / paths.attempt_name(1)


def status(run: Path, rank: int) -> records.Status:
    return files.read_record(records.Status, str(attempt(run, rank) / paths.STATUS))


def log(run: Path, rank: int) -> str:
    return (attempt(run, rank) / paths.OUTPUT).read_text(encoding="utf-8")


def phases(run: Path, rank: int) -> list[str]:
    events = files.LineFile(str(attempt(run, rank) / paths.EVENTS)).read(records.Event)
    return [event.text("name") for event in events if event.event == "phase" and event.text("source") == "marker"]


def processes_of(run: Path) -> list[str]:
    """Command lines of all processes that name the run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(run) in line and path.parent.name != str(os.getpid()):
            found.append(line)
    return found


def test_one_rank_fails_with_a_real_exception_and_the_others_because_of_it(tmp_path):
    done = demo(tmp_path, "--fail-after=2")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.splitlines()[-1])
    assert run.parent == tmp_path

    codes = [status(run, rank).end_code for rank in range(4)]
    assert codes == [1, 1, 1, 1]
    assert re.search(r"ValueError: shard 2: record \d+ has 31 features, expected 32\n$", log(run, 2))
    for rank in (0, 1, 3):
        assert log(run, rank).endswith("PeerLostError: connection closed by peer (rank 2)\n")
        assert status(run, rank).exited > status(run, 2).exited
    assert phases(run, 2) == ["Environment Setup Complete", "Load Data", "Training"]
    assert "数据加载完成" in log(run, 2)
    assert not processes_of(run)

    told = json.loads(subprocess.run([TRAINWATCH, "why", "--json", run], capture_output=True, timeout=60).stdout)
    assert (told["kind"], told["root_cause_rank"], told["collateral_ranks"]) == ("python_error", 2, [0, 1, 3])
    assert told["frame"].endswith(" in _parse")


def test_with_ok_it_trains_to_the_end_and_the_loss_goes_down(tmp_path):
    done = demo(tmp_path, "--ok", "--steps=60")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.splitlines()[-1])

    assert [status(run, rank).exit_code for rank in range(4)] == [0, 0, 0, 0]
    losses = [list(map(float, re.findall(r"step \d+/60 \| loss ([0-9.]+) ", log(run, rank)))) for rank in range(4)]
    assert len(losses[0]) == 12
    assert losses[0][-1] < 0.8 * losses[0][0]
    assert losses == [losses[0]] * 4, "all ranks see the same mean"
    agreed = {re.search(r"weights agree on all 4 ranks \(crc32 (\w+)\)", log(run, rank)).group(1) for rank in range(4)}
    assert len(agreed) == 1
    assert phases(run, 0) == ["Environment Setup Complete", "Load Data", "Training", "Save Checkpoint",
                              "Training Finished, Starting Upload"]
    assert not processes_of(run)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_with_few_ranks_the_last_one_fails(tmp_path, ranks):
    done = demo(tmp_path, "--fail-after=0", f"--ranks={ranks}")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.splitlines()[-1])
    assert f"ValueError: shard {ranks - 1}: record" in log(run, ranks - 1)


def test_a_hold_that_was_asked_for_is_waited_out(tmp_path):
    done = demo(tmp_path, "--fail-after=0", "--ranks=2", "--hold=1")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.splitlines()[-1])
    assert all(status(run, rank).hold_until <= status(run, rank).ended for rank in range(2))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_stops_its_workers_and_says_where_the_run_is(tmp_path, number):
    process = subprocess.Popen([*DEMO, "--headless", f"--root={tmp_path}"], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: [run for run in tmp_path.glob("demo-*") if "step 5/" in logs_of(run)], what="some steps")
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    run = next(tmp_path.glob("demo-*"))
    assert process.returncode == 130
    assert "Traceback" not in said
    assert str(run) in said
    assert not processes_of(run)


def test_the_viewer_opens_on_it_and_quitting_stops_the_workers(tmp_path, tmux):
    tmux.start([TRAINWATCH, "demo", "--fail-after=1", f"--root={tmp_path}"], columns=120, lines=30)
    tmux.wait_for("rank 2", "failed first", "ValueError: shard 2", "held")
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
    run = next(tmp_path.glob("demo-*"))
    shown = tmux.wait_for(f"trainwatch {run}")
    said = next(line for line in shown.splitlines() if f"trainwatch {run}" in line)
    assert shutil.which(said.split()[0])  # it can be typed as it stands, from where the demo was started
    assert [status(run, rank).end_code for rank in range(4)] == [1, 1, 1, 1]
    assert not processes_of(run)


def test_with_keep_the_workers_stay_held_until_they_are_released(tmp_path, tmux):
    tmux.start([TRAINWATCH, "demo", "--fail-after=1", "--ranks=2", "--hold=60", "--keep", f"--root={tmp_path}"],
               columns=200)
    tmux.wait_for("2 held")
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
    run = next(tmp_path.glob("demo-*"))
    tmux.wait_for("--all --release")
    assert status(run, 0).end_code is None
    subprocess.run([TRAINWATCH, "hold", str(run), "--all", "--release"], check=True)
    wait_until(lambda: not processes_of(run), what="the workers' end")


def test_a_terminal_that_goes_away_takes_the_workers_with_it(tmp_path, tmux):
    tmux.start([TRAINWATCH, "demo", f"--root={tmp_path}"], columns=120, lines=30)
    tmux.wait_for("4 running")
    run = next(tmp_path.glob("demo-*"))
    assert processes_of(run)
    tmux.close()
    wait_until(lambda: not processes_of(run), what="the workers' end")


def logs_of(run: Path) -> str:
    try:
        return log(run, 0)
    except FileNotFoundError:
        return ""


@pytest.mark.parametrize("options", [["--ranks=0"], ["--fail-after=soon"], ["--what"]])
def test_a_wrong_option_is_one_clear_line_and_2(tmp_path, options):
    done = demo(tmp_path, *options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("trainwatch demo: error: ")
    assert not list(tmp_path.iterdir())


def test_without_a_terminal_nothing_is_started_and_what_to_do_is_said(tmp_path):
    command = [*DEMO, f"--root={tmp_path / 'runs'}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("trainwatch demo: the screen needs a terminal; without one: ")
    assert done.stderr.endswith("trainwatch demo --headless\n")
    assert not (tmp_path / "runs").exists()


def test_a_root_that_cannot_be_is_one_clear_line_and_2(tmp_path):
    (tmp_path / "file").touch()
    done = demo(tmp_path / "file")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--root" in done.stderr


def test_a_launcher_that_cannot_start_is_told_with_its_own_words(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_job, "launcher", lambda: ["sh", "-c", "echo no such thing >&2; exit 2"])
    job = demo_job.Job(demo_job.Plan(ranks=1), demo_job.make_run_directory(tmp_path))
    job.start()
    with pytest.raises(demo_job.DemoError, match="no such thing"):
        job.wait_visible()
    job.close()


@every_python
def test_the_training_script_runs_on_every_promised_python(tmp_path, python):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    workers = []
    for rank in range(2):
        env = {"PATH": os.environ["PATH"], "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": str(port)}
        command = [python, "-W", "error", str(demo_job.WORKER / demo_job.TRAIN), "--steps=10", "--step-time=0"]
        workers.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT))
    outputs = [worker.communicate(timeout=60)[0].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    assert "step 10/10" in outputs[1]


def group_of(size: int) -> list[Group]:
    """All ranks of a job in this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    groups: list[Group | None] = [None] * size

    def join(rank: int) -> None:
        groups[rank] = Group(rank, size, "127.0.0.1", port)

    in_threads(join, range(size))
    return groups


def in_threads(call, arguments) -> None:
    threads = [threading.Thread(target=call, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)


def test_all_reduce_gives_every_rank_the_same_sum():
    groups, sums = group_of(5), {}

    def reduce(rank: int) -> None:
        sums[rank] = groups[rank].all_reduce(array.array("d", [rank, 0.1 * rank, 1.0]))

    in_threads(reduce, range(5))
    assert sums == {rank: array.array("d", [10.0, sum(0.1 * r for r in range(5)), 5.0]) for rank in range(5)}


def test_a_broken_connection_is_named_alike_on_all_ranks():
    groups, errors = group_of(4), {}

    def reduce(rank: int) -> None:
        try:
            groups[rank].all_reduce(array.array("d", [1.0]))
        except PeerLostError as error:
            errors[rank] = str(error)

    groups[2]._peers[0].close()
    in_threads(reduce, (0, 1, 3))
    assert errors == dict.fromkeys((0, 1, 3), "connection closed by peer (rank 2)")


def test_a_damaged_record_is_named_when_it_is_read_and_not_before(tmp_path):
    path = str(tmp_path / "shard")
    write_shard(path, rank=2, records=40, seed=1, damaged=37, progress=lambda done: None)
    batches = Shard(path, 2).batches(8)
    assert [len(next(batches)) for _ in range(4)] == [8] * 4
    with pytest.raises(ValueError, match="shard 2: record 37 has 31 features, expected 32"):
        next(batches)
