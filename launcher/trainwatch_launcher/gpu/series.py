"""Samples gathered into a line of metrics.jsonl: means and extremes over ten seconds."""
from __future__ import annotations

from trainwatch_launcher.rundir.gpus import metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from trainwatch_launcher.rundir.gpus import Metrics

SECONDS = 10.0
"""What a line covers while it is new."""
HIGHS = ("util", "memory_used", "power", "temperature", "pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
LOWS = ("clock",)
NEWEST = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed",
    "lost",
)
DIGITS = {"util": 1}


class Interval:
    """Gathers samples until a line is due. Times are Unix seconds."""

    def __init__(self) -> None:
        self._begin: float | None = None
        self._last = 0.0
        self._gpus: dict[tuple[Any, Any], _Series] = {}

    def add(self, rows: list[dict[str, Any]], when: float) -> None:
        """Take the rows of one sample."""
        if self._begin is None or when < self._begin:
            self._begin = when  # the first, or the clock was set back
        self._last = when
        for row in rows:
            key = row.get("index"), row.get("mig")
            if key not in self._gpus:
                self._gpus[key] = _Series()
            self._gpus[key].add(row)

    def take(self, now: float, closing: bool = False) -> Metrics | None:
        """The line for what was gathered, when it is time (or the end); None when not, or when there is nothing."""
        if self._begin is None or not self._gpus or (now - self._begin < SECONDS and not closing):
            return None
        begin, end = self._begin, max(self._last, min(now, self._begin + SECONDS))
        gpus = [series.row(*key) for key, series in self._gpus.items()]
        self._begin, self._gpus = None, {}
        return metrics(round(end, 3), round(max(0.0, end - begin), 3), gpus=gpus)


class _Series:
    """The samples of one GPU in an interval."""

    def __init__(self) -> None:
        self._count = 0
        self._sums: dict[str, list[float]] = {}
        self._throttle: dict[str, int] = {}
        self._newest: dict[str, Any] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        self._count += 1
        for name in HIGHS + LOWS:
            value = row.get(name)
            if value is None:
                continue
            sums = self._sums.get(name)
            if sums is None:
                self._sums[name] = [value, 1, value]
                continue
            sums[0] += value
            sums[1] += 1
            sums[2] = min(sums[2], value) if name in LOWS else max(sums[2], value)
        for reason in row.get("throttle", ()):
            self._throttle[reason] = self._throttle.get(reason, 0) + 1
        self._newest = {name: row[name] for name in NEWEST if row.get(name)}

    def row(self, index: Any, mig: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"index": index, **({"mig": mig} if mig else {}), **self._newest}
        for name, (total, count, extreme) in self._sums.items():
            found[name] = [shortened(name, total / count), shortened(name, extreme)]
        if self._throttle:
            found["throttle"] = {name: round(count / self._count, 2) for name, count in self._throttle.items()}
        return found


def shortened(name: str, value: float) -> float:
    """A number with no more digits than mean anything."""
    return round(value, DIGITS[name]) if name in DIGITS else round(value)
