"""One connection to the driver: from its start, over finding the rank's GPUs, to a round of reading them."""
from __future__ import annotations

import time

from trainwatch_launcher.gpu.binding import GONE, Failed, Nvml
from trainwatch_launcher.gpu.device import Gpu, text
from trainwatch_launcher.gpu.events import EventWatch
from trainwatch_launcher.gpu.processes import Owners
from trainwatch_launcher.gpu.select import Device, Mig, choose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

    from trainwatch_launcher.gpu.select import LocalRank

QUICK_SHARE, SLOW_SHARE = 0.003, 0.0015
"""How much of a core the two kinds of reading may take; a driver whose calls cost more is asked less often."""
RAREST = 10.0


class Pace:
    """When to do something next that must not take more than a share of a core. Times are monotonic seconds."""

    def __init__(self, share: float, period: float) -> None:
        self._share, self._period = share, period
        self._next = 0.0
        self._cost = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time; rounds of other lengths than the period must not lose one in two."""
        return now >= self._next - self._period / 10

    def spent(self, now: float, cost: float) -> None:
        """It was done at `now` for `cost` seconds of CPU time."""
        self._cost = cost if not self._cost else self._cost + (cost - self._cost) / 4
        self._next = now + min(max(self._period, self._cost / self._share), max(RAREST, self._period))


class Session:
    """The rank's GPUs. `open` may raise Failed; `read` does when the driver has gone, and then a new one is needed."""

    def __init__(self, nvml: Nvml, environ: Mapping[str, str], local: LocalRank | None, owners: Owners) -> None:
        self.gpus: list[Gpu] = []
        self.note = ""
        """What a person should know of the choice of GPUs."""
        self._nvml, self._environ, self._local, self._owners = nvml, environ, local, owners
        self._handles: list[Any] = []
        self._migs: list[list[Any]] = []
        self._events: EventWatch | None = None

    def open(self, period: float, retry: float, report: Callable[[float, dict[str, Any]], None]) -> dict[str, Any]:
        """Connect and find the GPUs; facts of driver and GPUs. `report` is called with events, from another thread.

        They will be read every `period` seconds, and lost ones looked for every `retry`.
        """
        watched = self._nvml.watched
        watched(None, "nvmlInit")
        self._quick, self._slow = Pace(QUICK_SHARE, period), Pace(SLOW_SHARE, period)
        devices = [self._device(index) for index in range(watched(None, "nvmlDeviceGetCount"))]
        choice = choose([device for device in devices if device is not None], self._environ, self._local)
        self.note = choice.note if devices else "the driver shows no GPU here"
        for index, place in choice.picks:
            device = devices[index]
            assert device is not None
            if place is None or device.migs is None:
                self.gpus.append(Gpu(self._nvml, self._handles[index], index, device.uuid, retry=retry))
                continue
            mig = device.migs[place]
            whole, part = self._handles[index], self._migs[index][place]
            self.gpus.append(Gpu(self._nvml, whole, index, mig.uuid, part, "%d/%d" % (mig.gi, mig.ci), retry))
        self._events = EventWatch(self._nvml, self.gpus, report)
        self._events.start()
        return {"driver": self._driver(), "cuda": self._cuda(), "gpus": [gpu.facts() for gpu in self.gpus]}

    def read(self) -> list[dict[str, Any]] | None:
        """A row for each GPU, or None when it is not time yet. Raises Failed when the driver has gone."""
        now = time.monotonic()
        if not self._quick.due(now):
            return None
        if self._slow.due(now):
            started = time.thread_time()
            for gpu in self.gpus:
                gpu.slow(time.monotonic())
            self._slow.spent(now, time.thread_time() - started)
        started = time.thread_time()
        rows = [gpu.quick(self._owners) for gpu in self.gpus]
        self._quick.spent(now, time.thread_time() - started)
        return rows

    def close(self) -> None:
        """Let go of the driver, as far as it lets us."""
        if self._events is not None and not self._events.stop():
            return  # shutting down under a call that waits is not allowed
        try:
            self._nvml.watched(None, "nvmlShutdown")
        except Failed:
            pass

    def _device(self, index: int) -> Device:
        """What NVML says of a GPU; one that is lost already has no UUID, and nothing else either."""
        watched = self._nvml.watched
        handle, uuid, name = None, "", ""
        migs: list[Mig] | None = None
        mig_handles: list[Any] = []
        try:
            handle = watched(index, "nvmlDeviceGetHandleByIndex", index)
            uuid = text(watched(index, "nvmlDeviceGetUUID", handle))
            name = text(watched(index, "nvmlDeviceGetName", handle))
            if watched(index, "nvmlDeviceGetMigMode", handle)[0]:
                migs, mig_handles = self._instances(index, handle)
        except Failed as failure:
            if failure.kind == GONE:
                raise
        self._handles.append(handle)
        self._migs.append(mig_handles)
        return Device(index, uuid, name, migs)

    def _instances(self, index: int, parent: Any) -> tuple[list[Mig], list[Any]]:
        watched = self._nvml.watched
        migs, handles = [], []
        for place in range(watched(index, "nvmlDeviceGetMaxMigDeviceCount", parent)):
            try:
                handle = watched(index, "nvmlDeviceGetMigDeviceHandleByIndex", parent, place)
                uuid = text(watched(index, "nvmlDeviceGetUUID", handle))
                gi = int(watched(index, "nvmlDeviceGetGpuInstanceId", handle))
                ci = int(watched(index, "nvmlDeviceGetComputeInstanceId", handle))
            except Failed:
                continue  # a place without an instance
            migs.append(Mig(uuid, gi, ci))
            handles.append(handle)
        return migs, handles

    def _driver(self) -> str:
        try:
            return text(self._nvml.watched(None, "nvmlSystemGetDriverVersion"))
        except Failed:
            return ""

    def _cuda(self) -> str:
        """The CUDA version that the driver supports, `12.4`."""
        for function in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
            try:
                version = int(self._nvml.watched(None, function))
            except Failed:
                continue
            return "%d.%d" % (version // 1000, version % 1000 // 10)
        return ""
