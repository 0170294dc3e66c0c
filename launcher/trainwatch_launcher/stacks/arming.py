"""`--faulthandler`: every Python that the command starts can be made to write its stacks, also one that hangs in C.

Python reads `sitecustomize` from the first place in PYTHONPATH; ours registers faulthandler on a real-time signal, into
a file in memory. Whoever starts Python with -I, -E or -S does without.
"""
from __future__ import annotations

import os
import re
import signal
import sys
import time

from trainwatch_launcher.rundir.stacks import Frame, Thread

HOOKS = "hooks"
VARIABLE = b"TRAINWATCH_STACKS"
"""Tells the hook which signal."""
SIGNAL = signal.SIGRTMAX - 5
"""The C library uses the first real-time signals, systemd the next ones, and a JVM the last."""
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


def arm(env: dict[bytes, bytes]) -> None:
    """Have the Pythons that get this environment armed."""
    place = os.fsencode(hooks())
    theirs = env.get(b"PYTHONPATH", b"")
    if place not in theirs.split(b":"):
        env[b"PYTHONPATH"] = place + (b":" + theirs if theirs else b"")  # an empty place would be the working directory
    env.setdefault(b"PYTHONFAULTHANDLER", b"1")
    env[VARIABLE] = b"%d" % SIGNAL


def hooks() -> str:
    """Where our `sitecustomize` lies: a directory, or one in the packed file."""
    archive = getattr(getattr(sys.modules.get("__main__"), "__loader__", None), "archive", "")
    if archive:
        return "%s/trainwatch_launcher/stacks/%s" % (os.path.abspath(archive), HOOKS)
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), HOOKS)


def ask(pid: int, status: dict[str, str], seconds: float) -> list[Thread]:
    """The stacks of an armed process, which gets our signal. Raises ArmedError.

    `status` is its /proc/PID/status. It gets the signal only when it would not die of it: it catches it, and has the
    file that the hook made, under the number that it was given.
    """
    bit = 1 << (SIGNAL - 1)
    memory = memory_of(pid)
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
