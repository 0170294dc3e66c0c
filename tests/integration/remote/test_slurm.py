"""A real Slurm of two nodes: the run of a job is found by the launchers in it, and shells open on their nodes."""
from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from support.following import following
from support.launching import MAIN
from support.slurm import Slurm, needs_slurm
from support.waiting import wait_until
from trainwatch import opening
from trainwatch.opening import open_source
from trainwatch.sources.base import SourceError
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey

pytestmark = [needs_slurm, pytest.mark.xdist_group("slurm")]


@pytest.fixture(scope="module")
def slurm():
    slurm = Slurm(2)
    try:
        yield slurm.start()
    finally:
        slurm.close()


@pytest.fixture
def job(slurm, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    job = slurm.allocate(2)
    yield job
    slurm.command("scancel", job)


def launch(slurm, job, run, command):
    """Training as a job runs it: one launcher on each node. Each node's disk is its own."""
    launcher = f'{sys.executable} -I {MAIN} --hold 600 --run-id job --run-dir "{run}/$SLURMD_NODENAME"'
    return slurm.start_step(job, "sh", "-c", f"exec {launcher} -- {command}")


def failed(follower):
    links = follower.source.links
    statuses = [follower.status(AttemptKey(rank)) for rank in (0, 1)]
    return all(link.up for link in links) and all(status and status.hold_until for status in statuses)


async def test_a_jobs_run_is_found_read_and_acted_on_node_by_node(slurm, job, tmp_path):
    launch(slurm, job, tmp_path, "sh -c 'echo rank $TRAINWATCH_RANK; exit 3'")
    source = await open_source(parse(f"slurm:{job}"))
    async with following(source) as follower:
        await follower.until(failed, 60)
        assert [link.name for link in source.links] == ["n0", "n1"]
        assert [link.directory for link in source.links] == [f"{tmp_path}/n0", f"{tmp_path}/n1"]
        assert await source.read_log(AttemptKey(1), 0, 99) == b"rank 1\n"
        plan = await source.shell(AttemptKey(1), ("sh", "-c", "echo $SLURM_PROCID $TRAINWATCH_RANK; pwd"))
        assert plan.argv[0] == "srun"
        assert "--pty" in plan.argv
        piped = [word for word in plan.argv if word != "--pty"]
        done = subprocess.run(piped, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        assert done.stdout.split() == ["1", "1", os.getcwd()]
        request = await source.request(AttemptKey(0), "release")
        answered = await follower.until(
            lambda f: [one for one in f.events(AttemptKey(0)) if one.event == "control"], 20)
        assert (answered[0].text("id"), answered[0].text("result")) == (request, "done")
        await source.request(AttemptKey(1), "release")


async def test_a_job_whose_nodes_share_a_disk_is_read_once(slurm, job, tmp_path):
    slurm.start_step(job, sys.executable, "-I", str(MAIN), "--hold", "600", "--run-dir", str(tmp_path / "run"), "--",
                     "false")
    source = await open_source(parse(f"slurm:{job}"))
    async with following(source) as follower:
        await follower.until(failed, 60)
        assert sorted(link.spare for link in source.links) == [False, True]
        for rank in (0, 1):
            await source.request(AttemptKey(rank), "release")


async def test_a_job_that_does_not_run_is_one_error(slurm, job):
    slurm.command("scancel", job)
    wait_until(lambda: "RUNNING" not in slurm.command("squeue", "-h", "-j", job, "-o", "%T"))
    with pytest.raises(SourceError, match=rf"slurm:{job}: the job is not running"):
        await open_source(parse(f"slurm:{job}"))
    with pytest.raises(SourceError, match=r"squeue: .*Invalid job id"):
        await open_source(parse("slurm:999999"))


async def test_a_job_without_a_launcher_says_what_to_do(slurm, job):
    source = await open_source(parse(f"slurm:{job}"))
    async with following(source) as follower:
        with pytest.raises(SourceError, match="no launcher runs here; name the run directory"):
            await follower.until(failed, 60)


async def test_an_arrays_next_job_joins_the_run(slurm, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "NODES_AGAIN", 0.5)
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    first_ends = tmp_path / "first-ends"
    wait = f"sh -c 'until test -e {first_ends} || test $SLURM_ARRAY_TASK_ID = 1; do sleep 0.1; done; exit 3'"
    launcher = f"{sys.executable} -I {MAIN} --run-id job --rank $SLURM_ARRAY_TASK_ID"
    options = '--hold $((SLURM_ARRAY_TASK_ID * 600)) --run-dir "$PWD/$SLURM_ARRAY_TASK_ID"'
    (tmp_path / "job").write_text(f"#!/bin/sh\nexec {launcher} {options} -- {wait}\n")
    argv = ["sbatch", "--parsable", "--array=0-1%1", "--output=/dev/null", f"--chdir={tmp_path}", "job"]
    done = subprocess.run(argv, env=slurm.env, cwd=tmp_path, capture_output=True, text=True, check=True)
    job = done.stdout.strip()
    try:
        await asyncio.to_thread(slurm.wait_for, job, "RUNNING")
        async with following(await open_source(parse(f"slurm:{job}"))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            assert len(follower.source.links) == 1
            first_ends.touch()
            await follower.until(lambda f: (status := f.status(AttemptKey(1))) and status.hold_until, 60)
            assert len(follower.source.links) == 2
    finally:
        slurm.command("scancel", job)
        await asyncio.to_thread(wait_until, lambda: not slurm.command("squeue", "-h", "-j", job), 30, "the job's end")
