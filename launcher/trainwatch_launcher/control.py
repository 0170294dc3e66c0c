"""The control directory: requests that people leave for this launcher, trusted only when owned, obeyed and answered."""
from __future__ import annotations

import os
import stat
import time

from trainwatch_launcher import signals
from trainwatch_launcher.quick import signal
from trainwatch_launcher.rundir.files import decode
from trainwatch_launcher.rundir.record import RecordError
from trainwatch_launcher.rundir.records import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from trainwatch_launcher.hold import Hold
    from trainwatch_launcher.worker import Worker

    Forward = Callable[[int, dict[str, object]], bool]

MAX_SIZE = 64 << 10
SUFFIX = ".json"
SETTLED = 3.0
"""Seconds after which an unchanged time stamp means an unchanged directory."""


class ControlBox:
    """Takes requests out of one attempt's control directory."""

    def __init__(self, directory: str, share_group: bool = False) -> None:
        self._directory = directory
        self._share_group = share_group
        self._seen_mtime = -1
        self._seen = 0.0

    def take(self) -> list[Request]:
        """New requests, each removed from the directory. Files that cannot be trusted are removed unread.

        One stat(2) when nothing has come for a while: a time stamp may be a second coarse, so that a change soon after
        another does not show. Raises OSError when the directory cannot be read.
        """
        mtime, now = os.stat(self._directory).st_mtime_ns, time.monotonic()
        if mtime != self._seen_mtime:
            self._seen_mtime, self._seen = mtime, now
        elif now - self._seen > SETTLED:
            return []
        requests = []
        for name in sorted(os.listdir(self._directory)):
            if name.startswith(".") or not name.endswith(SUFFIX):
                continue
            path = os.path.join(self._directory, name)
            request = self._read(path)
            try:
                os.unlink(path)
            except OSError:
                continue  # a directory of such a name, or a request that we could not remove and would obey again
            if request is not None:
                requests.append(request)
        return requests

    def _read(self, path: str) -> Request | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_SIZE or not self._trusted(facts):
                return None
            return decode(Request, os.read(fd, MAX_SIZE))
        except (OSError, RecordError):
            return None
        finally:
            os.close(fd)

    def _trusted(self, facts: os.stat_result) -> bool:
        """Ours, root's, or with --share-group our group's."""
        groups = {os.getegid(), *os.getgroups()} if self._share_group else set()
        return facts.st_uid in (os.geteuid(), 0) or facts.st_gid in groups


def answer(request: Request, forward: Forward, hold: Hold | None, worker: Worker) -> None:
    """Do what a person asks, and say what came of it in a `control` event.

    `forward(signal, sender)` passes a signal to the command and tells whether it is still there; `hold` is None while
    the command runs.
    """
    result = obey(request, forward, hold, worker)
    facts = {"id": request.id, "command": request.command, "by": request.by, "result": result}
    worker.recorder.event("control", **facts)
    worker.say("%s asks for %s: %s", request.by or "somebody", request.command, result)


def obey(request: Request, forward: Forward, hold: Hold | None, worker: Worker) -> str:
    """`done`, or a sentence that says why not."""
    sender: dict[str, object] = {"control": request.by}
    if request.command == "stop" and hold is None:
        return "done" if forward(signal.SIGTERM, sender) else "the command has ended already"
    if request.command == "signal":
        number = signals.number_of(request.signal or "")
        if number is None:
            return "no such signal: %s" % request.signal
        return "done" if forward(number, sender) else "the command has ended already"
    if request.command == "stacks":
        return worker.take_stacks(request.by, request.id)
    if request.command not in ("release", "extend", "stop"):
        return "this launcher does not know that command"
    if hold is None:
        return "not held"
    if request.command == "extend":
        return extend(request, hold, worker)
    hold.release("command", request.by)
    return "done"


def extend(request: Request, hold: Hold, worker: Worker) -> str:
    """Move a hold's deadline."""
    if not request.seconds or request.seconds < 0:
        return "extend needs a number of seconds above 0"
    until = hold.extend(request.seconds, time.time(), time.monotonic())
    worker.recorder.event("hold-extended", until=until, by=request.by)
    worker.recorder.update(hold_until=until)
    return "done"
