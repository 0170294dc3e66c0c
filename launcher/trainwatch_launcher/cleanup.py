"""After the command's end: when its output is complete, and nothing of it is left running."""
from __future__ import annotations

import os
import signal
import time

from trainwatch_launcher import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.child import Process
    from trainwatch_launcher.options import Options
    from trainwatch_launcher.output import Pump
    from trainwatch_launcher.recorder import Recorder

AFTER_KILL = 1.0
"""Seconds that we wait for killed processes: one that hangs in the kernel dies when the kernel lets it."""


class Cleanup:
    """Decides, each time it is asked, whether the end is complete, and moves it on: wait, TERM, KILL, stop reading."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._bystanders = bystanders()
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._told_to_stop = False

    def done(self, group: int, exited: float, pump: Pump, recorder: Recorder) -> bool:
        """Whether nothing is left to wait for. `exited` is when the command ended, in Unix seconds."""
        now = time.time()
        draining = not pump.ended and now - exited < self._options.drain_timeout
        if draining:
            return False
        if not self._options.leave_orphans and not self._all_gone(group, now, recorder):
            return False
        if not pump.ended and not self._told_to_stop:
            self._told_to_stop = True
            pump.stop()
        return pump.ended

    def _all_gone(self, group: int, now: float, recorder: Recorder) -> bool:
        left = self._left(group)
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

    def _left(self, group: int) -> list[Process]:
        if not self._bystanders and not has_children() and not child.send(group, 0):
            return []  # we are the reaper of all orphans: whoever is left would be our child
        return [p for p in child.left_behind(group) if p.pid not in self._bystanders]

    def _signal(self, group: int, left: list[Process], number: int) -> None:
        child.send(group, number)
        child.kill_each((p.pid for p in left if p.group != group), number)


def bystanders() -> set[int]:
    """Children that we had before the command: an entry script may have started a helper and then become us."""
    if not has_children():
        return set()
    return {process.pid for process in child.left_behind(os.getpid())}


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
