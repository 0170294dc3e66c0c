"""Draws screenshots/*.svg: the real app on a real run of the demo, keys pressed as a person would, never by hand.

Takes about as long as the demo needs to fail.
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
from collections.abc import Callable
from pathlib import Path

from rich.cells import cell_len
from textual.pilot import Pilot

from trainwatch import theme
from trainwatch.app import TrainwatchApp
from trainwatch.demo.job import Job, Plan, make_run_directory
from trainwatch.sources.local import LocalSource

TAG = re.compile(r"<[^>]*>")
FONT_URL = re.compile(r',\s*url\("https://[^)]*\) format\("[^"]*"\)')
"""Where the exporter would have a font fetched from; a picture in a README fetches nothing."""
HERE = Path(__file__).resolve().parent
SIZE = (126, 32)
FAIL_AFTER = 27.0
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


async def take_all(run_directory: Path, directory: Path) -> None:
    """All pictures, in the order in which a person would see them."""
    app = TrainwatchApp(LocalSource(run_directory), theme_name=theme.DARK)
    async with app.run_test(size=SIZE) as pilot:
        camera = Camera(pilot, directory)
        await camera.wait_for("4 running")
        await camera.press("j", "j")
        await camera.wait_for(RUNNING_AT)
        await camera.save("overview-running")

        await camera.wait_for("4 held", "failed first")
        await camera.press("w")
        await camera.wait_for("Traceback", "ValueError: shard 2", "PeerLostError", "exit 1 in Training")
        await camera.save("overview-crash")

        await camera.press("enter")
        await camera.wait_for("phases", "events", "kept for")
        await camera.save("rank")

        await camera.press("escape", "l")
        await camera.wait_for("Traceback")
        await camera.press("g", "slash", *"Phase", "enter")
        await camera.wait_for("n next", "数据加载完成", "step 5/")
        await camera.save("log")


def main(argv: list[str] | None = None) -> int:
    """Run the demo's job, take the pictures, stop it."""
    parser = argparse.ArgumentParser(prog="screenshots/make.py", description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=HERE, metavar="DIR", help="where the pictures go (this folder)")
    options = parser.parse_args(argv)
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory(prefix="trainwatch-") as root:
        job = Job(Plan(fail_after=FAIL_AFTER), make_run_directory(Path(root) / "runs"))
        try:
            job.start()
            job.wait_visible()
            asyncio.run(take_all(job.run_directory, options.to))
        finally:
            job.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
