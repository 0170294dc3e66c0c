"""A shell beside the run: in our terminal, from which the screen steps aside, or in a new window of tmux.

The run is still followed meanwhile, and the hold is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from trainwatch import beside
from trainwatch.following import Following
from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey

KEPT = "The hold is kept while this shell is open."
START = 20.0
"""Seconds that a new window has to come up."""
NO_TMUX = "S opens a new window of tmux, and this is not inside tmux. s opens the shell in this terminal."


async def open_shell(app: App[Any], following: Following, key: AttemptKey) -> None:
    """Open a shell where an attempt runs, and say how it ended when it could not start."""
    plan = await _plan(app, following, key)
    if plan is None:
        return
    said = f"{clean(plan.note)}\nThe run is still followed; exit or ctrl+d comes back."
    try:
        with following.shell_open(key) as kept, app.suspend():
            problem = await run_here(plan, f"{said} {KEPT}" if kept else said)
    except SuspendNotSupported:
        problem = "this terminal cannot be lent to a shell"
    if problem:
        app.notify(problem, title="No shell", severity="error", timeout=15, markup=False)
    app.refresh(layout=True)


async def open_window(app: App[Any], following: Following, key: AttemptKey, environ: Mapping[str, str]) -> None:
    """Open the same shell in a new window of tmux; returns when it has ended."""
    if not environ.get("TMUX"):
        app.notify(NO_TMUX, title="No window", severity="warning", timeout=10, markup=False)
        return
    plan = await _plan(app, following, key)
    if plan is None:
        return
    name = f"rank {following.run.label(key)}"
    with following.shell_open(key) as kept:
        note = f"{clean(plan.note)}\n{KEPT}" if kept else clean(plan.note)
        env = plan.env if plan.env is not None else dict(environ)
        words = {"argv": plan.argv, "env": env, "cwd": plan.cwd, "note": note, "kept": kept}
        try:
            await _in_window(name, json.dumps(words).encode() + b"\n", following.left)
        except OSError as error:
            app.notify(str(error), title="No window", severity="error", timeout=15, markup=False)


async def _plan(app: App[Any], following: Following, key: AttemptKey) -> ShellPlan | None:
    """How to open it; None when that is not possible, which is said."""
    try:
        plan = await following.shell(key)
    except SourceError as error:
        app.notify(str(error), title="No shell", severity="warning", timeout=15, markup=False)
        return None
    if plan.cwd is not None and not await asyncio.to_thread(os.path.isdir, plan.cwd):
        said = f"its directory {clean(plan.cwd)} is gone"
        app.notify(said, title="No shell", severity="warning", timeout=15, markup=False)
        return None
    return plan


async def run_here(plan: ShellPlan, said: str = "") -> str:
    """Run a plan's command in our terminal; returns why it could not be run, or nothing."""
    out = sys.__stdout__
    if out is not None and said:
        out.write(f"\n{beside.between_words(said)}\n\n")
        out.flush()
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c belongs to what runs in the shell
    started = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            *plan.argv, env=plan.env, cwd=plan.cwd, preexec_fn=_default_signals
        )
        code = await process.wait()
    except OSError as error:
        return f"{error.filename or plan.argv[0]}: {error.strerror or error}"
    finally:
        signal.signal(signal.SIGINT, previous)
        beside.take_terminal_back()
    failed = beside.failed(plan.argv, code, time.monotonic() - started)
    if failed:
        await asyncio.to_thread(beside.wait_for_enter, failed)
    return ""


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)


async def _in_window(name: str, words: bytes, left: asyncio.Event) -> None:
    """Run what `beside` understands in a new window, until its end or until we have `left`. Raises OSError.

    Environments are nobody else's business: they go through a socket, not through tmux or a command line.
    """
    come: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.get_running_loop().create_future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if come.done():
            writer.close()
        else:
            come.set_result((reader, writer))

    with tempfile.TemporaryDirectory(prefix="trainwatch-") as private:  # nobody else may enter it
        path = str(Path(private) / "shell")
        server = await asyncio.start_unix_server(connected, path)
        try:
            await _new_window(name, [sys.executable, "-I", str(Path(beside.__file__).resolve()), path])
            reader, writer = await asyncio.wait_for(come, START)
        except asyncio.TimeoutError:
            raise OSError(f"tmux has opened no window within {START:.0f} s") from None
        finally:
            server.close()
    try:
        writer.write(words)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        ends = [asyncio.ensure_future(reader.read()), asyncio.ensure_future(left.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    finally:
        writer.close()


async def _new_window(name: str, argv: list[str]) -> None:
    """Ask tmux. Raises OSError with what it says."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        tmux = await asyncio.create_subprocess_exec(
            "tmux", "new-window", "-n", name, *argv, stdin=null, stdout=null, stderr=pipe
        )
    except FileNotFoundError:
        raise OSError("tmux is not on this PATH") from None
    _, said = await tmux.communicate()
    if tmux.returncode:
        raise OSError(f"tmux: {clean(said.decode('utf-8', 'replace').strip()) or f'exit code {tmux.returncode}'}")
