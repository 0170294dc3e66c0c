"""Lines of logs for commands: from where, to where, which of them, and on as they come. Blocking."""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainwatch.commands.targets import Followed
from trainwatch.model import moments
from trainwatch.model.clock import server_time
from trainwatch.model.state import Attempt
from trainwatch.sources.base import Part, SourceError
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.pages import Entry, Page
from trainwatch_launcher.reader.query import Query

PAGE = 2000
COPIED_AT_ONCE = 1 << 20
LOOK_EVERY = 0.2
"""Seconds between two looks for what came. Lines are held that long, so that those of slower ranks come before."""
STATUS_EVERY = 1.0


class NothingError(Exception):
    """There is no such moment or phase; the message is one line for a person."""


@dataclass(frozen=True)
class Line:
    """One line of an attempt's log: when it was written (Unix seconds; 0 when unknown) and where it begins."""

    key: AttemptKey
    time: float
    offset: int
    data: bytes
    context: bool = False
    number: int | None = None
    """From 1 on, once somebody has counted."""


class Reading:
    """What is wanted of logs."""

    def __init__(
        self, followed: Followed, query: Query | None, context: int = 0, since: str | None = None,
        tail: int | None = None, phase: str | None = None,
    ) -> None:
        self._followed = followed
        self._sifting: dict[str, Any] = {"queries": [query.to_json()] if query is not None else [], "context": context}
        self._since, self._tail, self._phase = since, tail, phase

    @property
    def is_plain(self) -> bool:
        """Whether all lines are wanted, so that bytes may be copied as they are."""
        return not self._sifting["queries"]

    def copy(self, key: AttemptKey, prefix: bytes) -> Iterator[bytes]:
        """The bytes of a log, with a prefix before each line. Raises SourceError and NothingError."""
        [start], [end] = self._bounds((key,))
        is_line_start = True
        while start < end:
            data = self._followed.read_log(key, start, min(COPIED_AT_ONCE, end - start))
            if not data:
                return
            start += len(data)
            if prefix:
                head, is_line_start, body = prefix * is_line_start, data.endswith(b"\n"), data.removesuffix(b"\n")
                data = head + body.replace(b"\n", b"\n" + prefix) + b"\n" * is_line_start
            yield data
        if prefix and not is_line_start:
            yield b"\n"

    def read(self, keys: Sequence[AttemptKey]) -> Iterator[list[Line]]:
        """All lines that are wanted, as the logs are now. Raises SourceError and NothingError."""
        cuts, ends = self._bounds(keys)
        while True:
            at_end = False
            for facts, entries in self._page(keys, cuts, ends):
                yield _lines(keys, entries)
                cuts, at_end = facts["cuts"], facts["at_end"]
            if at_end:
                return

    def follow(self, keys: Sequence[AttemptKey]) -> Iterator[list[Line]]:
        """The same, and on until all these attempts have ended. Each line once it is whole, in the order of time."""
        cuts, _ = self._bounds(keys)
        whole, files = [0] * len(keys), [0] * len(keys)
        looked = time.monotonic()
        while True:
            over = all(_has_ended(self._followed.run.attempts.get(key)) for key in keys)
            [(facts, _)] = self._ask("ends", keys, whole=True)
            sizes, before, whole = facts["ends"], whole, facts["whole"]
            for at, (old, new) in enumerate(zip(files, facts["files"], strict=True)):
                if cuts[at] > sizes[at] or (old and new and old != new):
                    cuts[at] = before[at] = 0  # another file under this name is read from its top
            files = [new or old for old, new in zip(files, facts["files"], strict=True)]
            bound = sizes if over else [min(old, size) for old, size in zip(before, sizes, strict=True)]
            while any(cut < end for cut, end in zip(cuts, bound, strict=True)):
                for facts, entries in self._page(keys, cuts, [max(c, b) for c, b in zip(cuts, bound, strict=True)]):
                    cuts = facts["cuts"]
                    yield _lines(keys, entries)
            if over:
                return
            time.sleep(LOOK_EVERY)
            if time.monotonic() - looked >= STATUS_EVERY:
                looked = time.monotonic()
                self._followed.look()

    # Where

    def _bounds(self, keys: Sequence[AttemptKey]) -> tuple[list[int], list[int]]:
        """From where to where each log is read. Raises NothingError."""
        ends = self._ends(keys)
        cuts = [0] * len(keys)
        if self._phase is not None:
            spans = [self._phase_of(key, end) for key, end in zip(keys, ends, strict=True)]
            if not any(spans):
                phases = [phase for key in keys for phase in self._followed.run.attempts[key].phases]
                known = ", ".join(dict.fromkeys(phase.name for phase in phases if phase.source == "marker"))
                raise NothingError(f"there is no phase {self._phase}" + (f"; there are {known}" if known else ""))
            found = [span or (end, end) for span, end in zip(spans, ends, strict=True)]
            cuts, ends = [low for low, _ in found], [high for _, high in found]
        if self._since is not None:
            [(span, _)] = self._ask("span", keys)
            moment = moments.parse(self._since, span["last"])
            if moment is None:
                raise NothingError(f"--since {self._since}: write -10m, 12:31:05, or 2025-11-30 12:31:05")
            [(facts, _)] = self._ask("cuts", keys, time=moment)
            cuts = [max(low, high) for low, high in zip(cuts, facts["cuts"], strict=True)]
        if self._tail is not None:
            cuts = self._tail_cuts(keys, cuts, ends, self._tail)
        return cuts, ends

    def _tail_cuts(self, keys: Sequence[AttemptKey], lows: list[int], ends: list[int], count: int) -> list[int]:
        """Where the last `count` lines begin that pass."""
        cuts, at_end = list(ends), False
        while count > 0 and not at_end and any(cut > low for cut, low in zip(cuts, lows, strict=True)):
            asked = {**self._sifting, "context": 0, "cuts": cuts, "ends": ends}
            for facts, body in self._ask("page", keys, down=False, count=min(count, PAGE), **asked):
                count -= len(Page.decode(body))
                cuts, at_end = list(facts["cuts"]), facts["at_end"]
        return [max(low, cut) for low, cut in zip(lows, cuts, strict=True)]

    def _phase_of(self, key: AttemptKey, end: int) -> tuple[int, int] | None:
        """From where to where an attempt was in the phase, the last time that it was; None when it never was."""
        phases = [phase for phase in self._followed.run.attempts[key].phases if phase.source == "marker"]
        wanted = (self._phase or "").casefold()
        for test in (str.__eq__, str.__contains__):
            for at in range(len(phases) - 1, -1, -1):
                if test(phases[at].name.casefold(), wanted):
                    return phases[at].offset, min(end, phases[at + 1].offset) if at + 1 < len(phases) else end
        return None

    # Asking

    def _page(
        self, keys: Sequence[AttemptKey], cuts: list[int], ends: list[int]
    ) -> Iterator[tuple[dict[str, Any], list[Entry]]]:
        asked = {"down": True, "count": PAGE, "cuts": cuts, "ends": ends, **self._sifting}
        for facts, body in self._stream("page", keys, **asked):
            yield facts, self._whole(keys, Page.decode(body))

    def _whole(self, keys: Sequence[AttemptKey], entries: list[Entry]) -> list[Entry]:
        """Entries with all bytes of their lines: of a very long one a page holds the beginning."""
        cut = {at for at, entry in enumerate(entries) if len(entry.data) < entry.end - entry.start}
        return [
            entry._replace(data=self._rest(keys[entry.log], entry)) if at in cut else entry
            for at, entry in enumerate(entries)
        ]

    def _rest(self, key: AttemptKey, entry: Entry) -> bytes:
        return b"".join(
            self._followed.read_log(key, at, min(COPIED_AT_ONCE, entry.end - at))
            for at in range(entry.start, entry.end, COPIED_AT_ONCE)
        )

    def _ends(self, keys: Sequence[AttemptKey]) -> list[int]:
        [(facts, _)] = self._ask("ends", keys)
        return list(facts["ends"])

    def _ask(self, operation: str, keys: Sequence[AttemptKey], **facts: Any) -> list[Part]:
        return list(self._stream(operation, keys, **facts))

    def _stream(self, operation: str, keys: Sequence[AttemptKey], **facts: Any) -> Iterator[Part]:
        shifts = [shift_of(self._followed.run.attempts.get(key)) for key in keys]
        return self._followed.ask_logs(operation, keys, shifts, **facts)


