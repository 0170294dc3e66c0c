"""How often and where something is in logs of any size: counted block by block, from where one is outwards."""
from __future__ import annotations

from array import array

from trainwatch_launcher.reader.pages import passing
from trainwatch_launcher.reader.pieces import blocks
from trainwatch_launcher.reader.sieve import HERE, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, Sequence

    Block = tuple[int, int, int]
    """A log's number, offsets from and to."""

    from trainwatch_launcher.reader.query import Query
    from trainwatch_launcher.reader.sieve import Tools
    from trainwatch_launcher.reader.timeline import TimedLog

FIRST = 1 << 20
"""Bytes in the first block: what is near is told soon."""
FASTER = 8
"""Each block is so many times as long as the one before it: to start a program takes as long as ten megabytes …"""
LARGEST = 128 << 20
"""… up to this, since nothing is told before a block's end."""
TOGETHER = 128 << 20
"""Bytes of small logs that are looked through at once."""
MOST = 200_000
"""So many hits are told one by one; of further ones only how many a block has."""


class Found:
    """What a block holds: log's number, offsets from and to, how many lines match, and where they begin.

    `starts` is None when there are too many to tell.
    """

    def __init__(self, log: int, low: int, high: int, count: int, starts: array[int] | None) -> None:
        self.log, self.low, self.high, self.count, self.starts = log, low, high, count, starts


def search(
    logs: Sequence[TimedLog], froms: Sequence[int], ends: Sequence[int], at: Sequence[int],
    queries: Sequence[Query], down: bool,
    cancelled: Callable[[], bool], tools: Tools = HERE,
) -> Iterator[Found]:
    """Look through all logs, each between its `froms` and its `ends`: first from `at` on, then the rest, in blocks.

    Raises QueryError, Cancelled and OSError.
    """
    told, density = 0, 0.0
    for batch in _batches(logs, _order(logs, froms, ends, at, down)):
        only = logs[batch[0][0]].only
        wanted = [*queries, only] if only is not None else list(queries)
        size = sum(high - low for _, low, high in batch)
        if told + density * size > MOST and len(wanted) == 1:
            for number, low, high in batch:
                lines = count(wanted[0], blocks(logs[number], number, low, high), cancelled, tools)
                yield Found(number, low, high, lines, None)
            continue
        pieces = (piece for number, low, high in batch for piece in blocks(logs[number], number, low, high))
        passed = passing(wanted, pieces, lambda which, start: logs[which].line(start), cancelled, tools)
        for number, low, high in batch:
            starts = array("Q", passed.get(number, ()))
            told += len(starts)
            yield Found(number, low, high, len(starts), starts if told <= MOST else None)
        density = sum(map(len, passed.values())) / max(1, size)


def _batches(logs: Sequence[TimedLog], order: Iterator[Block]) -> Iterator[list[Block]]:
    """Blocks of several logs that one program looks through: starting one takes as long as a megabyte."""
    batch: list[Block] = []
    size = 0
    for block in order:
        alone = any(block[0] == number or logs[block[0]].only is not logs[number].only for number, _, _ in batch)
        if alone or (batch and size + block[2] - block[1] > TOGETHER):
            yield batch
            batch, size = [], 0
        batch.append(block)
        size += block[2] - block[1]
    if batch:
        yield batch


def _order(
    logs: Sequence[TimedLog], froms: Sequence[int], ends: Sequence[int], at: Sequence[int], down: bool
) -> Iterator[Block]:
    """(log, from, to) of all blocks: of each log the part that way first, all of these before the other parts."""
    middles = [
        log.line_start(place) if low < place < high else max(low, min(place, high))
        for log, low, high, place in zip(logs, froms, ends, at)
    ]  # fmt: skip
    numbers = range(len(logs))
    legs = list(zip(numbers, middles, ends)), list(zip(numbers, froms, middles))
    for leg in legs if down else legs[::-1]:
        for number, low, high in leg:
            yield from _blocks(logs[number], number, low, high, down, FIRST if len(logs) == 1 else TOGETHER)


def _blocks(log: TimedLog, number: int, low: int, high: int, down: bool, step: int) -> Iterator[Block]:
    while low < high:
        if high - low <= step * 2:
            yield number, low, high
            return
        if down:
            edge = log.first_start(low + step, high)
            yield number, low, edge
            low = edge
        else:
            edge = log.line_start(high - step)
            edge = low if edge <= low else edge
            yield number, edge, high
            high = edge
        step = min(step * FASTER, LARGEST)
