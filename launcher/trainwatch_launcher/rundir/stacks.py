"""stacks-N.txt: what the processes of a rank were doing at one moment, written for people, and read again by `parse`.

    trainwatch stacks, format 1
    time       2026-11-30 16:12:19 +0000 (1796055139.123)
    rank       3
    …
    frames     innermost first

    process 19213 S python train.py
      method     py-spy
      thread 19213 idle MainThread
        all_reduce (/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:2501)
        step (/home/me/train.py:80)
      tasks 4 S futex_do_wait futex pt_autograd_0

A line begins a fact, a process, a thread or a frame by how far it is indented. Nothing in it acts on a terminal.
"""
from __future__ import annotations

import time as clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

TITLE = "trainwatch stacks, format "
FORMAT = 1
MOST_BYTES = 4 << 20
"""A file is never larger; what does not fit is left out, and said."""
LONGEST = 400
"""Letters of a command, a file or a sentence."""
UNKNOWN = "-"
"""Stands for a word that is not known."""
ORDER = "innermost first"
CUT = "cut off here: more than %d MiB" % (MOST_BYTES >> 20)


class Frame:
    """One call: its function, its file, its line from 1 (0 when unknown)."""

    __slots__ = ("file", "function", "line")

    def __init__(self, function: str, file: str, line: int) -> None:
        self.function, self.file, self.line = function, file, line


class Thread:
    """A thread of Python. `id` is the kernel's (0 when unknown), `state` what py-spy says: `idle`, `active`, `gil`."""

    def __init__(self, id: int = 0, name: str = "", state: str = "") -> None:
        self.id, self.name, self.state = id, name, state
        self.frames: list[Frame] = []
        """The innermost first."""


class Tasks:
    """Threads of a process that the kernel says the same of: how many, and what (proc(5))."""

    def __init__(self, count: int, state: str, wchan: str, syscall: str, name: str) -> None:
        self.count, self.state, self.wchan, self.syscall, self.name = count, state, wchan, syscall, name


class Process:
    """One process of a rank."""

    def __init__(self, pid: int, state: str = "", command: str = "") -> None:
        self.pid, self.state, self.command = pid, state, command
        self.parent = 0
        self.method = ""
        """By what its threads were read: `py-spy`, `faulthandler`; empty when only the kernel tells."""
        self.tried: list[str] = []
        """What did not work before that, and why, each in one line."""
        self.threads: list[Thread] = []
        self.tasks: list[Tasks] = []
        self.kernel = ""
        """Where its first thread is in the kernel, the innermost first; only root may read it."""


class Dump:
    """The stacks of one rank at one moment (`time`: Unix seconds on its worker's clock)."""

    def __init__(self, time: float, rank: int = 0, host: str = "") -> None:
        self.time, self.rank, self.host = time, rank, host
        self.number = 0
        """N of its file; not in the file itself."""
        self.why = ""
        """Who asked for it, or `stall`."""
        self.method = ""
        """By what most was read, for people."""
        self.note = ""
        """What stood in the way and what would help, in one line; empty when nothing did."""
        self.left_out = 0
        """Processes that were too many."""
        self.processes: list[Process] = []


def as_bytes(dump: Dump) -> bytes:
    """A dump as its file, of MOST_BYTES at most."""
    parts, size = [], 0
    for line in _lines(dump):
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        size += len(data)
        if size > MOST_BYTES - 100:
            parts.append(CUT.encode("ascii") + b"\n")
            break
        parts.append(data)
    return b"".join(parts)


