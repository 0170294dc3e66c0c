"""The one line that says why."""
from __future__ import annotations

import pytest

from trainwatch_launcher.child import Exit
from trainwatch_launcher.diagnosis import reason

TRACEBACK = b"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\n"


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (TRACEBACK + b"ValueError: shard 2 is short\n", "ValueError: shard 2 is short"),
        (TRACEBACK + b"torch.cuda.OutOfMemoryError: CUDA\nbye\n", "torch.cuda.OutOfMemoryError: CUDA"),
        (b"[rank3]: ValueError: boom\n[rank3]:\n", "ValueError: boom"),
        (b"2: KeyError: 'x'\n", "KeyError: 'x'"),
        (b"\x1b[31mRuntimeError\x1b[0m: red\n", "RuntimeError: red"),
        (b"loading\nno such option\n", "last line: no such option"),
        (b"10%\r20%\r30%\n\n", "last line: 30%"),
        (b"", ""),
        (b"\xff\xfe\n", "last line: \ufffd\ufffd"),
    ],
)
def test_an_exception_or_else_the_last_line(output, why):
    assert reason(Exit(1 << 8, 0, 0, 0), output, 0) == why


def test_a_death_by_signal_is_told_and_who_it_was():
    killed = Exit(9, 0, 0, 0)
    assert reason(killed, b"x", 2) == "killed by SIGKILL: out of memory, by the kernel (2 killed in this container)"
    assert "somebody" in reason(killed, b"x", 0)
    assert reason(killed, b"x", 0, stop_asked=True) == "killed by SIGKILL after it was asked to stop"
    assert reason(Exit(11 | 128, 0, 0, 0), b"x", 0) == "killed by SIGSEGV, core dumped"
    assert "for memory" in reason(Exit(137 << 8, 0, 0, 0), b"x", 1)
