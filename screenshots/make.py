"""Draws screenshots/*.svg: the real app on a real run of the demo, keys pressed as a person would, never by hand.

What takes a cluster, the grid and the chart of GPUs, is drawn from a simulated run. Takes about two minutes.
"""
from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

from rich.cells import cell_len
from textual.pilot import Pilot

from trainwatch import theme
from trainwatch.app import TrainwatchApp
from trainwatch.demo.job import Job, Plan, make_run_directory
from trainwatch.simulation.command import main as simulate
from trainwatch.sources.local import LocalSource

TAG = re.compile(r"<[^>]*>")
FONT_URL = re.compile(r',\s*url\("https://[^)]*\) format\("[^"]*"\)')
"""Where the exporter would have a font fetched from; a picture in a README fetches nothing."""
HERE = Path(__file__).resolve().parent
SIZE = (126, 32)
FAIL_AFTER = 27.0
MANY, SIMULATED = 512, "llama-70b-simulated"
MADE_UP = ("--age=900", "--trouble=37:880:oom", "--trouble=300:600:hot", "--trouble=411:500:slow")
"""The run whose pictures no machine of ours can run: its ranks, its name, what becomes of them."""
RUNNING_AT = "step 215/"
"""What the log must say for the first picture: enough of a training to look at, a checkpoint included."""


class Camera:
    """Presses keys in a running app, waits for what must be seen, and saves what is seen."""

    def __init__(self, pilot: Pilot[int], directory: Path) -> None:
        self._pilot = pilot
        self._directory = directory

    def seen(self) -> str:
        """The screen's text, as the picture would show it."""
        lines = TAG.sub("", self._pilot.app.export_screenshot().partition("</defs>")[2])
        return html.unescape(lines).replace("\xa0", " ")

    async def wait_for(self, *texts: str, timeout: float = 60.0) -> None:
        """Wait until all texts are on the screen. Raises SystemExit when they do not come."""
        await self._until(lambda: all(text in self.seen() for text in texts), timeout, f"{texts} on the screen")

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self._pilot.press(*keys)

    async def save(self, name: str) -> None:
        """Save a picture of the screen as it is."""
        await self._pilot.pause()
        path = self._directory / f"{name}.svg"
        svg = FONT_URL.sub("", with_true_widths(self._pilot.app.export_screenshot(title="trainwatch")))
        path.write_text(svg, encoding="utf-8")
        print(path, flush=True)

    async def _until(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"not within {timeout:.0f} s: {what}\n{self.seen()}")
            await self._pilot.pause(0.1)


def with_true_widths(svg: str) -> str:
    """The picture with wide text as wide as on a terminal: the exporter counts characters, not cells."""
    def widened(match: re.Match[str]) -> str:
        text = html.unescape(match["text"])
        if cell_len(text) == len(text):
            return match[0]
        width = float(match["width"]) / len(text) * cell_len(text)
        return match[0].replace(f'textLength="{match["width"]}"', f'textLength="{width:g}"')

    return re.sub(r'<text [^>]*textLength="(?P<width>[0-9.]+)"[^>]*>(?P<text>[^<]*)</text>', widened, svg)


async def take_training(run_directory: Path, directory: Path) -> None:
    """A run of four ranks, in the order in which a person would see it: training, failed, looked into."""
    app = TrainwatchApp(LocalSource(run_directory), theme_name=theme.DARK)
    async with app.run_test(size=SIZE) as pilot:
        camera = Camera(pilot, directory)
        await camera.wait_for("4 running")
        await camera.press("j", "j")
        await camera.wait_for(RUNNING_AT)
        await camera.save("overview-running")

        await camera.wait_for("4 held", "failed first", "Traceback", "exit 1 in Training", "ValueError: shard 2: rec",
                              "collective.PeerL")
        await camera.save("overview-crash")

        await camera.press("w")
        await camera.wait_for("root cause", "3 ranks: peer lost", "▶ ValueError: shard 2")
        await camera.save("why")

        await camera.press("l")
        await camera.wait_for("Traceback", "paused")
        await camera.press("g", "slash", *"Phase", "enter")
        await camera.wait_for("n next", "数据加载完成", "step 5/")
        await camera.save("log")

        await camera.press("escape", "escape", "escape", "enter")
        await camera.wait_for("phases", "events", "code 1 after")
        await camera.save("rank")

        await camera.press("escape", "t")
        await camera.wait_for("Load Data", "first in", "so far")
        await camera.save("timeline")


async def take_many(run_directory: Path, directory: Path, now: float) -> None:
    """A run of many ranks, made up until `now`: each of them a cell, and two beside each other over time."""
    app = TrainwatchApp(LocalSource(run_directory), theme_name=theme.DARK, clock=lambda: now)
    async with app.run_test(size=SIZE) as pilot:
        camera = Camera(pilot, directory)
        await camera.wait_for(f"of {MANY} ranks")
        await camera.press("o")
        await camera.wait_for("state", "failed first")
        await camera.save("grid")

        await camera.press("escape", "m", "m", "c")
        await camera.wait_for("loss", "step time", "power")
        await camera.save("chart")


def with_job(plan: Plan, take: Callable[[Path, Path], Coroutine[None, None, None]], directory: Path) -> None:
    """Run a job of the demo, take its pictures, stop it."""
    with tempfile.TemporaryDirectory(prefix="trainwatch-") as root:
        job = Job(plan, make_run_directory(Path(root) / "runs"))
        try:
            job.start()
            job.wait_visible(60)
            asyncio.run(take(job.run_directory, directory))
        finally:
            job.close()


def main(argv: list[str] | None = None) -> int:
    """Take all pictures."""
    parser = argparse.ArgumentParser(prog="screenshots/make.py", description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=HERE, metavar="DIR", help="where the pictures go (this folder)")
    options = parser.parse_args(argv)
    os.environ.pop("NO_COLOR", None)
    with_job(Plan(fail_after=FAIL_AFTER), take_training, options.to)
    with tempfile.TemporaryDirectory(prefix="trainwatch-") as root:
        run_directory = Path(root) / SIMULATED
        now = time.time()
        simulate([str(run_directory), "--once", f"--ranks={MANY}", "--hold=10000", *MADE_UP])
        asyncio.run(take_many(run_directory, options.to, now))
    return 0


if __name__ == "__main__":
    sys.exit(main())
