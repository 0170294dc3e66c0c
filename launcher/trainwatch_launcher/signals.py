"""Signals: blocked from the start and taken one by one, so that none is lost and each one's sender is known.

No handler is installed: a signal that was ignored when we started stays ignored, here and in the command (nohup), and
as PID 1 a blocked signal is queued where the kernel would drop an unhandled one (kernel/signal.c, sig_task_ignored).
"""
from __future__ import annotations

import os

from trainwatch_launcher.quick import signal

NOT_OURS = frozenset(
    (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP,
     signal.SIGABRT, signal.SIGSYS, signal.SIGPIPE, signal.SIGXFSZ)
)
"""Signals that cannot be caught, that a fault of our own raises, or that a write of our own raises."""

STOPS = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT))
"""Signals that ask a worker to end: after one, a failure is not held."""

PAUSES = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))
"""Signals that stop a process group until CONT."""

PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
"""What the interpreter itself set to "ignored" at its start; the command gets the default back."""


class Taken:
    """Which signals we take, and the mask that the command must inherit.

    `mask`: what was blocked before all signals were; None when they are not blocked yet.
    """

    def __init__(self, mask: set[int] | None = None) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would let the kernel reap our child
        wanted: set[int] = set()
        for number in signal.valid_signals():
            if number not in NOT_OURS and signal.getsignal(number) != signal.SIG_IGN:
                wanted.add(int(number))
        wanted.add(int(signal.SIGCHLD))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        if mask is not None:
            before = mask
            signal.pthread_sigmask(signal.SIG_SETMASK, mask | wanted)
        self.inherited_mask = before
        self.numbers = wanted


NUMBERS = {
    name: int(number) for name, number in sorted(vars(signal).items()) if name[:3] == "SIG" and name[3:4] != "_"
}
"""By name. Of a signal's several names the first is the usual one: SIGCHLD, not SIGCLD."""


def name_of(number: int) -> str:
    """A signal's name, `SIGTERM`; `SIGRTMIN+3` for the real-time ones; `signal 99` for others."""
    if signal.SIGRTMIN < number < signal.SIGRTMAX:
        return "SIGRTMIN+%d" % (number - signal.SIGRTMIN)
    return next((name for name, known in NUMBERS.items() if known == number), "signal %d" % number)


def number_of(name: str) -> int | None:
    """A signal's number from `TERM`, `SIGTERM` or `15`; None for what is no signal."""
    text = name.strip().upper()
    if text.isascii() and text.isdigit():
        return int(text) if 0 < int(text) <= signal.SIGRTMAX else None
    return NUMBERS.get(text if text.startswith("SIG") else "SIG" + text)


def sender_of(info: signal.struct_siginfo) -> dict[str, object]:
    """Who sent a signal, as far as the kernel says: `pid`, `uid`, `command`; empty for the kernel itself (a terminal).

    SI_USER and SI_TKILL (sigaction(2)) are the codes that carry a sender.
    """
    if info.si_code not in (0, -1, -6):
        return {}
    sender: dict[str, object] = {"pid": info.si_pid, "uid": info.si_uid}
    if info.si_pid == os.getpid():
        return {}
    command = command_of(info.si_pid)
    if command:
        sender["command"] = command
    return sender


def command_of(pid: int) -> str:
    """A process's command line, shortened; empty when it is gone, hidden or the kernel's."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read(4096).split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()[:200]


def wake_main() -> None:
    """Make the main thread look around: an extra SIGCHLD does nothing else."""
    os.kill(os.getpid(), signal.SIGCHLD)
