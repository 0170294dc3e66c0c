"""A shell beside a held rank, on real launchers: its hold does not run out, in a window of tmux either."""
from __future__ import annotations

import subprocess
import sys
import time

import pytest

from support.waiting import wait_until

TRAINWATCH = [sys.executable, "-m", "trainwatch"]


def held(launch, seconds):
    """A worker that has failed, and when its hold would end."""
    worker = launch.start("sh", "-c", "exit 3", options=[f"--hold={seconds}"])
    until = worker.wait_for_event("hold").number("until")
    return worker, until


def shell(run, *options, env):
    return subprocess.Popen([*TRAINWATCH, "shell", str(run), "--rank", "0", *options], env=env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def watch(tmux, run, **env):
    """The viewer in tmux's first window, which stays after its end; others go with what runs in them."""
    tmux.start([*TRAINWATCH, str(run)], columns=150, env={"TMUX": tmux.inside, **env})
    tmux.tmux("set-option", "-w", "-t", ":0", "remain-on-exit", "on", ";", "set-option", "-g", "remain-on-exit", "off")
    tmux.wait_for("rank 0", "failed first: exit 3")


def test_a_command_beside_a_held_rank_outlives_the_holds_deadline(launch):
    worker, until = held(launch, 15)
    beside = shell(launch.run, "--", "sh", "-c", "read line; exit 7", env=launch.environment())
    extended = worker.wait_for_event("hold-extended")
    assert extended.number("until") > until + 600
    wait_until(lambda: time.time() > until + 1, 60)
    assert worker.process.poll() is None
    assert worker.status().ended is None
    _, said = beside.communicate("go\n", timeout=30)
    assert beside.returncode == 7
    assert "the hold is kept while this is open" in said
    done = subprocess.run([*TRAINWATCH, "hold", str(launch.run), "--all", "--release"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert worker.wait().code == 3


@pytest.mark.parametrize("how", ["option", "configuration"])
def test_a_hold_that_is_not_to_be_kept_is_left_alone(launch, tmp_path, how):
    worker, _ = held(launch, 50)  # so little that it would be extended at once
    (tmp_path / "trainwatch").mkdir()
    (tmp_path / "trainwatch" / "config.toml").write_text("[shell]\nkeep_hold = false\n" if how != "option" else "")
    env = launch.environment({"XDG_CONFIG_HOME": str(tmp_path)})
    options = ["--no-keep-hold"] if how == "option" else []
    beside = shell(launch.run, *options, "--", "sh", "-c", "echo here; read line", env=env)
    assert beside.stdout.readline() == "here\n"
    time.sleep(3)  # time to do the wrong thing
    _, said = beside.communicate("go\n", timeout=30)
    assert "kept" not in said
    assert worker.events("hold-extended") == []


def test_in_tmux_a_window_opens_and_the_hold_is_kept_until_it_closes(launch, tmux):
    worker, until = held(launch, 50)
    watch(tmux, launch.run)
    tmux.send("S")
    tmux.wait_for("The hold is kept while this shell is open.")
    assert tmux.windows()[0] == "rank 0"
    tmux.type("echo here-$PWD-$TRAINWATCH_RANK-$((40 + 2))")
    tmux.send("Enter")
    tmux.wait_for(f"here-{launch.directory}-0-42")
    assert worker.wait_for_event("hold-extended").number("until") > until + 600

    tmux.tmux("select-window", "-t", ":0")
    tmux.wait_for("hold kept while your shell is open", "rank 0")
    tmux.tmux("select-window", "-t", ":1")
    tmux.type("exit")
    tmux.send("Enter")
    wait_until(lambda: len(tmux.windows()) == 1, 20, "the window's end")
    wait_until(lambda: "kept" not in tmux.screen(), 20, "the end of keeping")

    tmux.send("S")
    tmux.wait_for("The hold is kept while this shell is open.")
    tmux.tmux("select-window", "-t", ":0")
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
    tmux.tmux("select-window", "-t", ":1")
    tmux.wait_for("the viewer has left: the hold is not kept any more")
    tmux.type("echo still-$((1 + 1))")
    tmux.send("Enter")
    tmux.wait_for("still-2")


def test_a_window_that_a_shell_cannot_start_in_stays_until_it_was_read(launch, tmux, tmp_path):
    broken = tmp_path / "broken-shell"
    broken.write_text("#!/bin/sh\necho 'no such luck'\nexit 9\n")
    broken.chmod(0o755)
    held(launch, 600)
    watch(tmux, launch.run, SHELL=str(broken))
    for key in ("S", "s"):
        tmux.send(key)
        tmux.wait_for("no such luck", "broken-shell ended at once, with exit code 9; Enter goes back")
        tmux.send("Enter")
        tmux.wait_for("failed first: exit 3")
        assert len(tmux.windows()) == 1
    tmux.send("q")
    assert tmux.wait_for_exit() == 0


def test_outside_of_tmux_one_is_told_so(launch, tmux):
    held(launch, 600)
    tmux.start([*TRAINWATCH, str(launch.run)], columns=150)
    tmux.wait_for("rank 0", "failed first: exit 3")
    tmux.send("S")
    tmux.wait_for("S opens a new window of tmux")
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
