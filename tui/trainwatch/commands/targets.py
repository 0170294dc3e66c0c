"""What a TARGET on the command line means, for all commands alike."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.config import load
from trainwatch.model.state import EMPTY, Run, apply
from trainwatch.sources import shells
from trainwatch.sources.base import Part, ShellPlan, SourceError
from trainwatch.targets import Directory, Named, parse
from trainwatch_launcher.reader import idle, log, metrics, stacks
from trainwatch_launcher.reader.attempt import log_path
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.reader.engine import Engine, EngineError, LogName
from trainwatch_launcher.reader.requests import RequestError, withdraw_request, write_request
from trainwatch_launcher.reader.runs import SHARING, Target, TargetError, find_runs, locate
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.rundir.stacks import Dump

if TYPE_CHECKING:
    from trainwatch.commands.remote import RemoteRun
    from trainwatch_launcher.reader.spans import Span

__all__ = ["Followed", "TargetError", "default_root", "find", "is_remote", "named", "run_directory"]


def default_root() -> Path:
    """Where runs are looked for when no TARGET is given: $TRAINWATCH_ROOT, else ./runs."""
    return Path(os.environ.get("TRAINWATCH_ROOT") or "runs")


def find(written: str | None) -> Target:
    """The run or the root of runs that a TARGET names; without one, the default root. Raises TargetError."""
    if written is not None:
        return locate(written)
    root = default_root()
    if not root.exists():
        where = f"$TRAINWATCH_ROOT, {root}," if os.environ.get("TRAINWATCH_ROOT") else "./runs"
        raise TargetError(f"no TARGET given, and {where} does not exist; name a run directory, or try: trainwatch demo")
    return locate(str(root))


def run_directory(written: str | None) -> Target:
    """The run that a TARGET names; of a root, its newest run, which is said on stderr. Raises TargetError."""
    if written is not None:
        meant = named(written)
        if not isinstance(meant.target, Directory):
            return Target(written)
        written = meant.target.path
    target = find(written)
    if not target.is_root:
        return target
    runs = find_runs(target.path)
    newest = next((run for run in runs if not run.problem), None)
    if newest is None:
        why = f": {runs[0].problem}" if runs else ""
        if runs and runs[0].is_closed:
            why += f"; {SHARING}"
        raise TargetError(f"{target.path}: none of its runs can be opened{why}")
    if len(runs) > 1:
        print(f"trainwatch: the newest of {len(runs)} runs: {newest.path}", file=sys.stderr)
    return Target(newest.path)


def named(written: str, hosts_file: str | None = None) -> Named:
    """What was written, with the user's configuration: its names and options. Raises TargetError."""
    return parse(written, load(), hosts_file)


def is_remote(target: Named) -> bool:
    """Whether a target needs a source of its own, and is no directory that we read ourselves."""
    return not isinstance(target.target, Directory)


