"""A launcher inside another one's command: each process of a container gets a log, phases and exit code of its own."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.launching import MAIN, ROOT, Launch
from support.pythons import every_python
from support.waiting import wait_until
from trainwatch_launcher.rundir import paths

STAND_IN = str(ROOT / "tests" / "support" / "stand_in_torchrun.py")
INNER = [sys.executable, "-I", "-X", "utf8", str(MAIN)]
SAY_WHO = 'echo "=== [Phase] Train $LOCAL_RANK ==="; echo "I am $LOCAL_RANK"'


class Local(Launch):
    """What a nested launcher left in the attempt of its container."""

    def __init__(self, outer: Launch, local_rank: int) -> None:
        super().__init__(outer.process, outer.run, outer.rank)
        self.outer, self.local_rank = outer, local_rank

    def attempt(self, number: int = 1) -> Path:
        return self.outer.attempt() / paths.local_name(self.local_rank) / paths.attempt_name(number)


def torchrun(launch, *script: str, nproc: int = 2, restarts: int = 0, inner=(), python=sys.executable, **how) -> Launch:
    """Start a container whose torchrun starts a nested launcher for each process, each with a shell script."""
    workers = [python, *INNER[1:], *inner, "--", "sh", "-c", *script]
    return launch.start(sys.executable, STAND_IN, f"--nproc={nproc}", f"--max-restarts={restarts}", "--node-rank=3",
                        "--nnodes=4", *workers, python=python, rank=3, **how)


def in_shell(launch, script: str, **how) -> Launch:
    """Run a container to its end whose command is a shell script; $INNER starts a nested launcher in it."""
    return launch("sh", "-c", f"INNER='{' '.join(INNER)}'; {script}", rank=3, **how)


def local_ranks(container: Launch) -> list[int]:
    """The local ranks that registered in a container."""
    return [number for number, _ in paths.numbered(str(container.attempt()), paths.LOCAL_PREFIX)]


@every_python
def test_each_local_rank_has_its_own_log_phases_and_exit_code(launch, python):
    container = torchrun(launch, SAY_WHO, python=python).wait()
    assert container.code == 0
    assert local_ranks(container) == [0, 1]
    for number in (0, 1):
        local = Local(container, number)
        assert local.log() == f"=== [Phase] Train {number} ===\nI am {number}\n".encode()
        assert local.phases() == [f"Train {number}"]
        assert local.events("exit")[0].integer("code") == 0
        assert local.status().end_code == 0
    # the container's own log has it all, and so has the platform's console
    assert sorted(container.log().split(b"\n")) == sorted(container.out.split(b"\n"))
    assert b"I am 0" in container.out
    assert b"I am 1" in container.out


def test_a_local_rank_is_one_of_its_container_whatever_torchrun_calls_it(launch):
    container = torchrun(launch, "echo $RANK $WORLD_SIZE", nproc=2, options=["--run-id=job", "--world-size=4"]).wait()
    assert Local(container, 1).log() == b"7 8\n"
    status = Local(container, 1).status()
    assert (status.rank, status.local_rank, status.world_size, status.run_id) == (3, 1, 8, "job")
    sources = Local(container, 1).events("start")[0].extra["sources"]
    assert (sources["rank"], sources["local_rank"], sources["global_rank"]) == (
        "TRAINWATCH_ATTEMPT_DIR", "LOCAL_RANK", "RANK")
    assert container.status().world_size == 4


def test_the_container_is_held_and_the_local_ranks_in_it_never_are(launch):
    script = 'echo "rank $LOCAL_RANK"; [ $LOCAL_RANK = 0 ] || { sleep 0.3; exit 42; }; sleep 60 & wait'
    container = torchrun(launch, script, options=["--hold=600"], inner=["--hold=600"])
    container.wait_for_event("hold")
    assert container.events("exit")[0].integer("code") == 1
    failed, victim = Local(container, 1), Local(container, 0)
    assert failed.events("end")[0].integer("code") == 42
    assert victim.events("end")[0].integer("code") == 143
    assert victim.events("signal")[0].text("signal") == "SIGTERM"
    assert not failed.events("hold")
    assert not victim.events("hold")
    assert "exit code 42" in container.log().decode()  # the nested launcher says it on the container's console
    container.signal(15)
    assert container.wait(timeout=10).code == 1


def test_workers_that_torchrun_starts_again_make_the_next_attempt(launch):
    script = 'echo "try $TORCHELASTIC_RESTART_COUNT"; exit $((1 - TORCHELASTIC_RESTART_COUNT))'
    container = torchrun(launch, script, restarts=1).wait()
    assert container.code == 0
    for number in (0, 1):
        local = Local(container, number)
        assert (local.log(1), local.log(2)) == (b"try 0\n", b"try 1\n")
        assert local.status(2).attempt == 2
        assert local.status(2).exit_code == 0


ENGINES = {
    "srun": "SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=16 SLURM_LOCALID=1 SLURM_NODEID=4",
    "mpirun": "OMPI_COMM_WORLD_RANK=9 OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_LOCAL_RANK=1",
    "mpiexec": "PMI_RANK=9 PMI_SIZE=16 MPI_LOCALRANKID=1",
    "deepspeed": "RANK=9 WORLD_SIZE=16 LOCAL_RANK=1",
}
CONTAINERS = {
    "platform": {"RANK": "3", "WORLD_SIZE": "8"},
    "srun": {"RANK": "3", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"},
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_inside_every_container_is_understood(launch, engine, container):
    if (engine, container) == ("mpiexec", "srun"):
        container = "platform"
    outer = in_shell(launch, f"{ENGINES[engine]} $INNER -- true", env=CONTAINERS[container])
    assert outer.code == 0
    assert local_ranks(outer) == [1]
    status = Local(outer, 1).status()
    assert (status.rank, status.local_rank, status.world_size) == (3, 1, 16)


def test_without_any_local_rank_each_gets_an_attempt_of_its_own(launch):
    outer = in_shell(launch, "for n in 1 2 3 4; do $INNER -- sh -c \"echo I am $n; exit $n\" & done; wait")
    assert outer.code == 0
    assert local_ranks(outer) == [0]
    local = Local(outer, 0)
    logs = [local.log(number) for number in (1, 2, 3, 4)]
    codes = [local.status(number).exit_code for number in (1, 2, 3, 4)]
    assert sorted(logs) == [b"I am 1\n", b"I am 2\n", b"I am 3\n", b"I am 4\n"]
    assert [f"I am {code}\n".encode() for code in codes] == logs


def test_an_option_tells_processes_apart_that_nobody_counted(launch):
    outer = in_shell(launch, "for n in 0 1; do $INNER --local-rank $n -- echo I am $n & done; wait")
    assert [Local(outer, n).log() for n in (0, 1)] == [b"I am 0\n", b"I am 1\n"]


def test_a_launcher_inside_a_nested_one_is_of_the_same_local_rank(launch):
    outer = in_shell(launch, 'LOCAL_RANK=2 RANK=2 $INNER -- $INNER -- echo deep')
    assert local_ranks(outer) == [2]
    assert Local(outer, 2).log(1) == Local(outer, 2).log(2) == b"deep\n"
    assert paths.numbered(str(Local(outer, 2).attempt()), paths.LOCAL_PREFIX) == []


def test_when_the_container_s_directory_was_removed_nothing_waits_and_nothing_is_lost(launch):
    script = 'rm -rf "$TRAINWATCH_RUN_DIR"; LOCAL_RANK=1 $INNER --hold=600 -- sh -c "echo kept; exit 5"'
    outer = in_shell(launch, script, timeout=30)
    assert outer.code == 5
    assert Local(outer, 1).log() == b"kept\n"
    assert Local(outer, 1).events("exit")[0].integer("code") == 5
    assert os.stat(outer.attempt()).st_mode & 0o777 == 0o700


def test_when_the_directory_is_removed_while_nested_launchers_run_all_of_them_make_it_again(launch, tmp_path):
    script = f'echo "up $LOCAL_RANK"; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo "end"'
    container = torchrun(launch, script)
    locals_ = [Local(container, number) for number in (0, 1)]
    for number, local in enumerate(locals_):
        local.wait_for_output(b"up %d\n" % number)
    os.rename(container.run, tmp_path / "away")  # at once: what is removed name by name may get new ones meanwhile
    shutil.rmtree(tmp_path / "away")
    for number, local in enumerate(locals_):
        local.wait_for_output(b"up %d\n" % number)
    wait_until(lambda: container.events("start"), what="the container's files")
    (tmp_path / "go").touch()
    assert container.wait().code == 0
    for number, local in enumerate(locals_):
        assert local.log() == b"up %d\nend\n" % number
        assert local.status().end_code == 0
        kinds = [event.event for event in local.events()]
        assert (kinds[0], kinds[-1], kinds.count("start")) == ("start", "end", 1)
    assert sorted(container.log().split()) == sorted(container.out.split())
    assert container.status().end_code == 0


def test_when_the_container_s_directory_cannot_be_made_here_the_command_runs_all_the_same(launch):
    elsewhere = "/proc/runs/job/rank-00003/attempt-1"
    outer = in_shell(launch, f'TRAINWATCH_ATTEMPT_DIR={elsewhere} $INNER --hold=600 -- sh -c "echo kept; exit 5"')
    assert outer.code == 5
    assert b"kept" in outer.out
    assert b"no run directory" in outer.out  # its standard error is the container's output


def test_a_nested_launcher_shares_with_whom_its_container_shares(launch):
    outer = in_shell(launch, "$INNER -- true", options=["--share-group"])
    assert os.stat(Local(outer, 0).attempt() / paths.OUTPUT).st_mode & 0o777 == 0o640
    private = in_shell(launch, "$INNER -- true", options=[f"--run-dir={outer.run}2"])
    private.run = Path(f"{outer.run}2")
    assert os.stat(Local(private, 0).attempt() / paths.OUTPUT).st_mode & 0o777 == 0o600


def test_options_copied_to_the_nested_launcher_do_no_harm(launch, tmp_path):
    options = [f"--root={tmp_path}", "--run-id=job", "--rank=3", "--world-size=4", "--hold=600"]
    outer = in_shell(launch, f"LOCAL_RANK=1 RANK=1 $INNER {' '.join(options)} -- sh -c 'exit 6'",
                     options=[*options[:-1], "--hold=0"])
    assert outer.code == 6
    outer.run = tmp_path / "job"
    assert local_ranks(outer) == [1]
    assert Local(outer, 1).status().run_id == "job"


def test_status_shows_local_ranks_under_their_container(launch):
    container = torchrun(launch, "exit $LOCAL_RANK").wait()
    done = subprocess.run([sys.executable, "-m", "trainwatch.cli", "status", "--json", str(container.run)],
                          capture_output=True, text=True)
    assert done.returncode == 1
    ranks = json.loads(done.stdout)["ranks"]
    assert [row["label"] for row in ranks] == ["3", "3.0", "3.1"]
    assert [row["local_rank"] for row in ranks] == [None, 0, 1]
    assert [(row["state"], row["exit_code"]) for row in ranks if row["label"] == "3.1"] == [("failed", 1)]


TORCH = os.environ.get("TRAINWATCH_TEST_TORCH", "")
GLOO_JOB = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
print("=== [Phase] Reduce ===", flush=True)
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", total.item(), flush=True)
dist.barrier()
if dist.get_rank() == 1:
    raise ValueError("loss is nan")
dist.barrier()
"""


@pytest.mark.torch
def test_the_real_torchrun(launch, tmp_path):
    job = tmp_path / "gloo_job.py"
    job.write_text(GLOO_JOB)
    torchrun_module = [TORCH, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=2", "--standalone"]
    container = launch.start(*torchrun_module, *INNER, "--hold=600", "--", TORCH, str(job), options=["--hold=600"])
    container.wait_for_event("hold", timeout=100)
    assert container.events("exit")[0].integer("code") == 1
    failed = Local(container, 1)
    assert failed.events("exit")[0].integer("code") == 1
    assert "ValueError: loss is nan" in failed.events("exit")[0].text("reason")
    for number in (0, 1):
        assert Local(container, number).phases() == ["Reduce"]
        assert b"sum 3.0" in Local(container, number).log()
        assert not Local(container, number).events("hold")
    wait_until(lambda: Local(container, 0).events("end"), what="the other one's end")
    container.signal(15)
    assert container.wait(timeout=20).code == 1
