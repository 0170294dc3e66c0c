"""The launcher as a real process, as a worker's entry command starts it, and what it left in its run directory."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.waiting import wait_until
from trainwatch_launcher.rundir import files, paths, records

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "launcher" / "trainwatch_launcher" / "__main__.py"


class Launch:
    """One launcher process and its attempt's files. `code`, `out` and `err` are there once `wait` has returned."""

    def __init__(self, process: subprocess.Popen[bytes], run: Path, rank: int) -> None:
        self.process = process
        self.run = run
        self.rank = rank
        self.code: int | None = None
        self.out = b""
        self.err = b""

    def wait(self, timeout: float = 60.0) -> Launch:
        """Wait for the launcher's end; its output is read meanwhile."""
        self.out, self.err = self.process.communicate(timeout=timeout)
        self.code = self.process.returncode
        return self

    def signal(self, number: int) -> None:
        """Send a signal to the launcher, as a platform would."""
        self.process.send_signal(number)

    def attempt(self, number: int = 1) -> Path:
        """The directory of one of this rank's attempts."""
        return self.run / paths.rank_name(self.rank) / paths.attempt_name(number)

    def log(self, attempt: int = 1) -> bytes:
        """The command's output as the launcher kept it; empty before there is any."""
        try:
            return (self.attempt(attempt) / paths.OUTPUT).read_bytes()
        except FileNotFoundError:
            return b""

    def events(self, kind: str = "", attempt: int = 1) -> list[records.Event]:
        """The attempt's events, all or those of one kind."""
        found = files.LineFile(str(self.attempt(attempt) / paths.EVENTS)).read(records.Event)
        return [event for event in found if kind in ("", event.event)]

    def status(self, attempt: int = 1) -> records.Status | None:
        """The attempt's snapshot; None before there is one."""
        try:
            return files.read_record(records.Status, str(self.attempt(attempt) / paths.STATUS))
        except FileNotFoundError:
            return None

    def phases(self) -> list[str]:
        """The phases that the command itself announced, in order."""
        return [event.text("name") for event in self.events("phase") if event.text("source") == "marker"]

    def wait_for_event(self, kind: str, timeout: float = 15.0) -> records.Event:
        """The first event of a kind, as soon as there is one."""
        return wait_until(lambda: self.events(kind), timeout, f"event {kind!r}")[0]

    def wait_for_output(self, text: bytes, timeout: float = 15.0) -> None:
        """Wait until `text` is in the log."""
        wait_until(lambda: text in self.log(), timeout, f"{text!r} in the log")

    def kill(self) -> None:
        """End the launcher and its command, whatever they are doing."""
        status = self.status() if self.process.poll() is None else None
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        if status is not None and status.pid is not None and status.exited is None:
            with contextlib.suppress(OSError):
                os.killpg(status.pid, signal.SIGKILL)


class Launcher:
    """Starts launchers for one test. Calling it runs one to its end; `start` returns while it runs.

    Everything goes to one run directory below the test's own, unless `options` name another place. `--hold 0` is added
    unless `options` say otherwise, so that a failing command does not hold the test. The environment is clean: what a
    test needs, it names. A `rank` is given as an option, unless `env` has RANK.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run = directory / "run"
        self._launches: list[Launch] = []

    def __call__(self, *command: str, timeout: float = 60.0, **how: object) -> Launch:
        """Run a command under the launcher, to the end."""
        return self.start(*command, **how).wait(timeout)  # type: ignore[arg-type]

    def start(
        self, *command: str, options: Sequence[str] = (), python: str = sys.executable, rank: int = 0,
        env: Mapping[str, str] | None = None, cwd: Path | None = None, before: Sequence[str] = (),
        stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE,
        new_session: bool = True,
    ) -> Launch:
        """Start a command under the launcher. `before` is what the launcher itself is started by, `unshare` say."""
        given = [option.partition("=")[0] for option in options]
        defaults = []
        if not {"--run-dir", "--root"} & set(given):
            defaults.append(f"--run-dir={self.run}")
        if "--hold" not in given:
            defaults.append("--hold=0")
        if rank and "RANK" not in (env or {}):
            defaults.append(f"--rank={rank}")
        argv = [*before, python, "-I", "-X", "utf8", str(MAIN), *defaults, *options, "--", *command]
        process = subprocess.Popen(argv, cwd=cwd or self.directory, env=self.environment(env), stdin=stdin,
                                   stdout=stdout, stderr=stderr, start_new_session=new_session)
        return self.adopt(process, rank)

    def adopt(self, process: subprocess.Popen[bytes], rank: int = 0) -> Launch:
        """Take care of a launcher that somebody else has started, in our run directory."""
        launch = Launch(process, self.run, rank)
        self._launches.append(launch)
        return launch

    @staticmethod
    def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a worker has at least, and what a test adds."""
        return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", **(more or {})}

    def close(self) -> None:
        """End all that still runs."""
        for launch in self._launches:
            launch.kill()
