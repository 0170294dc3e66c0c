"""The quick starts, as they are written: run with stand-ins for the platform, Slurm, torchrun, Kubernetes and ssh."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from trainwatch.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")
LAUNCHER = Path(sys.executable).parent / "trainwatch-launch"
TRAIN = 'echo "=== [Phase] Train ==="; echo "trained: $*"\n'
TORCHRUN = """\
while [[ ${1-} == --* ]]; do
    case $1 in --no-python) inner=yes; shift ;; *=*) shift ;; *) shift 2 ;; esac
done
[ -n "${inner-}" ] || exec bash -c 'echo "=== [Phase] Train ==="'
status=0
for local in 0 1; do
    TORCHELASTIC_RUN_ID=x RANK=$local LOCAL_RANK=$local WORLD_SIZE=2 GROUP_RANK=0 "$@" || status=1
done
exit "$status"
"""
SRUN = """\
status=0
for task in 0 1; do
    SLURM_JOB_ID=4242 SLURM_PROCID=$task SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=$task \\
        SLURM_STEP_ID=0 "$@" || status=$?
done
exit "$status"
"""
SSH = 'while [[ $1 == -* ]]; do shift; done\nshift\nexec bash -c "$*"\n'


def section(heading: str) -> list[tuple[str, str]]:
    """(language, text) of a section's blocks."""
    body = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in body.split("```")[1::2]]


class Stage:
    """A directory in the place of /shared, and programs in the place of a cluster's."""

    def __init__(self, root: Path) -> None:
        self.root, self.bin = root, root / "bin"
        self.shared = root / "shared"
        (self.shared / "job").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("bash", "sh", "env", "python3", "mkdir", "sleep", "dirname", "uname", "ls", "cat"):
            (self.bin / name).symlink_to(sys.executable if name == "python3" else str(shutil.which(name)))
        for name, body in (("torchrun", TORCHRUN), ("srun", SRUN), ("ssh", SSH), ("python", TRAIN),
                           ("trainwatch-launch", f'exec {LAUNCHER} "$@"\n')):  # fmt: skip
            path = self.bin / name
            path.write_text(f"#!{shutil.which('bash')}\n{body}")
            path.chmod(0o755)
        for place in (self.shared / "job" / "train.sh", self.shared / "job" / "train" / "7B1_test.sh"):
            place.parent.mkdir(exist_ok=True)
            place.write_text(TRAIN)

    def here(self, text: str) -> str:
        """A text of the page with our directory in the place of the shared ones."""
        return text.replace("/mnt/share/", "/shared/").replace("/shared", str(self.shared))

    def run(self, argv: list[str], **env: str) -> None:
        """Run a command to its end, in the job's directory. It must succeed."""
        environment = {"PATH": str(self.bin), "HOME": str(self.shared), "TMPDIR": str(self.root), **env}
        done = subprocess.run(argv, cwd=self.shared / "job", env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)  # fmt: skip
        assert done.returncode == 0, done.stdout

    def bash(self, text: str, **env: str) -> None:
        """Run what stands in a block."""
        self.run(["bash", "-c", self.here(text)], **env)


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def ranks(run: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["status", "--json", str(run)]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["ranks"]
    return found


def two_finished(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ranks(run, capsys)
    assert [(one["rank"], one["exit_code"], one["phase"]) for one in found] == [(0, 0, "Train"), (1, 0, "Train")]


def test_a_platform_s_container(stage, capsys):
    (_, start), (_, watch) = section("A platform's container")
    for rank in "01":
        stage.bash(start, RANK=rank, WORLD_SIZE="2", MASTER_ADDR="10.0.0.1", MASTER_PORT="29500", JOB_NAME="job7")
    two_finished(stage.shared / "runs" / "job7", capsys)
    assert watch.strip() == "trainwatch /mnt/share/runs/$JOB_NAME"


def test_slurm(stage, capsys):
    (_, script), (_, watch) = section("Slurm")
    stage.bash(script)
    two_finished(stage.shared / "runs" / "slurm-4242", capsys)
    assert "trainwatch ~/runs/slurm-4242" in watch


def test_torchrun(stage, capsys):
    (_, outer), (_, nested) = section("torchrun")
    for node in "01":
        stage.bash(outer, NODE_RANK=node, MASTER_ADDR="10.0.0.1")
    two_finished(stage.shared / "runs" / "job7", capsys)
    for node in "01":
        stage.bash(nested.replace("job7", "job8"), NODE_RANK=node, MASTER_ADDR="10.0.0.1")
    run = stage.shared / "runs" / "job8"
    assert sorted({path.parent.parent.name for path in run.rglob("local-*/attempt-1/events.jsonl")}) == [
        "local-00000", "local-00001"]  # fmt: skip


def test_kubernetes(stage, capsys):
    yaml: Any = import_module("yaml")
    assert main(["pack", "-o", str(stage.shared / "trainwatch-launch.pyz")]) == 0
    manifests = [yaml.safe_load(text) for language, text in section("Kubernetes") if language == "yaml"]
    kinds = [(manifest["kind"], containers(manifest)) for manifest in manifests]
    assert [kind for kind, _ in kinds] == ["PyTorchJob", "JobSet"]
    for kind, (container,) in kinds:
        argv = [stage.here(word) for word in container["command"] + container.get("args", [])]
        for index in "01":
            engine = {"RANK": index, "WORLD_SIZE": "2"} if kind == "PyTorchJob" else {"JOB_COMPLETION_INDEX": index}
            stage.run(argv, HOSTNAME=f"job7-worker-{index}", **engine)
        two_finished(stage.shared / "runs" / "job7", capsys)
        shutil.rmtree(stage.shared / "runs")


def containers(value: Any) -> list[dict[str, Any]]:
    """Every container of a manifest."""
    if isinstance(value, dict):
        own = value.get("containers", [])
        return own + [one for key, other in value.items() if key != "containers" for one in containers(other)]
    return [one for other in value for one in containers(other)] if isinstance(value, list) else []


def test_plain_machines(stage, capsys):
    (_, script), (_, watch) = section("Plain machines over SSH")
    stage.bash(script)
    two_finished(stage.shared / "runs" / "job7", capsys)
    assert "trainwatch ssh://node[0-1]/data/runs/job7" in watch


def test_after_a_failure(stage, capsys):
    trace = r'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: broken\n'
    failing = f"bash -c 'printf \"{trace}\" >&2; exit 1'".replace('"train.py"', "train.py")
    stage.bash(f"trainwatch-launch --root /shared/runs --run-id bad --hold 0 -- {failing} || true")
    run = str(stage.shared / "runs" / "bad")
    ((_, block),) = section("After a failure")
    page = str(stage.root / "job7.html")
    commands = [line.replace("RUN", run).replace("job7.html", page).split()[1:] for line in block.splitlines()]
    assert commands[1] == [run]  # the screen
    capsys.readouterr()
    assert main(commands[0]) in (0, 1)
    said = capsys.readouterr().out
    assert "rank 0" in said
    assert "ValueError: broken" in said
    assert main(commands[-1]) == 0
    assert (stage.root / "job7.html").read_bytes().startswith(b"<!")
    for command in commands[3:-1]:
        assert main(command) in (1, 2), "nothing is held here, which is said"

