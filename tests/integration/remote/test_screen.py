"""The screen on a run that lies on four hosts: one table, the log, the hosts and what became of them, a shell."""
from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import pytest

from builders import RunBuilder, at
from support.sshd import Sshd, children, needs_sshd
from support.waiting import wait_until

pytestmark = [needs_sshd, pytest.mark.xdist_group("sshd")]


@pytest.fixture
def sshd():
    sshd = Sshd()
    now = time.time()
    for rank in range(4):
        run = RunBuilder(sshd.disk(rank) / "run", world_size=4)
        attempt = run.rank(rank, host=f"gpu-{rank}", time=now + 3600).start(now - 60).phase("Train", now - 50)
        attempt.output(f"hello from rank {rank}\n".encode(), now - 1)
        sshd.runs = {**getattr(sshd, "runs", {}), rank: run}
    yield sshd.start()
    sshd.close()


def test_hosts_are_one_run_on_the_screen_and_a_lost_one_is_told(sshd, tmux, tmp_path):
    settings = tmp_path / "trainwatch"
    settings.mkdir()
    (settings / "config.toml").write_text(f'[options]\nssh_config = "{sshd.config}"\n')
    target = f"ssh://worker-[0-3]{sshd.path}/run"
    env = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": os.environ.get("HOME", "/root")}
    tmux.start([sys.executable, "-m", "trainwatch", target], columns=140, lines=36, env=env)
    tmux.wait_for("gpu-0", "gpu-3", "4 hosts", "hello from rank 0", "4 running")

    attempt = at(sshd.runs[2], 2)
    attempt.output(b"ValueError: boom\n", time.time()).fail(3, time.time(), reason="ValueError: boom", hold=600)
    tmux.wait_for("rank 2 on gpu-2 failed first: exit 3", "ValueError: boom")

    tmux.send("H")
    tmux.wait_for("worker-0", "worker-3", "connected")
    tmux.send("Escape")

    go_down(sshd)
    tmux.wait_for("0/4 hosts", timeout=30)
    tmux.send("H")
    tmux.wait_for("again in", timeout=30)
    assert "gpu-0" in tmux.screen() or "worker-0" in tmux.screen()
    tmux.send("Escape")

    sshd.start()
    tmux.wait_for("  4 hosts", timeout=60)
    at(sshd.runs[0], 0).output(b"still here\n", time.time())
    tmux.send("g")
    tmux.wait_for("still here", timeout=20)
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
    wait_until(lambda: not sshd.sessions(), 10, "the connections' end")


def go_down(sshd: Sshd) -> None:
    """The hosts listen no more, and break what they have."""
    sessions = sshd.sessions()
    sshd.stop()
    for pid in sessions:
        for child in [*children(pid), pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def test_what_cannot_be_reached_at_all_is_said_on_the_screen(sshd, tmux, tmp_path):
    settings = tmp_path / "trainwatch"
    settings.mkdir()
    (settings / "config.toml").write_text(f'[options]\nssh_config = "{sshd.config}"\n')
    sshd.stop()
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    tmux.start([sys.executable, "-m", "trainwatch", f"ssh://worker-0{sshd.path}/run"], columns=100, lines=30, env=env)
    tmux.wait_for("worker-0 is lost", "refused")
    tmux.send("H")
    tmux.wait_for("esc closes")
    tmux.send("q")
    wait_until(lambda: "esc closes" not in tmux.screen(), what="the page to close")
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
