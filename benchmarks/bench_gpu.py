"""What sampling eight GPUs every second costs, over a stub of NVIDIA's library; the same numbers read by nvitop.

nvitop is used when TRAINWATCH_BENCH_NVITOP names a Python that has it: `python3 -m venv V; V/bin/pip install nvitop`.
The stub answers at once, so these are the costs of asking, not of a driver's answers.
"""
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from report import table  # noqa: E402 - all that is ours lies beside us

from support.nvml import Stub  # noqa: E402
from trainwatch_launcher.gpu.sampler import Sampler  # noqa: E402

SECONDS = float(os.environ.get("BENCH_GPU_SECONDS", "20"))
GPUS = 8
NVITOP = """
import json, sys, time
from nvitop import Device

def read():
    return [{
        "uuid": d.uuid(), "name": d.name(), "util": d.gpu_utilization(), "memory_used": d.memory_used(),
        "memory_total": d.memory_total(), "power": d.power_usage() / 1000, "power_limit": d.power_limit() / 1000,
        "temperature": d.temperature(), "clock": d.clock_infos().sm,
        "ecc_uncorrected": d.total_volatile_uncorrected_ecc_errors(),
        "processes": sorted(p.gpu_memory() for p in d.processes().values()),
    } for d in devices]

devices = Device.all()
rows = read()
seconds = float(sys.argv[1])
cpu, begin, rounds = time.process_time(), time.monotonic(), 0
while time.monotonic() < begin + seconds:
    read()
    rounds += 1
    time.sleep(max(0.0, begin + rounds - time.monotonic()))
print(json.dumps({"rows": rows, "cpu": (time.process_time() - cpu) / rounds}))
"""


def cpu_of(pid: int) -> float:
    """CPU seconds of all threads of a process, to the nanosecond (proc(5), schedstat)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def memory_of(pid: int) -> float:
    """Peak resident memory, MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def sample(environ: Mapping[str, str]) -> tuple[list[dict[str, Any]], float, float, float]:
    """(Rows, share of a core of the process that asks, of the launcher that listens, the former's memory in MiB)."""
    sampler = Sampler(environ, None, lambda *_: None)
    sampler.start()
    while not sampler.snapshot():
        time.sleep(0.05)
    time.sleep(3.0)  # the first rounds learn what each GPU can answer
    asked, listened, begin = cpu_of(sampler.pid), own_cpu(), time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - begin
    asked, listened = cpu_of(sampler.pid) - asked, own_cpu() - listened
    rows, memory = sampler.snapshot(), memory_of(sampler.pid)
    sampler.stop()
    return rows, asked / took, listened / took, memory


def whole(environ: Mapping[str, str], place: Path) -> list[list[str]]:
    """Rows for a launcher with all that it does beside a silent command, and for its process that asks."""
    main = ROOT / "launcher" / "trainwatch_launcher" / "__main__.py"
    options = ["--run-dir", str(place / "run"), "--quiet"]
    argv = [sys.executable, "-I", "-X", "utf8", str(main), *options, "--", "sleep", "600"]
    with subprocess.Popen(argv, env=dict(environ)) as launcher:
        probe = 0
        while not probe:
            time.sleep(0.5)
            children = Path(f"/proc/{launcher.pid}/task").glob("*/children")
            pids = " ".join(file.read_text() for file in children).split()
            probe = next((int(pid) for pid in pids if b"gpu.probe" in Path(f"/proc/{pid}/cmdline").read_bytes()), 0)
        time.sleep(6.0)
        before, begin = (cpu_of(launcher.pid), cpu_of(probe)), time.monotonic()
        time.sleep(SECONDS)
        took = time.monotonic() - begin
        own, asking = ((cpu_of(pid) - was) / took for pid, was in zip((launcher.pid, probe), before, strict=True))
        rows = [
            ["the launcher", f"{own:.2%} of a core", "1 % with its process", f"{memory_of(launcher.pid):.1f} MiB",
             "16 MiB"],
            ["its process that asks", f"{asking:.2%} of a core", "", f"{memory_of(probe):.1f} MiB", ""],
        ]
        launcher.terminate()
    return rows


def nvitop(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """What nvitop reads of the same GPUs and the CPU seconds of one round; None when there is none."""
    python = os.environ.get("TRAINWATCH_BENCH_NVITOP")
    if not python:
        print("\nTRAINWATCH_BENCH_NVITOP names no Python with nvitop: no comparison")
        return None
    done = subprocess.run([python, "-c", NVITOP, str(SECONDS / 2)], env=dict(environ), capture_output=True, text=True)
    if done.returncode:
        print(f"\nnvitop failed: {done.stderr.strip().splitlines()[-1]}")
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    """Print each number that both read, and whether they are the same for all GPUs."""
    rows, good = [], True
    for name in theirs[0]:
        mine = [row.get(name) for row in ours]
        if name == "processes":
            mine = [sorted(process["memory"] for process in row.get(name, ())) for row in ours]
        same = mine == [row[name] for row in theirs]
        good = good and same
        rows.append([name, str(mine[-1]), str(theirs[-1][name]), "yes" if same else "NO"])
    table(f"The same numbers as nvitop ({GPUS} GPUs, the last one shown)", ["what", "ours", "nvitop", "same"], rows)
    return good


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        stub = Stub(Path(place))
        stub.steer(f"gpus {GPUS}", "set 3 ecc_uncorrected 2", "set 5 util 7", "set 6 clock 1095",
                   *(f"process {gpu} {os.getpid()} {10**10 + gpu}" for gpu in range(GPUS)))
        environ = stub.environment()
        ours, asking, listening, memory = sample(environ)
        theirs = nvitop(environ)
        launcher = whole(environ, Path(place))
    rows = [["ours, the process that asks", f"{asking:.2%} of a core", "0.5 %", f"{memory:.1f} MiB"],
            ["ours, the launcher that listens", f"{listening:.2%} of a core", "(of the same 0.5 %)", ""]]
    if theirs is not None:
        rows.append(["nvitop, fewer numbers", f"{theirs['cpu']:.2%} of a core", "", ""])
    table(f"Sampling {GPUS} GPUs once a second for {SECONDS:.0f} s", ["what", "CPU", "bar", "peak memory"], rows)
    head = ["what", "CPU", "bar", "peak memory", "bar"]
    table(f"A whole launcher with {GPUS} GPUs and a silent command", head, launcher)
    return 0 if theirs is None or compare(ours, theirs["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
