"""What the run directory says of GPUs: a row of the status for each, and a line of metrics.jsonl every ten seconds.

Names in parentheses are NVML's functions or field values (`NVML_FI_DEV_*`), where the number comes from.
"""
from __future__ import annotations

from trainwatch_launcher.rundir.record import FORMAT, Record, RecordError, is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


IDLE = 5
"""Per cent of utilisation below which a GPU is idle."""


class Gpu(Record):
    """One GPU or MIG instance of a rank, as it was a moment ago. What the driver does not tell is None."""

    index: int | None = None
    """NVML's number in this container: the order of PCI addresses. Of a MIG instance: its GPU's."""
    uuid: str = ""
    name: str = ""
    mig: str | None = None
    """`GI/CI` of a MIG instance; its power, temperature, clock and ECC errors are those of the whole GPU."""
    lost: bool = False
    """The driver cannot reach it any more: it fell off the bus."""

    util: int | None = None
    """Per cent of time in which a kernel ran (nvmlDeviceGetUtilizationRates); unknown for MIG instances."""
    memory_used: int | None = None
    """Bytes, without what the driver reserves where it says so (nvmlDeviceGetMemoryInfo, version 2 first)."""
    memory_total: int | None = None
    """Bytes."""
    power: float | None = None
    """Watts (nvmlDeviceGetPowerUsage)."""
    power_limit: float | None = None
    """Watts (nvmlDeviceGetEnforcedPowerLimit)."""
    temperature: int | None = None
    """Degrees Celsius of the chip (nvmlDeviceGetTemperature)."""
    clock: int | None = None
    """MHz of the multiprocessors (nvmlDeviceGetClockInfo, SM)."""
    throttle: list[str] = []  # noqa: RUF012 - never changed in place
    """Why clocks are below their highest, idleness aside (nvmlDeviceGetCurrentClocksEventReasons)."""

    ecc_corrected: int | None = None
    """Errors since the driver was loaded (ECC_SBE_VOL_TOTAL, or nvmlDeviceGetTotalEccErrors)."""
    ecc_uncorrected: int | None = None
    """Errors since the driver was loaded (ECC_DBE_VOL_TOTAL)."""
    ecc_corrected_total: int | None = None
    """Errors in the GPU's life (ECC_SBE_AGG_TOTAL)."""
    ecc_uncorrected_total: int | None = None
    """Errors in the GPU's life (ECC_DBE_AGG_TOTAL)."""
    remapped_corrected: int | None = None
    """Memory rows replaced because of corrected errors (REMAPPED_COR, or nvmlDeviceGetRemappedRows)."""
    remapped_uncorrected: int | None = None
    """Memory rows replaced because of uncorrected errors (REMAPPED_UNC)."""
    remap_pending: bool | None = None
    """A row will be replaced at the next reset (REMAPPED_PENDING)."""
    remap_failed: bool | None = None
    """A row could not be replaced (REMAPPED_FAILURE)."""

    pcie_rx: float | None = None
    """Bytes per second towards the GPU (PCIE_COUNT_RX_BYTES, or nvmlDeviceGetPcieThroughput)."""
    pcie_tx: float | None = None
    """Bytes per second from the GPU."""
    nvlink_rx: float | None = None
    """Bytes per second over all links (NVLINK_THROUGHPUT_DATA_RX, or NVLINK_COUNT_RCV_BYTES)."""
    nvlink_tx: float | None = None
    """Bytes per second over all links."""

    def processes(self) -> list[GpuProcess]:
        """Who computes on it (nvmlDeviceGetComputeRunningProcesses), also processes of others."""
        return _records(GpuProcess, self.extra.get("processes"))


class GpuProcess(Record):
    """A process that computes on a GPU."""

    pid: int | None = None
    """In the launcher's PID namespace; None when it is of another one, or cannot be told to be of this one."""
    memory: int | None = None
    """Bytes of the GPU's memory."""
    ours: bool | None = None
    """Whether it belongs to this launcher's command; None when that cannot be told."""


class Metrics(Record):
    """One line of metrics.jsonl: `seconds` up to `time`. Old lines are merged into fewer, longer ones."""

    v: int = FORMAT
    time: float
    seconds: float = 10.0

    def gpus(self) -> list[GpuMetrics]:
        """The GPUs in this time."""
        return _records(GpuMetrics, self.extra.get("gpus"))

    def progress(self) -> dict[str, float]:
        """What the output said newly in this time: `step`, `loss`, `ms_per_iter` … as in a status, numbers only."""
        found = self.extra.get("progress")
        items = found.items() if isinstance(found, dict) else ()
        return {str(name): float(value) for name, value in items if is_a(value, "float")}


def metrics(time: float, seconds: float, /, **facts: Any) -> Metrics:
    """A line of this format's version: when the span ended, how long it was, and what is known of it."""
    return Metrics(time=time, seconds=seconds, **facts)


class GpuMetrics(Record):
    """A GPU in one line of metrics.jsonl. Series of it are pairs: see `pair`."""

    index: int | None = None
    mig: str | None = None

    def pair(self, name: str) -> tuple[float, float] | None:
        """(mean, highest) of `util`, `memory_used`, `power`, `temperature`, `pcie_rx` …; (mean, lowest) of `clock`."""
        return pair_of(self.extra, name)


def pair_of(data: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """Two numbers under a name; None when there is something else."""
    value = data.get(name)
    if not isinstance(value, list) or len(value) != 2 or not all(is_a(item, "float") for item in value):
        return None
    return float(value[0]), float(value[1])


def gpus_of(record: Record) -> list[Gpu]:
    """The GPUs in a status; what is none of them is left out."""
    return _records(Gpu, getattr(record, "gpus", None) or record.extra.get("gpus"))


if TYPE_CHECKING:
    from typing import TypeVar

    R = TypeVar("R", bound=Record)


def _records(kind: type[R], values: object) -> list[R]:
    found = []
    for value in values if isinstance(values, list) else []:
        try:
            found.append(kind.from_json(value))
        except RecordError:
            continue
    return found
