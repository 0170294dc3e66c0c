"""Commands on a run elsewhere: the same words, the same exit codes."""
from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest

from builders import RunBuilder
from support.sshd import Sshd, children, keygen, needs_sshd
from support.waiting import wait_until

pytestmark = [needs_sshd, pytest.mark.xdist_group("sshd")]


@pytest.fixture(scope="module")
def sshd():
    """Four hosts with a rank each, whose clocks agree with ours; rank 2 has failed."""
    sshd = Sshd()
    now = time.time()
    for rank in range(4):
        run = RunBuilder(sshd.disk(rank) / "run", world_size=4)
        attempt = run.rank(rank, host=f"gpu-{rank}", time=now + 3600).start(now - 60)
        if rank == 2:
            attempt.fail(3, now - 5, reason="ValueError: boom", hold=600)
    yield sshd.start()
    sshd.close()


@pytest.fixture
def trainwatch(sshd, tmp_path):
    """Runs the program with a configuration that names the hosts."""
    settings = tmp_path / "trainwatch"
    settings.mkdir()
    (settings / "config.toml").write_text(
        f'[options]\nssh_config = "{sshd.config}"\n[targets]\nprod = "ssh://worker-[0-3]{sshd.path}/run"\n')

    def run(*words, **options):
        env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
        return subprocess.run([sys.executable, "-m", "trainwatch", *words], env=env, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL, **options)

    return run


@pytest.mark.parametrize("form", ["name", "url"])
def test_status_reads_all_hosts_as_one_run(sshd, trainwatch, form):
    target = "prod" if form == "name" else f"ssh://worker-[0-3]{sshd.path}/run"
    done = trainwatch("status", target, "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["run"]["counts"] == {"running": 3, "held": 1}
    assert [rank["host"] for rank in told["ranks"]] == [f"gpu-{rank}" for rank in range(4)]
    assert told["run"]["first_failure"]["reason"] == "ValueError: boom"
    assert done.stderr == ""
    wait_until(lambda: not any(children(pid) for pid in sshd.sessions()), 10, "the agents' end")


def test_status_names_the_hosts_that_it_could_not_reach(sshd, trainwatch):
    done = trainwatch("status", f"ssh://worker-[0-1],127.0.3.1{sshd.path}/run")
    assert "2 of 4 ranks" in done.stdout
    assert re.search(r"127\.0\.3\.1: not connected: .*its host key is not known", done.stdout)


@pytest.mark.parametrize(("target", "said"), [
    ("ssh://worker-0/no/such/run", "worker-0: /no/such/run does not exist"),
    ("ssh://no-such-host.invalid/run", "no-such-host.invalid: "),
    ("ssh://worker-[0-/run", "ssh://worker-[0-/run: "),
    ("slurm:x", "is no job id"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_line_and_exit_code_2(trainwatch, target, said):
    done = trainwatch("status", target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("trainwatch: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_locked_key_is_opened_before_anything_else(sshd, trainwatch, tmp_path, tmux):
    keygen(tmp_path / "locked", "sesame")
    with (sshd.base / "authorized_keys").open("a") as keys:
        keys.write((tmp_path / "locked.pub").read_text())
    config = tmp_path / "locked_config"
    config.write_text(sshd.config.read_text().replace(str(sshd.key), str(tmp_path / "locked")))
    settings = tmp_path / "trainwatch" / "config.toml"
    settings.write_text(settings.read_text().replace(str(sshd.config), str(config)))
    tmux.start([sys.executable, "-m", "trainwatch", "status", "prod"], env={"XDG_CONFIG_HOME": str(tmp_path)})
    tmux.wait_for(f"passphrase for {tmp_path}/locked:")
    tmux.type("wrong")
    tmux.send("Enter")
    tmux.wait_for("that was wrong; passphrase for")
    tmux.type("sesame")
    tmux.send("Enter")
    assert "3 running, 1 held" in tmux.wait_for("first failure: rank 2")
    assert tmux.wait_for_exit() == 1
    done = trainwatch("status", "prod")
    assert done.returncode == 2
    assert f"the passphrase for {tmp_path}/locked is needed" in done.stderr


def test_a_host_behind_another_is_reached_through_it(sshd, trainwatch, tmp_path):
    config = tmp_path / "jump_config"
    jump = f"Host inner\n  HostName 127.0.2.3\n  ProxyJump worker-0\nHost piped\n  HostName 127.0.2.3\n" \
           f"  ProxyCommand ssh -F {sshd.config} -W %h:%p worker-1\n"
    config.write_text(jump + sshd.config.read_text())
    settings = tmp_path / "trainwatch" / "config.toml"
    settings.write_text(settings.read_text().replace(str(sshd.config), str(config)))
    for host in ("inner", "piped"):
        done = trainwatch("status", f"ssh://{host}{sshd.path}/run", "--json")
        assert done.returncode == 1, done.stderr
        assert [rank["rank"] for rank in json.loads(done.stdout)["ranks"]] == [2]


def test_a_terminal_opens_on_another_host_without_openssh(sshd, tmux):
    command = "stty size; printf 'name? '; read name; echo \"hello $name\"; exit 7"
    words = ["-F", str(sshd.config), "worker-0", f"sh -c {shlex.quote(command)}"]
    tmux.start([sys.executable, "-m", "trainwatch.sources.ssh_terminal", *words], columns=90, lines=20)
    tmux.wait_for("20 90", "name?")
    tmux.type("rank 3")
    tmux.send("Enter")
    tmux.wait_for("hello rank 3")
    assert tmux.wait_for_exit() == 7


def test_a_hold_is_ended_and_a_shell_opened_over_ssh(sshd, trainwatch, launch):
    directory = sshd.disk(9) / "run"
    launched = launch.start("sh", "-c", "exit 3", options=[f"--run-dir={directory}", "--hold=600"])
    launched.run = directory
    launched.wait_for_event("hold")
    target = f"ssh://worker-9{sshd.path}/run"

    inside = trainwatch("shell", target, "--rank", "0", "--", "sh", "-c", "pwd; echo rank=$TRAINWATCH_SHELL")
    assert inside.returncode == 0, inside.stderr
    assert inside.stdout.splitlines()[0] == str(launch.directory)

    longer = trainwatch("hold", target, "--rank", "0", "--extend", "2h")
    assert longer.returncode == 0, longer.stderr
    assert "more, until" in longer.stdout
    ended = trainwatch("hold", target, "--rank", "0", "--release")
    assert ended.returncode == 0, ended.stderr
    assert launched.wait(timeout=15).code == 3
    assert launched.events("release")[0].text("why") == "command"
