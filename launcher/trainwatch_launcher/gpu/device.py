"""One GPU: its facts, and its numbers of the moment."""
from __future__ import annotations

import time

from trainwatch_launcher.gpu.binding import LOST, Failed, Questions
from trainwatch_launcher.gpu.fields import Counters, Links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.gpu.binding import Nvml
    from trainwatch_launcher.gpu.processes import Owners

MEMORY_V2 = 0x02000028
"""nvmlMemory_v2 of nvml.h: the structure whose `used` leaves out what the driver reserves."""
TEMPERATURE_GPU, CLOCK_SM = 0, 1  # nvml.h

REASONS = {
    # nvml.h, nvmlClocksEventReason*; idleness (1) and what a person set (2) hold nothing back
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display",
    0x200: "board_limit",
    0x400: "reliability",
}


class Gpu:
    """Reads one GPU, or one MIG instance of it. `lost` is set while the driver cannot reach it.

    `handle` is NVML's, None for a GPU that was lost before we came; `retry` is how many seconds lie between two looks
    whether a lost one is back.
    """

    def __init__(
        self, nvml: Nvml, handle: Any, index: int, uuid: str, mig_handle: Any = None, mig: str = "", retry: float = 10.0
    ) -> None:
        self.handle, self.index, self.uuid = handle, index, uuid
        self.lost = handle is None
        self._mig, self._retry = mig, retry
        self._own = handle if mig_handle is None else mig_handle
        """What memory and processes are asked of; the rest is the whole GPU's."""
        self._questions = Questions(nvml, index)
        self._own_questions = self._questions if mig_handle is None else Questions(nvml, index)
        self._counters, self._links = Counters(self._questions, handle), Links(self._questions, handle)
        self._slow: dict[str, Any] = {}
        self._look_again = float("inf") if self.lost else 0.0
        self._identity: dict[str, Any] = {"index": index, "uuid": uuid, "name": self._named()}
        if mig:
            self._identity["mig"] = mig

    def facts(self) -> dict[str, Any]:
        """What does not change: name, UUID, PCI address, memory (bytes)."""
        facts = dict(self._identity)
        if self.lost:
            return facts
        try:
            pci = self._questions.ask("nvmlDeviceGetPciInfo", self.handle)
            facts["pci"] = text(getattr(pci, "busId", "") or getattr(pci, "busIdLegacy", ""))
            facts.update(self._memory())
        except Failed:
            self.lost = True
        facts.pop("memory_used", None)
        return facts

    def quick(self, owners: Owners) -> dict[str, Any]:
        """The numbers that move, and those that were read last by `slow`. Raises Failed when the driver is gone."""
        if self.lost and time.monotonic() < self._look_again:
            return self._lost_row()
        ask, handle = self._questions.ask, self.handle
        row = dict(self._identity)
        try:
            row.update(self._memory())
            if not self._mig:
                util = ask("nvmlDeviceGetUtilizationRates", handle)
                row["util"] = None if util is None else int(util.gpu)
            power = ask("nvmlDeviceGetPowerUsage", handle)
            row["power"] = None if power is None else power / 1000.0
            row["temperature"] = ask("nvmlDeviceGetTemperature", handle, TEMPERATURE_GPU)
            row["clock"] = ask("nvmlDeviceGetClockInfo", handle, CLOCK_SM)
            row["throttle"] = self._throttle()
            row["processes"] = self._processes(owners)
        except Failed as failure:
            return self._failed(failure)
        self.lost = False
        row.update(self._slow)
        return {name: value for name, value in row.items() if value is not None and value != []}

    def slow(self, now: float) -> None:
        """The numbers that cost more, or seldom move. Raises Failed when the driver is gone."""
        if self.lost:
            return
        try:
            limit = self._questions.first(
                ("nvmlDeviceGetEnforcedPowerLimit", self.handle), ("nvmlDeviceGetPowerManagementLimit", self.handle))
            self._slow = {"power_limit": None if limit is None else limit / 1000.0}
            self._slow.update(self._counters.read(now))
            self._slow.update(self._links.read(now))
        except Failed as failure:
            self._failed(failure)

    def _named(self) -> str:
        if self.lost:
            return ""
        try:
            return text(self._own_questions.ask("nvmlDeviceGetName", self._own))
        except Failed:
            return ""

    def _memory(self) -> dict[str, Any]:
        memory = self._own_questions.first(
            ("nvmlDeviceGetMemoryInfo", self._own, MEMORY_V2), ("nvmlDeviceGetMemoryInfo", self._own))
        return {} if memory is None else {"memory_used": int(memory.used), "memory_total": int(memory.total)}

    def _throttle(self) -> list[str]:
        bits = self._questions.first(
            ("nvmlDeviceGetCurrentClocksEventReasons", self.handle),
            ("nvmlDeviceGetCurrentClocksThrottleReasons", self.handle))
        return [name for bit, name in REASONS.items() if bits & bit] if bits else []

    def _processes(self, owners: Owners) -> list[dict[str, Any]] | None:
        running = self._own_questions.first(
            ("nvmlDeviceGetComputeRunningProcesses", self._own),
            ("nvmlDeviceGetComputeRunningProcesses_v2", self._own))
        if not running:
            return None
        found = []
        for process in running:
            pid, ours = owners.judge(int(process.pid))
            found.append({"pid": pid, "memory": process.usedGpuMemory, "ours": ours})
        return found

    def _failed(self, failure: Failed) -> dict[str, Any]:
        if failure.kind != LOST:
            raise failure
        self.lost = True
        self._look_again = time.monotonic() + self._retry
        return self._lost_row()

    def _lost_row(self) -> dict[str, Any]:
        return {**self._identity, "lost": True}


def text(value: object) -> str:
    """Text of NVML: old bindings give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
