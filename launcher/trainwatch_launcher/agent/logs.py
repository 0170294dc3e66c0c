"""Questions on logs, as a viewer asks them of its agent: which logs are meant, and who answers."""
from __future__ import annotations

from trainwatch_launcher.agent.operations import OperationError
from trainwatch_launcher.agent.wire import decode_key
from trainwatch_launcher.agent.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    from trainwatch_launcher.agent.server import Server
    from trainwatch_launcher.reader.engine import Engine

SLOW = frozenset(("search", "count"))
"""Questions that may take long, however large the machine; a page does when it has queries."""
SLOW_THREADS = 3
"""Searches at a time; what is asked besides them does not wait for them."""


class LogDesk:
    """Takes questions on logs."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._slow = Workers(SLOW_THREADS)

    def workers_for(self, asked: dict[str, Any]) -> Workers | None:
        """Threads for a question that may take long; None for any other."""
        return self._slow if asked.get("ask") in SLOW or asked.get("queries") else None

    def ask(
        self, server: Server, asked: dict[str, Any], stop: Callable[[], bool]
    ) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The answer, part by part."""
        # not before somebody asks: what searches logs takes longer to import than all else here
        from trainwatch_launcher.reader.engine import Engine, EngineError, LogName

        engine = self._engine = self._engine or Engine()
        names = []
        shifts = asked.get("shifts") or []
        for number, value in enumerate(asked.get("keys") or []):
            key = decode_key(value)
            directory = server.attempt_directory(key)
            if directory is None:
                raise OperationError("this run has no attempt %d of rank %d" % (key.attempt, key.rank))
            names.append(LogName(directory, True, float(shifts[number]) if number < len(shifts) else 0.0))
        try:
            yield from engine.ask(str(asked.get("ask")), names, asked, stop)
        except EngineError as error:
            raise OperationError(str(error)) from None
