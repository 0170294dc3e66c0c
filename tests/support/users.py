"""Being somebody else than root for a while: root may read and write everything, so that modes mean nothing to it."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def unprivileged_directory() -> Iterator[Path]:
    """A new directory, and until the end a user whose permissions count and who owns it."""
    directory = Path(tempfile.mkdtemp(prefix="trainwatch-test-"))
    was_root = os.geteuid() == 0
    if was_root:
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield directory
    finally:
        if was_root:
            os.seteuid(0)
        shutil.rmtree(directory)
