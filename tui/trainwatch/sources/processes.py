"""Finds the processes of an attempt on this machine, whatever container they are in. Linux only, elsewhere none.

A process counts only when the kernel says that it has one of the attempt's own files open, or when its environment
names the attempt's directory: process ids are used again, and each container counts its own.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
SHELL_MARK = "TRAINWATCH_SHELL"
"""Set in shells that we open: they stand beside the command and are none of its processes."""
NAMESPACES = ("user", "mnt", "pid", "ipc", "net", "uts")

Identity = tuple[int, int]


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    pid: int
    """As we see it."""
    environ: dict[str, str]
    """What it was started with."""
    is_launcher: bool
    foreign: tuple[str, ...] = ()
    """The kinds of namespaces in which it lives apart from us, by their names in /proc/PID/ns."""


def find(directory: str, files: Iterable[str], launcher_pid: int | None) -> Process | None:
    """The launcher of the attempt in `directory`, else a process of its command; None when none is here or readable.

    `files` are the attempt's files that the launcher keeps open, `launcher_pid` what it calls itself.
    """
    wanted = _identity(directory)
    opened = {identity for path in files if (identity := _identity(path)) is not None}
    if wanted is None:
        return None
    child: Process | None = None
    for pid in _candidates(launcher_pid):
        if _is_launcher(pid, opened):
            return _process(pid, True)
        if child is None and _belongs(pid, wanted):
            child = _process(pid, False)
    return child


def _candidates(launcher_pid: int | None) -> Iterator[int]:
    """All processes, those first that call themselves as the launcher did."""
    try:
        pids = sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())
    except OSError:
        return
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
    if b"trainwatch" not in _read(pid, "cmdline"):
        return False
    try:
        return any(_identity(descriptor) in opened for descriptor in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False  # gone, or somebody else's


def _belongs(pid: int, wanted: Identity) -> bool:
    """Whether the environment of a process names the attempt's directory, as seen from where that process lives."""
    environ = _environ(pid)
    named = environ.get("TRAINWATCH_ATTEMPT_DIR", "")
    if SHELL_MARK in environ or not named.startswith("/"):
        return False
    return _identity(PROC / str(pid) / "root" / named.lstrip("/")) == wanted


def _process(pid: int, is_launcher: bool) -> Process:
    return Process(pid, _environ(pid), is_launcher, tuple(name for name in NAMESPACES if _lives_apart(pid, name)))


def _lives_apart(pid: int, namespace: str) -> bool:
    try:
        theirs, ours = PROC / str(pid) / "ns" / namespace, PROC / "self" / "ns" / namespace
        return theirs.readlink() != ours.readlink()
    except OSError:
        return False


def _environ(pid: int) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in _read(pid, "environ").split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if name and equals}


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _identity(path: str | Path) -> Identity | None:
    """Device and inode: the same file whatever it is called in another container."""
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
