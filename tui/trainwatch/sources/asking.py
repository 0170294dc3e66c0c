"""Asks the log engine in a thread, for sources whose logs this process can read."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from trainwatch.sources.base import Part, SourceError
from trainwatch_launcher.reader.engine import Engine, EngineError, LogName

AHEAD = 8
"""Parts that wait to be taken before the thread waits."""


async def answers(
    engine: Engine, operation: str, names: Sequence[LogName], facts: dict[str, Any]
) -> AsyncIterator[Part]:
    """The parts of an answer as they come; who stops iterating stops the thread. Raises SourceError."""
    loop = asyncio.get_running_loop()
    parts: asyncio.Queue[Part | Exception | None] = asyncio.Queue()
    room, stop = threading.Semaphore(AHEAD), threading.Event()

    def tell(part: Part | Exception | None) -> None:
        try:
            loop.call_soon_threadsafe(parts.put_nowait, part)
        except RuntimeError:
            stop.set()  # the loop has ended before us

    def work() -> None:
        try:
            for part in engine.ask(operation, names, facts, stop.is_set):
                while not room.acquire(timeout=0.5):
                    if stop.is_set():
                        return
                tell(part)
            tell(None)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            tell(error)

    threading.Thread(target=work, name="logs", daemon=True).start()
    try:
        while (part := await parts.get()) is not None:
            room.release()
            if isinstance(part, EngineError):
                raise SourceError(str(part))
            if isinstance(part, Exception):
                raise part
            yield part
    finally:
        stop.set()
