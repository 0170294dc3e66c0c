"""What the launcher costs, beside `bash -c '"$@" > >(tee -i LOG) 2>&1'`, in turn, as ratios of the minima."""
from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from report import table

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
PYTHON = str(Path(sys.executable).resolve())
LINES = 'import os\nb = (b"x" * 79 + b"\\n") * 102\nfor _ in range(61000): os.write(1, b)'
WRITES = 'import os\nb = b"x" * 79 + b"\\n"\nfor _ in range(500000): os.write(1, b)'
LOADS = {
    "2 GB in 64-KiB blocks": (["dd", "if=/dev/zero", "bs=64k", "count=32768", "status=none"], 1.0),
    "500 MB of 80-byte lines in 8-KiB writes": ([PYTHON, "-I", "-S", "-c", LINES], 1.15),
    "40 MB, one write a line": ([PYTHON, "-I", "-S", "-c", WRITES], 1.0),
}


@dataclass(frozen=True)
class Cost:
    """One run: wall time, the wrapper's own CPU time (s), its peak memory (bytes)."""

    wall: float
    cpu: float
    memory: int


def launcher_command(place: Path, *options: str) -> list[str]:
    """As the installed script starts it."""
    main = ROOT / "launcher" / "trainwatch_launcher" / "__main__.py"
    return [PYTHON, "-I", "-S", "-X", "utf8", str(main), "--run-dir", str(place / "run"), *options, "--"]


def reference_command(place: Path) -> list[str]:
    return ["bash", "-c", f'"$@" > >(tee -i {place}/LOG) 2>&1', "bash"]


def run(command: list[str], own: Callable[[dict[int, float], int], float]) -> Cost:
    """Run a command, and collect all that it leaves: this process adopts orphans, such as bash's tee."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used: dict[int, float] = {}
    memory: dict[int, int] = {}
    wall = 0.0
    while True:
        try:
            pid, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        wall = time.perf_counter() - started
        used[pid] = usage.ru_utime + usage.ru_stime
        memory[pid] = usage.ru_maxrss * 1024
    process.returncode = 0
    return Cost(wall, own(used, process.pid), memory[process.pid])


def with_launcher(command: list[str], place: Path) -> Cost:
    def own(used: dict[int, float], pid: int) -> float:
        events = (place / "run/rank-00000/attempt-1/events.jsonl").read_text().splitlines()
        ended = next(event for event in map(json.loads, events) if event["event"] == "exit")
        return used[pid] - float(ended["cpu_user"]) - float(ended["cpu_system"])

    shutil.rmtree(place / "run", ignore_errors=True)
    return run([*launcher_command(place), *command], own)


def with_reference(command: list[str], place: Path) -> Cost:
    (place / "LOG").unlink(missing_ok=True)
    return run([*reference_command(place), *command], lambda used, pid: sum(t for p, t in used.items() if p != pid))


def throughput(disk: str, place: Path) -> None:
    rows = []
    for name, (command, bar) in LOADS.items():
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(with_reference(command, place))
            ours.append(with_launcher(command, place))
        wall = min(c.wall for c in ours) / min(c.wall for c in theirs)
        cpu = min(c.cpu for c in ours) / max(min(c.cpu for c in theirs), 1e-3)
        memory = max(c.memory for c in ours) / (1 << 20)
        seconds = f"{min(c.wall for c in ours):.2f} / {min(c.wall for c in theirs):.2f} s"
        rows.append([name, seconds, f"{wall:.2f}", f"{bar}", f"{cpu:.2f}", "1.2", f"{memory:.1f} MiB"])
    table(
        f"Throughput, log on {disk}, console /dev/null, minima of {ROUNDS} rounds",
        ["load", "ours / bash+tee", "wall ratio", "bar", "wrapper CPU ratio", "bar", "peak memory (bar 16 MiB)"],
        rows,
    )


def start_up(place: Path) -> None:
    installed = Path(sys.executable).parent / "trainwatch-launch"
    variants: dict[str, Callable[[], Cost]] = {
        "bash+tee": lambda: with_reference(["true"], place),
        "the launcher's Python part": lambda: with_launcher(["true"], place),
        "bare python3 -I -S": lambda: run([PYTHON, "-I", "-S", "-c", "pass"], lambda used, pid: 0.0),
    }
    if installed.exists():
        script = [str(installed), "--run-dir", str(place / "run"), "--", "true"]
        variants["trainwatch-launch as installed here"] = lambda: run(script, lambda used, pid: 0.0)
    walls: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(max(ROUNDS * 3, 15)):
        for name, measure in variants.items():
            shutil.rmtree(place / "run", ignore_errors=True)
            walls[name].append(measure().wall * 1000)
    reference = statistics.median(walls["bash+tee"])
    rows = [
        [name, f"{statistics.median(w):.1f} ms", f"{min(w):.1f} ms", f"{statistics.median(w) - reference:+.1f} ms"]
        for name, w in walls.items()
    ]
    table("Start-up: `true`, from start to end (bar: +25 ms)", ["what", "median", "minimum", "beside bash+tee"], rows)


STAMPS = """
import os, time
for _ in range(3000):
    os.write(1, b"%.6f\\n" % time.monotonic())
    time.sleep(0.001)
