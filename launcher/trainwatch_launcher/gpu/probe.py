"""The process that asks the driver, and writes what it learns to standard output, one JSON object a line.

Lines: `{"facts": …}` once for each connection to the driver, `{"sample": […], "time": …}` every second,
`{"event": "warning" or "recovered", "time": …, …}`, `{"note": …}` why there are no GPUs to show, and `{"end": …}` when
there never will be. It ends when its standard input does: with the launcher, however that ends.

All questions are asked by one thread; the main thread watches it, and says so when the driver does not answer.
"""
from __future__ import annotations

import json
import os
import select
import sys
import threading
import time

from trainwatch_launcher.gpu.binding import MISMATCH, Absent, Failed, Nvml, load
from trainwatch_launcher.gpu.processes import Owners
from trainwatch_launcher.gpu.select import LocalRank
from trainwatch_launcher.gpu.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, NoReturn

LONGEST_RETRY = 60.0
LAST_WORDS = 1.0
"""Seconds that a call which goes on at the end is given to return."""
HIGHEST_INHERITED = 1024


class Probe:
    """Asks the driver every `period` until the launcher goes. A call `hangs` after so long; all in seconds."""

    def __init__(
        self, environ: Mapping[str, str], local: LocalRank | None, launcher: int,
        period: float, hangs: float, retry: float,
    ) -> None:
        self._environ, self._local = environ, local
        self._period, self._hangs, self._retry = period, hangs, retry
        self._owners = Owners(launcher)
        self._write_lock = threading.Lock()
        self._nvml: Nvml | None = None
        self._hung: tuple[str, int | None] | None = None
        self._gone = ""

    def run(self) -> NoReturn:
        """Until standard input ends."""
        threading.Thread(target=self._ask, daemon=True).start()
        poller = select.poll()
        poller.register(0, select.POLLIN)
        while True:
            if poller.poll(self._period * 1000) and not read_some():
                leave(self._nvml)
            self._look_after()

    def _say(self, **line: Any) -> None:
        data = json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
        with self._write_lock:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(1, view):]
            except OSError:
                os._exit(0)

    def _ask(self) -> None:
        """The thread that asks: one connection to the driver after the other."""
        try:
            self._nvml = Nvml(load(self._environ))
        except Absent as why:
            self._say(end=str(why))
            os._exit(0)
        pause = self._retry
        while True:
            try:
                if self._connected(self._nvml):
                    pause = self._retry
            except Exception as error:  # noqa: BLE001 - the process stays, the launcher is told
                self._say(note="internal error: %r" % error)
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_RETRY)

    def _connected(self, nvml: Nvml) -> bool:
        """One connection, until the driver goes; whether there was any."""
        session = Session(nvml, self._environ, self._local, self._owners)
        opened = False
        try:
            facts = session.open(self._period, self._retry, self._on_event)
            opened = True
            self._say(facts=facts, note=session.note)
            if self._gone:
                self._say(event="recovered", time=time.time(), kind="nvml", message="the driver answers again")
                self._gone = ""
            self._read(session)
        except Failed as failure:
            self._say(note="NVML: %s" % failure.text)
            if opened and not self._gone:
                self._gone = failure.text
                self._say(event="warning", time=time.time(), kind="nvml", message="the driver is gone: %s" % failure)
            if failure.code == MISMATCH:
                os._exit(0)  # only another process can load the library of the new driver
        finally:
            session.close()
        return opened

    def _read(self, session: Session) -> None:
        lost: set[int] = set()
        due = time.monotonic()
        while True:
            rows = session.read()
            if rows is not None:
                self._say(sample=rows, time=round(time.time(), 3))
                lost = self._tell_lost(rows, lost)
            due = max(due + self._period, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def _tell_lost(self, rows: list[dict[str, Any]], before: set[int]) -> set[int]:
        lost = {int(row["index"]) for row in rows if row.get("lost")}
        for index in sorted(lost - before):
            message = "GPU %d: the driver has lost it (it fell off the bus)" % index
            self._say(event="warning", time=time.time(), kind="gpu-lost", gpu=index, message=message)
        for index in sorted(before - lost):
            self._say(event="recovered", time=time.time(), kind="gpu-lost", gpu=index,
                      message="GPU %d answers again" % index)
        return lost

    def _on_event(self, when: float, facts: dict[str, Any]) -> None:
        self._say(event="warning", time=when, **facts)

    def _look_after(self) -> None:
        """In the main thread: report a call that hangs, once, and its return."""
        if self._nvml is None:
            return
        watch = self._nvml.watch
        waiting = watch.waiting()
        if waiting > self._hangs and self._hung is None:
            self._hung = (watch.function, watch.gpu)
            self._say(event="warning", time=time.time(), kind="nvml", gpu=watch.gpu,
                      message="%s has not answered for %d s" % (asked(*self._hung), self._hangs))
        elif waiting <= self._hangs and self._hung is not None:
            self._say(event="recovered", time=time.time(), kind="nvml", gpu=self._hung[1],
                      message="%s answers again" % asked(*self._hung))
            self._hung = None


def asked(function: str, gpu: int | None) -> str:
    """What was asked of whom, for people."""
    return function if gpu is None else "%s of GPU %d" % (function, gpu)


def read_some() -> bytes:
    """What the launcher wrote, which is nothing; empty at its end."""
    try:
        return os.read(0, 4096)
    except OSError:
        return b""


def leave(nvml: Nvml | None) -> NoReturn:
    """End, but not in the middle of a question if the driver answers it soon. The kernel takes back what we hold."""
    deadline = time.monotonic() + LAST_WORDS
    while nvml is not None and nvml.watch.since and time.monotonic() < deadline:
        time.sleep(0.002)
    os._exit(0)


def main(first_inherited: int) -> NoReturn:
    """Run with the settings in the last argument; descriptors from `first_inherited` up are somebody else's."""
    os.closerange(first_inherited, HIGHEST_INHERITED)
    settings = json.loads(sys.argv[-1])
    local = LocalRank(*settings["local"]) if settings["local"] else None
    numbers = [settings[name] for name in ("launcher", "period", "hangs", "retry")]
    Probe(dict(os.environ), local, *numbers).run()
