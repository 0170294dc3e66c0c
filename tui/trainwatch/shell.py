"""A shell beside the run: the app steps aside, the run is still followed, and the screen comes back afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from textual.app import App, SuspendNotSupported

from trainwatch.following import Following
from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey


async def open_shell(app: App[Any], following: Following, key: AttemptKey) -> None:
    """Open a shell where an attempt runs, and say how it ended when it could not start."""
    try:
        plan = await following.shell(key)
    except SourceError as error:
        app.notify(str(error), title="No shell", severity="warning", timeout=15, markup=False)
        return
    if plan.cwd is not None and not await asyncio.to_thread(os.path.isdir, plan.cwd):
        said = f"its directory {clean(plan.cwd)} is gone"
        app.notify(said, title="No shell", severity="warning", timeout=15, markup=False)
        return
    try:
        with app.suspend():
            problem = await _run(plan)
    except SuspendNotSupported:
        problem = "this terminal cannot be lent to a shell"
    if problem:
        app.notify(problem, title="No shell", severity="error", timeout=15, markup=False)
    app.refresh(layout=True)


async def _run(plan: ShellPlan) -> str:
    """Run a plan's command in our terminal; returns why it could not be run, or nothing."""
    out = sys.__stdout__
    if out is not None and plan.note:
        out.write(f"\n{clean(plan.note)}\nThe run is still followed; exit or ctrl+d comes back.\n\n")
        out.flush()
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c belongs to what runs in the shell
    try:
        process = await asyncio.create_subprocess_exec(
            *plan.argv, env=plan.env, cwd=plan.cwd, preexec_fn=_default_signals
        )
        await process.wait()
    except OSError as error:
        return f"{error.filename or plan.argv[0]}: {error.strerror or error}"
    finally:
        signal.signal(signal.SIGINT, previous)
        _take_terminal_back()
    return ""


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)


def _take_terminal_back() -> None:
    """An interactive shell makes itself the terminal's foreground group; unless we take that back, reading stops us."""
    stdin = sys.__stdin__
    if stdin is None or not stdin.isatty():
        return
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(stdin.fileno(), os.getpgrp())
    except OSError:
        pass
    finally:
        signal.signal(signal.SIGTTOU, ignored)