def _lines(dump: Dump) -> Iterator[str]:
    yield "%s%d" % (TITLE, FORMAT)
    stamp = clock.strftime("%F %H:%M:%S %z", clock.localtime(dump.time))
    facts = [("time", "%s (%.3f)" % (stamp, dump.time)), ("rank", str(dump.rank)), ("host", dump.host)]
    facts += [("why", dump.why), ("method", dump.method), ("note", dump.note)]
    facts += [("left-out", str(dump.left_out or "")), ("frames", ORDER)]
    yield from ("%-10s %s" % (name, clean(value)) for name, value in facts if value)
    for process in dump.processes:
        yield ""
        yield "process %d %s %s" % (process.pid, word(process.state), clean(process.command))
        if process.parent:
            yield "  %-10s %d" % ("parent", process.parent)
        said = [("method", process.method), *[("tried", why) for why in process.tried], ("kernel", process.kernel)]
        yield from ("  %-10s %s" % (name, clean(value)) for name, value in said if value)
        for thread in process.threads:
            yield "  thread %s %s %s" % (thread.id or UNKNOWN, word(thread.state), clean(thread.name))
            for frame in thread.frames:
                function = clean(frame.function).replace(" (", "(") or UNKNOWN
                yield "    %s (%s:%d)" % (function, clean(frame.file), frame.line)
        for tasks in process.tasks:
            words = (tasks.count, word(tasks.state), word(tasks.wchan), word(tasks.syscall), clean(tasks.name))
            yield "  tasks %d %s %s %s %s" % words


def clean(text: str) -> str:
    """A text in one line, with nothing in it that acts on a terminal, and not longer than is good."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    text = text.strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def word(text: str) -> str:
    """A text as one word."""
    return "_".join(clean(text).split()) or UNKNOWN


def parse(data: bytes, shared: dict[str, Frame] | None = None) -> Dump | None:
    """A dump from its file; None when it is none, or of a newer format. What is not understood is left out.

    Frames that are in `shared`, by their lines, are used again, and new ones are put there.
    """
    frames: dict[str, Frame] = {} if shared is None else shared
    lines = data[:MOST_BYTES].decode("utf-8", "replace").split("\n")
    version = lines[0][len(TITLE):].strip()
    if not lines[0].startswith(TITLE) or not is_number(version) or int(version) > FORMAT:
        return None
    dump = Dump(0.0)
    process: Process | None = None
    for line in lines[1:]:
        name, _, value = line.strip().partition(" ")
        value = value.strip()
        if line.startswith("    "):
            _take_frame(process, line[4:], frames)
        elif line.startswith("  "):
            _take_of_process(process, name, value)
        elif name == "process":
            pid, state, command = fields(value, 3)
            process = Process(number(pid), known(state), command)
            dump.processes.append(process)
        elif process is None:
            _take_of_dump(dump, name, value)
    return dump


def _take_of_dump(dump: Dump, name: str, value: str) -> None:
    if name == "time":
        try:
            dump.time = float(value.rpartition("(")[2].rstrip(")"))
        except ValueError:
            return
    elif name in ("rank", "left-out"):
        setattr(dump, name.replace("-", "_"), number(value))
    elif name in ("host", "why", "method", "note"):
        setattr(dump, name, value)


def _take_of_process(process: Process | None, name: str, value: str) -> None:
    if process is None:
        return
    if name == "thread":
        id, state, called = fields(value, 3)
        process.threads.append(Thread(number(id), called, known(state)))
    elif name == "tasks":
        count, state, wchan, syscall, called = fields(value, 5)
        process.tasks.append(Tasks(number(count), known(state), known(wchan), known(syscall), called))
    elif name == "parent":
        process.parent = number(value)
    elif name == "tried":
        process.tried.append(value)
    elif name in ("method", "kernel"):
        setattr(process, name, value)


def _take_frame(process: Process | None, text: str, frames: dict[str, Frame]) -> None:
    if process is None or not process.threads:
        return
    if text not in frames:
        function, bracket, place = text.partition(" (")
        file, colon, line = (place[:-1] if place.endswith(")") else place).rpartition(":")
        if not (bracket and colon):
            return
        frames[text] = Frame(known(function.strip()), file, number(line))
    process.threads[-1].frames.append(frames[text])


def fields(text: str, count: int) -> list[str]:
    """The first words of a text, the last with all that follows; empty ones for those that are missing."""
    words = text.split(None, count - 1)
    return words + [""] * (count - len(words))


def known(text: str) -> str:
    """A word, empty when it stands for one that is not known."""
    return "" if text == UNKNOWN else text


def is_number(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def number(text: str) -> int:
    """A whole number; 0 for anything else."""
    return int(text) if is_number(text) else 0
