"""Shows the screen for a target, from its opening to the program's exit code."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from trainwatch import browser
from trainwatch.alarm import Alarm
from trainwatch.app import TrainwatchApp
from trainwatch.sources.base import Source
from trainwatch.targets import Named
from trainwatch.taste import Taste
from trainwatch.terminal import Watchdog, no_screen

GRACE = 2.0
"""Seconds that may pass from leaving the screen to the end of the program."""


def run_directory(
    target: Path,
    keep_hold: bool = True,
    gpu_price: float | None = None,
    on_failure: Alarm = Alarm(),  # noqa: B008
    taste: Taste | None = None,
) -> int:
    """Show a run directory, or a directory of runs to pick from; returns the exit code. Raises TargetError.

    With `keep_hold` holds are extended while shells are open beside their ranks. `gpu_price`: of an hour of one GPU.
    `on_failure`: what is done on a run's first failure.
    """
    from trainwatch.opening import directory
    from trainwatch_launcher.reader.runs import locate

    async def opened(path: Path) -> Source:
        return await directory(str(path))

    is_root = locate(str(target)).is_root

    async def app() -> TrainwatchApp:
        source = None if is_root else await opened(target)
        return TrainwatchApp(source, root=target, open_source=opened, keep_hold=keep_hold, gpu_price=gpu_price,
                             on_failure=on_failure, taste=taste)  # fmt: skip

    return _show(app)


def run_logs(paths: Sequence[str], gpu_price: float | None = None, taste: Taste | None = None) -> int:
    """Show logs that no launcher wrote; returns the exit code. Raises TargetError."""
    from trainwatch.sources.foreign import ForeignSource
    from trainwatch.sources.foreign_files import found

    found(paths)  # what is wrong with the names is said before the screen is taken

    async def app() -> TrainwatchApp:
        return TrainwatchApp(ForeignSource(paths), gpu_price=gpu_price, taste=taste)

    return _show(app)


def run_elsewhere(
    named: Named,
    keep_hold: bool = True,
    gpu_price: float | None = None,
    on_failure: Alarm = Alarm(),  # noqa: B008
    taste: Taste | None = None,
) -> int:
    """Show a run that is reached over hosts; returns the exit code. Raises SourceError."""
    from trainwatch.commands.remote import ask
    from trainwatch.opening import open_source

    async def app() -> TrainwatchApp:
        question = None if browser.is_there() else ask
        source = await open_source(named, question)
        return TrainwatchApp(source, keep_hold=keep_hold, gpu_price=gpu_price, on_failure=on_failure, taste=taste)

    return _show(app)


def _show(make: Callable[[], Awaitable[TrainwatchApp]]) -> int:
    """Run an app, made in its own event loop: what was opened for it lives there."""
    missing = "" if browser.is_there() else no_screen()
    if missing:
        print(f"trainwatch: {missing}; scripts use: trainwatch status TARGET", file=sys.stderr)
        return 2

    async def show() -> int:
        # thousands of ranks mean a million small objects that live long and are in no cycles: looking through them for
        # some, as often as Python does by itself, costs more than all else
        gc.set_threshold(50_000, 20, 50)
        app = await make()
        watchdog = Watchdog(lambda code: app.call_from_thread(app.exit, code, return_code=code))
        watchdog.start()
        await app.run_async()
        watchdog.stop()
        code = app.return_code or 0
        # a thread that reads from storage that hangs would be waited for, and the prompt with it
        last = threading.Timer(GRACE, os._exit, [code])
        last.daemon = True
        last.start()
        return code

    return asyncio.run(show())