class Followed:
    """A run that is read again when asked, without a screen. `target` is a directory, or what `named` understands;
    `logs` are files and directories that no launcher wrote, which are the run then.

    Raises TargetError for a run elsewhere, or logs, that cannot be read.
    """

    def __init__(self, target: str, hosts_file: str | None = None, logs: Sequence[str] = ()) -> None:
        self._remote: RemoteRun | None = None
        self._reader: Reader | None = None
        self._engine = Engine()
        self.run: Run = EMPTY
        if logs:
            from trainwatch.commands.remote import run_of_logs

            self._remote = run_of_logs(logs)
        elif is_remote(where := named(target, hosts_file)):
            from trainwatch.commands.remote import run_elsewhere

            self._remote = run_elsewhere(where)
        else:
            assert isinstance(where.target, Directory)
            self._reader = Reader(where.target.path)
        self.look()

    def look(self) -> Run:
        """Read what is new; returns the run as it is now."""
        if self._remote is not None:
            self.run = self._remote.look()
            return self.run
        assert self._reader is not None
        while True:
            self.run = apply(self.run, self._reader.poll())
            if not self._reader.behind:
                return self.run

    def look_at(self, key: AttemptKey) -> Run:
        """The same for one attempt alone, which costs next to nothing in a run of any size."""
        if self._reader is None:
            return self.look()
        directory = self.run.attempts[key].directory
        self.run = apply(self.run, self._reader.poll([os.path.join(directory, paths.STATUS)]))  # noqa: PTH118
        return self.run

    def request(self, key: AttemptKey, command: str, seconds: float | None = None) -> str:
        """Ask an attempt's launcher for something; returns the request's id. Raises SourceError."""
        if self._remote is not None:
            return self._remote.request(key, command, seconds)
        try:
            return write_request(self.run.attempts[key].directory, command, seconds)
        except RequestError as error:
            raise SourceError(str(error)) from None

    def log_size(self, key: AttemptKey) -> int:
        """Bytes in an attempt's output.log now. Raises SourceError."""
        if self._remote is not None:
            return self._remote.log_size(key)
        path = log_path(self.run.attempts[key].directory)
        try:
            return log.size(path)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from None

    def read_log(self, key: AttemptKey, offset: int, length: int) -> bytes:
        """Bytes of an attempt's output.log; fewer at its end. Raises SourceError."""
        if self._remote is not None:
            return self._remote.read_log(key, offset, length)
        path = log_path(self.run.attempts[key].directory)
        try:
            return log.read(path, offset, length)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from None

    def ask_logs(
        self, operation: str, keys: Sequence[AttemptKey], shifts: Sequence[float], **facts: Any
    ) -> Iterator[Part]:
        """Ask something of logs where they lie; see `trainwatch_launcher.reader.engine`. Raises SourceError."""
        if self._remote is not None:
            yield from self._remote.ask_logs(operation, keys, shifts, **facts)
            return
        attempts = self.run.attempts
        names = [LogName(attempts[key].directory, True, shift) for key, shift in zip(keys, shifts, strict=True)]
        try:
            yield from self._engine.ask(operation, names, facts, lambda: False)
        except EngineError as error:
            raise SourceError(str(error)) from None

    def is_part(self, key: AttemptKey) -> bool:
        """Whether a log is some lines of its file only, so that its bytes are not all its own."""
        return self._remote is not None and self._remote.is_part(key)

    def read_metrics(self, key: AttemptKey, most: int) -> Sequence[Metrics]:
        """The newest lines of an attempt's history, `most` bytes of them at most, by time. Raises SourceError."""
        if self._remote is not None:
            return self._remote.read_metrics(key, most)
        directory = self.run.attempts[key].directory
        try:
            return metrics.records(metrics.tail(directory, most))
        except OSError as error:
            raise SourceError(f"cannot read the history in {directory}: {error.strerror or error}") from None

    def read_stacks(self, key: AttemptKey, most: int) -> Sequence[Dump]:
        """The newest stacks of an attempt, newest first. Raises SourceError."""
        if self._remote is not None:
            return self._remote.read_stacks(key, most)
        directory = self.run.attempts[key].directory
        try:
            return stacks.dumps(stacks.newest(directory, most))
        except OSError as error:
            raise SourceError(f"cannot read the stacks in {directory}: {error.strerror or error}") from None

    def read_idle(self, keys: Sequence[AttemptKey], lines: int) -> Mapping[AttemptKey, Sequence[Span]]:
        """When the GPUs of some attempts were idle or at work; see `Source`. Raises SourceError."""
        if self._remote is not None:
            return self._remote.read_idle(keys, [0.0] * len(keys), lines)
        return {key: idle.idle_spans(self.run.attempts[key].directory, lines=lines) for key in keys}

    def withdraw(self, key: AttemptKey, request: str) -> bool:
        """Take a request back that nobody has answered; False when it was taken already. Raises SourceError."""
        if self._remote is not None:
            return self._remote.withdraw(key, request)
        try:
            return withdraw_request(self.run.attempts[key].directory, request)
        except RequestError as error:
            raise SourceError(str(error)) from None

    def shell(self, key: AttemptKey, command: tuple[str, ...] = ()) -> ShellPlan:
        """A shell, or `command`, for an attempt. Raises SourceError."""
        label = self.run.label(key)
        if self._remote is not None:
            return self._remote.shell(key, command, label)
        return shells.plan(self.run.attempts[key].directory, key, command, label)

    def close(self) -> None:
        """Leave the hosts, if there are any."""
        if self._remote is not None:
            self._remote.close()