"""


def delays(command: list[str]) -> list[float]:
    """Milliseconds from a line's writing to its arrival on the console, at about 1,000 lines a second."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    found = []
    while data := os.read(process.stdout.fileno(), 65536):
        now = time.monotonic()
        found += [(now - float(line)) * 1000 for line in data.split()]
    process.wait()
    return sorted(found)


def delay(place: Path) -> None:
    stamps = [PYTHON, "-I", "-S", "-c", STAMPS]
    rows = []
    bare: list[float] = []
    wrappers = {"a pipe alone": [], "bash+tee": reference_command(place), "launcher": launcher_command(place)}
    for name, wrapper in wrappers.items():
        shutil.rmtree(place / "run", ignore_errors=True)
        found = delays([*wrapper, *stamps])
        bare = bare or found
        p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
        rows.append([name, f"{p50:.3f} ms", f"{p99:.3f} ms", f"{p50 - bare[len(bare) // 2]:+.3f} ms"])
    table("Delay of a line at 1,000 lines/s (bar: p50 +0.1 ms, p99 1 ms)", ["through", "p50", "p99", "p50 added"], rows)


def quiet_cost(place: Path) -> None:
    """CPU and memory of a launcher whose command is silent, and memory with a console that nobody reads."""
    shutil.rmtree(place / "run", ignore_errors=True)
    seconds = 10.0
    process = subprocess.Popen([*launcher_command(place), "sleep", "60"], stdout=subprocess.DEVNULL)
    time.sleep(1.0)
    before = cpu_of(process.pid)
    time.sleep(seconds)
    share = (cpu_of(process.pid) - before) / seconds * 100
    memory = memory_of(process.pid)
    process.send_signal(signal.SIGTERM)
    process.wait()
    rows = [["idle", f"{share:.2f} % of a core", "1 %", f"{memory:.1f} MiB", "16 MiB"]]

    shutil.rmtree(place / "run", ignore_errors=True)
    flood = ["sh", "-c", "head -c 300000000 /dev/zero; sleep 60"]
    reader, console = os.pipe()
    process = subprocess.Popen([*launcher_command(place), *flood], stdout=console, stderr=subprocess.DEVNULL)
    time.sleep(4.0)
    rows.append(["300 MB to a console that nobody reads", "", "", f"{memory_of(process.pid):.1f} MiB", "80 MiB"])
    process.send_signal(signal.SIGTERM)
    process.wait()
    os.close(reader)
    os.close(console)
    table("Quiet and stalled", ["launcher", "CPU", "bar", "peak memory", "bar"], rows)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Peak resident memory, MiB."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main() -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopt orphans: bash does not wait for its tee
    for disk, parent in (("tmpfs", "/dev/shm"), ("disk", None)):
        with tempfile.TemporaryDirectory(dir=parent) as place:
            throughput(disk, Path(place))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        start_up(Path(place))
        delay(Path(place))
        quiet_cost(Path(place))


if __name__ == "__main__":
    main()
