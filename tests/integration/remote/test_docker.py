"""Real containers: the run inside is found by the launcher in it, and a shell opens inside, from the host too."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.docker import Docker, needs_docker
from support.following import following
from support.launching import MAIN
from support.sshd import Sshd, needs_sshd
from support.users import NOBODY
from support.waiting import wait_until
from trainwatch.opening import open_source
from trainwatch.sources.base import SourceError
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey, StatusChanged
from trainwatch_launcher.reader.directory import Reader

pytestmark = [needs_docker, pytest.mark.xdist_group("docker")]


@pytest.fixture(scope="module")
def docker():
    docker = Docker()
    try:
        yield docker.start()
    finally:
        docker.close()


@pytest.fixture
def workers(docker, monkeypatch):
    """Two failed workers that are held."""
    monkeypatch.setenv("DOCKER_HOST", docker.env["DOCKER_HOST"])
    for rank in (0, 1):
        docker.run(f"worker-{rank}", sys.executable, "-I", str(MAIN), "--run-id=job", f"--rank={rank}", "--hold=600",
                   "--run-dir=/data/run", "--", "sh", "-c", f"echo rank {rank}; exit 3",
                   options=("--env", "JOB_FACT=it's 42", "--workdir", "/data"))  # fmt: skip
    yield
    docker.command("rm", "--force", "worker-0", "worker-1")


def held(follower):
    statuses = [follower.status(AttemptKey(rank)) for rank in (0, 1)]
    return all(link.up for link in follower.source.links) and all(status and status.hold_until for status in statuses)


@pytest.mark.parametrize("path", ["", "/data/run"])
async def test_containers_are_read_and_acted_on(docker, workers, path):
    source = await open_source(parse(f"docker:worker-0,worker-1{path}"))
    async with following(source) as follower:
        await follower.until(held)
        assert [(link.name, link.host) for link in source.links] == [("worker-0", "worker-0"), ("worker-1", "worker-1")]
        assert await source.read_log(AttemptKey(1), 0, 99) == b"rank 1\n"
        plan = await source.shell(AttemptKey(1), ("sh", "-c", 'pwd; echo "$JOB_FACT"; hostname'))
        assert plan.argv[:3] == ("docker", "exec", "-it")
        piped = ["docker", "exec", *plan.argv[3:]]
        done = subprocess.run(piped, capture_output=True, text=True, timeout=30)
        assert done.stdout == "/data\nit's 42\nworker-1\n"
        await source.request(AttemptKey(0), "release")
        code = await follower.until(lambda f: f.status(AttemptKey(0)).end_code or f.source.links[0].state == "lost")
        assert code
        assert docker.command("wait", "worker-0").strip() == "3"
        lost = await follower.until(lambda f: f.source.links[0].state == "lost" and f.source.links[0])
        assert lost.reason


async def test_no_process_stays_in_a_container_when_the_viewer_leaves(docker, workers):
    source = await open_source(parse("docker:worker-0"))
    async with following(source) as follower:
        await follower.until(lambda f: f.status(AttemptKey(0)))
    assert "sys.stdin.buffer" not in docker.command("top", "worker-0")


async def test_a_container_that_is_not_there_is_one_error(docker, workers):
    source = await open_source(parse("docker:nobody"))
    async with following(source) as follower:
        lost = await follower.until(lambda f: f.source.links[0].state == "lost" and f.source.links[0])
        assert "No such container: nobody" in lost.reason
    source = await open_source(parse("docker:worker-0/no/such/run"))
    async with following(source) as follower:
        with pytest.raises(SourceError, match="worker-0: /no/such/run does not exist"):
            await follower.until(held)


@pytest.fixture
def host(docker):
    """A host reached by SSH whose user is not root and may use docker; with it a directory that this user owns."""
    place = Path(tempfile.mkdtemp(prefix="tw-host-"))
    os.chown(place, NOBODY, NOBODY)
    docker.base.chmod(0o711)
    (docker.base / "socket").chmod(0o666)  # as the group docker may
    user = place / "user"
    user.write_text(f'#!/bin/sh\nexport HOME=/tmp DOCKER_HOST={docker.env["DOCKER_HOST"]}\n'
                    f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"\n')
    user.chmod(0o755)
    sshd = Sshd()
    try:
        sshd.start(forced=False, command=str(user))
        yield sshd, place
    finally:
        sshd.close()
        shutil.rmtree(place)


def is_held(change):
    return isinstance(change, StatusChanged) and change.status.hold_until is not None


@needs_sshd
def test_a_held_container_is_entered_from_its_host_by_a_user_who_is_not_root(docker, host, tmux, tmp_path):
    sshd, place = host
    docker.run("held", "env", "JOB_FACT=it's 42", sys.executable, "-I", str(MAIN), "--run-id=job", "--rank=0",
               "--hold=600", "--run-dir=/job/run", "--", "sh", "-c", "exit 3",
               options=("--volume", f"{place}:/job", "--user", f"{NOBODY}:{NOBODY}", "--workdir", "/job"))  # fmt: skip
    try:
        reader = Reader(str(place / "run"))
        wait_until(lambda: any(is_held(change) for change in reader.poll()), 30, "the hold")
        settings = tmp_path / "trainwatch"
        settings.mkdir()
        (settings / "config.toml").write_text(f'[options]\nssh_config = "{sshd.config}"\n')
        env = {"XDG_CONFIG_HOME": str(tmp_path), "JOB_FACT": "not this one"}
        show = 'echo "$(hostname):$(pwd):$TRAINWATCH_RANK:${JOB_FACT-none}"; test -t 0 && echo a terminal; sleep 600'
        tmux.start([sys.executable, "-m", "trainwatch", "shell", f"ssh://127.0.0.1{place}/run", "--rank", "0", "--",
                    "sh", "-c", show], env=env, columns=160)  # fmt: skip
        seen = tmux.wait_for("held:/job:0:it's 42", "a terminal", timeout=60)
        assert "exit code 3 · held until" in seen
        assert "inside its container (docker " in seen
    finally:
        docker.command("rm", "--force", "held")


async def test_a_container_that_is_started_later_joins_and_one_that_is_made_anew_is_followed_on(docker, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", docker.env["DOCKER_HOST"])

    def launch(rank, code):
        docker.run(f"worker-{rank}", sys.executable, "-I", str(MAIN), "--run-id=job", f"--rank={rank}",
                   "--hold=600", "--run-dir=/data/run", "--", "sh", "-c", f"exit {code}")  # fmt: skip

    try:
        launch(0, 3)
        async with following(await open_source(parse("docker:worker-0,worker-1/data/run"))) as follower:
            await follower.until(lambda f: f.status(AttemptKey(0)))
            launch(1, 4)
            one = await follower.until(lambda f: (status := f.status(AttemptKey(1))) and status.hold_until and status)
            assert one.exit_code == 4
            docker.command("rm", "--force", "worker-0")
            launch(0, 5)
            # another disk, so another attempt of the rank
            again = await follower.until(
                lambda f: (status := f.status(AttemptKey(0, 2))) and status.hold_until and status)
            assert again.exit_code == 5
            with pytest.raises(SourceError, match="what attempt 1 of rank 0 wrote is gone there"):
                await follower.source.read_log(AttemptKey(0), 0, 9)
    finally:
        docker.command("rm", "--force", "worker-0", "worker-1")
