"""What is worth knowing of a worker when it starts: the `start` event's facts."""
from __future__ import annotations

import os
import sys

from trainwatch_launcher.attempt import shortened
from trainwatch_launcher.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from trainwatch_launcher.worker import Worker


def start_facts(worker: Worker, pid: int | None) -> dict[str, Any]:
    """The facts of the `start` event; nothing of the environment but a few names that a scheduler gave."""
    who, recorder = worker.identity, worker.recorder
    return {
        "argv": shortened(worker.options.command),
        "cwd": current_directory(),
        "pid": pid,
        "launcher_pid": os.getpid(),
        "launcher_version": __version__,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "rank": who.rank,
        "world_size": who.world_size,
        "local_rank": who.local_rank,
        "global_rank": who.global_rank,
        "node": who.node,
        "host": who.host,
        "run_id": who.run_id,
        "sources": who.sources,
        "attempt": recorder.attempt.number if recorder.attempt else None,
        "uid": os.getuid(),
        "container": container_facts(os.environ),
        "clock_offset": recorder.clock_offset,
    }


def current_directory() -> str:
    """The working directory, or nothing when it was removed under us."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def container_facts(environ: Mapping[str, str]) -> dict[str, str]:
    """What tells a person which container this is: ids and names that the runtime or the scheduler shows."""
    facts: dict[str, str] = {}
    for variable in ("POD_NAME", "POD_NAMESPACE", "NODE_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURMD_NODENAME"):
        if environ.get(variable):
            facts[variable] = environ[variable]
    # the host name's mount names this container; other lines may name its neighbours
    mounts = [line for line in read_text("/proc/self/mountinfo").split("\n") if " /etc/hostname " in line]
    found = container_id(read_text("/proc/self/cgroup")) or container_id("\n".join(mounts))
    if found:
        facts["container_id"] = found
    return facts


def container_id(text: str) -> str:
    """The first 64-digit hexadecimal id in cgroup or mount paths: Docker's, containerd's or CRI-O's container id."""
    digits = set("0123456789abcdef")
    for separator in "\n.:-":
        text = text.replace(separator, "/")
    for word in text.replace(" ", "/").split("/"):
        if len(word) == 64 and digits.issuperset(word):
            return word
    return ""


def read_text(path: str) -> str:
    """A small file's text, or nothing when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
