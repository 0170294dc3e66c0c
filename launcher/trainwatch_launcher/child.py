"""The command: how it is started in a process group of its own, watched, and cleaned up after."""
from __future__ import annotations

import errno
import fcntl
import os

from trainwatch_launcher.signals import PYTHON_IGNORES

try:
    # os.wait4 needs it, and would import it when it has taken the exit code already: without a descriptor left that
    # fails, and the code is lost
    import resource
except (ImportError, OSError):
    HAS_USAGE = False
else:
    HAS_USAGE = hasattr(resource, "struct_rusage")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, TypeVar

    T = TypeVar("T")

NOT_FOUND = 127
NOT_EXECUTABLE = 126
PIPE_SIZE = 1 << 20
F_SETPIPE_SZ = 1031  # linux/fcntl.h; Python names it only since 3.10
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
M_ARENA_MAX = -8  # malloc.h
MAX_DESCRIPTOR = 4096
"""Where the search for open descriptors ends."""


class SpawnError(Exception):
    """The command could not be started; `code` is what a shell would exit with, `errno` why exec failed, if it did."""

    def __init__(self, message: str, code: int, errno: int = 0) -> None:
        super().__init__(message)
        self.code, self.errno = code, errno


class Exit:
    """How the command ended. Times in seconds, memory in bytes, both of it and all its waited-for children."""

    def __init__(self, status: int, cpu_user: float, cpu_system: float, max_rss: int) -> None:
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.code = 128 + self.signal if self.signal is not None else os.WEXITSTATUS(status)
        self.core_dumped = os.WIFSIGNALED(status) and os.WCOREDUMP(status)
        self.cpu_user, self.cpu_system, self.max_rss = cpu_user, cpu_system, max_rss


def fill_standard_descriptors() -> list[int]:
    """Open /dev/null for descriptors 0 to 2 that our starter closed, so that no file of ours lands there.

    Returns those that were closed.
    """
    closed = []
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            opened = open_null(os.O_RDONLY if fd == 0 else os.O_WRONLY)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            os.set_inheritable(fd, True)
            closed.append(fd)
    return closed


def open_null(flags: int) -> int:
    """Open /dev/null; in an image without one, a directory: it takes the place, and gives and takes no byte either."""
    try:
        return os.open(os.devnull, flags)
    except OSError:
        return os.open("/", os.O_RDONLY)


def close_ours() -> None:
    """Close what we opened, for the command that takes our place: it may need every descriptor that it can get.

    All of ours are closed by an exec, and none that we inherited is.
    """
    for fd in range(3, MAX_DESCRIPTOR):
        try:
            if not os.get_inheritable(fd):
                os.close(fd)
        except OSError:
            pass  # not open


def output_pipe() -> tuple[int, int]:
    """A pipe for the command's output, as large as the kernel lets us: (read side, write side)."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        fcntl.fcntl(writer, F_SETPIPE_SZ, PIPE_SIZE)
    except OSError:
        pass  # above the user's pipe quota: the default of 64 KiB works, with more switches
    return reader, writer


def spawn(
    argv: list[bytes], env: dict[bytes, bytes], output: int | str, mask: Iterable[int], defaults: Iterable[int] = ()
) -> int:
    """Start the command in its own process group, stdout and stderr on one descriptor; its process id.

    It inherits which signals are ignored, save those in `defaults` and what the interpreter changed.

    When `output` is the path of a terminal, the command gets a session of its own with that as its controlling
    terminal, which a session leader acquires by opening it (tty_ioctl(4)). posix_spawn leaves no time between fork and
    setpgid in which a signal could miss it. Raises SpawnError.
    """
    options: dict[str, Any] = {"setsigmask": mask, "setsigdef": (*PYTHON_IGNORES, *defaults)}
    if isinstance(output, str):
        options["setsid"] = True
        opened = (os.POSIX_SPAWN_OPEN, 0, output, os.O_RDWR, 0)
        options["file_actions"] = [opened, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    else:
        options["setpgroup"] = 0
        options["file_actions"] = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    return execute(lambda path, words: os.posix_spawn(path, words, env, **options), argv, env)


def become(argv: list[bytes], env: dict[bytes, bytes]) -> SpawnError:
    """Become the command. Returns only why that cannot be."""

    def replace_us(path: bytes, words: list[bytes]) -> None:
        os.execve(path, words, env)

    try:
        execute(replace_us, argv, env)
    except SpawnError as error:
        return error
    raise AssertionError("execve returns only to say why it failed")


def execute(start: Callable[[bytes, list[bytes]], T], argv: list[bytes], env: dict[bytes, bytes]) -> T:
    """Have `start(path, words)` start a command as a shell would. Raises SpawnError."""
    path = find(argv[0], env)
    try:
        return start(path, argv)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise SpawnError(explain(argv[0], path, error), code_of(error), error.errno or 0) from None
    try:
        # a script without #!: every shell runs it by /bin/sh
        return start(b"/bin/sh", [b"sh", path, *argv[1:]])
    except OSError as error:
        raise SpawnError("%s: no #! line, and /bin/sh: %s" % (shown(path), error.strerror), NOT_EXECUTABLE) from None


def find(name: bytes, env: dict[bytes, bytes]) -> bytes:
    """The file that a command's name means, looked up in PATH as a shell does. Raises SpawnError."""
    if not name:
        raise SpawnError("the command is an empty word", NOT_FOUND)
    if b"/" in name:
        return name
    refused: bytes | None = None
    for directory in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        path = os.path.join(directory or b".", name)
        if not os.path.isfile(path):
            continue
        if os.access(path, os.X_OK):
            return path
        refused = refused or path
    if refused is not None:
        fix = "chmod +x it, or run it by its interpreter"
        raise SpawnError("%s: not executable (%s)" % (shown(refused), fix), NOT_EXECUTABLE)
    raise SpawnError("%s: command not found in PATH" % shown(name), NOT_FOUND)


