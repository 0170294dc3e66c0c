"""What torchrun's agent says: which of its workers failed first and how, whom it ended then, whether it starts again.

After torch/distributed/elastic/multiprocessing/api.py and errors/__init__.py: `failed (exitcode: -9) local_rank: 1
(pid: 4102) of binary`, `Sending process 4101 closing signal SIGTERM`, and the table of ChildFailedError. The agent's
"first" is by whole seconds and for its own node only.
"""
from __future__ import annotations

import calendar
import re

from trainwatch_launcher.diagnosis.endings import Ending, shell_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Text

FAILED = re.compile(r"failed \(exitcode: (-?\d{1,5})\) local_rank: (\d{1,6}) \(pid: (\d{1,9})\)")
CLOSING = re.compile(r"Sending process (\d{1,9}) closing signal (SIG\w{1,8})")
RESTART = re.compile(
    r"Worker group (?:FAILED|is unhealthy).{0,60}(?:will restart|restarting)|Restarting worker group"
    r"|Membership.{0,60}restart",
    re.I,
)
FIELD = re.compile(r"^ {0,8}(time|host|rank|exitcode|error_file|traceback) {0,8}: (.{0,2000})", re.DOTALL)
RANK = re.compile(r"(\d{1,6}) \(local_rank: (\d{1,6})\)")
CODE = re.compile(r"(-?\d{1,5}) {1,4}\(pid: (\d{1,9})\)")
WHEN = re.compile(r"(\d{4})-(\d\d)-(\d\d)_(\d\d):(\d\d):(\d\d)")
SIGNALLED = re.compile(r"Signal (\d{1,2}) \((SIG\w{1,8})\) received by PID (\d{1,9})")
FIRST = "Root Cause (first observed failure)"


class Worker:
    """A worker of one agent, as its table or its lines tell. Line numbers are from 0."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.pid: int | None = None
        self.code: int | None = None
        """As Python gives it: -9 for signal 9."""
        self.time: float | None = None
        self.host = ""
        self.words = ""
        """`Signal 9 (SIGKILL) received by PID 4102`; empty when the table says nothing."""
        self.first = False
        """The agent takes it for the first."""
        self.stated: int | None = None
        """The line `failed (exitcode: …)`."""


class Agents:
    """All that agents say in one text."""

    def __init__(self, text: Text) -> None:
        self.workers: list[Worker] = []
        self.closed: list[tuple[int, int]] = []
        """(pid, line) of workers that the agent ended."""
        self.restarts = [at for at in _lines(text, "worker group", "membership") if RESTART.search(text[at].body)]
        since = self.restarts[-1] if self.restarts else -1
        for at in _lines(text, "closing signal"):
            match = CLOSING.search(text[at].body)
            if match and at > since:
                self.closed.append((int(match.group(1)), at))
        self._read_tables(text, since)
        self._read_lines(text, since)

    def _read_tables(self, text: Text, since: int) -> None:
        for at in text.holding("exitcode  :", 200, 400) if len(text) else []:
            if at <= since:
                continue
            worker = _entry(text, at)
            if worker is not None:
                self.workers.append(worker)

    def _read_lines(self, text: Text, since: int) -> None:
        """`failed (exitcode…)`: the first to be seen, and the place to show for a death by signal."""
        for at in _lines(text, "failed (exitcode"):
            match = FAILED.search(text[at].body)
            if not match or at <= since:
                continue
            code, local, pid = (int(one) for one in match.groups())
            known = next((one for one in self.workers if one.pid == pid), None)
            if known is None:
                known = Worker(at)
                known.local_rank, known.pid, known.code, known.first = local, pid, code, True
                self.workers.append(known)
            known.stated = at

    def endings(self, text: Text) -> list[Ending]:
        """How each worker ended."""
        found = []
        for one in self.workers:
            if one.code is None:
                continue
            rank = one.rank if one.rank is not None else one.local_rank
            place = one.stated if one.stated is not None and (one.code < 0 or one.code > 2) else one.line
            words = one.words or text[one.stated if one.stated is not None else one.line].body.strip()
            ending = Ending(place, shell_code(one.code), words, "agent", rank)
            ending.time, ending.first, ending.pid = one.time, one.first, one.pid
            found.append(ending)
        return found

    def victims(self) -> tuple[int, ...]:
        """Ranks that the agent ended because one had failed, worked out from the order of process ids.

        An agent starts its workers in the order of their local ranks, so that ids ascend; this counts only when the
        failed worker's id stands where its own local rank says.
        """
        failed = next((one for one in self.workers if one.first and one.pid is not None), None)
        if failed is None or failed.local_rank is None or not self.closed:
            return ()
        pids = sorted({pid for pid, _ in self.closed} | {one.pid for one in self.workers if one.pid is not None})
        if failed.pid not in pids or pids.index(failed.pid) != failed.local_rank:
            return ()
        base = (failed.rank if failed.rank is not None else failed.local_rank) - failed.local_rank
        ended = {pid for pid, _ in self.closed}
        return tuple(base + place for place, pid in enumerate(pids) if pid in ended)


def _lines(text: Text, *literals: str) -> list[int]:
    return sorted({at for literal in literals for at in text.holding(literal)})


def _entry(text: Text, at: int) -> Worker | None:
    """The table's entry around its line `exitcode`."""
    worker = Worker(at)
    stream = text[at].stream
    for index in range(max(0, at - 4), min(len(text), at + 4)):
        line = text[index]
        match = FIELD.match(line.body)
        if not match or line.stream != stream:
            continue
        name, value = match.groups()
        if name == "rank":
            found = RANK.search(value)
            if found and index <= at:
                worker.rank, worker.local_rank = int(found.group(1)), int(found.group(2))
        elif name == "exitcode" and index == at:
            found = CODE.search(value)
            if found:
                worker.code, worker.pid = int(found.group(1)), int(found.group(2))
        elif name == "time" and index < at:
            worker.time = _when(value)
        elif name == "host" and index < at:
            worker.host = value.strip()
        elif name == "traceback" and index > at:
            signalled = SIGNALLED.search(value)
            worker.words = signalled.group(0) if signalled else ""
            if signalled:
                worker.line = index
    worker.first = any(FIRST in text[index].body for index in range(max(0, at - 6), at))
    return worker if worker.code is not None else None


def _when(value: str) -> float | None:
    match = WHEN.search(value)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(one) for one in match.groups())
    try:
        return float(calendar.timegm((year, month, day, hour, minute, second)))
    except (ValueError, OverflowError):
        return None
