"""Regular expressions with an end: one that a person typed may take for ever, and would take the keys with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlowError(Exception):
    """An expression took longer than it was given."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let what is inside use so much processor time at most; raises TooSlowError.

    While it backtracks, `re` looks for signals as the interpreter does (Modules/_sre, MAYBE_CHECK_SIGNALS), in the main
    thread only: elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = True

    def stop(_number: int, _frame: FrameType | None) -> None:
        if armed:
            raise TooSlowError

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
