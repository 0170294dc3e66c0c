"""The demo's data: one shard of a regression problem for each rank, on disk as text."""
from __future__ import annotations

import math
import random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Tuple

    Sample = Tuple[List[float], float]

FEATURES = 32
NOISE = 0.05


def write_shard(path: str, rank: int, records: int, seed: int, damaged: int | None, progress: Callable[[int], None]
                ) -> None:
    """Write a rank's records, a line each: the target, a tab, the features. Record `damaged` loses its last feature.

    The targets of all shards come from one function of the features, chosen by the seed; the features differ by rank.
    """
    chosen = random.Random(seed)
    slopes = [[chosen.gauss(0, 1.5 / math.sqrt(FEATURES)) for _ in range(FEATURES)] for _ in range(2)]
    source = random.Random(seed * 100_003 + rank + 1)
    with open(path, "w", encoding="ascii") as file:
        for number in range(records):
            features = [source.gauss(0, 1) for _ in range(FEATURES)]
            first, second = (math.tanh(sum(a * x for a, x in zip(slope, features))) for slope in slopes)
            target = first - 0.5 * second + source.gauss(0, NOISE)
            if number == damaged:
                features.pop()
            file.write("%.4f\t%s\n" % (target, " ".join("%.4f" % x for x in features)))
            progress(number + 1)


class Shard:
    """Streams the samples of one shard from its file, in batches."""

    def __init__(self, path: str, rank: int) -> None:
        self.path = path
        self.rank = rank

    def batches(self, size: int) -> Iterator[List[Sample]]:
        """Whole batches, in the order of the file. Raises ValueError at a record that makes no sense."""
        batch = []  # type: List[Sample]
        for number, line in self._records():
            batch.append(self._parse(number, line))
            if len(batch) == size:
                yield batch
                batch = []

    def _records(self) -> Iterator[Tuple[int, str]]:
        with open(self.path, encoding="ascii") as file:
            yield from enumerate(file)

    def _parse(self, number: int, line: str) -> Sample:
        target, _, features = line.partition("\t")
        values = [float(text) for text in features.split()]
        if len(values) != FEATURES:
            raise ValueError("shard %d: record %d has %d features, expected %d"
                             % (self.rank, number, len(values), FEATURES))
        return values, float(target)
