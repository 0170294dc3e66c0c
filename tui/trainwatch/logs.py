"""A source's logs as views want them: bytes, and what the log engine says of them."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from trainwatch.sources.base import Source, SourceError
from trainwatch.widgets.log_loader import ReadError
from trainwatch_launcher.reader.changes import AttemptKey


class Logs:
    """The logs of `keys`, which are called `labels`. `shift` tells the seconds from an attempt's clock to ours."""

    def __init__(
        self, source: Source, keys: Sequence[AttemptKey], labels: Sequence[str], shift: Callable[[AttemptKey], float]
    ) -> None:
        self.labels: Sequence[str] = tuple(labels)
        self.groups: Sequence[int] = tuple(range(len(keys)))
        """Which logs are parts of one file: those with the same number."""
        self.is_part = False
        """Whether a log is only a part of its file, so that its bytes are not all its own."""
        self.keys = tuple(keys)
        self._source, self._shift = source, shift
        self._files: list[int] = []

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes of the first log; fewer at its end. Raises ReadError."""
        try:
            return await self._source.read_log(self.keys[0], offset, length)
        except SourceError as error:
            raise ReadError(str(error)) from None

    async def ends(self) -> list[int]:
        """Bytes in each log now; none, once, when another file has taken a log's place. Raises ReadError."""
        if len(self.keys) == 1:
            try:
                file = await self._source.log_file(self.keys[0])
            except SourceError as error:
                raise ReadError(str(error)) from None
            return self._of_same_files([file.size], [file.number])
        async for facts, _ in self.ask("ends"):
            return self._of_same_files(facts["ends"], facts["files"])
        raise ReadError("no answer")

    def _of_same_files(self, ends: Sequence[int], files: Sequence[int]) -> list[int]:
        """The ends, 0 for a log that is another file than it was at the last look."""
        before = self._files or files
        self._files = [new or old for old, new in zip(before, files, strict=True)]
        return [end if new in (old, 0) or not old else 0 for end, old, new in zip(ends, before, files, strict=True)]

    async def line(self, log: int, offset: int) -> int:
        """The number of the line with a byte of one of the logs, from 0. Raises ReadError."""
        one = Logs(self._source, [self.keys[log]], [self.labels[log]], self._shift)
        for counted in (False, True):
            if counted:
                async for _ in one.ask("count"):
                    pass
            async for facts, _ in one.ask("places", offsets=[offset]):
                if facts["lines"][0] is not None:
                    return int(facts["lines"][0])
        raise ReadError("its line cannot be told")

    async def ask(self, operation: str, **facts: Any) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        """Ask the log engine where the logs are. Raises ReadError."""
        shifts = [self._shift(key) for key in self.keys]
        parts: Any = self._source.ask_logs(operation, self.keys, shifts, **facts)
        try:
            async with contextlib.aclosing(parts):
                async for part in parts:
                    yield part
        except SourceError as error:
            raise ReadError(str(error)) from None
