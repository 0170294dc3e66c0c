"""What is done beside the screen on a run's first failure: a notification by the terminal, a command of the user's."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from trainwatch.model.failure import Failure
from trainwatch.model.story import kind_words
from trainwatch.model.text import printable

SETTLE = 3.0
"""Seconds from the first failure that is seen to telling of it: the rank where it began may be seen a little later."""
NEWS = 60.0
"""A failure that was longer ago, in seconds, when its run was opened, is no news to whoever opens it."""
WITHIN = 60.0
"""Seconds that the command may take."""
ASK_WITHIN = 3.0
LONGEST = 240
ONLY_777 = ("rxvt", "foot")
ONLY_9 = ("iterm", "kitty", "ghostty", "wezterm")
"""What $TERM or $TERM_PROGRAM says of terminals that are known to take one of the two."""
NEITHER = ("linux", "dumb")


@dataclass(frozen=True)
class Alarm:
    """What is wished for beside the bell."""

    notify: bool = True
    """Whether the terminal is asked to notify."""
    command: tuple[str, ...] = ()
    """What is run; empty: nothing."""


def words(failure: Failure, run_id: str) -> tuple[str, str]:
    """Title and text of a notification."""
    kind = f"{kind_words(failure.cause.kind)}: " if failure.cause is not None else ""
    where = f" on {failure.host}" if failure.host else ""
    return f"trainwatch: {run_id} failed", f"rank {failure.label}{where}: {kind}{failure.summary}"


async def sequence(title: str, text: str, environ: Mapping[str, str]) -> str:
    """What makes the terminal notify, as bytes to be written to it; empty where it would do harm or could not pass.

    OSC 9 (iTerm2, kitty, WezTerm, Windows' ConEmu) or OSC 777 (urxvt, foot, VTE), both where the terminal is not known.
    Inside tmux they go through its passthrough, when its `allow-passthrough` is on.
    """
    name = f"{environ.get('TERM', '')} {environ.get('TERM_PROGRAM', '')}".lower()
    if environ.get("STY") or any(one in name.split() for one in NEITHER):
        return ""
    made = _sequence(title, text, name)
    if not environ.get("TMUX"):
        return made
    if not await _passes(environ):
        return ""
    return f"\x1bPtmux;{made.replace(chr(27), chr(27) * 2)}\x1b\\"


def _sequence(title: str, text: str, name: str) -> str:
    title, text = (printable(one)[:LONGEST] for one in (title, text))
    nine = f"\x1b]9;{title}: {text}\x07"
    seven = f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}\x07"
    if any(one in name for one in ONLY_777):
        return seven
    return nine if any(one in name for one in ONLY_9) else nine + seven


async def _passes(environ: Mapping[str, str]) -> bool:
    """Whether tmux lets sequences through to the terminal around it."""
    pane = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
    try:
        tmux = await asyncio.create_subprocess_exec(
            "tmux", "show-options", "-Apqv", *pane, "allow-passthrough", env=dict(environ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return False
    try:
        said, _ = await asyncio.wait_for(tmux.communicate(), ASK_WITHIN)
    except asyncio.TimeoutError:
        with suppress(ProcessLookupError):
            tmux.kill()
        return False
    return said.strip() in (b"on", b"all")


def parsed(written: str) -> tuple[str, ...]:
    """A command as its arguments; no shell reads them. Raises ValueError."""
    return tuple(shlex.split(written))


async def run(command: Sequence[str], answer: Mapping[str, Any]) -> str:
    """Run a command with the answer as JSON on its standard input; returns what went wrong in one line, or nothing.

    It is in a session of its own and reads from a file, so that it ends as it should when the viewer is left meanwhile.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaint:
        given.write(json.dumps(answer, allow_nan=False).encode())
        given.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=given, stdout=subprocess.DEVNULL, stderr=complaint, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return f"{command[0]}: {getattr(error, 'strerror', None) or error}"
        try:
            code = await asyncio.wait_for(process.wait(), WITHIN)
        except asyncio.TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            return f"{command[0]} had not ended after {WITHIN:.0f} s"
        return f"{command[0]} ended with {code}{_last_line(complaint)}" if code else ""


def _last_line(file: IO[bytes]) -> str:
    size = file.seek(0, 2)
    file.seek(max(0, size - 4096))
    lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return f": {printable(lines[-1])[:LONGEST]}" if lines else ""
