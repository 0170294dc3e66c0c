"""Logs beside less, lnav, grep and tail: one of any size, and those of 64 ranks as one; in a terminal."""
from __future__ import annotations

import itertools
import os
import pickle
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from log_terminal import LIMIT, Terminal, cpu_of, terminal
from many_logs import NEEDLE, Grown, run_of
from report import table

from trainwatch_launcher.rundir import paths

TRAINWATCH = str(Path(sys.executable).parent / "trainwatch")
SIZES = [float(word) for word in os.environ.get("BENCH_LOG_GB", "0.001,1").split(",")]
"""Sizes of the one log, in GB; 10 takes 11 GB of disk and some minutes."""
RANKS = int(os.environ.get("BENCH_LOG_RANKS", "64"))
EACH = int(os.environ.get("BENCH_LOG_BYTES", str(20_000_000)))
RATE = int(os.environ.get("BENCH_LOG_RATE", "1000"))
"""Lines a second in each of the ranks' logs."""
FOLLOWED = float(os.environ.get("BENCH_LOG_SECONDS", "12"))
TIME = re.compile(r"(\d{10}\.\d{3}) INFO")
MANY = "gpu"
"""All lines but the needle's have it."""
FOUND = re.compile(rf"\d{{10}}\.\d{{3}} {NEEDLE}")


def _seconds(value: float | None) -> str:
    return f"> {LIMIT:.0f} s" if value is None else f"{value:.2f} s"


def grep(files: list[Path], text: str = NEEDLE) -> float:
    """Seconds of `grep -c`, of the best of three runs. Into a pipe: into /dev/null it would stop at the first hit."""
    found = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(["grep", "-c", text, *files], stdout=subprocess.PIPE, check=False)
        found.append(time.perf_counter() - began)
    return min(found)


# One log

@dataclass
class One:
    """What a program took for one log."""

    end: float | None = None
    hit: float | None = None
    counted: float | None = None
    many: float | None = None
    """Until all lines with a word that most of them have were counted."""
    memory: float = 0.0


def one_by_us(place: Path, log: Grown) -> One:
    last = f"step {log.lines - 1} "
    with terminal([TRAINWATCH, str(place)], place) as shown:
        took = One(end=shown.until(lambda text: last in text))
        shown.keys("l")
        time.sleep(1.0)  # a key that comes before the log is there is lost
        shown.keys("g")
        shown.until(lambda text: " step 0 " in text.partition("\n")[2], time.perf_counter())
        began = time.perf_counter()
        shown.keys("/", NEEDLE, "Enter")
        took.hit = shown.until(FOUND.search, began)
        took.counted = shown.until(lambda text: "1 of 1 line" in text, began)
        shown.keys("Escape")
        time.sleep(0.5)  # else it were the beginning of another key
        shown.keys("G")
        shown.until(lambda text: last in text, time.perf_counter())
        began = time.perf_counter()
        shown.keys("/", MANY, "Enter")
        count = f"{log.lines - 1:,} lines"
        took.many = shown.until(lambda text: count in text, began)
        took.memory = shown.memory()
    return took


def one_by_less(place: Path, log: Grown) -> One:
    file = log.directory / paths.OUTPUT
    with terminal(["less", "+G", str(file)], place) as shown:
        took = One(end=shown.until(lambda text: f"step {log.lines - 1} " in text))
    with terminal(["less", str(file)], place) as shown:
        shown.until(lambda text: "step 0 " in text)
        began = time.perf_counter()
        shown.keys(f"/{NEEDLE}", "Enter")
        took.hit = shown.until(FOUND.search, began)
        took.memory = shown.memory()
    return took


def one_by_lnav(place: Path, log: Grown) -> One:
    with terminal(["lnav", str(log.directory / paths.OUTPUT)], place) as shown:
        took = One(end=shown.until(lambda text: f"step {log.lines - 1} " in text))
        shown.keys("g")
        shown.until(lambda text: "step 0 " in text, time.perf_counter())
        began = time.perf_counter()
        shown.keys(f"/{NEEDLE}", "Enter")
        took.hit = shown.until(FOUND.search, began, again="n")
        took.memory = shown.memory()
    return took


