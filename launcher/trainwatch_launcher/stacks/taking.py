"""Takes the stacks of a command's processes and writes stacks-N.txt: in a thread of its own, in a bounded time.

For each process the first way that works: py-spy, faulthandler where it is armed, else what the kernel tells, which is
always there. What was tried and failed stands in the file.
"""
from __future__ import annotations

import time

from trainwatch_launcher.diagnosis import places
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import replace_bytes
from trainwatch_launcher.rundir.stacks import Dump, Process, as_bytes
from trainwatch_launcher.stacks import armed, processes, spy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwatch_launcher.child import Process as Living
    from trainwatch_launcher.worker import Worker

MOST = 128
"""Processes that are looked into."""
EACH, ALL = 10.0, 30.0
"""Seconds that one process may take, and all of them."""
LEAST = 0.5
"""With fewer seconds left nothing is begun."""
NO_WAY = "no py-spy here, and not armed: pip install py-spy, trainwatch pack --with-py-spy, or --faulthandler"
GONE = "no process of the command is left"
STALL = "stall"


def take(worker: Worker, number: int, by: str, request: str) -> None:
    """Take the stacks, write them, and record it. `by` is who asks, STALL when nobody did."""
    began = time.monotonic()
    dump = Dump(time.time(), worker.identity.rank, worker.identity.host)
    dump.why = by if by == STALL else "asked by %s" % (by or "somebody")
    living = parents_first(worker.processes())
    dump.left_out = max(0, len(living) - MOST)
    Taking(dump, began + ALL, worker.children).all_of(living[:MOST])
    name, trouble = write(worker, dump, number) if dump.processes else ("", GONE)
    facts: dict[str, Any] = {"file": name or None, "number": number, "request": request, "by": by}
    facts.update(method=dump.method, processes=len(dump.processes), left_out=dump.left_out)
    facts.update(python=sum(bool(process.threads) for process in dump.processes))
    facts["places"] = places.told(dump)
    facts.update(note=trouble or dump.note, seconds=round(time.monotonic() - began, 3))
    worker.recorder.event_at(dump.time, "stacks", **facts)
    if name:
        worker.recorder.update(stacks=number)
    said = "stacks of %d processes (%s): %s" % (len(dump.processes), dump.method, name or trouble)
    worker.say("%s", said if trouble or not dump.note else "%s; %s" % (said, dump.note))


def parents_first(living: list[Living]) -> list[Living]:
    """Those that were started before what they started: of too many the last ones are left out."""
    parents = {one.pid: one.parent for one in living}

    def depth(pid: int) -> int:
        count = 0
        while pid in parents and count < len(parents):
            pid, count = parents[pid], count + 1
        return count

    return sorted(living, key=lambda one: (depth(one.pid), one.pid))


def write(worker: Worker, dump: Dump, number: int) -> tuple[str, str]:
    """Write the file; its name, empty when that failed, and why it did."""
    attempt = worker.recorder.attempt
    if attempt is None:
        return "", "not written: there is no run directory"
    name = paths.stacks_name(number)
    try:
        replace_bytes(attempt.path(name), as_bytes(dump), worker.place.file_mode)
    except OSError as error:
        return "", "not written: %s" % (error.strerror or error)
    return name, ""


class Taking:
    """One taking: fills `dump` until the monotonic time `deadline`."""

    def __init__(self, dump: Dump, deadline: float, children: set[int]) -> None:
        self._dump, self._deadline, self._children = dump, deadline, children
        self._spy: spy.Spy | None = None
        self._forbidden = ""
        """Why py-spy cannot work for any of them."""
        self._methods: dict[str, int] = {}

    def all_of(self, living: list[Living]) -> None:
        """Look into all of these."""
        pythons = [one.pid for one in living if processes.is_python(one.pid)]
        self._spy = spy.find(pythons)
        if self._spy is not None:
            self._spy.running = self._children
        try:
            for one in living:
                self._look_into(one, one.pid in pythons)
        finally:
            if self._spy is not None:
                self._spy.close()
        self._sum_up(bool(pythons))

    def _look_into(self, one: Living, python: bool) -> None:
        process = processes.looked_at(one.pid, one.parent)
        if process is None:
            return
        self._dump.processes.append(process)
        if not python:
            return
        if is_ours(process.command):
            process.tried.append("a launcher of ours: not looked into")
            return
        for way in (self._by_spy, self._by_faulthandler):
            left = min(EACH, self._deadline - time.monotonic())
            if left < LEAST:
                process.tried.append("no time was left for it")
                return
            way(process, left)
            if process.threads:
                self._methods[process.method] = self._methods.get(process.method, 0) + 1
                return

    def _by_spy(self, process: Process, seconds: float) -> None:
        if self._spy is None or self._forbidden:
            if self._forbidden:
                process.tried.append(self._forbidden)
            return
        try:
            process.threads = self._spy.ask(process.pid, seconds)
            process.method = spy.NAME
        except spy.SpyError as error:
            process.tried.append(str(error))
            if error.forbidden:
                self._forbidden = str(error)

    def _by_faulthandler(self, process: Process, seconds: float) -> None:
        try:
            process.threads = armed.ask(process.pid, seconds)
            process.method = "faulthandler"
        except armed.ArmedError as error:
            process.tried.append("faulthandler: %s" % error)

    def _sum_up(self, pythons: bool) -> None:
        """Say by what, and what was in the way of Python stacks."""
        dump = self._dump
        dump.method = ", ".join(sorted(self._methods, key=lambda name: -self._methods[name])) or "kernel"
        missing = [one for one in dump.processes if one.tried and not one.threads and not is_ours(one.command)]
        if not pythons or not missing:
            return
        dump.note = self._forbidden or (NO_WAY if self._spy is None else missing[0].tried[0])


def is_ours(command: str) -> bool:
    """Whether a process is a launcher inside the command: what it runs is looked into, it itself is not."""
    return "trainwatch_launcher" in command or "trainwatch-launch" in command
