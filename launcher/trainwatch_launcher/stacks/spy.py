"""py-spy: found on the worker or in the packed file, and run on one process at a time.

It stops the process for some milliseconds, by ptrace(2). See https://github.com/benfred/py-spy.
"""
from __future__ import annotations

import os
import select
import signal
import sys
import time

from trainwatch_launcher.rundir import jsontext
from trainwatch_launcher.rundir.stacks import Frame, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

NAME = "py-spy"
MEMBER = "trainwatch_launcher/stacks/py-spy"
"""What it is called in the packed file."""
MOST = 8 << 20
"""Bytes of its answer that are read."""
MACHINES = {3: "i686", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""Numbers of machines in ELF files (elf.h)."""
SHORT_OF_RIGHTS = ("permission denied", "operation not permitted", "eperm", "elevated permissions")
NOT_PYTHON = "failed to find python version"
FIX = "run the container with --cap-add SYS_PTRACE, or start the launcher with --faulthandler"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


class SpyError(Exception):
    """py-spy said nothing of a process; the message is one line. `forbidden`: nor may it of the others."""

    def __init__(self, message: str, forbidden: bool = False) -> None:
        super().__init__(message)
        self.forbidden = forbidden


class Spy:
    """One py-spy. Made for one taking, as it may be in memory, and left by `close`."""

    def __init__(self, path: str, where: str, fd: int = -1) -> None:
        self.path = path
        self.running: set[int] = set()
        """Its processes now, for whoever must end them."""
        self.where = where
        """Where it was found, for people."""
        self._fd = fd

    def close(self) -> None:
        """Forget the copy in memory."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def ask(self, pid: int, seconds: float) -> list[Thread]:
        """The stacks of a process's threads, the main one first. Raises SpyError."""
        out, err, late = self._run([NAME, "dump", "--json", "--pid", str(pid)], seconds, pid)
        if late:
            raise SpyError("py-spy did not answer within %d s" % seconds)
        try:
            return threads_in(jsontext.loads(out.decode("utf-8", "replace")), pid)
        except (ValueError, RecursionError, TypeError, AttributeError):
            raise complaint(err.decode("utf-8", "replace")) from None

    def _run(self, argv: list[str], seconds: float, pid: int) -> tuple[bytes, bytes, bool]:
        """What it writes to stdout and stderr, and whether it had to be killed. Raises SpyError."""
        machine = machine_of(self.path)
        if machine and machine != os.uname().machine:
            raise SpyError("%s is for %s, and this is %s" % (self.where, machine, os.uname().machine), True)
        was_stopped = state_of(pid) in ("T", "t")
        (out, theirs_out), (err, theirs_err) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs_out, 1), (os.POSIX_SPAWN_DUP2, theirs_err, 2),
        ]  # fmt: skip
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWATCH_")}
        try:
            child = os.posix_spawn(self.path, argv, environ, file_actions=actions, setpgroup=0)
        except OSError as error:
            os.close(out)
            os.close(err)
            raise SpyError("%s cannot be run: %s" % (self.where, error.strerror), True) from None
        finally:
            os.close(theirs_out)
            os.close(theirs_err)
        self.running.add(child)
        texts, late = gathered([out, err], time.monotonic() + seconds)
        self.running.discard(child)
        if late:
            os.kill(child, signal.SIGKILL)
        collect(child)
        if late and not was_stopped and state_of(pid) == "T":
            os.kill(pid, signal.SIGCONT)  # killed between stopping it and letting it go
        return texts[0], texts[1], late


def find(pids: Iterable[int]) -> Spy | None:
    """py-spy in PATH, beside our own Python or that of a process, or in the packed file; None when it is nowhere."""
    places = [*os.environ.get("PATH", os.defpath).split(":"), os.path.dirname(sys.executable)]
    for pid in pids:
        try:
            places.append(os.path.dirname(os.readlink("/proc/%d/exe" % pid)))
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                word = os.fsdecode(file.read(4096).split(b"\0")[0])
            places.append(os.path.dirname(word) if word.startswith("/") else "")
        except OSError:
            continue
    for place in dict.fromkeys(places):
        path = os.path.join(place, NAME)
        if place.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return Spy(path, path)
    return packed()