def one_log() -> None:
    ways = {"trainwatch": one_by_us, "less": one_by_less, "lnav": one_by_lnav}
    for size in SIZES:
        rows = []
        with tempfile.TemporaryDirectory() as base:
            place = Path(base) / "run"
            [log] = run_of(place, 1, int(size * 1e9))
            file = [log.directory / paths.OUTPUT]
            reference, reference_many = grep(file), grep(file, MANY)
            for name, way in ways.items():
                if name != "trainwatch" and not shutil.which(name):
                    continue
                took = way(place, log)
                ratio = f"{(took.counted or took.hit or LIMIT) / max(reference, 0.001):.1f}"
                counted = _seconds(took.counted) if name == "trainwatch" else ""
                many = f"{took.many:.2f} s ({took.many / reference_many:.1f})" if took.many else ""
                rows.append([name, _seconds(took.end), _seconds(took.hit), counted, ratio, many,
                             f"{took.memory:.0f} MiB"])
            rows.append(["grep -c", "", "", f"{reference:.2f} s", "1.0", f"{reference_many:.2f} s", ""])
        head = ["what", "last line on screen after start", "needle found from the top", "all counted", "to grep -c",
                "what every line has counted (to grep -c)", "peak memory"]  # fmt: skip
        table(f"One log of {size:g} GB", head, rows)


# Many logs

@dataclass
class Many:
    """What a program took for many logs."""

    first: float | None = None
    memory: float = 0.0
    cpu: float = 0.0
    ages: list[float] = field(default_factory=list)


def followed(shown: Terminal, logs: list[Grown], place: Path) -> Many:
    """Grow the logs and look how old the newest line on screen is."""
    listed = place.parent / "logs.pickle"
    listed.write_bytes(pickle.dumps(logs))
    program = str(Path(__file__).with_name("many_logs.py"))
    took = Many()
    with subprocess.Popen([sys.executable, program, str(listed), str(RATE), str(FOLLOWED + 3)]) as writer:
        time.sleep(1.5)
        began, used = time.perf_counter(), shown.cpu()
        while time.perf_counter() - began < FOLLOWED:
            stamps = [float(stamp) for stamp in TIME.findall(shown.text())]
            if stamps:
                took.ages.append(time.time() - max(stamps))
            time.sleep(0.03)
        took.cpu = (shown.cpu() - used) / (time.perf_counter() - began)
        took.memory = shown.memory()
        writer.wait()
    return took


def many_by_us(place: Path, logs: list[Grown]) -> Many:
    with terminal([TRAINWATCH, str(place)], place) as shown:
        shown.until(lambda text: "step" in text)
        began = time.perf_counter()
        shown.keys("M")
        first = shown.until(lambda text: f"ranks 0-{RANKS - 1}" in text and " ▏ " in text, began)
        took = followed(shown, logs, place)
        took.first = first
    return took


def many_by(command: list[str], ready: str) -> Callable[[Path, list[Grown]], Many]:
    def run(place: Path, logs: list[Grown]) -> Many:
        with terminal([*command, *(str(log.directory / paths.OUTPUT) for log in logs)], place) as shown:
            first = shown.until(lambda text: ready in text)
            shown.until(lambda text: f"step {logs[-1].lines - 1} " in text)
            took = followed(shown, logs, place)
            took.first = first
        return took

    return run


def many_logs() -> None:
    ways = {"trainwatch, merged (M)": many_by_us, "lnav": many_by(["lnav"], " INFO rank"),
            "tail -F": many_by(["tail", "-q", "-F"], " INFO rank")}  # fmt: skip
    rows = []
    for name, way in ways.items():
        if name == "lnav" and not shutil.which("lnav"):
            continue
        with tempfile.TemporaryDirectory() as base:
            place = Path(base) / "run"
            took = way(place, run_of(place, RANKS, EACH))
        ages = sorted(took.ages) or [float("inf")]
        rows.append([
            name, _seconds(took.first), f"{took.memory:.0f} MiB", f"{took.cpu * 100:.0f} % of a core",
            f"{statistics.median(ages) * 1000:.0f} ms", f"{ages[int(len(ages) * 0.95)] * 1000:.0f} ms",
        ])  # fmt: skip
    head = ["what", "first lines", "peak memory", "CPU", "age of the newest line, median", "p95"]
    table(f"{RANKS} logs of {EACH / 1e6:.0f} MB, followed at {RANKS} x {RATE} lines/s", head, rows)


