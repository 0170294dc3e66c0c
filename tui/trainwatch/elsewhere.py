"""A log opened in the person's own pager or editor, at the line where they are; the run is still followed meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from trainwatch.following import Following
from trainwatch.model import text
from trainwatch.screens.wishes import OpenLog
from trainwatch.shell import run_here
from trainwatch.sources.base import ShellPlan
from trainwatch.widgets.log_loader import ReadError

AROUND = 4 << 20
"""Bytes above and below the place that are copied where the log cannot be opened itself."""
LARGE = 64 << 20
"""An editor gets no file that is larger than this many bytes."""
AT_ONCE = 1 << 20
LINE_AS_NUMBER = frozenset(("vi", "vim", "nvim", "view", "nano", "emacs", "ne", "joe", "micro", "kak", "more", "most"))
LINE_AFTER_COLON = frozenset(("hx", "helix", "subl", "zed"))


def command(program: str, path: str, line: int, offset: int | None) -> list[str]:
    """What to run: `program` as in $PAGER, with a file, at a line from 1 on or, where it can, at an offset in bytes."""
    argv = shlex.split(program)
    name = Path(argv[0]).name
    if name == "less":
        # it finds a byte at once, but counts lines from the beginning
        return [*argv, f"+{offset}P" if offset is not None else f"+{line}g", path]
    if name in LINE_AS_NUMBER:
        return [*argv, f"+{line}", path]
    if name in LINE_AFTER_COLON:
        return [*argv, f"{path}:{line}"]
    if name in ("code", "codium", "cursor"):
        return [*argv, "--wait", "--goto", f"{path}:{line}"]
    return [*argv, path]


def program_of(environ: Mapping[str, str], editor: bool) -> str:
    """The person's pager or editor."""
    if editor:
        return environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    return environ.get("PAGER") or "less -R"


async def open_log(app: App[Any], following: Following, wish: OpenLog) -> None:
    """Open a log at a place. What another machine has, or what is too large for an editor, is copied around it."""
    path, copy = following.log_path(wish.key), ""
    program = program_of(os.environ, wish.editor)
    try:
        line, offset = wish.line, wish.offset
        if not path or (wish.editor and await asyncio.to_thread(_size, path) > LARGE):
            copy, line, offset = await _copied_around(following, wish)
            path = copy
        argv = command(program, path, line, None if wish.editor else offset)
        with app.suspend():
            problem = await run_here(ShellPlan(tuple(argv)))
        if copy:
            app.notify(f"That was a copy of {text.size(2 * AROUND)} around the line.", timeout=5)
    except (ReadError, OSError, ValueError) as error:
        problem = str(error)
    except SuspendNotSupported:
        problem = "this terminal cannot be lent to another program"
    finally:
        if copy:
            await asyncio.to_thread(Path(copy).unlink, True)
    if problem:
        app.notify(problem, title=f"{program}", severity="error", timeout=15, markup=False)
    app.refresh(layout=True)


def _size(path: str) -> int:
    return Path(path).stat().st_size


async def _copied_around(following: Following, wish: OpenLog) -> tuple[str, int, int]:
    """(a file with what is around a place, the line's number in it, its offset in it). Raises ReadError and OSError."""
    logs = following.logs([wish.key])
    start = max(0, wish.offset - AROUND)
    parts = [await logs.read(at, AT_ONCE) for at in range(start, wish.offset + AROUND, AT_ONCE)]
    data = b"".join(parts)
    inside = wish.offset - start

    def write() -> str:
        handle, path = tempfile.mkstemp(prefix="trainwatch-", suffix=".log")
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        return path

    return await asyncio.to_thread(write), data.count(b"\n", 0, inside) + 1, inside
