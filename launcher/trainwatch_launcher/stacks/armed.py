"""Asks a Python that `--faulthandler` has armed where it is: it writes its stacks to a file in memory, on a signal."""
from __future__ import annotations

import os
import re
import time

from trainwatch_launcher.quick import signal
from trainwatch_launcher.rundir.stacks import Frame, Thread
from trainwatch_launcher.stacks.arming import SIGNAL
from trainwatch_launcher.stacks.processes import status_of

MEMORY = re.compile(r"/memfd:trainwatch-stacks-(\d{1,9})( \(deleted\))?$")
FIRST_WORD, QUIET = 2.0, 0.1
"""Seconds until a process begins to write its stacks; seconds without another byte after which it has written all."""
PAUSE = 0.01
MOST = 1 << 20
HEADER = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]{1,16}(?: \[([^\]]{0,100})\])?")
FRAME = re.compile(r'^  File "(.{0,1000})", line (\d{1,9}|\?\?\?) in (.{1,500})$')
MAIN = "MainThread"
TOO_MANY = "..."


class ArmedError(Exception):
    """A process cannot be asked; the message is one line that says why."""


def ask(pid: int, seconds: float) -> list[Thread]:
    """The stacks of an armed process, which gets our signal. Raises ArmedError.

    It gets the signal only when it would not die of it: it catches it, and has the file that the hook made, under the
    number that it was given. By its descriptor it is the same process then as when we looked.
    """
    try:
        process = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        process = -1  # an old kernel; or gone, which shows
    try:
        return _ask(pid, process, seconds)
    finally:
        if process >= 0:
            os.close(process)


def _ask(pid: int, process: int, seconds: float) -> list[Thread]:
    bit = 1 << (SIGNAL - 1)
    status, memory = status_of(pid), memory_of(pid)
    if not memory or not int(status.get("SigCgt", "0"), 16) & bit:
        raise ArmedError("it is not armed (no --faulthandler, or Python was started with -I, -E or -S)")
    if status.get("State", "")[:1] in ("T", "t", "Z", "X"):
        raise ArmedError("it is stopped, and cannot answer")
    try:
        fd = os.open(memory, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise ArmedError("its file in memory cannot be opened: %s" % error.strerror) from None
    try:
        os.ftruncate(fd, 0)  # it appends
        if process >= 0:
            signal.pidfd_send_signal(process, SIGNAL)
        else:
            os.kill(pid, SIGNAL)
        text = _awaited(fd, time.monotonic() + seconds).decode("utf-8", "replace")
    except OSError as error:
        raise ArmedError("it cannot be signalled: %s" % error.strerror) from None
    finally:
        os.close(fd)
    if not text:
        raise ArmedError("it did not answer: it hangs in the kernel, or blocks signals")
    return threads_in(text, pid)


def memory_of(pid: int) -> str:
    """The path of the file in memory that an armed process writes into; empty when there is none."""
    directory = "/proc/%d/fd" % pid
    try:
        for name in os.listdir(directory):
            match = MEMORY.match(os.readlink("%s/%s" % (directory, name)))
            if match and match.group(1) == name:
                return "%s/%s" % (directory, name)
    except OSError:
        pass  # gone, or not ours to see
    return ""


def _awaited(fd: int, deadline: float) -> bytes:
    """What is written until nothing more comes; nothing when nothing does."""
    began = grown = time.monotonic()
    size = 0
    while True:
        time.sleep(PAUSE)
        now, found = time.monotonic(), os.fstat(fd).st_size
        if found > size:
            size, grown = found, now
        elif now >= deadline or (size and now - grown >= QUIET) or (not size and now - began >= FIRST_WORD):
            break
    data = os.pread(fd, MOST, 0)
    os.ftruncate(fd, 0)
    return data


def threads_in(text: str, pid: int) -> list[Thread]:
    """The threads in what faulthandler wrote, the main one first: it is the oldest, and so written last."""
    threads: list[Thread] = []
    whole = True
    for line in text.split("\n"):
        header, frame = HEADER.match(line), FRAME.match(line)
        if header:
            threads.append(Thread(0, header.group(1) or ""))
        elif frame and threads:
            number = frame.group(2)
            threads[-1].frames.append(Frame(frame.group(3), frame.group(1), int(number) if number.isdigit() else 0))
        elif line.startswith(TOO_MANY):
            whole = False
    if threads and whole:
        main = threads.pop()
        main.id, main.name = pid, MAIN
        threads.insert(0, main)
    return threads