def code_of(error: OSError) -> int:
    """What a shell exits with when exec fails: 127 for a missing file, 126 for one that cannot be run."""
    return NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE


def explain(name: bytes, path: bytes, error: OSError) -> str:
    """Why the command could not be started, with the fix where there is one."""
    if error.errno == errno.ENOENT and os.path.exists(path):
        return "%s: its interpreter (the #! line, or the ELF loader) does not exist" % shown(name)
    if error.errno == errno.EACCES and os.path.isdir(path):
        return "%s: is a directory" % shown(name)
    if error.errno == errno.EACCES:
        return "%s: permission denied (not executable: chmod +x it, or run it by its interpreter)" % shown(name)
    if error.errno == errno.E2BIG:
        return "%s: the arguments and the environment are too long together" % shown(name)
    return "%s: %s" % (shown(name), os.strerror(error.errno or 0))


def shown(name: bytes) -> str:
    """A name from a command line, for people."""
    return name.decode("utf-8", "replace")


def settle_in() -> None:
    """Prepare this process: adopt the command's orphans, and keep memory small. Before any thread starts.

    As a child subreaper we can wait for orphans and clean them up; PID 1 has them anyway. One malloc arena instead of
    one a thread saves megabytes (mallopt(3)). Neither has a name in the standard library, hence ctypes.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if os.getpid() != 1:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.mallopt(M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):
        pass  # orphans go to another, memory is larger: nothing that a training needs


def reap() -> dict[int, Exit | int]:
    """Collect every child that ended, as process id to how it ended; the signal's number for one that was stopped."""
    ended: dict[int, Exit | int] = {}
    while True:
        try:
            pid, status, cpu_user, cpu_system, max_rss = wait()
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if os.WIFSTOPPED(status):
            ended[pid] = os.WSTOPSIG(status)
        else:
            ended[pid] = Exit(status, cpu_user, cpu_system, max_rss)


def wait() -> tuple[int, int, float, float, int]:
    """(process id, status, user and system seconds, peak bytes) of a child that ended or stopped; id 0 for none.

    Raises ChildProcessError when there is no child.
    """
    if not HAS_USAGE:
        return (*os.waitpid(-1, os.WNOHANG | os.WUNTRACED), 0.0, 0.0, 0)
    pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
    return pid, status, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024


def send(group: int, number: int) -> bool:
    """Send a signal to a process group; False when nobody is left in it."""
    try:
        os.killpg(group, number)
        return True
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # a set-user-id program: it is there, and others of the group got the signal


def alive_in(group: int) -> bool:
    """Whether a process of the group still runs. Zombies do not count: killpg(2) would find them."""
    if not send(group, 0):
        return False
    everyone = processes()
    return not everyone or any(process.group == group for process in everyone)


class Process:
    """A line of /proc/PID/stat (proc(5)), as far as we need it."""

    def __init__(self, pid: int, name: str, state: str, parent: int, group: int) -> None:
        self.pid, self.name, self.state, self.parent, self.group = pid, name, state, parent, group


def processes() -> list[Process]:
    """All processes that still run; zombies and the dead are left out."""
    found = []
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []  # a chroot without /proc: nothing can be known
    for entry in entries:
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, "rb") as file:
                text = file.read()
        except OSError:
            continue
        # the name stands in parentheses and may hold anything, a parenthesis too
        head, _, rest = text.rpartition(b")")
        fields = rest.split()
        if len(fields) < 3 or fields[0] in (b"Z", b"X", b"x"):
            continue
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        found.append(Process(int(entry), name, fields[0].decode(), int(fields[1]), int(fields[2])))
    return found


def descendants(group: int) -> list[Process]:
    """A process group, and all our descendants: we adopt orphans."""
    everyone = processes()
    ours: set[int] = {os.getpid()}
    grown = True
    while grown:
        more = {process.pid for process in everyone if process.parent in ours} - ours
        ours |= more
        grown = bool(more)
    return [p for p in everyone if p.pid != os.getpid() and (p.group == group or p.pid in ours)]


def is_gone(pid: int) -> bool:
    """Whether a process that we started does not exist any more, although we never collected it."""
    try:
        os.kill(pid, 0)
        return False
    except ProcessLookupError:
        return True
    except PermissionError:
        return False


def kill_each(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes one by one; those that are gone do not matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass

