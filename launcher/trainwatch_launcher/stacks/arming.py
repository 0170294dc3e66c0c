"""`--faulthandler`: every Python that the command starts can be made to write its stacks, also one that hangs in C.

Python reads `sitecustomize` from the first place in PYTHONPATH; ours registers faulthandler on a real-time signal, into
a file in memory. Whoever starts Python with -I, -E or -S does without.
"""
from __future__ import annotations

import os
import sys

from trainwatch_launcher.quick import signal

HOOKS = "hooks"
VARIABLE = b"TRAINWATCH_STACKS"
"""Tells the hook which signal."""
SIGNAL = signal.SIGRTMAX - 5
"""The C library uses the first real-time signals, systemd the next ones, and a JVM the last."""


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
