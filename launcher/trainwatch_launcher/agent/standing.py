"""How to stand where an attempt of this machine runs: its directory, its environment, its container."""
from __future__ import annotations

import os
import shlex
import shutil
import time

from trainwatch_launcher.agent import containers, processes
from trainwatch_launcher.reader.attempt import files_of, start_of, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from trainwatch_launcher.agent.containers import Container
    from trainwatch_launcher.agent.processes import Process
    from trainwatch_launcher.reader.changes import AttemptKey
    from trainwatch_launcher.rundir.records import Event, Status

# Facts of the terminal that the person sits at, which the worker's environment cannot know.
TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TMUX", "TMUX_PANE", "NO_COLOR")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NO_SHELLS = ("false", "true", "nologin")
CHOOSE = (
    "sh", "-c", 'for s in "$1" "$SHELL" /bin/bash; do case $s in */false|*/true|*/nologin) continue;; /*) '
    '[ -x "$s" ] && exec "$s" -i;; esac; done; exec sh -i', "sh",
)  # fmt: skip
"""The same choice as `_shell` makes, where we cannot look."""
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
        self.container: Container | None = None
        """The one in which `entry` is to be carried out, by its runtime; None for this machine."""
        self.launcher_pid: int | None = None
        """What the launcher calls itself in `container`."""
        self.note = ""
        """One line for the person: what this shell is, and what it is not."""

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment to start it with; `own` is that of the person's terminal."""
        if self.process is None:
            return {**own, **self.marks}
        terminal = {name: own[name] for name in TERMINAL if name in own}
        return {"PATH": PATH, **self.process.environ, **terminal, **self.marks}

    def entry(self) -> dict[str, Any]:
        """What `enter` needs to become this shell, where it is: here, or in `container`."""
        pid, born = self.launcher_pid, ""
        if self.process is not None:
            pid, born = self.process.pid, processes.start_time(self.process.pid)
        return {
            "argv": list(self.argv), "cwd": self.cwd, "pid": pid, "born": born, "marks": self.marks, "path": PATH,
            "terminal": list(TERMINAL),
        }  # fmt: skip


def find(
    directory: str, key: AttemptKey, command: Sequence[str] = (), shell: str = "", label: str = ""
) -> Standing:
    """A shell, or `command`, in an attempt's working directory and environment. Raises NoWayError.

    `shell` is the one that the person likes, `label` what the attempt is called. The environment is the live
    launcher's, or that of a process of its command. When neither is there any more, it is the person's own, and the
    note says so.
    """
    label = label or _label(key)
    status = status_of(directory)
    start = start_of(directory)
    cwd = start.text("cwd") if start is not None else ""
    process = processes.find(directory, files_of(directory), status.launcher_pid if status is not None else None)
    if process is None or "mnt" in process.foreign or "user" in process.foreign:
        container = containers.find(start)
        if container is not None:
            return _by_runtime(container, command, shell, status, cwd, label)
        if process is not None:
            return _inside(process, command, shell, status, label)
        _must_be_here(status, start, cwd, label)
    where, said = _existing(cwd, directory)
    marks = {
        **_marks(status), "TRAINWATCH_ATTEMPT_DIR": directory, "TRAINWATCH_RUN_DIR": _run_of(directory, key),
    }  # fmt: skip
    environ = process.environ if process is not None else {}
    standing = Standing(command or _shell(shell, environ), where, process, marks)
    whose = "its launcher is gone: this is your own environment" if process is None else _whose(process)
    standing.note = "%s · %s%s" % (facts(status, label), whose, said)
    return standing


def _by_runtime(
    container: Container, command: Sequence[str], shell: str, status: Status | None, cwd: str, label: str
) -> Standing:
    """Into a container by its runtime, as its own user; there `enter` finds the launcher as that calls itself."""
    standing = Standing(command or (*CHOOSE, shell), cwd or None, None, _marks(status))
    standing.container = container
    standing.launcher_pid = status.launcher_pid if status is not None else None
    standing.note = "%s · inside its container (%s)" % (facts(status, label), container.called)
    return standing


def _inside(
    process: Process, command: Sequence[str], shell: str, status: Status | None, label: str
) -> Standing:
    """Into the container of a process, by nsenter, which only root may use."""
    nsenter = shutil.which("nsenter")
    if nsenter is None or os.geteuid() != 0:
        raise NoWayError(
            "rank %s runs in a container of this machine (process %d); run trainwatch as root, or enter with: "
            "sudo nsenter --target %d --all --wd" % (label, process.pid, process.pid)
        )
    flags = [ENTER[name] for name in process.foreign]
    way = (nsenter, "--target", str(process.pid), *flags, "--wd", "--")
    words = command or _shell(shell, process.environ, "%s/%d/root" % (processes.PROC, process.pid))
    standing = Standing((*way, *words), None, process, _marks(status))
    standing.note = "%s · inside its container, %s" % (facts(status, label), _whose(process))
    return standing


def _must_be_here(status: Status | None, start: Event | None, cwd: str, label: str) -> None:
    host = status.host if status is not None else ""
    here = os.uname().nodename
    if not host or host.partition(".")[0] == here.partition(".")[0]:
        return
    there = ", then: cd %s" % cwd if cwd else ""
    way = _way_to_pod(start) or "ssh %s" % host
    raise NoWayError("rank %s ran on %s, this is %s; type: %s%s" % (label, host, here, way, there), host)


def _way_to_pod(start: Event | None) -> str:
    """The command that leads into the pod which a launcher ran in; empty when it said none."""
    container = start.extra.get("container") if start is not None else None
    facts = container if isinstance(container, dict) else {}
    pod, namespace = facts.get("POD_NAME"), facts.get("POD_NAMESPACE")
    if not isinstance(pod, str) or not pod:
        return ""
    where = "--namespace %s " % shlex.quote(namespace) if isinstance(namespace, str) and namespace else ""
    return "kubectl exec -it %s%s -- sh" % (where, shlex.quote(pod))


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
    """The person's own shell where there is one at `root`, else bash, else sh; interactive.

    What stands in a shell's place to keep people out, such as /bin/false, is none.
    """
    for shell in (liked, environment.get("SHELL", ""), "/bin/bash", "/usr/bin/bash"):
        if not shell.startswith("/") or os.path.basename(shell) in NO_SHELLS:
            continue
        if os.access(root + shell, os.X_OK) and os.path.isfile(root + shell):
            return (shell, "-i")
    return ("/bin/sh", "-i")


def _whose(process: Process) -> str:
    who = "the launcher" if process.is_launcher else "a process of its command"
    return "environment of %s (process %d)" % (who, process.pid)


def facts(status: Status | None, label: str) -> str:
    """Rank, exit code and the hold's end in a few words."""
    words = ["rank " + label]
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
    """What an attempt is called where nobody has said it."""
    return str(key.rank) if key.local_rank < 0 else "%d.%d" % (key.rank, key.local_rank)
