"""Asks several sources about logs that lie with each of them, and makes one answer of theirs."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trainwatch.sources.base import Part, SourceError
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.pages import Entry, Page

Facts = dict[str, Any]
Ask = Callable[..., AsyncIterator[Part]]


@dataclass(frozen=True)
class Share:
    """The logs that one source has, of those that are asked about."""

    ask: Ask
    """That source's `ask_logs`."""
    keys: tuple[AttemptKey, ...]
    """As that source calls them."""
    numbers: tuple[int, ...]
    """Which of all the logs these are."""

    def of(self, values: Sequence[Any] | None) -> list[Any] | None:
        """Of a list with a value for each log, the values of these; None stays None."""
        return None if values is None else [values[number] for number in self.numbers]


def ask_all(shares: Sequence[Share], operation: str, shifts: Sequence[float], facts: Facts) -> AsyncIterator[Part]:
    """One answer from all shares. Raises SourceError."""
    many = _Many(shares, shifts)
    if len(shares) == 1:
        return many.one(shares[0], operation, facts)
    if operation == "read":
        return many.read(facts)
    if operation in ("count", "places"):
        raise SourceError("one log at a time can be asked for that")
    return {"ends": many.ends, "cuts": many.cuts, "span": many.span, "page": many.page, "search": many.search}[
        operation
    ](facts)


class _Many:
    def __init__(self, shares: Sequence[Share], shifts: Sequence[float]) -> None:
        self._shares, self._shifts = shares, list(shifts)
        self._total = sum(len(share.numbers) for share in shares)

    def one(self, share: Share, operation: str, facts: Facts) -> AsyncIterator[Part]:
        """What one source says."""
        return share.ask(operation, share.keys, share.of(self._shifts) or (), **facts)

    def read(self, facts: Facts) -> AsyncIterator[Part]:
        """Bytes of one log: from whoever has it."""
        owner = self._owner(facts["log"])
        return self.one(owner, "read", {**facts, "log": owner.numbers.index(facts["log"])})

    def _owner(self, number: int) -> Share:
        """Whose log has this number."""
        return next(share for share in self._shares if number in share.numbers)

    async def _first(self, share: Share, operation: str, facts: Facts) -> Facts:
        async with contextlib.aclosing(self.one(share, operation, facts)) as parts:  # type: ignore[type-var]
            async for found, _ in parts:
                return dict(found)
        raise SourceError("no answer")

    async def _of_each(self, operation: str, facts: Sequence[Facts]) -> list[Facts]:
        asked = zip(self._shares, facts, strict=True)
        return list(await asyncio.gather(*(self._first(share, operation, own) for share, own in asked)))

    def _spread(self, found: Sequence[Facts], name: str) -> list[Any]:
        """A list with a value for each log from the lists of the shares."""
        values: list[Any] = [0] * self._total
        for share, facts in zip(self._shares, found, strict=True):
            for number, value in zip(share.numbers, facts[name], strict=True):
                values[number] = value
        return values

    async def ends(self, facts: Facts) -> AsyncIterator[Part]:
        found = await self._of_each("ends", [facts] * len(self._shares))
        yield {name: self._spread(found, name) for name in ("ends", "files", "whole") if name in found[0]}, b""

    async def span(self, facts: Facts) -> AsyncIterator[Part]:
        first, last = await self._span()
        yield {"first": first, "last": last}, b""

    async def _span(self) -> tuple[float, float]:
        """When the first and the last line of all were written."""
        found = [span for span in await self._of_each("span", [{}] * len(self._shares)) if span["last"]]
        return min((span["first"] for span in found), default=0.0), max((span["last"] for span in found), default=0.0)

    async def cuts(self, facts: Facts) -> AsyncIterator[Part]:
        asked: list[Facts] = []
        if "log" in facts:
            owner = self._owner(facts["log"])
            own = owner.numbers.index(facts["log"])
            single = Share(owner.ask, (owner.keys[own],), (facts["log"],))
            time = (await self._first(single, "places", {"offsets": [facts["offset"]]}))["times"][0]
            asked = [
                {"log": own, "offset": facts["offset"]} if share is owner else {"time": time} for share in self._shares
            ]
        elif "share" in facts:
            first, last = await self._span()
            asked = [{"time": first + (last - first) * facts["share"]}] * len(self._shares)
        else:
            asked = [facts] * len(self._shares)
        found = await self._of_each("cuts", asked)
        yield {"cuts": self._spread(found, "cuts"), "ends": self._spread(found, "ends")}, b""

    async def search(self, facts: Facts) -> AsyncIterator[Part]:
        parts: asyncio.Queue[tuple[Share, Part] | Exception | None] = asyncio.Queue()

        async def pump(share: Share) -> None:
            try:
                own = {**facts, "at": share.of(facts.get("at")), "froms": share.of(facts.get("froms"))}
                async for part in self.one(share, "search", own):
                    parts.put_nowait((share, part))
                parts.put_nowait(None)
            except SourceError as error:
                parts.put_nowait(error)

        tasks = [asyncio.create_task(pump(share)) for share in self._shares]
        ends, total, told = [0] * self._total, 0, 0
        early: list[Part] = []
        try:
            left = len(tasks)
            while left:
                got = await parts.get()
                if got is None:
                    left -= 1
                elif isinstance(got, Exception):
                    raise got
                elif "ends" in got[1][0]:
                    share, (own, _) = got
                    for number, end in zip(share.numbers, own["ends"], strict=True):
                        ends[number] = end
                    total, told = total + own["total"], told + 1
                    if told == len(self._shares):
                        yield {"ends": ends, "total": total}, b""
                        for part in early:
                            yield part
                else:
                    share, (own, body) = got
                    block = {**own, "log": share.numbers[own["log"]]}, body
                    if told < len(self._shares):
                        early.append(block)  # how much there is in all is told first
                    else:
                        yield block
        finally:
            for task in tasks:
                task.cancel()

    async def page(self, facts: Facts) -> AsyncIterator[Part]:
        """Each gives a page; of these the first (or last) lines are the page of all."""
        lists = {name: facts.get(name) for name in ("cuts", "ends")}
        asked = [
            {**facts, "seconds": 0, **{name: share.of(values) for name, values in lists.items()}}
            for share in self._shares
        ]
        pages = await asyncio.gather(
            *(self._page_of(share, own) for share, own in zip(self._shares, asked, strict=True))
        )
        found = [answer for answer, _ in pages]
        entries = sorted(entry for _, own in pages for entry in own)
        count, down = int(facts["count"]), bool(facts["down"])
        chosen, left = (entries[:count], entries[count:]) if down else (entries[-count:], entries[:-count])
        cuts, ends = self._spread(found, "cuts"), self._spread(found, "ends")
        for entry in left:
            edge = min(cuts[entry.log], entry.start) if down else max(cuts[entry.log], entry.end + 1)
            cuts[entry.log] = edge if down else min(edge, ends[entry.log])
        at_end = not left and all(answer["at_end"] for answer in found)
        done = sum(answer["done"] for answer in found)
        yield {"cuts": cuts, "ends": ends, "at_end": at_end, "done": done}, Page(chosen, cuts, at_end, done).encode()

    async def _page_of(self, share: Share, facts: Facts) -> tuple[Facts, list[Entry]]:
        answer: Facts = {}
        entries: list[Entry] = []
        async for part, body in self.one(share, "page", facts):
            answer = part
            entries += [entry._replace(log=share.numbers[entry.log]) for entry in Page.decode(body)]
        return answer, entries
