"""Stacks that a person asked for: who was asked, who has begun, whose have come, and why others' have not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from trainwatch.model.stacks import ASKED, DONE, FAILED, TAKING, Taken
from trainwatch.model.state import Run
from trainwatch.sources.base import Source, SourceError
from trainwatch_launcher.reader.changes import AttemptKey

AT_ONCE = 32
"""Requests that are written at the same time."""
ANSWER_WITHIN, TAKEN_WITHIN = 10.0, 45.0
"""Seconds until a launcher has answered that it begins, and until it is through."""


@dataclass
class _Asked:
    since: float
    request: str = ""
    """Empty until it has been written."""
    error: str = ""
    taking_back: asyncio.Task[str] | None = None


class Takings:
    """The newest request to each launcher. Times are those of the caller's clock, in Unix seconds."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._asked: dict[AttemptKey, _Asked] = {}

    async def ask(self, keys: Sequence[AttemptKey], now: float) -> None:
        """Ask for the stacks of some attempts; those that are being taken are not asked again."""
        for key in keys:
            self._asked[key] = _Asked(now)

        async def ask(key: AttemptKey) -> None:
            asked = self._asked[key]
            try:
                asked.request = await self._source.request(key, "stacks")
            except SourceError as error:
                asked.error = str(error)

        for first in range(0, len(keys), AT_ONCE):
            await asyncio.gather(*[ask(key) for key in keys[first : first + AT_ONCE]])

    def of(self, key: AttemptKey, run: Run) -> Taken | None:
        """What became of the newest request to an attempt's launcher; None when it was not asked."""
        asked, attempt = self._asked.get(key), run.attempts.get(key)
        if asked is None or attempt is None:
            return None
        if asked.error:
            return Taken(FAILED, asked.error)
        if not asked.request:
            return Taken(ASKED)
        done, answer = attempt.stacks_of(asked.request), attempt.answer(asked.request)
        if done is not None:
            said = done.text("note")
            return Taken(DONE) if done.text("file") else Taken(FAILED, said or "it could not take them")
        if answer is not None and answer.text("result") != "done":
            return Taken(FAILED, answer.text("result") or "it said nothing")
        return Taken(TAKING if answer is not None else ASKED)

    def check(self, run: Run, now: float) -> None:
        """Give up on those that did not answer in time, so that their launchers do not find the requests much later."""
        for key, asked in self._asked.items():
            taken = self.of(key, run)
            if taken is None or not asked.request or taken.state not in (ASKED, TAKING):
                continue
            if taken.state == TAKING:
                if now - asked.since > TAKEN_WITHIN:
                    asked.error = f"it is not through after {TAKEN_WITHIN:.0f} s"
            elif asked.taking_back is None and now - asked.since > ANSWER_WITHIN:
                asked.taking_back = asyncio.create_task(self._take_back(key, asked.request))
            elif asked.taking_back is not None and asked.taking_back.done():
                asked.error = asked.taking_back.result()

    async def _take_back(self, key: AttemptKey, request: str) -> str:
        try:
            withdrawn = await self._source.withdraw(key, request)
        except SourceError as error:
            return f"no answer; the request is still there: {error}"
        return "no answer; the request is taken back" if withdrawn else "its launcher took the request and says nothing"
