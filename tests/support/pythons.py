"""The interpreters that the launcher promises to run on, those of them that are installed here."""
from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST, NEWEST = 8, 13


def version_of(python: str) -> str:
    """`3.11` for an interpreter of that version; empty when it does not start."""
    try:
        found = subprocess.run([python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                               capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ""
    return found.stdout.strip()


@functools.lru_cache(maxsize=1)
def installed() -> dict[str, str]:
    """Version to path, 3.8 to 3.13, the oldest first; the interpreter that runs the tests stands for its version."""
    found: dict[str, str] = {}
    for minor in range(OLDEST, NEWEST + 1):
        version = f"3.{minor}"
        candidates = [str(path) for path in Path.home().glob(f".pyenv/versions/{version}*/bin/python3")]
        named = shutil.which(f"python{version}")
        if sys.version_info[:2] == (3, minor):
            candidates = [sys.executable]
        elif named:
            candidates.append(named)
        for candidate in candidates:
            if version_of(candidate) == version:
                found[version] = candidate
                break
    return found


every_python = pytest.mark.parametrize("python", list(installed().values()), ids=list(installed()))
"""Runs a test once with each installed interpreter, as its argument `python`."""