def shift_of(attempt: Attempt | None) -> float:
    """Seconds from an attempt's clock to ours."""
    return server_time(attempt.status if attempt is not None else None, 0.0)


def _has_ended(attempt: Attempt | None) -> bool:
    status = attempt.status if attempt is not None else None
    return status is not None and status.ended is not None


def _lines(keys: Sequence[AttemptKey], entries: Sequence[Entry]) -> list[Line]:
    return [Line(keys[entry.log], entry.time, entry.start, entry.data, not entry.hit) for entry in entries]


def numbered(followed: Followed, lines: Sequence[Line]) -> list[Line]:
    """The same lines with their numbers. Raises SourceError."""
    numbers: dict[tuple[AttemptKey, int], int] = {}
    for key in dict.fromkeys(line.key for line in lines):
        offsets = [line.offset for line in lines if line.key == key]
        for counted in (False, True):
            if counted:
                list(followed.ask_logs("count", (key,), (0.0,)))
            [(facts, _)] = list(followed.ask_logs("places", (key,), (0.0,), offsets=offsets))
            if None not in facts["lines"]:
                break
        else:
            raise SourceError("lines cannot be counted")
        numbers.update({(key, offset): line + 1 for offset, line in zip(offsets, facts["lines"], strict=True)})
    return [replace(line, number=numbers[line.key, line.offset]) for line in lines]
