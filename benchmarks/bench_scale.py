"""What watching thousands of ranks costs: one status a second from each, one in a hundred with a new phase."""
from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from bench_viewer import ROOT, Screen
from report import table

from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.records import Status, event

RANKS = int(os.environ.get("BENCH_RANKS", "4096"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
os.environ["XDG_STATE_HOME"] = "/proc/none"  # the usual table, whatever whoever runs this has chosen
TRAINWATCH = str(Path(sys.executable).parent / "trainwatch")
READY = b"gpu-0"
HEARTBEAT = 5.0
"""Seconds between two statuses of a launcher that has nothing to say."""
DRAWN = """new Promise(done => {
    const next = () => requestAnimationFrame(() => requestAnimationFrame(() => done(1)));
    document.readyState === "complete" ? next() : addEventListener("load", next);
})"""
"""When a page is loaded and has been drawn."""
ROUNDS = 3


def simulated(place: Path, ranks: int, age: int = 100) -> Path:
    """A run of so many ranks that trains, as `trainwatch simulate` writes it."""
    directory = place / f"run-{ranks}"
    command = [TRAINWATCH, "simulate", str(directory), "--ranks", str(ranks), "--age", str(age), "--once"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for rank in range(ranks):  # nobody is lost while none of them is written
        path = str(directory / paths.rank_name(rank) / paths.attempt_name(1) / paths.STATUS)
        files.replace_file(path, files.read_record(Status, path).replace(interval=1e5))
    return directory


class Beats:
    """A program beside that keeps a simulated run alive: each rank's status is replaced once a second, spread over the
    second, and each second one rank in a hundred says its next phase. With `quiet` only the times move, once in each
    status's interval. Not a thread: what watches is forked from here.
    """

    def __init__(self, directory: Path, ranks: int, quiet: bool = False) -> None:
        self._counter = directory.with_suffix(".written")
        self._counter.write_text("0")
        argv = [sys.executable, __file__, "--beats", str(directory), str(ranks), str(self._counter), str(int(quiet))]
        self._process = subprocess.Popen(argv)

    @property
    def written(self) -> int:
        """How many statuses so far."""
        return int(self._counter.read_text() or "0")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def beat(directory: Path, ranks: int, counter: Path, quiet: bool) -> None:
    """What `Beats` runs, until it is killed."""
    places = [directory / paths.rank_name(rank) / paths.attempt_name(1) for rank in range(ranks)]
    statuses = [files.read_record(Status, str(place / paths.STATUS)) for place in places]
    pause = HEARTBEAT if quiet else 1.0
    began, turn, written = time.monotonic(), 0, 0
    fd = os.open(counter, os.O_WRONLY)
    while True:
        for number in range(ranks):
            wait = began + (turn + number / ranks) * pause - time.monotonic()
            if wait > 0.002:
                time.sleep(wait)
            _beat_once(str(places[number]), statuses[number], number, turn, quiet)
            written += 1
            if written % 64 == 0:
                os.pwrite(fd, b"%d" % written, 0)
        turn += 1


def _beat_once(place: str, status: Status, number: int, turn: int, quiet: bool) -> None:
    status.time = now = time.time()
    if not quiet:
        status.step = (status.step or 0) + 1
        status.last_output = status.progress_since = now
        status.loss = round(2.0 + (turn * 7919 % 13) / 100, 4)
        if (number + turn) % 100 == 0:
            status.phase, status.phase_since = ("Save checkpoint" if status.phase == "Train" else "Train"), now
            said = event("phase", now, name=status.phase, offset=0, source="marker")
            _append(f"{place}/{paths.EVENTS}", files.encode(said))
    files.replace_file(f"{place}/{paths.STATUS}", status)


def _append(path: str, data: bytes) -> None:
    fd = files.open_append(path)
    files.write_all(fd, data)
    os.close(fd)


def weeks_old(directory: Path, ranks: int, phases: int = 100) -> None:
    """Give each rank of a run as many phases as a day has with a checkpoint each half hour: more than are kept."""
    for rank in range(ranks):
        place = directory / paths.rank_name(rank) / paths.attempt_name(1)
        began = files.read_record(Status, str(place / paths.STATUS)).time - phases * 900.0
        said = [
            event("phase", began + 900.0 * n, name="Save checkpoint" if n % 2 else "Train", offset=n, source="marker")
            for n in range(phases)
        ]
        _append(str(place / paths.EVENTS), b"".join(map(files.encode, said)))


class Watched:
    """A run that is watched in a terminal of its own, with what that cost."""

    def __init__(self, directory: Path, settle: float = 8.0) -> None:
        self.screen = Screen([TRAINWATCH, str(directory)])
        self.first = self.screen.seconds_until(READY)
        self.screen.drain(settle)
        self.memory = self.resident()

    def resident(self) -> float:
        """Resident memory now, MiB."""
        lines = Path(f"/proc/{self.screen.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cost(self, seconds: float) -> tuple[float, float]:
        """(per cent of a core, kB/s to the terminal) over some seconds."""
        before = self.screen.cpu()
        drawn = self.screen.drain(seconds)
        return (self.screen.cpu() - before) / seconds * 100, drawn / seconds / 1000

    def answers(self, key: bytes, times: int = 20) -> list[float]:
        """Milliseconds from a key that moves the cursor to the first bytes that draw it, in order."""
        found = []
        for _ in range(times):
            self.screen.drain(0.37)
            while select.select([self.screen.fd], [], [], 0.03)[0]:
                os.read(self.screen.fd, 1 << 16)
            began = time.perf_counter()
            os.write(self.screen.fd, key)
            seen = b""
            while "▌".encode() not in seen and time.perf_counter() - began < 3:
                if select.select([self.screen.fd], [], [], 0.1)[0]:
                    seen += os.read(self.screen.fd, 1 << 16)
            found.append((time.perf_counter() - began) * 1000)
        return sorted(found)


def busy(place: Path) -> None:
    """The curve: what a rank that changes once a second costs in runs of four sizes."""
    rows, largest = [], []
    for ranks in sorted({64, 256, 1024, RANKS}):
        directory = simulated(place, ranks)
        if ranks == RANKS:
            weeks_old(directory, ranks)
        quiet = Watched(directory)
        idle, _ = min(quiet.cost(SECONDS / 2) for _ in range(2))
        quiet.screen.close()
        beats = Beats(directory, ranks)
        watched = Watched(directory)
        before, began = beats.written, time.monotonic()
        costs = [watched.cost(SECONDS) for _ in range(ROUNDS)]
        rate = (beats.written - before) / (time.monotonic() - began)
        share, drawn = min(costs)
        each = (share - idle) / 100 / rate * 1e6
        rows.append([str(ranks), f"{rate:.0f}", f"{share:.1f} %", f"{idle:.1f} %", f"{max(each, 0):.0f} µs"])
        if ranks == RANKS:
            keys = watched.answers(b"j")
            late = keys[int(len(keys) * 0.95) - 1]
            largest = [
                ["CPU, all told", f"{share:.1f} % of a core", "25 %"],
                ["to the terminal", f"{drawn:.1f} kB/s", "100 kB/s"],
                ["a key, until it is drawn: median, 95 %", f"{keys[len(keys) // 2]:.0f} ms, {late:.0f} ms", "100 ms"],
                ["memory after 8 s and at the end, each rank with 100 phases",
                 f"{watched.memory:.0f}, {watched.resident():.0f} MiB", "150 MiB"],
            ]
        watched.screen.close()
        beats.stop()
    table("A status a second from each rank, one in a hundred with a new phase",
          ["ranks", "statuses a second", "CPU", "with none", "for each status"], rows)  # fmt: skip
    table(f"The same with {RANKS} ranks", ["what", "found", "bar"], largest)


def quiet(place: Path) -> None:
    """A run in which nothing is written, and one in which nothing happens but heartbeats."""
    directory = place / f"run-{RANKS}"
    still = Watched(directory)
    nothing, drawn = min(still.cost(SECONDS / 2) for _ in range(2))
    still.screen.close()
    beats = Beats(directory, RANKS, quiet=True)
    watched = Watched(directory)
    heartbeats, more = min(watched.cost(SECONDS / 2) for _ in range(2))
    watched.screen.close()
    beats.stop()
    table(f"{RANKS} ranks that do nothing", ["what", "CPU", "bar", "to the terminal"], [
        ["no file changes", f"{nothing:.1f} % of a core", "5 %", f"{drawn:.1f} kB/s"],
        ["a heartbeat from each every five seconds", f"{heartbeats:.1f} % of a core", "", f"{more:.1f} kB/s"],
    ])  # fmt: skip


def first_screen(place: Path) -> None:
    """From the command to the first rank on the screen: with all statuses read by then."""
    rows = []
    directory = place / f"run-{RANKS}"
    for ranks, bar in ((64, ""), (RANKS, "1.5 s")):
        found = []
        for _ in range(ROUNDS):
            watched = Watched(place / f"run-{ranks}", settle=0.5)
            found.append(watched.first)
            watched.screen.close()
        rows.append([f"{ranks} ranks, local", f"{min(found):.2f} s", bar])
    found = through_sshd(directory)
    if found:
        rows.append([f"{RANKS} ranks through one sshd", f"{min(found):.2f} s", "3 s"])
    table("First screen, from exec to the first row drawn, minima", ["what", "found", "bar"], rows)


def through_sshd(directory: Path) -> list[float]:
    """Seconds until the first row, over a real sshd of this machine; none where it cannot be started."""
    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        return []
    from support.sshd import Sshd

    server = Sshd()
    try:
        server.start(forced=False)
        server.disk(0)  # makes worker-0 known
        configured = server.base / "trainwatch" / "config.toml"
        configured.parent.mkdir()
        configured.write_text(f'[options]\nssh_config = "{server.config}"\n')
        os.environ["XDG_CONFIG_HOME"] = str(server.base)
        found = []
        for _ in range(ROUNDS):
            screen = Screen([TRAINWATCH, f"ssh://worker-0{directory}"])
            found.append(screen.seconds_until(READY))
            screen.close()
        return found
    finally:
        server.close()


GRID = """
import asyncio, sys, time
from trainwatch.app import TrainwatchApp
from trainwatch.sources.local import LocalSource
async def main():
    app = TrainwatchApp(LocalSource(sys.argv[1]))
    async with app.run_test(size=(160, 45)) as pilot:
        while len(app.run_state.order) < int(sys.argv[2]) or app.is_behind:
            await asyncio.sleep(0.1)
        await pilot.press("o")
        await pilot.pause()
        grid = app.screen.grid
        def timed(work):
            best = 1e9
            for _ in range(9):
                began = time.process_time(); work(); best = min(best, time.process_time() - began)
            return best * 1000
        found = timed(app.screen.run_changed), timed(lambda: [grid.render_line(y) for y in range(grid.size.height)])
    print(*found)
asyncio.run(main())
"""


def grid(place: Path) -> None:
    """The grid: what a change of the run costs, and drawing all of it."""
    directory = place / f"run-{RANKS}"
    command = [sys.executable, "-c", GRID, str(directory), str(RANKS)]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    renewed, drawn = map(float, said.stdout.split())
    table(f"The grid of {RANKS} ranks on 160×45, minima of CPU time", ["what", "found", "bar"], [
        ["the run has changed: look at all ranks", f"{renewed:.1f} ms", ""],
        ["draw every cell", f"{drawn:.1f} ms", ""],
        ["both", f"{renewed + drawn:.1f} ms", "50 ms"],
    ])  # fmt: skip


def report(place: Path) -> None:
    """The report: how large it is, and how long a browser takes for it."""
    page = place / "report.html"
    began = time.perf_counter()
    subprocess.run([TRAINWATCH, "report", str(place / f"run-{RANKS}"), "-o", str(page)], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    rows = [
        ["made in", f"{time.perf_counter() - began:.1f} s", ""],
        ["size", f"{page.stat().st_size / 1e6:.1f} MB", "5 MB"],
    ]
    if shutil.which("chromium"):
        rows.append(["opened by Chromium, until drawn", f"{min(asyncio.run(opened(page))):.2f} s", "2 s"])
    table(f"report.html of {RANKS} ranks", ["what", "found", "bar"], rows)


async def opened(page: Path) -> list[float]:
    """Seconds from the address to a page that is loaded and has been drawn once."""
    chromium = import_module("support.chromium").chromium  # not for the type checker, as all of the tests
    found = []
    for _ in range(ROUNDS):
        async with chromium() as tab:
            began = time.perf_counter()
            await tab.open(page.as_uri())
            await tab.call("Runtime.evaluate", expression=DRAWN, awaitPromise=True)
            found.append(time.perf_counter() - began)
    return found


def main() -> None:
    print(f"Load average when it began: {os.getloadavg()[0]:.1f}.")
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        busy(Path(place))
        quiet(Path(place))
        first_screen(Path(place))
        grid(Path(place))
        report(Path(place))


if __name__ == "__main__" and sys.argv[1:2] == ["--beats"]:
    beat(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5] == "1")
elif __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    subprocess.run([sys.executable, "-c", "import trainwatch.app"], check=True)  # compiled once, as an installation is
    main()
