"""Screens under test: an app on a run directory that stands still, at a fixed time."""
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.keys import key_to_character
from textual.pilot import Pilot

from builders import NOW
from trainwatch.app import TrainwatchApp
from trainwatch.link import Link
from trainwatch.sources.asking import answers
from trainwatch.sources.base import LogFile, Part, ShellPlan, SourceError
from trainwatch.widgets.log_pane import LogPane
from trainwatch.widgets.log_view import LogView
from trainwatch_launcher.reader import idle, metrics, stacks
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptFound, AttemptKey, Change, EventsAppended
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.reader.engine import Engine, LogName
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.records import event
from trainwatch_launcher.rundir.stacks import Dump

SHOWN_AS = "/shared/runs/run-1"
"""What the run directory is called on screen, wherever a test has put it."""


async def opened(path: Path) -> StillSource:
    """As the app opens a run that was picked."""
    return StillSource(path)


class StillSource:
    """Reads a run directory once, and again only when told; notes what it is asked."""

    def __init__(self, directory: Path, *, problem: str = "") -> None:
        self.name = SHOWN_AS
        self.directory = directory
        self.requests: list[tuple[AttemptKey, str, float | None]] = []
        self.withdrawn: list[str] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.idle_asked: set[AttemptKey] = set()
        self.problem = problem
        self._engine = Engine()
        self.plan: ShellPlan | None = None
        self.closed = False
        self.links: tuple[Link, ...] = ()
        self.clock_ahead = 0.0
        self._reader = Reader(str(directory))
        self._next: asyncio.Queue[Sequence[Change] | None] = asyncio.Queue()

    async def changes(self) -> AsyncIterator[Sequence[Change]]:
        self.look()
        while (batch := await self._next.get()) is not None:
            yield batch
        if self.problem:
            raise SourceError(self.problem)

    def ahead(self, _key: AttemptKey) -> float:
        return self.clock_ahead

    def look(self) -> None:
        """Read what is new."""
        batch = [self._renamed(change) for change in self._reader.poll()]
        self._next.put_nowait(batch)

    def answer(self, number: int, result: str) -> None:
        """The worker answers the request of this number."""
        key, command, _ = self.requests[number]
        answer = event("control", NOW, id=f"request-{number}", command=command, by="me@here", result=result)
        self._next.put_nowait([EventsAppended(key, (answer,))])

    def took(self, number: int, file: int | None, note: str = "") -> None:
        """The worker has taken the stacks that the request of this number asked for, into its `file`-th file."""
        key, _, _ = self.requests[number]
        name = None if file is None else paths.stacks_name(file)
        facts = {"file": name, "number": file or 1, "request": f"request-{number}", "note": note}
        self.answer(number, "done")
        self._next.put_nowait([EventsAppended(key, (event("stacks", NOW, **facts),))])

    def _renamed(self, change: Change) -> Change:
        if isinstance(change, AttemptFound):
            return change.replace(directory=change.directory.replace(str(self.directory), SHOWN_AS))
        return change

    def _log(self, key: AttemptKey) -> Path:
        directory = self._reader.attempt_directory(key)
        return Path(log_path(directory or "/nonexistent"))

    async def log_size(self, key: AttemptKey) -> int:
        return (await self.log_file(key)).size

    async def log_file(self, key: AttemptKey) -> LogFile:
        log = self._log(key)
        return LogFile(log.stat().st_size, log.stat().st_ino) if log.exists() else LogFile(0, 0)

    async def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        with self._log(key).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    async def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        directory = self._reader.attempt_directory(key)
        try:
            return metrics.records(metrics.tail(directory or "/nonexistent", most))
        except OSError as error:
            raise SourceError(f"the history cannot be read: {error.strerror}") from None

    async def read_idle(
        self, keys: Sequence[AttemptKey], since: Sequence[float], lines: int
    ) -> Mapping[AttemptKey, Sequence[tuple[float, float, float]]]:
        self.idle_asked.update(keys)
        places = [self._reader.attempt_directory(key) or "/nonexistent" for key in keys]
        return {key: idle.idle_spans(place, begin, lines)
                for key, place, begin in zip(keys, places, since, strict=True)}

    async def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        return stacks.dumps(stacks.newest(self._reader.attempt_directory(key) or "/nonexistent", most))

    async def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> AsyncIterator[Part]:
        self.asked.append((operation, facts))
        names = [LogName(str(self._log(key).parent), True, shift) for key, shift in zip(keys, shifts, strict=True)]
        async for part in answers(self._engine, operation, names, facts):
            yield part

    async def request(
        self, key: AttemptKey, command: str, *, seconds: float | None = None, signal: str | None = None
    ) -> str:
        self.requests.append((key, command, seconds))
        return f"request-{len(self.requests) - 1}"

    async def withdraw(self, key: AttemptKey, request: str) -> bool:
        self.withdrawn.append(request)
        return True

    async def shell(self, key: AttemptKey, command: Sequence[str] = (), label: str = "") -> ShellPlan:
        if self.plan is None:
            raise SourceError("rank 2 ran on gpu-02; type: ssh gpu-02")
        return self.plan

    async def close(self) -> None:
        self.closed = True
        self._next.put_nowait(None)


def app_on(directory: Path, theme: str = "trainwatch-dark", **options: Any) -> TrainwatchApp:
    """An app on a run directory, at the moment of all builders."""
    source = StillSource(directory, **{k: options.pop(k) for k in ("problem",) if k in options})
    return TrainwatchApp(source, clock=lambda: NOW, theme_name=theme, **options)


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until the app shows all that is known, and has nothing left to do."""

    def settled() -> bool:
        app = pilot.app
        assert isinstance(app, TrainwatchApp)
        following = app.following
        if following is not None and not (following.loaded or following.problem):
            return False
        if not getattr(app.screen, "is_complete", True):
            return False
        if any(pane.finder.is_busy for pane in app.screen.query(LogPane) if pane.is_mounted):
            return False
        return not app.is_behind and all(view.is_settled for view in app.screen.query(LogView))

    await wait_for(pilot, settled)
    await pilot.pause()
    await wait_for(pilot, settled)  # what was left to do may have led to more


async def wait_for(pilot: Pilot[Any], condition: Callable[[], object], timeout: float = 20.0) -> None:
    """Let the app work until something is true."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {condition}"
        await pilot.pause(0.01)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other, each when the app has shown what the one before did."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def post(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys as a terminal sends what was typed fast: none waits for what another one does."""
    for key in keys:
        pilot.app.post_message(Key(key, key_to_character(key)))


def notes(pilot: Pilot[Any]) -> str:
    """What the app has told lately, a message a line."""
    return "\n".join(note.message for note in pilot.app._notifications)


def text_of(widgets: Iterable[Any]) -> str:
    """What some line-API widgets show, as lines of text."""
    return "\n".join(
        "".join(segment.text for segment in widget.render_line(y)).rstrip()
        for widget in widgets for y in range(widget.size.height)
    )


def screen_text(pilot: Pilot[Any]) -> str:
    """What the whole screen shows, as lines of text."""
    return "\n".join(strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips())
