"""Fixtures for all tests; what they are made of is in support/."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.launching import Launcher
from support.terminal import Terminal


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
