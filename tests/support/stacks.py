"""Asks launchers for stacks and reads what they wrote; programs that hang in known places."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from support.launching import Launch
from support.waiting import wait_until
from trainwatch_launcher.reader.requests import write_request
from trainwatch_launcher.rundir.records import Event
from trainwatch_launcher.rundir.stacks import Dump, Process, parse

BARE_PYTHON = os.path.realpath(sys.executable)
"""Beside it there is no py-spy, as beside the one that runs the tests."""
NO_PY_SPY = {"PATH": "/usr/bin:/bin"}
PY_SPY = Path(sys.executable).with_name("py-spy")

HANGS = '''
import os, socket, sys, threading, time

def in_socket(ours):
    ours.recv(1)

def wait_for_ever(depth):
    if depth:
        return wait_for_ever(depth - 1)
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def child_sleeps():
    time.sleep(1000)

pair = socket.socketpair()
threading.Thread(target=in_socket, args=pair[:1], name="reader", daemon=True).start()
if "fork" in sys.argv and os.fork() == 0:
    child_sleeps()
print("ready", os.getpid(), flush=True)
wait_for_ever(2)
'''
"""Its main thread stands in wait_for_ever, three times; with `fork` there is a child in child_sleeps."""


def take(launched: Launch, timeout: float = 60.0) -> tuple[Event, Dump | None]:
    """Have the stacks taken; what the launcher said of it, and what it wrote."""
    identity = write_request(str(launched.attempt()), "stacks")
    found = wait_until(lambda: [one for one in launched.events("stacks") if one.text("request") == identity], timeout)
    return found[0], dump_of(launched, found[0])


def dump_of(launched: Launch, event: Event) -> Dump | None:
    """What stands in the file that an event names."""
    name = event.text("file")
    return parse((launched.attempt() / name).read_bytes()) if name else None


def functions(process: Process, thread: int = 0) -> list[str]:
    """The functions of one of its threads, the innermost first."""
    return [frame.function for frame in process.threads[thread].frames]
