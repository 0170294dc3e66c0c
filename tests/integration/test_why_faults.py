"""Real failures of a known rank, through launchers and the run directory to `trainwatch why` and the viewer's model."""
from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.launching import MAIN
from support.waiting import wait_until
from trainwatch.model.failure import first_failure
from trainwatch.model.state import EMPTY, apply
from trainwatch_launcher.reader.directory import Reader

FAULTS = {
    "exception": ("raise KeyError('tokens')", "python_error", 1),
    "shape": ("raise ValueError('shapes (2,9) and (8,4) not aligned')", "python_error", 1),
    "kill": ("os.kill(os.getpid(), 9)", "killed", 137),
    "segv": ("import ctypes; ctypes.string_at(0)", "native_crash", 139),
    "exit": ("sys.exit(3)", "unknown", 3),
}
WORKER = """
import os, sys, time
rank, gone = int(os.environ["TRAINWATCH_RANK"]), "gone"
print("step 1 loss 2.0", flush=True)
if rank == 2:
    open(gone, "w").close()
    FAULT
while not os.path.exists(gone):
    time.sleep(0.01)
raise RuntimeError("[gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:1708")
"""
TORCH = """
import os, signal, sys, time, torch, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=10))
rank = dist.get_rank()
for step in range(1, 100):
    if rank == 2 and step == 3:
        FAULT
    dist.all_reduce(torch.ones(4))
    time.sleep(0.02)
"""
TORCH_FAULTS = {**FAULTS, "hang": ("time.sleep(300)", "nccl_timeout", None),
                "shape": ("torch.nn.Linear(8, 4)(torch.zeros(2, 9))", "python_error", 1)}  # fmt: skip


def why(run: Path) -> dict:
    trainwatch = [sys.executable, "-m", "trainwatch", "why", "--json", str(run)]
    return json.loads(subprocess.run(trainwatch, capture_output=True, timeout=60, check=False).stdout)


def launch(
    directory: Path, rank: int, world_size: int, *command: str, options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    where = [f"--run-dir={directory / 'run'}", f"--rank={rank}", f"--world-size={world_size}", "--hold=0", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWATCH_")}
    return subprocess.Popen([sys.executable, "-I", str(MAIN), *where, *options, "--", *command], cwd=directory,
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rank_and_the_kind_are_told(tmp_path, fault):
    words, kind, code = FAULTS[fault]
    script = tmp_path / "train.py"
    script.write_text(WORKER.replace("FAULT", words))
    workers = [launch(tmp_path, rank, 4, sys.executable, str(script)) for rank in range(4)]
    for worker in workers:
        worker.wait(60)
    told = why(tmp_path / "run")
    assert (told["kind"], told["root_cause_rank"], told["exit_code"], told["collateral_ranks"]) == (
        kind, 2, code, [0, 1, 3])
    assert {told["ranks"][rank] for rank in "013"} == {"peer_lost"}
    seen = first_failure(apply(EMPTY, Reader(tmp_path / "run").poll()))
    assert (seen.label, seen.cause.kind) == ("2", kind)


STEPS = """
import os, sys, time
sys.path.insert(0, "site-packages")
from torch.distributed.distributed_c10d import all_reduce

def load():
    time.sleep(1000)

for step in range(1, 4):
    print("step %d/100 | loss: 2.0" % step, flush=True)
load() if os.environ["TRAINWATCH_RANK"] == "1" else all_reduce()
"""


def test_a_silent_hang_is_named_by_the_stacks_that_launchers_take_at_a_stall(tmp_path):
    place = tmp_path / "site-packages" / "torch" / "distributed"
    place.mkdir(parents=True)
    (place / "distributed_c10d.py").write_text("import time\ndef all_reduce():\n    time.sleep(1000)\n")
    (tmp_path / "train.py").write_text(STEPS)
    options = ["--stall-dump", "--stall-after=1", "--heartbeat=0.2"]
    workers = [launch(tmp_path, rank, 3, sys.executable, "train.py", options=options) for rank in range(3)]
    try:
        told = wait_until(lambda: "while 2 wait" in (told := why(tmp_path / "run"))["why"] and told, 90, "the rank")
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait(60)
    assert (told["kind"], told["root_cause_rank"]) == ("hang", 1)
    assert told["why"] == "rank 1 is in train.py:7 (load), while 2 wait in all_reduce at train.py:11"


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_the_stacks_of_torchrun_s_workers_are_told_apart_from_its_own(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TORCH.replace("seconds=10", "seconds=600").replace("FAULT", "time.sleep(300)"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=3", "--nproc-per-node=1",
                "--master-addr=127.0.0.1", "--master-port=29873"]  # fmt: skip
    nodes = [launch(tmp_path, node, 3, *torchrun, f"--node-rank={node}", str(script)) for node in range(3)]
    trainwatch = [sys.executable, "-m", "trainwatch", "stacks", str(tmp_path / "run")]

    def folded() -> str:
        return subprocess.run(trainwatch, capture_output=True, text=True, timeout=60, check=False).stdout

    try:
        told = wait_until(lambda: (told := folded()).startswith("2 ranks in all_reduce at train.py:9 ") and told, 100)
    finally:
        for node in nodes:
            node.terminate()
            node.wait(60)
    assert "rank 2  in train.py:8 (<module>)  <- not where most ranks are" in told
    assert "what starts the trainers:\n3 ranks in " in told


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("fault", TORCH_FAULTS)
def test_the_process_inside_a_container_of_torchrun_is_told(tmp_path, fault):
    words, kind, code = TORCH_FAULTS[fault]
    script = tmp_path / "train.py"
    script.write_text(TORCH.replace("FAULT", words))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2",
                "--master-addr=127.0.0.1", "--master-port=29871"]  # fmt: skip
    nodes = [launch(tmp_path, node, 2, *torchrun, f"--node-rank={node}", str(script)) for node in range(2)]
    for node in nodes:
        node.wait(120)
    told = why(tmp_path / "run")
    assert (told["kind"], told["root_cause_rank"], told["inner_rank"], told["collateral_ranks"]) == (kind, 1, 2, [0])
    assert code in (None, told["exit_code"])
