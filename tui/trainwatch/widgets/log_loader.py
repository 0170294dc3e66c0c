"""Brings a log's bytes to a view: the chunks that it misses, and its growth, always in the background."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainwatch.widgets.log_lines import CHUNK, LogLines, Missing
from trainwatch_launcher.reader.pages import Entry

QUIET_LOOKS = 8
"""After so many looks without growth only every `QUIET_EVERY`th look is taken."""
QUIET_EVERY = 4


class ReadError(Exception):
    """A log cannot be read; the message is one line for a person."""


class LogReader(Protocol):
    """Where a view gets its bytes, of one log or of several that are read as one. All methods raise ReadError."""

    labels: Sequence[str]
    """What each log is called; one that is read alone needs no name."""

    groups: Sequence[int]
    """Which logs are parts of one file: those with the same number."""
    is_part: bool
    """Whether a log is only a part of its file, so that its bytes are not all its own."""

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes of the first log; fewer at its end."""
        ...

    async def ends(self) -> list[int]:
        """Bytes in each log now."""
        ...

    async def line(self, log: int, offset: int) -> int:
        """The number of the line with a byte of one of the logs, from 0."""
        ...

    def ask(self, operation: str, **facts: Any) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        """Ask the log engine where the logs are; who leaves before the end stops the work."""
        ...


async def whole(reader: LogReader, entry: Entry, most: int) -> bytes:
    """All bytes of a line, `most` at most: of a very long one a page holds only the beginning. Raises ReadError."""
    data, end = entry.data, min(entry.end, entry.start + most)
    if entry.start + len(data) < end:
        asked = reader.ask("read", log=entry.log, start=entry.start + len(data), end=end)
        async with contextlib.aclosing(asked) as answer:
            async for _, more in answer:
                data += more
    return data


Start = Callable[[Coroutine[Any, Any, None]], object]
"""Runs a coroutine in the background."""


@dataclass(frozen=True)
class Goal:
    """A place to go to: `place` (a byte of a log), `time` (Unix seconds) or `share` (of what there is, 0 to 1)."""

    kind: str
    log: int = 0
    offset: int = 0
    value: float = 0.0

    def facts(self) -> dict[str, Any]:
        """As the engine is asked."""
        return {"log": self.log, "offset": self.offset} if self.kind == "place" else {self.kind: self.value}


class LogLoader:
    """One log's reader, and the lines that it has brought so far.

    `start` runs a coroutine in the background; `loaded` is called when a chunk has come, `grown` with whether the file
    became shorter when its size changed, `failed` with a sentence, or with none when reading works again.
    """

    def __init__(
        self,
        start: Start,
        loaded: Callable[[], None],
        grown: Callable[[bool], None],
        failed: Callable[[str], None],
    ) -> None:
        self.lines = LogLines()
        self.reader: LogReader | None = None
        self._start, self._loaded, self._grown, self._failed = start, loaded, grown, failed
        self._generation = 0
        self._loading: set[int] = set()
        self._looking = False
        self._broken = self._said = False
        """Whether something failed that is to be tried again, and whether that stands on the screen."""
        self._quiet = 0
        self._ticks = 0

    def open(self, reader: LogReader | None) -> None:
        """Read another log; what is still on its way from the one before is dropped."""
        self._generation += 1
        self.reader = reader
        self.lines = LogLines()
        self._loading.clear()
        self._looking = self._broken = False
        self._quiet = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._loading and not self._looking

    progress = ""
    """Nothing is looked for here."""

    def seek(self, goal: Goal, then: Callable[[int], None]) -> None:
        """Find out which byte a place is; `then` gets it, at once or later."""
        if goal.kind == "time" and self.reader is not None:
            self._start(self._seek(self.reader, goal, then, self._generation))
        else:
            then(goal.offset if goal.kind == "place" else int(self.lines.size * goal.value))

    async def _seek(self, reader: LogReader, goal: Goal, then: Callable[[int], None], generation: int) -> None:
        try:
            async with contextlib.aclosing(reader.ask("cuts", **goal.facts())) as answer:
                async for facts, _ in answer:
                    if generation == self._generation:
                        then(facts["cuts"][0])
        except ReadError as error:
            self._fail(error, generation)

    def load(self, missing: Missing) -> None:
        """Bring a chunk, unless it is on its way."""
        index = missing.index
        if self.reader is not None and index not in self._loading:
            self._loading.add(index)
            self._start(self._fetch(self.reader, index, self._generation))

    def tick(self) -> None:
        """Time has passed: look for growth, less often while nothing grows."""
        self._ticks += 1
        if self._quiet < QUIET_LOOKS or self._ticks % QUIET_EVERY == 0:
            self.look()

    def look(self) -> None:
        """Ask for the size, unless the last question is still open."""
        if self.reader is not None and not self._looking:
            self._looking = True
            self._start(self._ask(self.reader, self._generation))

    async def _fetch(self, reader: LogReader, index: int, generation: int) -> None:
        known = self.lines.known(index)
        wanted = self.lines.wanted(index) - len(known)
        try:
            data = await reader.read(index * CHUNK + len(known), wanted) if wanted > 0 else b""
        except ReadError as error:
            self._fail(error, generation)
            return
        if generation != self._generation:
            return
        self._loading.discard(index)
        self._works()
        if data or wanted <= 0:
            self.lines.put(index, known + data)
            self._loaded()
        else:  # the file is shorter than it was
            self._resize(index * CHUNK + len(known))

    async def _ask(self, reader: LogReader, generation: int) -> None:
        try:
            [size] = await reader.ends()
        except ReadError as error:
            self._looking = False
            self._fail(error, generation)
            return
        if generation != self._generation:
            return
        self._looking = False
        if self._broken:
            self._broken = False
            self._loaded()  # what could not be had is asked for again
            if not self._loading:
                self._works()
        self._quiet = 0 if size != self.lines.size else self._quiet + 1
        if size != self.lines.size:
            self._resize(size)

    def _resize(self, size: int) -> None:
        shorter = size < self.lines.size
        self.lines.resize(size)
        self._grown(shorter)

    def _fail(self, error: ReadError, generation: int) -> None:
        if generation == self._generation:
            self.give_up(str(error))

    def give_up(self, said: str) -> None:
        """What was on its way does not come; the next look tries again."""
        self._loading.clear()
        self._looking = False
        self._broken = self._said = True
        self._failed(said)

    def _works(self) -> None:
        if self._said:
            self._said = False
            self._failed("")
