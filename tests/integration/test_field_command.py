"""The command from the field: two workers that run the entry script of a real job under the launcher."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.pythons import every_python
from support.waiting import wait_until
from trainwatch_launcher.rundir import state

FIELD = Path(__file__).resolve().parents[1] / "data" / "field"
SETUP, TORCHRUN, UPLOAD = "Environment Setup Complete", "Launching torchrun", "Training Finished, Starting Upload"


def entry(rank: int) -> list[str]:
    """The command of one worker, as the platform's shell has expanded it."""
    return ["bash", "train/7B1_test.sh", "10.0.0.1", "29500", "2", str(rank)]


def environment(rank: int, **more: str) -> dict[str, str]:
    """What the platform sets in one worker."""
    return {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": str(rank), **more}


def output_without_launcher(launch, rank: int, **more: str) -> bytes:
    """What the script writes by itself, stdout and stderr in their order."""
    env = launch.environment(environment(rank, PYTHONUNBUFFERED="1", **more))
    return subprocess.run(entry(rank), cwd=FIELD, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


@every_python
def test_two_workers_keep_their_codes_their_phases_and_every_byte_of_their_output(launch, python):
    how = {"cwd": FIELD, "python": python}
    well = launch.start(*entry(0), rank=0, env=environment(0), **how)
    broken = launch.start(*entry(1), rank=1, env=environment(1, FIELD_EXIT="3"), **how)

    assert (well.wait().code, broken.wait().code) == (0, 3)
    assert well.phases() == [SETUP, TORCHRUN, UPLOAD]
    assert broken.phases() == [SETUP, TORCHRUN]
    assert well.log() == output_without_launcher(launch, 0)
    assert broken.log() == output_without_launcher(launch, 1, FIELD_EXIT="3")
    assert well.out == well.log()
    assert broken.out == broken.log()
    assert [launched.events("end")[0].integer("code") for launched in (well, broken)] == [0, 3]


def test_phase_offsets_lead_to_the_lines_that_announced_them(launch):
    launched = launch(*entry(0), env=environment(0), cwd=FIELD)
    log = launched.log()
    marked = [event for event in launched.events("phase") if event.text("source") == "marker"]
    lines = [log[event.integer("offset"):].split(b"\n", 1)[0] for event in marked]
    assert lines == [
        f"=== [Phase] {SETUP} ===".encode(),
        f"=== [Phase] {TORCHRUN} ===".encode(),
        f"[2025-11-28 12:00:00] [worker-0] === [Phase] {UPLOAD} ===".encode(),
    ]


def test_a_failed_worker_is_held_and_keeps_its_code_when_the_hold_is_ended(launch):
    launched = launch.start(*entry(1), rank=1, env=environment(1, FIELD_EXIT="3"), cwd=FIELD, options=["--hold=600"])
    hold = launched.wait_for_event("hold")
    assert (hold.integer("code"), hold.number("seconds")) == (3, 600)
    wait_until(lambda: state.state_of(launched.status(), hold.time) == state.HELD, what="state held")
    assert launched.process.poll() is None

    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=10).code == 3
    assert launched.events("release")[0].text("why") == "signal"


def test_a_worker_that_succeeds_is_not_held(launch):
    launched = launch(*entry(0), env=environment(0), cwd=FIELD, options=["--hold=600"])
    assert launched.code == 0
    assert not launched.events("hold")


@pytest.mark.parametrize("command", [entry(0), ["python3", "train/7B1_train.py"]], ids=["script", "training alone"])
def test_sigterm_reaches_the_training_itself_which_saves_and_exits_9(launch, command, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    env = environment(0, FIELD_STEPS="0", FIELD_CHECKPOINT=str(checkpoint))
    launched = launch.start(*command, env=env, cwd=FIELD, options=["--hold=600"])
    launched.wait_for_output(b"iteration        3 ")

    launched.signal(signal.SIGTERM)
    assert launched.wait(timeout=20).code == 9
    assert checkpoint.read_text() == "saved"
    assert b"received SIGTERM, saving a checkpoint" in launched.log()
    assert not launched.events("hold"), "a worker that was asked to stop must not be held"


def test_kill_1_inside_the_container_ends_the_hold_at_once_with_the_original_code(launch):
    unprivileged = os.geteuid() != 0
    namespace = ["unshare", *(["--user", "--map-root-user"] if unprivileged else []), "--pid", "--fork", "--mount-proc"]
    launched = launch.start(*entry(1), rank=1, env=environment(1, FIELD_EXIT="3"), cwd=FIELD,
                            options=["--hold=600"], before=namespace)
    launched.wait_for_event("hold")
    assert launched.status().launcher_pid == 1

    inside = children_of(launched.process.pid)[0]
    enter = ["nsenter", *(["--user", "--preserve-credentials"] if unprivileged else []), "--pid", "--mount"]
    # the namespace may end, and take `kill` with it, before that has returned
    subprocess.run([*enter, f"--target={inside}", "kill", "1"], check=False)
    assert launched.wait(timeout=10).code == 3
    assert launched.events("release")[0].text("why") == "signal"
    assert launched.events("end")[0].integer("code") == 3


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_phases_are_on_screen(launch, tmux):
    well = launch.start(*entry(0), rank=0, env=environment(0), cwd=FIELD)
    broken = launch.start(*entry(1), rank=1, env=environment(1, FIELD_EXIT="3"), cwd=FIELD, options=["--hold=600"])
    broken.wait_for_event("hold")
    well.wait()

    tmux.start([str(Path(sys.executable).parent / "trainwatch"), str(launch.run)], columns=160, lines=45)
    tmux.wait_for("Training Finished", TORCHRUN, "rank 1", "failed first", "exit 3")
    tmux.send("g")
    tmux.send("Enter")
    tmux.wait_for("rank 0", "phases", SETUP, TORCHRUN, UPLOAD)
    tmux.send("q")
    assert tmux.wait_for_exit() == 0
