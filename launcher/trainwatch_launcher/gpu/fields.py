"""Counters of a GPU: ECC errors, replaced rows, bytes over PCIe and NVLink; and rates from them.

Most are field values, many in one call (nvmlDeviceGetFieldValues); what a driver does not have there is asked by the
older functions. Field numbers are those of nvml.h (NVML_FI_DEV_*): old bindings do not name all of them.
"""
from __future__ import annotations

from trainwatch_launcher.gpu.binding import KINDS, UNSUPPORTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.gpu.binding import Questions

ECC = {"ecc_corrected": 3, "ecc_uncorrected": 4, "ecc_corrected_total": 5, "ecc_uncorrected_total": 6}
REMAPPED = {"remapped_corrected": 142, "remapped_uncorrected": 143, "remap_pending": 144, "remap_failed": 145}
PCIE = {"pcie_tx": 197, "pcie_rx": 198}
FIELDS = {**ECC, **REMAPPED, **PCIE}
ECC_QUESTIONS = {"ecc_corrected": (0, 0), "ecc_uncorrected": (1, 0), "ecc_corrected_total": (0, 1),
                 "ecc_uncorrected_total": (1, 1)}
"""(error type, counter type) of nvmlDeviceGetTotalEccErrors."""
PCIE_QUESTIONS = {"pcie_tx": 0, "pcie_rx": 1}
"""Counters of nvmlDeviceGetPcieThroughput, which measures for 20 ms."""
PCIE_EVERY = 10.0
LINK_COUNT = 91
MOST_LINKS = 36
LINK_FIELDS = (
    # transmitted, received, bytes in a unit: up to Hopper, and after it
    (138, 139, 1024),
    (202, 204, 1),
)
VALUES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of nvmlValue_t by nvmlValueType_t."""
FLAGS = ("remap_pending", "remap_failed")


class Rate:
    """A rate from a counter that only grows; None for the first reading, and when it was reset or wrapped."""

    def __init__(self, unit: int = 1) -> None:
        self._unit = unit
        self._last: tuple[int, float] | None = None

    def per_second(self, count: int, now: float) -> int | None:
        """Units per second since the last reading, at a monotonic time."""
        before, self._last = self._last, (count, now)
        if before is None or now <= before[1] or count < before[0]:
            return None
        return round((count - before[0]) * self._unit / (now - before[1]))


class Counters:
    """ECC errors, replaced rows and PCIe bytes of one GPU."""

    def __init__(self, questions: Questions, handle: Any) -> None:
        self._questions, self._handle = questions, handle
        self._fields = dict(FIELDS)
        self._rates = {name: Rate() for name in PCIE}
        self._pcie: dict[str, Any] = {}
        self._pcie_at = 0.0

    def read(self, now: float) -> dict[str, Any]:
        """All of them at a monotonic time: counts, and bytes per second. Raises Failed when the GPU is lost."""
        found = self._read_fields()
        row = {name: found[name] for name in (*ECC, *REMAPPED) if name in found}
        row.update({name: rate.per_second(found[name], now) for name, rate in self._rates.items() if name in found})
        if not any(name in found for name in ECC):
            row.update(self._read_ecc())
        if not any(name in found for name in REMAPPED):
            row.update(self._read_remapped())
        if not any(name in found for name in PCIE):
            row.update(self._read_pcie(now))
        return {name: bool(value) if name in FLAGS else value for name, value in row.items() if value is not None}

    def _read_fields(self) -> dict[str, Any]:
        """The fields that this GPU has; those that it turns out not to have are not asked again."""
        if not self._fields:
            return {}
        values = self._questions.ask("nvmlDeviceGetFieldValues", self._handle, list(self._fields.values()))
        if values is None:
            return {}
        found = {}
        for name, value in zip(list(self._fields), values):
            code = int(value.nvmlReturn)
            if code == 0:
                found[name] = value_of(value)
            elif KINDS.get(code) == UNSUPPORTED:
                del self._fields[name]
        return found

    def _read_ecc(self) -> dict[str, Any]:
        ask, handle = self._questions.ask, self._handle
        return {name: ask("nvmlDeviceGetTotalEccErrors", handle, *arguments, key=name)
                for name, arguments in ECC_QUESTIONS.items()}

    def _read_remapped(self) -> dict[str, Any]:
        rows = self._questions.ask("nvmlDeviceGetRemappedRows", self._handle)
        return dict(zip(REMAPPED, rows)) if rows is not None else {}

    def _read_pcie(self, now: float) -> dict[str, Any]:
        if now < self._pcie_at:
            return self._pcie
        self._pcie_at = now + PCIE_EVERY
        ask, handle = self._questions.ask, self._handle
        rates = {name: ask("nvmlDeviceGetPcieThroughput", handle, counter, key=name)
                 for name, counter in PCIE_QUESTIONS.items()}
        self._pcie = {name: None if kib is None else kib * 1024 for name, kib in rates.items()}
        return self._pcie


class Links:
    """Bytes over NVLink, summed over the links of one GPU."""

    def __init__(self, questions: Questions, handle: Any) -> None:
        self._questions, self._handle = questions, handle
        self._asked = False
        self._ids: list[tuple[int, int]] = []
        self._transmitted, self._received = Rate(), Rate()

    def read(self, now: float) -> dict[str, Any]:
        """`nvlink_tx` and `nvlink_rx` in bytes per second since the last reading; nothing for a GPU without links."""
        if not self._asked:
            self._asked = True
            self._find()
        values = self._values(self._ids) if self._ids else None
        if values is None:
            return {}
        half = len(values) // 2
        return {
            "nvlink_tx": self._transmitted.per_second(sum(values[:half]), now),
            "nvlink_rx": self._received.per_second(sum(values[half:]), now),
        }

    def _find(self) -> None:
        """Which fields of which links this GPU counts: links that are down have none."""
        count = self._values([(LINK_COUNT, 0)])
        links = range(min(int(count[0]), MOST_LINKS)) if count and count[0] else range(0)
        for transmitted, received, unit in LINK_FIELDS:
            counting = [link for link in links if self._values([(transmitted, link), (received, link)])]
            if counting:
                self._ids = [(field, link) for field in (transmitted, received) for link in counting]
                self._transmitted, self._received = Rate(unit), Rate(unit)
                return

    def _values(self, ids: list[tuple[int, int]]) -> list[Any] | None:
        """The values of fields, each of one link; None unless all are there: a sum of some would be a wrong number."""
        values = self._questions.ask("nvmlDeviceGetFieldValues", self._handle, ids, key="links")
        if values is None or any(value.nvmlReturn != 0 for value in values):
            return None
        return [value_of(value) for value in values]


def value_of(field: Any) -> Any:
    """The number in an nvmlFieldValue_t."""
    kind = int(field.valueType)
    return getattr(field.value, VALUES[kind]) if 0 <= kind < len(VALUES) else None
