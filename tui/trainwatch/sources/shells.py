"""How to stand where an attempt of this machine runs: its directory, its environment, its container."""
from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from trainwatch.sources import processes
from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch.sources.processes import Process
from trainwatch_launcher.reader.attempt import files_of, start_of, status_of
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.records import Status

# Facts of the terminal that the person sits at, which the worker's environment cannot know.
TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TMUX", "TMUX_PANE", "NO_COLOR")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTER = {"user": "--user", "mnt": "--mount", "pid": "--pid", "ipc": "--ipc", "net": "--net", "uts": "--uts"}


def plan(directory: str, key: AttemptKey, command: tuple[str, ...] = ()) -> ShellPlan:
    """A shell, or `command`, in an attempt's working directory and environment. Raises SourceError.

    The environment is the live launcher's, or that of a process of its command. When neither is there any more, it is
    our own, and the plan's note says so.
    """
    status = status_of(directory)
    start = start_of(directory)
    cwd = start.text("cwd") if start is not None else ""
    process = processes.find(directory, files_of(directory), status.launcher_pid if status is not None else None)
    if process is not None and ("mnt" in process.foreign or "user" in process.foreign):
        return _inside(process, command, status, key)
    if process is None:
        _must_be_here(status, key, cwd)
    where, said = _existing(cwd, directory)
    environment = dict(os.environ) if process is None else {"PATH": PATH, **process.environ, **_terminal()}
    environment.update(_marks(status), TRAINWATCH_ATTEMPT_DIR=directory, TRAINWATCH_RUN_DIR=_run_of(directory, key))
    whose = "its launcher is gone: this is your own environment" if process is None else _whose(process)
    note = f"{_facts(status, key)} · {whose}{said}"
    return ShellPlan(command or _shell(environment), environment, where, note)


def _inside(process: Process, command: tuple[str, ...], status: Status | None, key: AttemptKey) -> ShellPlan:
    """Into the container of a process, by nsenter, which only root may use."""
    nsenter = shutil.which("nsenter")
    if nsenter is None or os.geteuid() != 0:
        raise SourceError(
            f"rank {_label(key)} runs in a container of this machine (process {process.pid}); "
            f"run trainwatch as root, or enter with: sudo nsenter --target {process.pid} --all --wd"
        )
    flags = [ENTER[name] for name in process.foreign]
    argv = (nsenter, "--target", str(process.pid), *flags, "--wd", "--")
    environment = {"PATH": PATH, **process.environ, **_terminal(), **_marks(status)}
    shell = command or _shell(environment, f"/proc/{process.pid}/root")
    note = f"{_facts(status, key)} · inside its container, {_whose(process)}"
    return ShellPlan((*argv, *shell), environment, None, note)


def _must_be_here(status: Status | None, key: AttemptKey, cwd: str) -> None:
    host = status.host if status is not None else ""
    ours = {socket.gethostname(), socket.getfqdn(), os.uname().nodename}
    if not host or host in ours or host.partition(".")[0] in {name.partition(".")[0] for name in ours}:
        return
    there = f", then: cd {cwd}" if cwd else ""
    raise SourceError(f"rank {_label(key)} ran on {host}, this is {os.uname().nodename}; type: ssh {host}{there}")


def _existing(cwd: str, directory: str) -> tuple[str, str]:
    """The recorded working directory, or the attempt's own with the words that say so."""
    if cwd and Path(cwd).is_dir():
        return cwd, ""
    missing = f"its directory {cwd} is gone" if cwd else "its directory is unknown"
    return directory, f" · {missing}: this is the attempt's"


def _marks(status: Status | None) -> dict[str, str]:
    """What tells the shell, and us, which attempt it stands beside."""
    marks = {processes.SHELL_MARK: "1"}
    if status is not None:
        marks.update(TRAINWATCH_RANK=str(status.rank), TRAINWATCH_RUN_ID=status.run_id)
    return marks


def _run_of(directory: str, key: AttemptKey) -> str:
    """The run that an attempt's directory belongs to: two levels up, and two more from a nested launcher's."""
    return str(Path(directory).parents[3 if key.local_rank >= 0 else 1])


def _terminal() -> dict[str, str]:
    return {name: os.environ[name] for name in TERMINAL if name in os.environ}


def _shell(environment: Mapping[str, str], root: str = "") -> tuple[str, ...]:
    """The person's own shell where there is one at `root`, else bash, else sh; interactive."""
    wanted = (os.environ.get("SHELL", ""), environment.get("SHELL", ""), "/bin/bash", "/usr/bin/bash")
    for shell in wanted:
        if shell.startswith("/") and os.access(root + shell, os.X_OK) and Path(root + shell).is_file():
            return (shell, "-i")
    return ("/bin/sh", "-i")


def _whose(process: Process) -> str:
    who = "the launcher" if process.is_launcher else "a process of its command"
    return f"environment of {who} (process {process.pid})"


def _facts(status: Status | None, key: AttemptKey) -> str:
    """Rank, exit code and the hold's end in a few words."""
    words = [f"rank {_label(key)}"]
    if status is not None and status.exit_code is not None:
        words.append(f"exit code {status.exit_code}")
        if status.hold_until is not None and status.ended is None:
            until = time.localtime(status.hold_until + (status.clock_offset or 0.0))
            words.append(time.strftime("held until %H:%M:%S", until))
    return " · ".join(words)


def _label(key: AttemptKey) -> str:
    return str(key.rank) if key.local_rank < 0 else f"{key.rank}.{key.local_rank}"
