"""After the command's end: when its output is complete, and nothing of it is left running."""
from __future__ import annotations

import os
import time

from trainwatch_launcher import child
from trainwatch_launcher.quick import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.child import Process
    from trainwatch_launcher.options import Options
    from trainwatch_launcher.output import Pump
    from trainwatch_launcher.recorder import Recorder
    from trainwatch_launcher.worker import Worker

AFTER_KILL = 1.0
"""Seconds that we wait for killed processes: one that hangs in the kernel dies when the kernel lets it."""


class Cleanup:
    """Decides, each time it is asked, whether the end is complete, and moves it on: wait, TERM, KILL, stop reading.

    Ours is what is in the command's group, and what descends from us and has `mark` in its environment: the shell of a
    person who looks into the container, or a daemon that another started, is not ours to kill.
    """

    def __init__(self, options: Options, mark: bytes) -> None:
        self._options, self._mark = options, mark
        self._bystanders = bystanders()
        self._ended: float | None = None
        self._awaited = False
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._told_to_stop = False

    def done(self, group: int, stop_asked: bool, pump: Pump, worker: Worker) -> bool:
        """Whether nothing is left to wait for, after the command itself has ended."""
        now = time.monotonic()
        self._ended = self._ended or now
        if stop_asked and self._still_stopping(group, worker):
            return False
        if not pump.ended and now - self._ended < self._options.drain_timeout:
            return False
        if not self._options.leave_orphans and not self._all_gone(group, now, worker.recorder):
            return False
        if not pump.ended and not self._told_to_stop:
            self._told_to_stop = True
            pump.stop()
        return pump.ended

    def _still_stopping(self, group: int, worker: Worker) -> bool:
        """After a stop request the rest may be saving a checkpoint: await it, without a limit but --kill-after's.

        What has its own session, as torchrun's workers have, did not get the request and gets it now.
        """
        left = self.left(group)
        if not left or self._options.leave_orphans:
            return False
        if not self._awaited:
            self._awaited = True
            child.kill_each((p.pid for p in left if p.group != group), signal.SIGTERM)
            worker.recorder.event("warning", kind="awaited", message=names(left), pids=[p.pid for p in left])
            worker.say("asked to stop; waiting for %s", names(left))
        child.kill_each((p.pid for p in left if p.state == "T"), signal.SIGCONT)  # stopped, it cannot obey
        return True

    def kill(self, group: int) -> bool:
        """KILL all that is left of the command (--kill-after); whether there was anything."""
        left = self.left(group)
        self._signal(group, left, signal.SIGKILL)
        return bool(left)

    def _all_gone(self, group: int, now: float, recorder: Recorder) -> bool:
        left = self.left(group)
        if not left:
            return True
        if self._term_at is None:
            self._term_at = now
            recorder.event("warning", kind="left-behind", message=names(left), pids=[p.pid for p in left])
            self._signal(group, left, signal.SIGTERM)
            self._signal(group, left, signal.SIGCONT)
        elif self._kill_at is None and now - self._term_at >= self._options.grace:
            self._kill_at = now
            recorder.event("warning", kind="left-behind", message="KILL: " + names(left), pids=[p.pid for p in left])
            self._signal(group, left, signal.SIGKILL)
        return self._kill_at is not None and now - self._kill_at >= AFTER_KILL

    def left(self, group: int) -> list[Process]:
        """The processes of the command that live."""
        if not has_children() and not child.send(group, 0):
            return []  # we adopt all orphans: whoever is left would be our child
        found = [p for p in child.descendants(group) if p.pid not in self._bystanders]
        return [p for p in found if p.group == group or self._mark in environment_of(p.pid)]

    def _signal(self, group: int, left: list[Process], number: int) -> None:
        child.send(group, number)
        child.kill_each((p.pid for p in left if p.group != group), number)


def environment_of(pid: int) -> bytes:
    """The environment that a process was started with; nothing when it is gone or another user's."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def bystanders() -> set[int]:
    """Children that we had before the command: an entry script may have started a helper and then become us."""
    if not has_children():
        return set()
    return {process.pid for process in child.descendants(os.getpid())}


def has_children() -> bool:
    """Whether this process has any child, running or not yet collected."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def names(left: list[Process]) -> str:
    """`python (1234), sleep (1240)`, at most ten of them."""
    shown = ", ".join("%s (%d)" % (process.name, process.pid) for process in left[:10])
    return shown if len(left) <= 10 else "%s and %d more" % (shown, len(left) - 10)
