"""Finds the processes of an attempt on this machine, whatever container they are in. Linux only, elsewhere none.

A process counts only when the kernel says that it has one of the attempt's own files open, or when its environment
names the attempt's directory: process ids are used again, and each container counts its own.
"""
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator

    Identity = tuple[int, int]

PROC = "/proc"
SHELL_MARK = "TRAINWATCH_SHELL"
"""Set in shells that we open: they stand beside the command and are none of its processes."""
NAMESPACES = ("user", "mnt", "pid", "ipc", "net", "uts")
START_TIME = 19
"""Where in /proc/PID/stat, behind the command's name, the process's start stands (proc(5): field 22)."""


class Process:
    """A process of this machine."""

    def __init__(self, pid: int, environ: dict[str, str], is_launcher: bool, foreign: tuple[str, ...] = ()) -> None:
        self.pid = pid
        """As we see it."""
        self.environ = environ
        """What it was started with."""
        self.is_launcher = is_launcher
        self.foreign = foreign
        """The kinds of namespaces in which it lives apart from us, by their names in /proc/PID/ns."""


def find(directory: str, files: Iterable[str], launcher_pid: int | None) -> Process | None:
    """The launcher of the attempt in `directory`, else a process of its command; None when none is here or readable.

    `files` are the attempt's files that the launcher keeps open, `launcher_pid` what it calls itself.
    """
    wanted = identity(directory)
    opened = {found for path in files for found in [identity(path)] if found is not None}
    if wanted is None:
        return None
    child: Process | None = None
    for pid in _candidates(launcher_pid):
        if _is_launcher(pid, opened):
            return _process(pid, True)
        if child is None and _belongs(pid, wanted):
            child = _process(pid, False)
    return child


def process_ids() -> list[int]:
    """All processes that we see, in order; none where there is no /proc."""
    try:
        return sorted(int(name) for name in os.listdir(PROC) if name.isdecimal())
    except OSError:
        return []


def command_line(pid: int) -> bytes:
    """A process's arguments, each ended by a zero byte; empty when it is gone."""
    return _read(pid, "cmdline")


def environment(pid: int) -> dict[str, str]:
    """What a process was started with; empty when it is gone or not ours to see."""
    pairs = (entry.partition(b"=") for entry in _read(pid, "environ").split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if name and equals}


def start_time(pid: int) -> str:
    """When a process was started, as the kernel writes it: with its id, a name that is never used again."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return fields[START_TIME].decode("ascii") if len(fields) > START_TIME else ""


def identity(path: str) -> Identity | None:
    """Device and inode: the same file whatever it is called in another container; None when it is out of reach."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _candidates(launcher_pid: int | None) -> Iterator[int]:
    """All processes, those first that call themselves as the launcher did."""
    pids = process_ids()
    likely = [pid for pid in pids if launcher_pid is not None and launcher_pid in _own_pids(pid)]
    yield from likely
    yield from (pid for pid in pids if pid not in set(likely))


def _own_pids(pid: int) -> tuple[int, ...]:
    """What a process is called in our PID namespace and in those inside it."""
    for line in _read(pid, "status").split(b"\n"):
        if line.startswith(b"NSpid:"):
            return tuple(int(number) for number in line.split()[1:])
    return (pid,)


def _is_launcher(pid: int, opened: set[Identity]) -> bool:
    if b"trainwatch" not in command_line(pid):
        return False
    directory = "%s/%d/fd" % (PROC, pid)
    try:
        return any(identity(os.path.join(directory, name)) in opened for name in os.listdir(directory))
    except OSError:
        return False  # gone, or somebody else's


def _belongs(pid: int, wanted: Identity) -> bool:
    """Whether the environment of a process names the attempt's directory, as seen from where that process lives."""
    environ = environment(pid)
    named = environ.get("TRAINWATCH_ATTEMPT_DIR", "")
    if SHELL_MARK in environ or not named.startswith("/"):
        return False
    return identity("%s/%d/root%s" % (PROC, pid, named)) == wanted


def _process(pid: int, is_launcher: bool) -> Process:
    return Process(pid, environment(pid), is_launcher, tuple(name for name in NAMESPACES if _lives_apart(pid, name)))


def _lives_apart(pid: int, namespace: str) -> bool:
    try:
        return os.readlink("%s/%d/ns/%s" % (PROC, pid, namespace)) != os.readlink("%s/self/ns/%s" % (PROC, namespace))
    except OSError:
        return False


def _read(pid: int, name: str) -> bytes:
    try:
        with open("%s/%d/%s" % (PROC, pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""