def searching_many() -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "run"
        logs = run_of(place, RANKS, EACH)
        reference = grep([log.directory / paths.OUTPUT for log in logs])
        began = time.perf_counter()
        command = [TRAINWATCH, "logs", str(place), "--merge", "--grep", NEEDLE]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = bool(process.stdout.readline()) and time.perf_counter() - began
            count = 1 + sum(1 for _ in process.stdout)
        whole = time.perf_counter() - began
        assert count == RANKS, f"{count} hits"
        hit, counted, pressed = searched_in_view(place)
    ours = "trainwatch logs --merge --grep, from exec"
    rows = [["grep -c", "", f"{reference:.2f} s", "1.0"],
            [ours, f"{first:.2f} s", f"{whole:.2f} s", f"{whole / reference:.1f}"],
            ["in the viewer, M, from Enter", _seconds(hit), _seconds(counted), f"{(counted or LIMIT) / reference:.1f}"],
            ["the same, from the / that begins it", _seconds(pressed), "", ""]]
    table(f"A search over {RANKS} logs of {EACH / 1e6:.0f} MB", ["what", "first hit", "complete", "ratio"], rows)


def searched_in_view(place: Path) -> tuple[float | None, float | None, float | None]:
    """Seconds from Enter to the first hit and to the whole count, and from the `/` before it to the first hit."""
    with terminal([TRAINWATCH, str(place)], place) as shown:
        shown.until(lambda text: "step" in text)
        shown.keys("M")
        shown.until(lambda text: f"ranks 0-{RANKS - 1}" in text and " ▏ " in text, time.perf_counter())
        began = time.perf_counter()
        shown.keys("/", NEEDLE, "Enter")
        entered = time.perf_counter()
        hit = shown.until(FOUND.search, entered)
        counted = shown.until(lambda text: f"{RANKS} lines" in text, entered)
    return hit, counted, None if hit is None else hit + entered - began


def nothing_lost() -> None:
    """What `trainwatch logs -f` prints of logs that grow, against what they hold in the end."""
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "run"
        logs = run_of(place, RANKS, 100_000)
        listed = Path(base) / "logs.pickle"
        listed.write_bytes(pickle.dumps(logs))
        out = Path(base) / "out"
        with out.open("wb") as sink, subprocess.Popen(
            [TRAINWATCH, "logs", str(place), "-f", "--tail", "0"], stdout=sink
        ) as reader:
            time.sleep(2.0)
            program = str(Path(__file__).with_name("many_logs.py"))
            subprocess.run([sys.executable, program, str(listed), str(RATE), "8"], check=True)
            time.sleep(2.0)
            used = cpu_of(reader.pid)
            reader.terminate()
        got = [line.partition(b"] ")[2] for line in out.read_bytes().splitlines()]
        written = [line for log in logs for line in (log.directory / paths.OUTPUT).read_bytes()[log.size:].splitlines()]
        times = [float(line.split()[0]) for line in got]
        late = sum(1 for before, after in itertools.pairwise(times) if after < before - 0.11)
    rows = [[f"{len(written):,}", f"{len(set(written) - set(got)):,}", f"{len(got) - len(set(got)):,}", f"{late:,}",
             f"{used / 8 * 100:.0f} % of a core"]]
    head = ["lines written", "missing", "twice", "out of order by more than an index record", "CPU"]
    table(f"{RANKS} x {RATE} lines/s through `trainwatch logs -f`", head, rows)


def main() -> None:
    one_log()
    many_logs()
    searching_many()
    nothing_lost()


if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "import trainwatch.app"], check=True)  # compiled once, as an installation is
    main()
