"""After a fault of our own: the training runs on, its output reaches the console, its code is returned."""
from __future__ import annotations

import os
import time

from trainwatch_launcher import child, signals
from trainwatch_launcher.quick import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.supervisor import Supervisor

CHUNK = 64 << 10
STEP = 0.05


def say(text: str) -> None:
    """Say something on standard error at once, with nothing that could fail again."""
    try:
        os.write(2, ("trainwatch: %s\n" % text).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def become(command: list[str], taken: signals.Taken, why: str) -> int:
    """Nothing was started yet: become the command. Returns only when that cannot be, with a shell's code for it."""
    say("cannot watch over the command (%s); running it without log, events and hold" % why)
    child.close_ours()
    for number in signals.PYTHON_IGNORES:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, taken.inherited_mask)
    error = child.become([os.fsencode(word) for word in command], dict(os.environb))
    say(str(error))
    return error.code


def see_through(supervisor: Supervisor, why: str) -> int:
    """The command runs: pass signals on, wait for it, and return its code."""
    say("internal error, please report it; the command runs on\n%s" % why)
    numbers = supervisor.worker.taken.numbers
    while supervisor.exit is None:
        info = signal.sigtimedwait(numbers, STEP)
        if info is not None and info.si_signo != signal.SIGCHLD:
            child.send(supervisor.pid, info.si_signo)
        copy(supervisor)
        ended = child.reap().get(supervisor.pid)
        if isinstance(ended, child.Exit):
            supervisor.exit = ended
        elif child.is_gone(supervisor.pid):
            supervisor.exit = child.Exit(1 << 8, 0.0, 0.0, 0)  # its code was lost with the fault
    if supervisor.guardian is not None:
        supervisor.guardian.dismiss()
    deadline = time.monotonic() + supervisor.options.drain_timeout
    while not copy(supervisor) and time.monotonic() < deadline:
        time.sleep(STEP)
    code = supervisor.exit.code
    try:
        supervisor.recorder.event("exit", code=code, reason="the launcher had an internal error")
        supervisor.recorder.update(exited=time.time(), exit_code=code)
        return supervisor.worker.leave(code)
    except Exception as error:  # noqa: BLE001 - the second fault; the code is what counts
        say(repr(error))
        return code


def copy(supervisor: Supervisor) -> bool:
    """Copy what the pump, which never came to run, left in the pipe; whether there is nothing more to come."""
    pump = supervisor.pump
    if pump is None:
        return True
    if pump.started:
        return pump.ended
    while True:
        try:
            data = os.read(pump.fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        if not data:
            return True
        try:
            os.write(1, data)
        except OSError:
            pass  # the console is gone: still read, so that the command can write
