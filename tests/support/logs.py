"""Log panes under test: a run with a log, what is seen of it, and lines that are typed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from builders import NOW, RunBuilder
from support.screens import press, wait_for
from trainwatch.widgets.log_view import LogView

SIZE = (100, 30)
LINES = b"".join(b"step %05d loss 0.5\n" % step for step in range(5000))


def run_with_log(directory: Path, data: bytes) -> RunBuilder:
    """A run of one rank with this output."""
    run = RunBuilder(directory, world_size=1)
    run.rank(0).start().phase("Train", NOW - 100).output(data)
    return run


def view(pilot: Pilot[Any]) -> LogView:
    """The log on screen."""
    return pilot.app.screen.query_one(LogView)


def _rows(pilot: Pilot[Any]) -> list[str]:
    log = view(pilot)
    return [log.render_line(y).text for y in range(log.size.height)]


def shown(pilot: Pilot[Any]) -> list[str]:
    """The rows of the log on screen, without the mark and the scroll bar."""
    return [row[1:-1].rstrip() for row in _rows(pilot)]


def filled(pilot: Pilot[Any]) -> list[str]:
    """Those that say something."""
    return [row for row in shown(pilot) if row]


def marked(pilot: Pilot[Any]) -> str:
    """The row that is marked."""
    return next((row[1:-1].rstrip() for row in _rows(pilot) if row.startswith("▌")), "")


async def type_in(pilot: Pilot[Any], key: str, text: str) -> None:
    """Open a line to type in, and type; nothing has to settle between the letters."""
    await press(pilot, key)
    await wait_for(pilot, lambda: isinstance(pilot.app.focused, Input))
    await pilot.press(*text)


async def enter(pilot: Pilot[Any], key: str, text: str) -> None:
    """The same, and Enter; the line's text is put there at once."""
    await type_in(pilot, key, "")
    field = pilot.app.focused
    assert isinstance(field, Input)
    field.value = text
    await press(pilot, "enter")
