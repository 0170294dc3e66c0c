"""How to stand where an attempt of this machine runs: its directory, its environment, its container."""
from __future__ import annotations

import os
import shutil
import time

from trainwatch_launcher.agent import processes
from trainwatch_launcher.reader.attempt import files_of, start_of, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence

    from trainwatch_launcher.agent.processes import Process
    from trainwatch_launcher.reader.changes import AttemptKey
    from trainwatch_launcher.rundir.records import Status

# Facts of the terminal that the person sits at, which the worker's environment cannot know.
TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TMUX", "TMUX_PANE", "NO_COLOR")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTER = {"user": "--user", "mnt": "--mount", "pid": "--pid", "ipc": "--ipc", "net": "--net", "uts": "--uts"}


class NoWayError(Exception):
    """There is no way to stand there; the message is one line that says why and what would help.

    `host` is where the attempt ran, when that is the reason.
    """

    def __init__(self, message: str, host: str = "") -> None:
        super().__init__(message)
        self.host = host


class Standing:
    """Where a shell for an attempt is to stand, and as what."""

    def __init__(self, argv: Sequence[str], cwd: str | None, process: Process | None, marks: dict[str, str]) -> None:
        self.argv = tuple(argv)
        """The shell or the command, behind what leads into the container where there is one."""
        self.cwd = cwd
        """None when the way into the container leads to it."""
        self.process = process
        """Whose environment it has; None for one's own."""
        self.marks = marks
        """What tells the shell which attempt it stands beside: variables above all others."""
        self.note = ""
        """One line for the person: what this shell is, and what it is not."""

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment to start it with; `own` is that of the person's terminal."""
        if self.process is None:
            return {**own, **self.marks}
        terminal = {name: own[name] for name in TERMINAL if name in own}
        return {"PATH": PATH, **self.process.environ, **terminal, **self.marks}


def find(directory: str, key: AttemptKey, command: Sequence[str] = (), shell: str = "") -> Standing:
    """A shell, or `command`, in an attempt's working directory and environment. Raises NoWayError.

    `shell` is the one that the person likes. The environment is the live launcher's, or that of a process of its
    command. When neither is there any more, it is the person's own, and the note says so.
    """
    status = status_of(directory)
    start = start_of(directory)
    cwd = start.text("cwd") if start is not None else ""
    process = processes.find(directory, files_of(directory), status.launcher_pid if status is not None else None)
    if process is not None and ("mnt" in process.foreign or "user" in process.foreign):
        return _inside(process, command, shell, status, key)
    if process is None:
        _must_be_here(status, key, cwd)
    where, said = _existing(cwd, directory)
    marks = {
        **_marks(status), "TRAINWATCH_ATTEMPT_DIR": directory, "TRAINWATCH_RUN_DIR": _run_of(directory, key),
    }  # fmt: skip
    environ = process.environ if process is not None else {}
    standing = Standing(command or _shell(shell, environ), where, process, marks)
    whose = "its launcher is gone: this is your own environment" if process is None else _whose(process)
    standing.note = "%s · %s%s" % (facts(status, key), whose, said)
    return standing


def _inside(
    process: Process, command: Sequence[str], shell: str, status: Status | None, key: AttemptKey
) -> Standing:
    """Into the container of a process, by nsenter, which only root may use."""
    nsenter = shutil.which("nsenter")
    if nsenter is None or os.geteuid() != 0:
        raise NoWayError(
            "rank %s runs in a container of this machine (process %d); run trainwatch as root, or enter with: "
            "sudo nsenter --target %d --all --wd" % (_label(key), process.pid, process.pid)
        )
    flags = [ENTER[name] for name in process.foreign]
    way = (nsenter, "--target", str(process.pid), *flags, "--wd", "--")
    words = command or _shell(shell, process.environ, "%s/%d/root" % (processes.PROC, process.pid))
    standing = Standing((*way, *words), None, process, _marks(status))
    standing.note = "%s · inside its container, %s" % (facts(status, key), _whose(process))
    return standing


def _must_be_here(status: Status | None, key: AttemptKey, cwd: str) -> None:
    host = status.host if status is not None else ""
    here = os.uname().nodename
    if not host or host.partition(".")[0] == here.partition(".")[0]:
        return
    there = ", then: cd %s" % cwd if cwd else ""
    message = "rank %s ran on %s, this is %s; type: ssh %s%s" % (_label(key), host, here, host, there)
    raise NoWayError(message, host)


def _existing(cwd: str, directory: str) -> tuple[str, str]:
    """The recorded working directory, or the attempt's own with the words that say so."""
    if cwd and os.path.isdir(cwd):
        return cwd, ""
    missing = "its directory %s is gone" % cwd if cwd else "its directory is unknown"
    return directory, " · %s: this is the attempt's" % missing


def _marks(status: Status | None) -> dict[str, str]:
    """What tells the shell, and us, which attempt it stands beside."""
    marks = {processes.SHELL_MARK: "1"}
    if status is not None:
        marks.update(TRAINWATCH_RANK=str(status.rank), TRAINWATCH_RUN_ID=_storable(status.run_id))
    return marks


def _storable(value: str) -> str:
    """A text without what no environment can hold: NULs, and halves of characters."""
    return "".join(char for char in value if char != "\0" and not "\ud800" <= char <= "\udfff")


def _run_of(directory: str, key: AttemptKey) -> str:
    """The run that an attempt's directory belongs to: two levels up, and two more from a nested launcher's."""
    for _ in range(4 if key.local_rank >= 0 else 2):
        directory = os.path.dirname(directory)
    return directory


def _shell(liked: str, environment: Mapping[str, str], root: str = "") -> tuple[str, ...]:
    """The person's own shell where there is one at `root`, else bash, else sh; interactive."""
    for shell in (liked, environment.get("SHELL", ""), "/bin/bash", "/usr/bin/bash"):
        if shell.startswith("/") and os.access(root + shell, os.X_OK) and os.path.isfile(root + shell):
            return (shell, "-i")
    return ("/bin/sh", "-i")


def _whose(process: Process) -> str:
    who = "the launcher" if process.is_launcher else "a process of its command"
    return "environment of %s (process %d)" % (who, process.pid)


def facts(status: Status | None, key: AttemptKey) -> str:
    """Rank, exit code and the hold's end in a few words."""
    words = ["rank " + _label(key)]
    if status is not None and status.exit_code is not None:
        words.append("exit code %d" % status.exit_code)
        if status.hold_until is not None and status.ended is None:
            words.append(_held(status.hold_until + (status.clock_offset or 0.0)))
    return " · ".join(words)


def _held(until: float) -> str:
    try:
        return time.strftime("held until %H:%M:%S", time.localtime(until))
    except (ValueError, OverflowError, OSError):
        return "held"  # until a moment that no calendar has


def _label(key: AttemptKey) -> str:
    return str(key.rank) if key.local_rank < 0 else "%d.%d" % (key.rank, key.local_rank)
