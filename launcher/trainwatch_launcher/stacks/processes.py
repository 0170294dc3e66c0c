"""What the kernel tells of a process: its state, what its threads wait for, whether it is a Python (proc(5))."""
from __future__ import annotations

import os
import re

from trainwatch_launcher.rundir.stacks import Process, Tasks

MOST_TASKS = 1000
"""Threads of one process that are looked at."""
MOST_KINDS = 16
"""Kinds of them that are told."""
MAPS = 4 << 20
PYTHON = re.compile(r"^(?:python|pypy)[\d.]*(?:t|d|-dbg)?$")
LIBRARY = re.compile(rb"/libpython[23][\d.a-z]*\.so")
SYSCALLS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 23: "select", 24: "sched_yield",
        34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait",
        247: "waitid", 257: "openat", 262: "newfstatat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write", 67: "pread64",
        68: "pwrite64", 72: "pselect6", 73: "ppoll", 79: "newfstatat", 82: "fsync", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield", 202: "accept", 203: "connect", 206: "sendto",
        207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4",
    },
}  # fmt: skip
"""Calls in which programs wait, by their numbers (asm/unistd.h)."""


def looked_at(pid: int, parent: int) -> Process | None:
    """A process with all that the kernel tells of it; None when it is gone."""
    status = status_of(pid)
    if status.get("State", "Z")[:1] in ("Z", "X"):
        return None
    words = read(pid, "cmdline", 64 << 10).split(b"\0")
    command = b" ".join(words).decode("utf-8", "replace").strip() or "[%s]" % status.get("Name", "")
    process = Process(pid, status.get("State", "")[:1], command)
    process.parent = parent
    process.tasks = tasks_of(pid)
    process.kernel = kernel_stack(pid)
    return process


def status_of(pid: int) -> dict[str, str]:
    """/proc/PID/status by its names; empty when the process is gone."""
    lines = (line.partition(":") for line in read(pid, "status").decode("utf-8", "replace").split("\n"))
    return {name: value.strip() for name, colon, value in lines if colon}


def is_python(pid: int) -> bool:
    """Whether a process is a Python, or has one in it."""
    try:
        if PYTHON.match(os.path.basename(os.readlink("/proc/%d/exe" % pid)).replace(" (deleted)", "")):
            return True
    except OSError:
        return False
    return LIBRARY.search(read(pid, "maps", MAPS)) is not None


def tasks_of(pid: int) -> list[Tasks]:
    """A process's threads, those alike together: the first one's kind first, then the most frequent ones."""
    kinds: dict[tuple[str, str, str, str], int] = {}
    try:
        names = sorted(os.listdir("/proc/%d/task" % pid), key=int)
    except (OSError, ValueError):
        return []
    for name in names[:MOST_TASKS]:
        place = "task/%s/" % name
        fields = read(pid, place + "stat").rpartition(b")")[2].split()
        if fields:
            wchan = read(pid, place + "wchan").decode("ascii", "replace").strip("0\n")
            called = read(pid, place + "comm").decode("utf-8", "replace").strip()
            kind = (fields[0].decode("ascii", "replace"), wchan, syscall_of(pid, place), called)
            kinds[kind] = kinds.get(kind, 0) + 1
    first, rest = list(kinds)[:1], sorted(list(kinds)[1:], key=lambda kind: -kinds[kind])
    return [Tasks(kinds[kind], *kind) for kind in first + rest[: MOST_KINDS - 1]]


def syscall_of(pid: int, place: str) -> str:
    """The system call in which a thread is; `running` when it is in none, empty when we may not know."""
    number = read(pid, place + "syscall").split(b" ")[0].decode("ascii", "replace").strip()
    if not number.isdigit():
        return number if number == "running" else ""
    return SYSCALLS.get(os.uname().machine, {}).get(int(number), "syscall-" + number)


def kernel_stack(pid: int) -> str:
    """Where a process's first thread is in the kernel, the innermost first; empty when we may not know."""
    lines = read(pid, "stack").decode("ascii", "replace").split("\n")
    return " < ".join(line.rpartition(" ")[2].partition("+")[0] for line in lines[:12] if line.strip())


def read(pid: int, name: str, most: int = 64 << 10) -> bytes:
    """A file of a process in /proc; empty when the process is gone or not ours to see."""
    try:
        with open("/proc/%d/%s" % (pid, name), "rb", buffering=0) as file:
            return file.read(most) or b""
    except OSError:
        return b""
