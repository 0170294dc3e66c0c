"""Brings pages of lines to a view: what is missing above and below, the end as it grows, any place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from trainwatch.widgets.log_lines import Missing
from trainwatch.widgets.log_loader import Goal, LogReader, ReadError, Start
from trainwatch.widgets.paged_lines import DOWN, END, TOP, PagedLines
from trainwatch_launcher.reader.pages import Entry, Page
from trainwatch_launcher.reader.query import Query

PAGE = 300
"""Lines in a page: more than a screen has."""
BURST = 96 << 10
"""When more bytes than this have come, the end is read anew and not what lies between."""
QUIET_LOOKS = 8
QUIET_EVERY = 4
SHARE = 3
"""Looking takes at most one part in so many of the time: a thousand logs that flood are looked at less often."""
LONGEST_PAUSE = 1.0
"""Seconds between two looks at most, whatever a look takes."""
SEEK = 9
SPAN_EVERY = 40
"""Looks that found growth between two questions how long the logs are by now."""


Found = tuple[list[Entry], dict[str, Any]]
"""A page's entries, and the facts that came last with it."""


@dataclass(frozen=True)
class Sifting:
    """Which lines are shown, of which logs."""

    queries: tuple[Query, ...] = ()
    context: int = 0
    """Lines shown above and below one that passes."""

    def facts(self) -> dict[str, Any]:
        """As the engine is asked."""
        return {"queries": [query.to_json() for query in self.queries], "context": self.context}


class Pace:
    """How often to look: a look that takes long is followed by a longer pause.

    What counts is our own processor time, or half the time by which an answer took longer than the fastest one: the way
    to another host and back is no work, and waiting for a core is only some.
    """

    def __init__(self) -> None:
        self._next = 0.0
        self._way = LONGEST_PAUSE
        self._began = (0.0, 0.0)

    @property
    def is_due(self) -> bool:
        """Whether the pause is over."""
        return time.monotonic() >= self._next

    def begin(self) -> None:
        """A look begins."""
        self._began = (time.monotonic(), time.process_time())

    def end(self) -> None:
        """It has ended."""
        now = time.monotonic()
        took, worked = now - self._began[0], time.process_time() - self._began[1]
        self._way = min(self._way, took)
        cost = max(min(took, worked), (took - self._way) / 2)
        self._next = now + min(LONGEST_PAUSE, cost * (SHARE - 1))


class PageLoader:
    """A window of lines and where it comes from. Callbacks are those of `LogLoader`."""

    def __init__(
        self,
        start: Start,
        loaded: Callable[[], None],
        grown: Callable[[bool], None],
        failed: Callable[[str], None],
        sifting: Sifting,
        is_followed: Callable[[], bool] = lambda: False,
    ) -> None:
        self.lines = PagedLines()
        self.reader: LogReader | None = None
        self.sifting = sifting
        self.progress = ""
        """How far it has looked for lines that pass, in words; empty when it is not looking."""
        self._start, self._loaded, self._grown, self._failed = start, loaded, grown, failed
        self._generation = 0
        self._wants: int | None = None
        self._looking = self._broken = self._said = False
        self._quiet = self._ticks = 0
        self._ends: list[int] = []
        self._pace = Pace()
        self._is_followed = is_followed
        self._floods = False
        """Whether more comes between two looks than is worth reading: then only the end is asked for."""

    def open(self, reader: LogReader | None) -> None:
        """Read other logs."""
        self._generation += 1
        self.reader = reader
        self.lines = PagedLines()
        self.lines.groups = reader.groups if reader is not None else ()
        self._wants = None
        self._looking = self._broken = False
        self._quiet, self._ends, self.progress = 0, [], ""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return self._wants is None and not self._looking

    def load(self, missing: Missing) -> None:
        """Bring a page, unless one is on its way."""
        if self.reader is not None and self._wants != missing.index:
            self._begin(missing.index, self._bring(self.reader, missing.index))

    def seek(self, goal: Goal, then: Callable[[int], None]) -> None:
        """Have a window around a place; `then` gets the line there."""
        if self.reader is not None:
            known = self.lines.find(goal.log, goal.offset) if goal.kind == "place" else None
            if known is not None:
                then(known)
            else:
                self._begin(SEEK, self._seek(self.reader, goal, then))

    def tick(self) -> None:
        """Time has passed: look for growth, less often while nothing grows or while looking takes long."""
        self._ticks += 1
        if self._pace.is_due and (self._quiet < QUIET_LOOKS or self._ticks % QUIET_EVERY == 0):
            self.look()

    def look(self) -> None:
        """Ask how much there is, unless the last question is still open."""
        if self.reader is not None and not self._looking:
            self._looking = True
            self._start(self._look(self.reader, self._generation))

    def _begin(self, wants: int, work: Coroutine[Any, Any, None]) -> None:
        self._generation += 1  # what was on its way is not wanted any more
        self._looking = False
        self._wants = wants
        self._start(work)

    async def _page(self, reader: LogReader, generation: int, **asked: Any) -> Found | None:
        """A page's entries and its last facts; None when it is not wanted any more. Raises ReadError."""
        parts: list[list[Entry]] = []
        facts: dict[str, Any] = {}
        async with contextlib.aclosing(reader.ask("page", **asked, **self.sifting.facts())) as answer:
            async for facts, body in answer:
                if generation != self._generation:
                    return None
                parts.append(Page.decode(body))
                total = sum(facts["ends"])
                self.progress = f"{facts['done'] / total:.0%}" if self.sifting.queries and total else ""
                if self.progress:
                    self._failed("")  # nothing did, but there is something to say
        self.progress = ""
        return [entry for part in (parts if asked["down"] else reversed(parts)) for entry in part], facts

    async def _bring(self, reader: LogReader, which: int) -> None:
        generation, lines = self._generation, self.lines
        down = which in (DOWN, TOP)
        cuts = None if which in (END, TOP) else lines.high if down else lines.low
        try:
            found = await self._page(reader, generation, down=down, count=PAGE, cuts=cuts)
            if found is None or not found[1]:
                return
            if which in (END, TOP) and not lines.span[1]:
                await self._measure(reader)
        except ReadError as error:
            self._fail(error, generation)
            return
        if generation != self._generation:
            return
        entries, facts = found
        self._take(which, entries, facts)
        self._wants = None
        self._works()
        self._loaded()

    def _take(self, which: int, entries: Sequence[Entry], facts: dict[str, Any]) -> None:
        lines = self.lines
        self._ends = facts["ends"]
        lines.size = sum(self._ends)
        nothing = [0] * len(self._ends)
        if which == END:
            lines.reset(entries, facts["cuts"], facts["ends"], facts["at_end"], True)
        elif which == TOP:
            lines.reset(entries, nothing, facts["cuts"], True, facts["at_end"])
        else:
            lines.extend(entries, facts["cuts"], which == DOWN, facts["at_end"])

    async def _seek(self, reader: LogReader, goal: Goal, then: Callable[[int], None]) -> None:
        """A page above and a page below the place, which together are the new window."""
        generation = self._generation
        try:
            place: dict[str, Any] = {}
            async with contextlib.aclosing(reader.ask("cuts", **goal.facts())) as answer:
                async for facts, _ in answer:
                    place = facts
            below = await self._page(reader, generation, down=True, count=PAGE, cuts=place["cuts"])
            above = await self._page(reader, generation, down=False, count=PAGE, cuts=place["cuts"])
            if not self.lines.span[1]:
                await self._measure(reader)
        except ReadError as error:
            self._fail(error, generation)
            return
        if generation != self._generation or below is None or above is None:
            return
        self._ends = below[1]["ends"]
        self.lines.size = sum(self._ends)
        at_top, at_end = above[1]["at_end"], below[1]["at_end"]
        self.lines.reset([*above[0], *below[0]], above[1]["cuts"], below[1]["cuts"], at_top, at_end)
        self._wants = None
        entries = self.lines.entries
        if entries:
            then(self.lines.number(min(len(above[0]), len(entries) - 1)))
        self._loaded()

    async def _measure(self, reader: LogReader) -> None:
        async with contextlib.aclosing(reader.ask("span")) as answer:
            async for facts, _ in answer:
                self.lines.span = (facts["first"], facts["last"])

    async def _look(self, reader: LogReader, generation: int) -> None:
        self._pace.begin()
        try:
            await self._look_now(reader, generation)
        finally:
            self._pace.end()

    async def _look_now(self, reader: LogReader, generation: int) -> None:
        try:
            if self._floods and self._is_followed() and not self.sifting.queries:
                await self._look_at_end(reader, generation)
                return
            ends = await reader.ends()
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
            if self._wants is None:
                self._works()
            elif generation != self._generation:
                return  # that tells how much there is, too
        self._quiet = 0 if ends != self._ends else self._quiet + 1
        if ends == self._ends:
            return
        shorter = len(ends) == len(self._ends) and any(new < old for new, old in zip(ends, self._ends, strict=True))
        grown = sum(ends) - sum(self.lines.high) if len(self.lines.high) == len(ends) else BURST
        self._ends = ends
        self.lines.size = sum(ends)
        self._floods = not shorter and grown >= BURST
        self.lines.grow(near=not shorter and (grown < BURST or bool(self.sifting.queries)))
        if self._ticks % SPAN_EVERY == 0:
            with contextlib.suppress(ReadError):
                await self._measure(reader)
        self._grown(shorter)

    async def _look_at_end(self, reader: LogReader, generation: int) -> None:
        """The end at once, without asking first whether there is more: there is."""
        found = await self._page(reader, generation, down=False, count=PAGE, cuts=None)
        if found is None or generation != self._generation:
            return
        self._looking = False
        ends, before = found[1]["ends"], sum(self._ends)
        shorter = any(new < old for new, old in zip(ends, self._ends, strict=False))
        self._floods = sum(ends) - before >= BURST
        self._quiet = 0
        self._take(END, *found)
        self._grown(shorter)

    def _fail(self, error: ReadError, generation: int) -> None:
        if generation == self._generation:
            self.give_up(str(error))

    def give_up(self, said: str) -> None:
        """What was on its way does not come; the next look tries again."""
        self._wants = None
        self._looking = False
        self._broken = self._said = True
        self.progress = ""
        self._failed(said)

    def _works(self) -> None:
        if self._said:
            self._said = False
            self._failed("")
