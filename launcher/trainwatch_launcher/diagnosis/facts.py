"""What a launcher knows beside the log, and what that alone states."""
from __future__ import annotations

from dataclasses import dataclass

from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.signals import name_of

SIGINT, SIGHUP, SIGKILL, SIGTERM = 2, 1, 9, 15
CRASHES = frozenset((4, 5, 6, 7, 8, 11, 31))
"""Signals that a fault of the process itself raises."""
SCHEDULERS = (
    "slurmstepd",
    "slurmd",
    "kubelet",
    "containerd",
    "dockerd",
    "crio",
    "runc",
    "conmon",
    "pbs_mom",
    "sbatchd",
    "lsf",
)
LAUNCHERS = (
    "torchrun",
    "torch.distributed",
    "torch/distributed",
    "deepspeed",
    "mpirun",
    "orted",
    "prted",
    "hydra",
    "accelerate",
)


@dataclass(frozen=True)
class Facts:
    """The end of a command as its launcher saw it. All may be unknown."""

    exit_code: int | None = None
    """As a shell gives it: 128+n when signal n killed it."""
    signal: int | None = None
    """The signal that killed the command itself."""
    core_dumped: bool = False
    oom_kills: int | None = None
    """Processes that the kernel killed for memory in our control group meanwhile; None when unknown."""
    stop_signal: int | None = None
    """The stop signal that the launcher was asked to pass on before the end; None when there was none."""
    stop_by: str = ""
    """The command line of the process that sent it; empty when unknown."""
    stop_pid: int | None = None
    stopped_for: str = ""
    """The failure of another rank for which the launcher stopped it."""
    gpu_events: tuple[tuple[str, str], ...] = ()
    """(where to look first, message) of Xids and ECC errors while the command ran: see `gpu.xid`."""
    spawn_error: str = ""
    """Why the command could not be started at all."""


def ended_by(facts: Facts) -> int | None:
    """The signal that ended the command, also one that a shell passed on as its exit code."""
    if facts.signal is not None:
        return facts.signal
    code = facts.exit_code
    return code - 128 if code is not None and 128 < code < 160 else None


def sender(facts: Facts) -> str:
    """Who sent the stop signal, in words: ` by PID 12 (slurmstepd: …)`; empty when unknown."""
    if facts.stop_pid is None:
        return ""
    return " by PID %d%s" % (facts.stop_pid, " (%s)" % facts.stop_by[:80] if facts.stop_by else "")


def stop_kind(facts: Facts) -> str:
    """What a stop signal means, judged by itself and by who sent it."""
    by = facts.stop_by
    if any(name in by for name in LAUNCHERS):
        return "peer_lost"
    if facts.stop_signal in (SIGINT, SIGHUP):
        return "cancelled"
    if any(name in by for name in SCHEDULERS):
        return "killed"
    return "cancelled" if by and facts.stop_pid else "killed"


def end_of(code: int | None, signal: int | None) -> tuple[str, str]:
    """The kind that an exit alone states, and its words; empty ones for an ordinary code."""
    number = signal if signal is not None else (code - 128 if code is not None and 128 < code < 160 else None)
    if number is not None:
        words = "killed by %s" % name_of(number)
        if number in CRASHES:
            return "native_crash", words
        if number in (SIGINT, SIGHUP):
            return "cancelled", words
        return ("killed", words) if number in (SIGKILL, SIGTERM) else ("unknown", words)
    if code == 127:
        return "command_error", "exit code 127: the command was not found"
    if code == 126:
        return "permission", "exit code 126: the command could not be executed"
    if code == 124:
        return "time_limit", "exit code 124: timeout(1) ended it"
    if code == 247:
        return "killed", "exit code 247: a process was killed by SIGKILL"
    return "", ""


def out_of_memory(facts: Facts) -> str:
    """The words that say that the kernel killed for memory; empty when it did not."""
    if not facts.oom_kills:
        return ""
    return "out of memory: the kernel killed %d process%s in this container" % (
        facts.oom_kills, "" if facts.oom_kills == 1 else "es")  # fmt: skip


def gpu_fault(facts: Facts) -> str:
    """The words of the first GPU error that is the machine's; empty when there is none."""
    return next((words for where, words in facts.gpu_events if where not in ("application", "notice", "")), "")


def hint_of(kind: str) -> str:
    """What people do about a kind."""
    return table.kind(kind).hint
