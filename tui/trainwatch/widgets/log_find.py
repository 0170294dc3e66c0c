"""A search in what a view shows: the next hit at once; in the background how many there are, and which one this is."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.worker import Worker

from trainwatch.widgets.log_loader import LogReader, ReadError
from trainwatch.widgets.log_rows import Place
from trainwatch.widgets.log_view import LogView
from trainwatch_launcher.reader.pages import Page
from trainwatch_launcher.reader.query import Query

Begin = Callable[[Callable[[], Coroutine[Any, Any, None]]], Worker[None]]


@dataclass
class Block:
    """A part of a log that has been searched."""

    log: int
    low: int
    high: int
    count: int
    starts: array[int] | None
    """Where the lines with a hit begin; None when there were too many."""


class Counted:
    """How many lines have a hit, as far as has been searched."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.count = self.done = self.total = 0
        self.complete = False

    def add(self, block: Block) -> None:
        """One more part."""
        self.blocks.append(block)
        self.count += block.count
        self.done += block.high - block.low

    def number(self, place: Place, logs: int) -> int | None:
        """Which hit this is, from 1; None when that is not known, or when several logs have no common count."""
        if logs != 1 or not self.complete:
            return None
        before = 0
        for block in self.blocks:
            if block.high <= place[1]:
                before += block.count
            elif block.low <= place[1]:
                if block.starts is None:
                    return None
                before += bisect_right(block.starts, place[1])
        return before

    def nearest(self, offset: int, down: bool) -> int | None:
        """Where the hit nearest to a byte of the only log begins, that way; None when that is not known."""
        if not self.complete:
            return None
        while True:
            block = next((one for one in self.blocks if one.low <= offset < one.high), None)
            if block is None or block.starts is None:
                return None
            at = bisect_left(block.starts, offset) if down else bisect_right(block.starts, offset) - 1
            if 0 <= at < len(block.starts):
                return block.starts[at]
            offset = block.high if down else block.low - 1

    @property
    def text(self) -> str:
        """How many, in words."""
        hits = f"{self.count:,} line{'' if self.count == 1 else 's'}"
        share = self.done / self.total if self.total else 1.0
        return hits if self.complete else f"{hits} so far, {share:.0%} searched"


