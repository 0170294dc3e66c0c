"""What the container's control group counts of killed processes, to tell the OOM killer's SIGKILL from another's.

cgroup v2: `oom_kill` in memory.events (Documentation/admin-guide/cgroup-v2.rst). v1: `oom_kill` in memory.oom_control
(since Linux 4.13). Both count kills in the group and, in v2, below it.
"""
from __future__ import annotations

ROOT = "/sys/fs/cgroup"


def oom_kills() -> int | None:
    """Processes that the kernel killed for memory in our control group so far; None where it does not say."""
    for path in candidates(read("/proc/self/cgroup")):
        for line in read(path).split("\n"):
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.strip().isdigit():
                return int(value)
    return None


def candidates(own_groups: str) -> list[str]:
    """Files that may hold the count, the most certain first, for the text of /proc/self/cgroup.

    Inside a container the path that the kernel shows may be the host's while the mount shows our group as its root.
    """
    unified, memory = [], []
    for line in own_groups.split("\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        path = path.rstrip("/")
        if number == "0" and not controllers:
            unified += ["%s%s/memory.events" % (ROOT, path), "%s/unified%s/memory.events" % (ROOT, path)]
        elif "memory" in controllers.split(","):
            memory += ["%s/memory%s/memory.oom_control" % (ROOT, path)]
    return [*memory, *unified, ROOT + "/memory.events", ROOT + "/memory/memory.oom_control"]


def read(path: str) -> str:
    """A small kernel file's text; nothing when it is not there."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
