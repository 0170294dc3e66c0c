"""Hardened commands do what the original meant: run in bash, with stubs for the network and for the training."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.linting import World, cases
from support.waiting import wait_until
from trainwatch.cli import main
from trainwatch.harden.hardening import harden
from trainwatch.lint import follow

SEED = (
    "wget https://data.example/vocab.json; wget https://data.example/corpus.zip; unzip corpus.zip; "
    "git clone https://git.example/org/repo.git; cd repo; "
    "bash train/7B1_test.sh $MASTER_ADDR $MASTER_PORT $WORLD_SIZE $RANK 2>&1 | tee /LOG/train.log\n"
)
TRAINING = 'echo "training with $*"\necho "a warning" >&2\nexit "${TRAINING_EXIT:-7}"\n'


class Field(World):
    """The world of the command from the field: downloads and clones that leave files, and a record of them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        launcher = Path(sys.executable).parent / "trainwatch-launch"
        self.stub("trainwatch-launch", f'exec {launcher} "$@"')
        for name in ("sleep", "rm", "python3", "kill", "seq"):
            real = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True).stdout.strip()
            if real.startswith("/"):
                (self.bin / name).unlink(missing_ok=True)
                (self.bin / name).symlink_to(real)
        self.stub("wget", 'echo "wget $1" >> "$DONE"; file=${1##*/}; [ "$2" = -O ] && file=$3; echo content > "$file"')
        self.stub("unzip", 'echo "unzip" >> "$DONE"; exit 0')
        self.stub("git", 'echo "git $1" >> "$DONE"; mkdir -p repo/train; cp "$TRAINING" repo/train/7B1_test.sh')
        self.stub("cp", 'cat "$1" > "$2"')
        self.place = root / "job"
        self.place.mkdir()
        (root / "training").write_text(TRAINING)
        self.done = root / "done"

    def environment(self, **more: str) -> dict[str, str]:
        """What the platform sets in a worker."""
        return {"PATH": str(self.bin), "DONE": str(self.done), "TRAINING": str(self.root / "training"),
                "HOME": str(self.root), "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2",
                "RANK": "1", "TRAINWATCH_HOLD": "0", **more}  # fmt: skip

    def start(self, script: Path, **more: str) -> subprocess.Popen[str]:
        """Start a script in the job's directory."""
        return subprocess.Popen(["bash", str(script)], cwd=self.place, env=self.environment(**more), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)  # fmt: skip

    def what_was_done(self) -> list[str]:
        """The downloads that were made."""
        return self.done.read_text().splitlines() if self.done.exists() else []


@pytest.fixture
def field(tmp_path):
    return Field(tmp_path)


def hardened(field: Field, *options: str) -> Path:
    seed = field.root / "seed.sh"
    seed.write_text(SEED.replace("/LOG", str(field.root / "log")))
    (field.root / "log").mkdir(exist_ok=True)
    out = field.root / "start.sh"
    assert main(["harden", str(seed), "-o", str(out), *options]) == 0
    return out


def test_the_command_from_the_field_keeps_its_code_its_log_and_its_phases(field, capsys):
    hardened(field)
    original = field.start(field.root / "seed.sh")
    original.communicate(timeout=60)
    assert original.returncode == 0, "tee hides the failure"
    field.done.unlink()
    subprocess.run(["rm", "-rf", str(field.place)], check=True)
    field.place.mkdir()

    prepared = field.start(field.root / "start.prepare.sh")
    prepared.communicate(timeout=60)
    assert prepared.returncode == 0
    downloads = field.what_was_done()
    assert sorted(downloads) == sorted(["wget https://data.example/vocab.json", "wget https://data.example/corpus.zip",
                                        "unzip", "git clone"])  # fmt: skip
    job = field.start(field.root / "start.sh")
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 7
    assert "training with 10.0.0.1 29500 2 1" in output
    assert "WARNING" not in output.replace("a warning", "")
    assert field.what_was_done() == downloads, "nothing is downloaded while GPUs wait"
    (run,) = [path.parent for path in (field.root / "log").rglob("events.jsonl")]
    assert (run / "output.log").read_text() == "training with 10.0.0.1 29500 2 1\na warning\n"
    codes = [json.loads(line)["code"] for line in (run / "events.jsonl").read_text().splitlines() if '"end"' in line]
    assert codes == [7]


def test_a_job_that_was_not_prepared_prepares_itself_and_says_so(field):
    job = field.start(hardened(field), TRAINING_EXIT="0")
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 0
    assert "WARNING: start.prepare.sh was not run before the job" in output
    assert len(field.what_was_done()) == 4


def test_bash_alone_keeps_the_code_and_the_log_and_holds_until_it_is_told_to_end(field):
    log = field.root / "log" / "train.log"
    job = field.start(hardened(field, "--bash-only"), TRAINWATCH_HOLD="600")
    assert job.stdout is not None
    held = next(line for line in job.stdout if "held 600 s" in line)
    assert held.startswith("exit code 7: ")
    assert log.read_text() == "training with 10.0.0.1 29500 2 1\na warning\n"
    assert job.poll() is None
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(timeout=30) == 7
    job.stdout.close()
    # the hold's own sleep is gone with it
    wait_until(lambda: group_is_gone(job.pid), what="all processes of the job are gone")


def group_is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_bash_alone_ends_at_once_when_all_went_well(field):
    job = field.start(hardened(field, "--bash-only"), TRAINING_EXIT="0", TRAINWATCH_HOLD="600")
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 0
    assert "=== [Phase] Train ===" in output


def test_hardened_scripts_fail_when_their_training_fails_and_run_as_before_when_it_does_not(tmp_path):
    failing = World(tmp_path)
    (tmp_path / "good").mkdir()
    good = World(tmp_path / "good")
    good.stub("torchrun", 'echo "torchrun $*"')
    good.stub("python", 'echo "python $*"')
    for world in (failing, good):
        world.stub("trainwatch-launch", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    tried = 0
    for case in cases():
        if not case.title.startswith(("or ", "pipe", "PIPE", "echo", "set ", "only", "exit", "main", "and ", "if ",
                                      "wait l", "f ", "trap s", "trap e", "local", "readonly", "three")):  # fmt: skip
            continue
        if case.title in ("if then else strict", "pipe or true", "if absent"):
            continue
        better = harden(case.script.encode(), "x.sh", "", follow.NoFiles(), "/nowhere").text.decode()
        code, ran, output = failing.run(better)
        assert not ran or code != 0, f"{case.title}\n{better}\n{output}"
        before, after = good.run(case.script), good.run(better)
        said = [line for line in after[2].splitlines() if "[Phase]" not in line]
        assert (after[0], sorted(said)) == (before[0], sorted(before[2].splitlines())), f"{case.title}\n{better}"
        tried += 1
    assert tried > 40
