"""What joins a run after the viewer has started: rank directories, hosts, pods, an array's next job, containers."""
from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from builders import RunBuilder
from support.docker import Docker, needs_docker
from support.following import following
from support.launching import MAIN
from support.slurm import Slurm, needs_slurm
from support.sshd import Sshd, needs_sshd
from trainwatch import opening
from trainwatch.config import Config, Options
from trainwatch.opening import open_source
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey


def up(follower, *names):
    return [link.name for link in follower.source.links if link.up] == list(names)


@needs_sshd
@pytest.mark.xdist_group("sshd")
async def test_rank_directories_and_runs_that_appear_on_hosts_are_read(monkeypatch):
    sshd = Sshd()
    try:
        for number in range(3):
            sshd.disk(number)
        RunBuilder(sshd.disk(0) / "run").rank(0).start()
        sshd.start()
        settings = Config(options=Options(ssh_config=str(sshd.config)))
        async with following(await open_source(parse(f"ssh://worker-[0-2]{sshd.path}/run", settings))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            run = RunBuilder(sshd.disk(1) / "run")
            await follower.until(lambda f: up(f, "worker-0", "worker-1"))
            run.rank(1).start()
            RunBuilder(sshd.disk(0) / "run").rank(4).start()
            await follower.until(lambda f: f.status(AttemptKey(1)) and f.status(AttemptKey(4)))
            RunBuilder(sshd.disk(2) / "run").rank(2).start()
            await follower.until(lambda f: f.status(AttemptKey(2)))
            assert up(follower, "worker-0", "worker-1", "worker-2")
    finally:
        sshd.close()


@needs_slurm
@pytest.mark.xdist_group("slurm")
async def test_an_arrays_next_job_joins_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "NODES_AGAIN", 0.5)
    slurm = Slurm(2)
    try:
        slurm.start()
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        first_ends = tmp_path / "first-ends"
        wait = f"sh -c 'until test -e {first_ends} || test $SLURM_ARRAY_TASK_ID = 1; do sleep 0.1; done; exit 3'"
        launcher = f"{sys.executable} -I {MAIN} --run-id job --rank $SLURM_ARRAY_TASK_ID"
        options = '--hold $((SLURM_ARRAY_TASK_ID * 600)) --run-dir "$PWD/$SLURM_ARRAY_TASK_ID"'
        script = f"#!/bin/sh\nexec {launcher} {options} -- {wait}\n"
        (tmp_path / "job").write_text(script)
        argv = ["sbatch", "--parsable", "--array=0-1%1", "--output=/dev/null", f"--chdir={tmp_path}", "job"]
        done = subprocess.run(argv, env=slurm.env, cwd=tmp_path, capture_output=True, text=True, check=True)
        job = done.stdout.strip()
        await asyncio.to_thread(slurm.wait_for, job, "RUNNING")
        async with following(await open_source(parse(f"slurm:{job}"))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            assert len(follower.source.links) == 1
            first_ends.touch()
            await follower.until(lambda f: (status := f.status(AttemptKey(1))) and status.hold_until, 60)
            assert len(follower.source.links) == 2
            assert follower.status(AttemptKey(0)).rank == 0
    finally:
        slurm.close()


@needs_docker
@pytest.mark.xdist_group("docker")
async def test_a_container_that_is_started_later_joins_and_one_that_is_made_anew_is_followed_on(tmp_path, monkeypatch):
    docker = Docker()
    try:
        docker.start()
        monkeypatch.setenv("DOCKER_HOST", docker.env["DOCKER_HOST"])

        def launch(rank, code):
            docker.run(f"worker-{rank}", sys.executable, "-I", str(MAIN), "--run-id=job", f"--rank={rank}",
                       "--hold=600", "--run-dir=/data/run", "--", "sh", "-c", f"exit {code}")  # fmt: skip

        launch(0, 3)
        async with following(await open_source(parse("docker:worker-0,worker-1/data/run"))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            launch(1, 4)
            held = await follower.until(lambda f: (status := f.status(AttemptKey(1))) and status.hold_until and status)
            assert held.exit_code == 4
            docker.command("rm", "--force", "worker-0")
            launch(0, 5)
            # another disk, so another attempt of the rank
            again = await follower.until(
                lambda f: (status := f.status(AttemptKey(0, 2))) and status.hold_until and status)
            assert again.exit_code == 5
    finally:
        docker.command("rm", "--force", "worker-0", "worker-1")
        docker.close()