def packed() -> Spy | None:
    """The one in the packed file, as a file in memory; None when there is none."""
    loader = sys.modules["trainwatch_launcher"].__spec__
    archive = getattr(getattr(loader, "loader", None), "archive", "")
    if not archive:
        return None
    try:
        data = loader.loader.get_data("%s/%s" % (archive, MEMBER))  # type: ignore[union-attr]
    except OSError:
        return None
    fd = in_memory(data)
    return Spy("/proc/self/fd/%d" % fd, "py-spy in the packed file", fd)


def in_memory(data: bytes) -> int:
    """A descriptor of a program that has no name: in memory, or where that is not allowed, a file removed at once."""
    fd = -1
    try:
        fd = os.memfd_create(NAME)
        os.fchmod(fd, 0o700)
    except (AttributeError, OSError):  # an old kernel, or one where nothing in memory may be run
        import tempfile

        if fd >= 0:
            os.close(fd)
        fd, path = tempfile.mkstemp(prefix="trainwatch-")
        os.unlink(path)
        os.fchmod(fd, 0o700)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
    reader = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    os.close(fd)  # what is open for writing cannot be run
    return reader


def gathered(pipes: list[int], deadline: float) -> tuple[list[bytes], bool]:
    """All that comes from some pipes until they end, which are then closed; and whether the time was up before."""
    parts: dict[int, list[bytes]] = {fd: [] for fd in pipes}
    waiting, late = set(pipes), False
    poll = select.poll()
    for fd in pipes:
        poll.register(fd, select.POLLIN)
    while waiting and not late:
        left = deadline - time.monotonic()
        for fd, _ in poll.poll(max(0.0, left) * 1000):
            data = os.read(fd, 1 << 16)
            if data and sum(map(len, parts[fd])) < MOST:
                parts[fd].append(data)
            elif not data:
                poll.unregister(fd)
                waiting.discard(fd)
        late = bool(waiting) and left <= 0
    for fd in pipes:
        os.close(fd)
    return [b"".join(parts[fd]) for fd in pipes], late


def collect(child: int) -> None:
    """Leave no zombie; the main thread may have collected it already."""
    for _ in range(100):
        try:
            if os.waitpid(child, os.WNOHANG)[0]:
                return
        except OSError:
            return
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """A process's state, as the kernel writes it; empty when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode("ascii")
    except (OSError, IndexError):
        return ""


def machine_of(path: str) -> str:
    """The machine that a program is for; empty when it is no ELF file or cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return ""
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return ""
    number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
    return MACHINES.get(number, "another machine (%d)" % number)


def threads_in(said: Any, pid: int) -> list[Thread]:
    """The threads in py-spy's JSON, the main one first. Raises ValueError and the like when it is something else."""
    threads = []
    for one in said:
        state = "gil" if one.get("owns_gil") else "active" if one.get("active") else "idle"
        thread = Thread(int(one.get("os_thread_id") or 0), str(one.get("thread_name") or ""), state)
        for frame in one["frames"]:
            thread.frames.append(Frame(str(frame["name"]), str(frame["filename"]), int(frame.get("line") or 0)))
        threads.append(thread)
    if not threads:
        raise ValueError("no thread")
    threads.sort(key=lambda thread: (thread.id != pid, thread.name != "MainThread"))
    return threads


def complaint(said: str) -> SpyError:
    """What py-spy complains of, in one line, with the fix where the rights are missing."""
    low = said.lower()
    if any(words in low for words in SHORT_OF_RIGHTS):
        return SpyError("py-spy is not permitted%s: %s" % (yama(), FIX), True)
    if NOT_PYTHON in low:
        return SpyError("py-spy finds no Python in it")
    first = next((line.strip() for line in said.split("\n") if line.strip()), "it said nothing")
    return SpyError("py-spy: %s" % first[:200])


def yama() -> str:
    """The kernel's own restriction of ptrace, when there is one."""
    try:
        with open(YAMA, "rb") as file:
            scope = file.read(8).strip().decode("ascii", "replace")
    except OSError:
        return ""
    return "" if scope in ("0", "") else " (kernel.yama.ptrace_scope is %s)" % scope
