"""What screens ask of the app: messages that go up, so that no screen knows what fulfils them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textual.message import Message

from trainwatch_launcher.reader.changes import AttemptKey


@dataclass
class Control(Message):
    """Ask an attempt's launcher for something: `release`, or `extend` by so many seconds."""

    key: AttemptKey
    name: str
    """The one that is asked, in words."""
    command: str
    seconds: float | None = None


@dataclass
class ControlMany(Message):
    """Ask the launchers of several attempts for the same; what becomes of it is told once for all."""

    keys: tuple[AttemptKey, ...]
    command: str


@dataclass
class TakeStacks(Message):
    """Ask the launchers of some attempts for stacks."""

    keys: tuple[AttemptKey, ...]


@dataclass
class OpenShell(Message):
    """Open a shell where an attempt runs: in this terminal, or in a new window of tmux."""

    key: AttemptKey
    in_window: bool = False


@dataclass
class Copy(Message):
    """Put a text where the terminal can paste it from."""

    text: str


@dataclass
class OpenLog(Message):
    """Open an attempt's log at a place in $PAGER, or in $EDITOR. Offset in bytes, line from 1 on."""

    key: AttemptKey
    offset: int
    line: int
    editor: bool


@dataclass
class OpenRun(Message):
    """Watch this run directory."""

    path: Path
