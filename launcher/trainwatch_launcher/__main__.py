"""Entry of `python -m trainwatch_launcher`, of the packed file and of the trainwatch-launch script.

The packed file has a copy of this module at its top. Every Python that a worker may have must be able to read it, also
one that is too old for the rest.
"""
import sys

OLDEST = (3, 8)


def hold_signals() -> "set[int]":
    """Block all signals, as the very first thing: those that come wait for the supervisor. The mask of before."""
    import _signal  # type: ignore[import-not-found]  # a part of the interpreter: no file can take its place

    return _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # type: ignore[no-any-return]


def take_held() -> None:
    """As PID 1: what our starter (bin/trainwatch-launch) blocked for us, and what it got itself."""
    import os

    held, early = [os.environ.pop("TRAINWATCH_" + name, "").split() for name in ("HELD", "EARLY")]
    if MASK is not None and os.getpid() == 1:
        import _signal

        MASK.difference_update(getattr(_signal, "SIG" + name, 0) for name in held)
        for name in early:
            os.kill(1, getattr(_signal, "SIG" + name, 0))


def clean_path() -> None:
    """Keep the working directory and PYTHONPATH from replacing standard modules; only `sys` is imported so far.

    First comes the standard library, known by `encodings`, which every interpreter loads from there at its start, then
    our own place, then the directories of installed packages: any of them may hold a stale backport of a standard
    module. What else is on the path is nothing to us.
    """
    standard = str(getattr(sys.modules["encodings"], "__file__", "")).rsplit("/", 2)[0]
    zipped = "/python%d%d.zip" % sys.version_info[:2]
    installed = [path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))]
    if standard in sys.path:
        sys.path[:] = [path for path in sys.path if path == standard or path.endswith(("/lib-dynload", zipped))]
    here = own_place()
    sys.path += [here] + [path for path in installed if path != here]


def own_place() -> str:
    """Where our package is found: the directory that it lies in, or the packed file."""
    import os

    packed = getattr(globals().get("__loader__"), "archive", "")
    try:
        path = os.path.abspath(packed or __file__)
        return in_memory(path) if packed else os.path.dirname(os.path.dirname(path))
    except (AttributeError, ImportError, OSError):
        # no memfd, no /proc, or a working directory that was removed
        return packed or os.path.dirname(os.path.dirname(__file__)) or "."


def in_memory(path: str) -> str:
    """A copy of a file that nobody can replace or remove, and whose storage cannot hang, while the training runs.

    A module that is needed first at the end of a training would else come out of another version's file, or not at all.
    """
    import fcntl
    import os

    with open(path, "rb") as file:
        data = file.read()
    made = os.memfd_create("trainwatch-launch")
    fd = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, 3)  # descriptors 0 to 2 may be closed: they are not ours to take
    os.close(made)
    os.write(fd, data)
    copy = "/proc/self/fd/%d" % fd
    if os.stat(copy).st_size != len(data):
        raise OSError("not all of it could be copied")
    return copy


def leave_old_python() -> None:
    """Become a newer Python if there is one; else the command, without a launcher: the training comes first."""
    import os
    import subprocess

    check = "import sys; sys.exit(sys.version_info < (3, 8))"
    for name in ["python3.%d" % minor for minor in range(14, 7, -1)]:
        start = [name, "-I", "-S", "-X", "utf8"]
        try:  # only a try tells: the name may be pyenv's, for a version that is not there
            good = subprocess.call([*start, "-c", check], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
        except OSError:
            continue
        if good:
            os.execvp(name, start + sys.argv)
    run_without_us("needs Python 3.8 or newer, and %s is %d.%d" % (sys.executable, *sys.version_info[:2]))


def run_without_us(why: str) -> None:
    """Become the command."""
    import os

    words = sys.argv[1:]
    command = words[words.index("--") + 1 :] if "--" in words else []
    instead = "running the command without logging, events or hold" if command else "no command after --"
    sys.stderr.write("trainwatch-launch: %s: %s\n" % (why, instead))
    sys.stderr.flush()
    if not command:
        sys.exit(2)
    if MASK is not None:
        import signal

        signal.pthread_sigmask(signal.SIG_SETMASK, MASK)
    for fd in range(3, 64):  # the copy of the packed file, which the command does not need: it may need the descriptor
        try:
            if not os.get_inheritable(fd):
                os.close(fd)
        except (AttributeError, OSError):
            pass
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write("trainwatch-launch: %s: %s\n" % (command[0], error.strerror))
        sys.exit(127 if error.errno == 2 else 126)


MASK = hold_signals() if __name__ == "__main__" and sys.version_info >= OLDEST else None
"""The signals that were blocked when we started."""
clean_path()
take_held()

if __name__ == "__main__":
    if sys.version_info < OLDEST:
        leave_old_python()
    try:
        from trainwatch_launcher.cli import main
    except Exception as error:  # noqa: BLE001 - no descriptor left, a file of ours that cannot be read: the command runs
        run_without_us("cannot be loaded (%s)" % error)
    else:
        main(MASK)