class Finder:
    """Looks for one thing in what `view` shows. `begin` runs its work, `say` tells how it goes."""

    def __init__(self, view: LogView, begin: Begin, say: Callable[[str], None]) -> None:
        self.query: Query | None = None
        self.counted = Counted()
        self._view, self._begin, self._say = view, begin, say
        self._counting: Worker[None] | None = None
        self._looking: Worker[None] | None = None
        self._sought: tuple[bool, list[int] | None] = (False, None)
        """Which way one looks, and from which cuts on."""
        self._note = ""
        self._nothing = False
        """Whether one has looked everywhere and found none."""

    @property
    def is_busy(self) -> bool:
        """Whether it still looks or counts."""
        return any(worker is not None and not worker.is_finished for worker in (self._counting, self._looking))

    def stop(self) -> None:
        """Look for nothing any more."""
        for worker in (self._counting, self._looking):
            if worker is not None:
                worker.cancel()
        self._counting = self._looking = None
        self.query = None

    def look_for(self, query: Query, down: bool, start: int | None) -> None:
        """Look for another thing, from the line `start` on (None: the end)."""
        self.stop()
        self.query, self.counted, self._note, self._nothing = query, Counted(), "", False
        self._view.show_pattern(query, None)
        self.next(down, start, below=False)

    def count(self) -> None:
        """Count all that there is of it; of one log this also finds the next hit, when that is still looked for."""
        reader, query = self._view.reader, self.query
        if reader is None or query is None or self._counting is not None:
            return
        seeks = self._looking is not None and not self._looking.is_finished and _is_one(reader)
        if seeks and self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._counting = self._begin(partial(self._count, reader, query, self._sought if seeks else None))

    def next(self, down: bool, start: int | None, below: bool = True) -> None:
        """Go to the next hit, from a line on (None: the end)."""
        reader, query = self._view.reader, self.query
        if reader is not None and query is not None:
            if self._looking is not None:
                self._looking.cancel()
            cuts = self._view.cuts_at(start, below=below and down)
            self._sought = down, cuts
            known = self._known(reader, down, cuts)
            if known is not None:
                self._note = ""
                self._view.show_pattern(query, (0, known))
                self.tell()
            else:
                self._looking = self._begin(partial(self._next, reader, query, down, cuts))

    def _known(self, reader: LogReader, down: bool, cuts: list[int] | None) -> int | None:
        """Where the next hit begins, when that has been counted."""
        if cuts is None or not _is_one(reader) or self._view.size_bytes < self.counted.total:
            return None
        return self.counted.nearest(cuts[0] if down else cuts[0] - 1, down)

    async def _next(self, reader: LogReader, query: Query, down: bool, cuts: list[int] | None) -> None:
        try:
            found = await first_page(reader, [query, *self._view.sifting.queries], down, cuts, self._progress)
            around = found is None
            if around:
                beginning = [0] * len(reader.labels or [""]) if down else None
                found = await first_page(reader, [query, *self._view.sifting.queries], down, beginning, self._progress)
        except ReadError as error:
            self._note = ""
            self._say(str(error))
            return
        self._note = ", around the end" if around else ""
        self._nothing = found is None
        if found is not None:
            self._view.show_pattern(query, found)
        self.tell()

    def _progress(self, share: float) -> None:
        self._say(f"searching… {share:.0%}")

    async def _count(self, reader: LogReader, query: Query, sought: tuple[bool, list[int] | None] | None) -> None:
        queries = [one.to_json() for one in (query, *self._view.sifting.queries)]
        while sought is None and self._looking is not None and not self._looking.is_finished:
            await asyncio.sleep(0.02)  # the hit first: both would want the same two cores
        down, cuts = sought or (False, None)
        try:
            async with contextlib.aclosing(reader.ask("search", queries=queries, down=down, at=cuts)) as answer:
                async for facts, body in answer:
                    if "total" in facts:
                        self.counted.total = facts["total"]
                        self.tell()
                        continue
                    block = _block(facts, body)
                    self.counted.add(block)
                    if sought is not None and block.count:
                        self._found_in(block, reader, query, down, cuts)
                        sought = None
                    self.tell()
        except ReadError as error:
            self._say(str(error))
            return
        self.counted.complete = True
        self.tell()

    def _found_in(self, block: Block, reader: LogReader, query: Query, down: bool, cuts: list[int] | None) -> None:
        """The first block with hits holds the next one."""
        if not block.starts:
            self._looking = self._begin(partial(self._next, reader, query, down, cuts))
            return
        hit = block.starts[0] if down else block.starts[-1]
        around = cuts is not None and (hit < cuts[0] if down else hit >= cuts[0])
        self._note = ", around the end" if around else ""
        self._view.show_pattern(query, (block.log, hit))

    def tell(self) -> None:
        """Say which hit this is, of how many."""
        hit, query = self._view.hit, self.query
        if query is None:
            return
        if hit is None:
            none = self._nothing or (self.counted.complete and not self.counted.count)
            share = f" {self.counted.done / self.counted.total:.0%}" if self.counted.total else ""
            self._say(f"no match for {query.text}" if none else f"searching…{share}")
            return
        number = self.counted.number(hit, len(self._view.reader.labels or [""]) if self._view.reader else 1)
        which = f"{number:,} of {self.counted.text}" if number else self.counted.text if self.counted.done else "found"
        self._say(f"{which}{self._note} · n next · N previous")


def _is_one(reader: LogReader) -> bool:
    """Whether it is a single log, all bytes of which are its own."""
    return len(reader.labels) <= 1 and not reader.is_part


def _block(facts: dict[str, Any], body: bytes) -> Block:
    starts = None
    if facts["told"]:
        starts = array("Q", body)
        if sys.byteorder == "big":
            starts.byteswap()
    return Block(facts["log"], facts["from"], facts["to"], facts["count"], starts)


async def first_page(
    reader: LogReader, queries: Sequence[Query], down: bool, cuts: list[int] | None,
    progress: Callable[[float], None] | None = None,
) -> Place | None:
    """The first line that way that passes all queries; None when none does. Raises ReadError."""
    asked: dict[str, Any] = {"down": down, "count": 1, "queries": [query.to_json() for query in queries], "cuts": cuts}
    async with contextlib.aclosing(reader.ask("page", **asked)) as answer:
        async for facts, body in answer:
            entries = Page.decode(body)
            if entries:
                return entries[0].log, entries[0].start
            if progress is not None and sum(facts["ends"]):
                progress(facts["done"] / sum(facts["ends"]))
    return None
