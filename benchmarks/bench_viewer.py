"""How soon the viewer shows a run, beside what its framework alone needs, and what watching costs then."""
from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from report import table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from builders import RunBuilder  # noqa: E402

OVERLAP = 1 << 18
"""What is looked for lies in so many bytes of what was drawn last."""
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
FLOOR = """
from textual.app import App
from textual.widgets import DataTable
class Bare(App):
    def compose(self): yield DataTable()
    def on_mount(self):
        table = self.query_one(DataTable); table.add_columns("rank", "host"); table.add_row("READY", "x")
Bare().run()
"""


def make_run(place: Path, ranks: int) -> Path:
    """A run of so many ranks that train, the last of them with a log of some lines."""
    directory = place / f"run-{ranks}"
    builder = RunBuilder(directory, world_size=ranks)
    for rank in range(ranks):
        attempt = builder.rank(rank, host=f"gpu-{rank // 8:03d}", time=time.time() + 3600)  # not lost meanwhile
        attempt.start().phase("Train").output(b"".join(b"step %d loss 2.31\n" % step for step in range(100)))
    return directory


class Screen:
    """A program in a pseudo-terminal of 160 x 45."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))

    def seconds_until(self, text: bytes | re.Pattern[bytes], limit: float = 30.0) -> float:
        """Seconds from the start until `text` was drawn."""
        pattern = re.compile(re.escape(text)) if isinstance(text, bytes) else text
        seen = b""
        while time.perf_counter() - self.started < limit:
            if select.select([self.fd], [], [], 0.1)[0]:
                seen += os.read(self.fd, 1 << 16)
                if pattern.search(seen[-OVERLAP:]):
                    return time.perf_counter() - self.started
        raise SystemExit(f"{text!r} was not drawn within {limit} s")

    def drain(self, seconds: float) -> int:
        """Read what is drawn for so long; the number of bytes."""
        end, count = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                count += len(os.read(self.fd, 1 << 16))
        return count

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Peak resident memory, MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def first_screen(place: Path) -> None:
    trainwatch = str(Path(sys.executable).parent / "trainwatch")
    commands = {"Textual alone, a table of one row": ([sys.executable, "-c", FLOOR], b"READY")}
    for ranks in (4, 64, 1024):
        commands[f"trainwatch, {ranks} ranks"] = ([trainwatch, str(make_run(place, ranks))], b"gpu-000")
    times: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (command, text) in commands.items():
            screen = Screen(command)
            times[name].append(screen.seconds_until(text))
            screen.drain(1.0)
            memory[name] = screen.memory()
            screen.close()
    floor = statistics.median(next(iter(times.values())))
    rows = []
    for name, found in times.items():
        median = statistics.median(found)
        seconds = [f"{median:.2f} s", f"{min(found):.2f} s"]
        rows.append([name, *seconds, f"{median / floor:.2f}", f"{memory[name]:.0f} MiB"])
    table("First screen, from exec to the first row drawn", ["what", "median", "minimum", "ratio", "peak memory"], rows)


def quiet_cost(place: Path) -> None:
    rows = []
    for ranks in (4, 1024):
        screen = Screen([str(Path(sys.executable).parent / "trainwatch"), str(make_run(place / "quiet", ranks))])
        screen.seconds_until(b"gpu-000")
        screen.drain(3.0)
        before, seconds = screen.cpu(), 10.0
        drawn = screen.drain(seconds)
        share = (screen.cpu() - before) / seconds * 100
        rate = f"{drawn / seconds / 1000:.1f} kB/s"
        rows.append([f"{ranks} ranks that do nothing", f"{share:.1f} % of a core", rate])
        screen.close()
    table("Watching a quiet run", ["what", "CPU", "to the terminal"], rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        first_screen(Path(place))
        quiet_cost(Path(place))


if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "import trainwatch.app"], check=True)  # compiled once, as an installation is
    main()
