"""Log views while logs grow fast: keys, memory that stays flat, the age of the newest line also over SSH."""
from __future__ import annotations

import contextlib
import os
import pickle
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_logs import EACH, RANKS, RATE, TRAINWATCH, followed
from bench_viewer import Screen
from log_terminal import terminal
from many_hosts import ManyHosts
from many_logs import Grown, run_of
from report import table

BURST = int(os.environ.get("BENCH_LOG_BURST", "100000"))
"""Lines a second while keys are pressed."""
PRESSES = 40
LIMIT = 5.0
"""Seconds after which a key is not waited for any more."""
FLAT = float(os.environ.get("BENCH_LOG_FLAT_SECONDS", "180"))
"""Seconds over which memory is watched; 600 for the ten minutes of the budget."""
SETTLING = 20.0
"""Seconds at the beginning that do not count: caches fill."""
HOST = "127.1.0.1"


@contextlib.contextmanager
def growing(base: Path, logs: list[Grown], rate: int, seconds: float) -> Iterator[None]:
    """Logs that grow at so many lines a second each."""
    listed = base / "growing.pickle"
    listed.write_bytes(pickle.dumps(logs))
    program = str(Path(__file__).with_name("many_logs.py"))
    with subprocess.Popen([sys.executable, program, str(listed), str(rate), str(seconds)]) as writer:
        try:
            yield
        finally:
            writer.kill()


def pressed(shown: Screen) -> list[float]:
    """Seconds from each press of `w` until the title that says so was drawn."""
    took = []
    for _ in range(PRESSES):
        shown.drain(random.uniform(0.05, 0.25))
        began, seen = time.perf_counter(), b""
        os.write(shown.fd, b"w")
        while b"wrapped" not in seen and time.perf_counter() - began < LIMIT:
            if select.select([shown.fd], [], [], 0.1)[0]:
                seen = seen[-20:] + os.read(shown.fd, 1 << 16)
        took.append(time.perf_counter() - began)
        shown.drain(0.1)
        os.write(shown.fd, b"w")  # and back
        shown.drain(0.3)
    return sorted(took)


def keys() -> None:
    """How long a key takes in a log that floods, in 64 that do together, and in one at rest."""
    rows = []
    for name, ranks, rate in (("one log at rest", 1, 0), (f"one log, {BURST:,} lines/s", 1, BURST),
                              (f"{RANKS} logs as one, {BURST:,} lines/s together", RANKS, BURST // RANKS)):
        with tempfile.TemporaryDirectory() as base:
            place = Path(base) / "run"
            logs = run_of(place, ranks, EACH)
            shown = Screen([TRAINWATCH, str(place)])
            shown.seconds_until(b"step")
            shown.drain(1.0)
            os.write(shown.fd, b"M" if ranks > 1 else b"l")
            shown.drain(2.0)
            with growing(Path(base), logs, rate, 90) if rate else contextlib.nullcontext():
                shown.drain(1.0)
                took = pressed(shown)
            shown.close()
        rows.append([name, f"{statistics.median(took) * 1000:.0f} ms", f"{took[int(len(took) * 0.95)] * 1000:.0f} ms",
                     f"{took[-1] * 1000:.0f} ms", "100 ms"])
    table("From a key to what it does on screen", ["what grows", "median", "p95", "longest", "bar"], rows)


def memory() -> None:
    """Resident memory of the merged view over minutes at the full rate, and its slope."""
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "run"
        logs = run_of(place, RANKS, EACH)
        with terminal([TRAINWATCH, str(place)], place) as shown:
            shown.until(lambda text: "step" in text)
            shown.keys("M")
            shown.until(lambda text: f"ranks 0-{RANKS - 1}" in text, time.perf_counter())
            with growing(Path(base), logs, RATE, SETTLING + FLAT + 5):
                time.sleep(SETTLING)
                began, seen = time.perf_counter(), []
                while time.perf_counter() - began < FLAT:
                    seen.append((time.perf_counter() - began, shown.memory(peak=False)))
                    time.sleep(1.0)
            peak = shown.memory()
    slope = statistics.linear_regression(*zip(*seen, strict=True)).slope
    rows = [[f"{seen[0][1]:.0f} MiB", f"{seen[-1][1]:.0f} MiB", f"{slope * 60:+.2f} MiB a minute", f"{peak:.0f} MiB"]]
    title = f"Memory of the merged view, {RANKS} x {RATE} lines/s for {FLAT:.0f} s"
    table(title, [f"after {SETTLING:.0f} s", "at the end", "slope", "peak"], rows)


def over_ssh() -> None:
    """The age of the newest line where the logs are behind an sshd."""
    lab = ManyHosts(1)
    try:
        lab.start()
        os.environ["XDG_CONFIG_HOME"] = str(lab.settings)
        place = lab.base / "hosts" / HOST / "run"
        logs = run_of(place, RANKS, EACH)
        with terminal([TRAINWATCH, "--hosts", lab.of(1), "'~/run'"], lab.base) as shown:
            shown.until(lambda text: "step" in text)
            began = time.perf_counter()
            shown.keys("M")
            first = shown.until(lambda text: f"ranks 0-{RANKS - 1}" in text and " ▏ " in text, began)
            took = followed(shown, logs, lab.base / "run")
        ages = sorted(took.ages) or [float("inf")]
    finally:
        lab.stop()
    rows = [[f"{first or float('inf'):.2f} s", f"{statistics.median(ages) * 1000:.0f} ms",
             f"{ages[int(len(ages) * 0.95)] * 1000:.0f} ms", f"{took.cpu * 100:.0f} % of a core",
             f"{took.memory:.0f} MiB"]]
    head = ["first lines after M", "age of the newest line, median", "p95", "CPU of the viewer", "peak memory"]
    table(f"{RANKS} logs of one host behind sshd, followed at {RANKS} x {RATE} lines/s", head, rows)


def main() -> None:
    keys()
    over_ssh()
    memory()


if __name__ == "__main__":
    main()
