"""Fixtures for all tests; what they are made of is in support/."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.launching import Launcher
from support.terminal import Terminal

# How long an example takes says something of the machine that day, and nothing of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# What whoever runs the tests has chosen in the viewer is neither seen nor changed by it.
os.environ["XDG_STATE_HOME"] = "/proc/none"

# A shell starts what runs in its background with these ignored, and what a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launcher]:
    """Runs commands under real launchers: `launch("true").code`, `launch.start("sleep", "9")`. See support."""
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture
def tmux() -> Iterator[Terminal]:
    """A real terminal with nothing in it yet: `tmux.start([...])`, `tmux.wait_for("text")`. See support.terminal."""
    terminal = Terminal()
    yield terminal
    terminal.close()
