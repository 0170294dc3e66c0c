"""Leaving although files hang: a process cannot end while the close of one of its files waits for a dead file system.

FUSE and NFS flush a file when a descriptor is closed, also at a process's end, and wait for the answer (fs/fuse/file.c,
fuse_flush). So when something hangs at our end, we leave the descriptors to a child that shares our descriptor table
(clone(2), CLONE_FILES): our own end then closes nothing. The child gives back everything but those files, and ends when
the file system answers or the container goes.
"""
from __future__ import annotations

import os

from trainwatch_launcher.child import MAX_DESCRIPTOR
from trainwatch_launcher.quick import signal

CLONE_FILES = 0x400
CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of clone(2) by machine; on others a hang may delay our end."""
MOMENT = 10_000
"""Microseconds between two looks at whether the parent has gone."""


def leave_behind(hung: list[int]) -> None:
    """Make the child that keeps the descriptors in `hung`. The caller must end with os._exit right after."""
    number = CLONE.get(os.uname().machine)
    try:
        import ctypes

        # PyDLL keeps the interpreter's lock during a call: in the child, where no other thread exists to give it back,
        # nothing must ever wait for it
        libc = ctypes.PyDLL(None)
        parent = os.getpid()
        if number is None or libc.syscall(number, CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0) != 0:
            return
        while libc.getppid() == parent:
            libc.usleep(MOMENT)
        kept = set(hung)
        for fd in range(MAX_DESCRIPTOR):
            if fd not in kept:
                libc.close(fd)
        libc._exit(0)
    except (ImportError, OSError, AttributeError):
        return
