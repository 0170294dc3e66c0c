"""Whose the processes on a GPU are: this launcher's command's, others', or not to be told.

NVML gives process ids. In a container they may be of another PID namespace (the host's, with older drivers), where the
same number means somebody else. Outside the host's own namespace an id is believed only when that process here holds
one of NVIDIA's devices open.
"""
from __future__ import annotations

import os
import time

FIRST_NAMESPACE = "pid:[4026531836]"
"""The host's PID namespace: PROC_PID_INIT_INO of linux/proc_ns.h."""
DEVICES = "/dev/nvidia"
REMEMBERED = 10.0
"""Seconds for which a judgement holds: ids are used again."""
DEEPEST = 64


class Owners:
    """Judges process ids; `launcher` is the process id whose descendants are ours."""

    def __init__(self, launcher: int, first_namespace: bool | None = None, devices: str = DEVICES) -> None:
        self._launcher, self._devices = launcher, devices
        self._first = in_first_namespace() if first_namespace is None else first_namespace
        self._known: dict[int, tuple[float, tuple[int | None, bool | None]]] = {}

    def judge(self, pid: int) -> tuple[int | None, bool | None]:
        """(The process id as we know it or None, whether it is ours or None)."""
        now = time.monotonic()
        known = self._known.get(pid)
        if known is not None and now < known[0]:
            return known[1]
        if len(self._known) > 1000:
            self._known.clear()
        judged = self._judge(pid)
        self._known[pid] = (now + REMEMBERED, judged)
        return judged

    def _judge(self, pid: int) -> tuple[int | None, bool | None]:
        if pid <= 0:
            return None, None
        if not self._first and not self._holds_a_device(pid):
            return None, None
        return pid, self._descends(pid)

    def _holds_a_device(self, pid: int) -> bool:
        directory = "/proc/%d/fd" % pid
        try:
            for name in os.listdir(directory):
                try:
                    if os.readlink(os.path.join(directory, name)).startswith(self._devices):
                        return True
                except OSError:
                    continue  # closed meanwhile
        except OSError:
            pass  # gone, or not ours to look into
        return False

    def _descends(self, pid: int) -> bool | None:
        for _ in range(DEEPEST):
            if pid == self._launcher:
                return True
            if pid <= 1:
                return False
            parent = parent_of(pid)
            if parent is None:
                return None  # it ended under our eyes
            pid = parent
        return False


def in_first_namespace() -> bool:
    """Whether our process ids are the host's."""
    try:
        return os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE
    except OSError:
        return False


def parent_of(pid: int) -> int | None:
    """A process's parent; None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
