"""Xids and ECC errors as they happen, by NVML's event set; no root needed."""
from __future__ import annotations

import threading
import time

from trainwatch_launcher.gpu.binding import GONE, TIMEOUT, Failed
from trainwatch_launcher.gpu.xid import cause, meaning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from trainwatch_launcher.gpu.binding import Nvml
    from trainwatch_launcher.gpu.device import Gpu

XID = 0x8
KINDS = {
    # nvml.h, nvmlEventType*
    0x1: ("ecc", "a corrected (single-bit) ECC error"),
    0x2: ("ecc", "an uncorrectable (double-bit) ECC error"),
    XID: ("xid", ""),
    0x200: ("ecc", "a storm of corrected ECC errors"),
    0x400: ("ecc", "a bad part of the memory is being replaced"),
    0x800: ("ecc", "a bad part of the memory could not be replaced"),
    0x4000: ("gpu-lost", "the GPU is not available any more"),
}
WAIT = 2.0
"""Seconds that one wait lasts at most, and so for how long a new start waits for the old thread."""
AFTER_ERROR = 5.0
QUIET = 60.0
"""Seconds in which the same event of one GPU is reported once; a fault may repeat a thousand times a second."""


class EventWatch:
    """Waits for events in a thread of its own. `report(when, facts)` is called from there, `when` in Unix seconds."""

    def __init__(self, nvml: Nvml, gpus: Sequence[Gpu], report: Callable[[float, dict[str, Any]], None]) -> None:
        self._nvml, self._report = nvml, report
        self._gpus = {gpu.index: gpu for gpu in gpus if gpu.handle is not None}
        self._stop = threading.Event()
        self._told: dict[tuple[int | None, int, int], list[float]] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to listen. What the driver cannot report is not reported."""
        self._thread.start()

    def stop(self) -> bool:
        """Stop listening, before the library is shut down; False when the driver does not let go."""
        self._stop.set()
        self._thread.join(WAIT + 1.0)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            events = self._register()
        except Failed:
            return
        while events is not None and not self._stop.is_set():
            try:
                self._take(self._nvml.call("nvmlEventSetWait", events, int(WAIT * 1000)))
            except Failed as failure:
                if failure.kind == GONE:
                    return
                if failure.code != TIMEOUT and self._stop.wait(AFTER_ERROR):
                    return

    def _register(self) -> Any:
        events, registered = self._nvml.call("nvmlEventSetCreate"), False
        for gpu in self._gpus.values():
            try:
                supported = self._nvml.call("nvmlDeviceGetSupportedEventTypes", gpu.handle)
                wanted = supported & sum(KINDS)
                if wanted:
                    self._nvml.call("nvmlDeviceRegisterEvents", gpu.handle, wanted, events)
                    registered = True
            except Failed:
                continue
        return events if registered else None

    def _take(self, data: Any) -> None:
        now = time.time()
        kind, number = int(data.eventType), int(data.eventData)
        gpu = self._of(data.device)
        index = gpu.index if gpu is not None else None
        name, message = KINDS.get(kind, ("ecc", "event 0x%x" % kind))
        again = self._again((index, kind, number if kind == XID else 0), now)
        if again is None:
            return
        facts: dict[str, Any] = {"kind": name, "gpu": index, "uuid": gpu.uuid if gpu is not None else ""}
        if kind == XID:
            facts.update({"xid": number, "cause": cause(number)})
            message = "Xid %d: %s" % (number, meaning(number))
        if again:
            facts["repeated"] = again
        facts["message"] = "GPU %s: %s" % ("?" if index is None else index, message)
        self._report(now, facts)

    def _of(self, handle: Any) -> Gpu | None:
        """The GPU of an event. Handles are pointers into the library; a lost GPU can be told by nothing else."""
        address = address_of(handle)
        for gpu in self._gpus.values():
            if address is not None and address == address_of(gpu.handle):
                return gpu
        return None

    def _again(self, key: tuple[int | None, int, int], now: float) -> int | None:
        """None for an event to keep quiet about; else how often it was kept quiet before."""
        told = self._told.get(key)
        if told is not None and now - told[0] < QUIET:
            told[1] += 1
            return None
        self._told[key] = [now, 0]
        return int(told[1]) if told is not None else 0


def address_of(handle: Any) -> int | None:
    """Where a handle points to."""
    import ctypes

    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except (ctypes.ArgumentError, TypeError):
        return None
