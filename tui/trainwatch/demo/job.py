"""The demo's job: its workers, each under the launcher, from their start to the last one's end."""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trainwatch_launcher
from trainwatch_launcher.rundir import files, paths, records, state

WORKER = Path(__file__).parent / "worker"
TRAIN = "train.py"
STEP_TIME = 0.1
BATCH_SIZE = 16
SETUP_TIME = 1.0
"""Seconds from the start to the first step, roughly."""
STOP_TIMEOUT = 10.0
FOREIGN = ("TRAINWATCH_", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI", "JOB_COMPLETION_INDEX")
"""What would tell a worker that it belongs to another job, when the demo runs inside one."""


class DemoError(Exception):
    """The demo cannot go on; the message is one line for a person."""


@dataclass(frozen=True)
class Plan:
    """What the job is to do."""

    ranks: int = 4
    fail_after: float | None = 30.0
    """Seconds until one rank meets a damaged record; None: train to the end."""
    steps: int = 600
    hold: float = 600.0
    seed: int = 1

    @property
    def failing_rank(self) -> int | None:
        """The rank that will fail by itself, so that the others fail because of it."""
        return None if self.fail_after is None else min(2, self.ranks - 1)

    @property
    def damaged_record(self) -> int:
        """The record that is cut short: the one that is read after `fail_after` seconds."""
        steps = max(1.0, ((self.fail_after or 0.0) - SETUP_TIME) / STEP_TIME)
        return int(steps) * BATCH_SIZE + 5

    def arguments(self) -> list[str]:
        """The training script's arguments, the same on all ranks."""
        steps = self.steps
        damage = []
        if self.failing_rank is not None:
            damage = [f"--damage={self.failing_rank}:{self.damaged_record}"]
            steps = max(steps, self.damaged_record // BATCH_SIZE + 1)
        return [f"--steps={steps}", f"--batch-size={BATCH_SIZE}", f"--step-time={STEP_TIME}", f"--seed={self.seed}",
                *damage]


def beside_python(name: str) -> str | None:
    """The path of a program that lies beside our own Python; None when it is not there."""
    path = Path(sys.executable).parent / name
    return str(path) if os.access(path, os.X_OK) else None


def launcher() -> list[str]:
    """How to start the launcher: the script beside our Python, else the package that we are using ourselves."""
    script = beside_python("trainwatch-launch")
    if script is not None:
        return [script]
    package = Path(trainwatch_launcher.__file__).parent
    return [sys.executable, "-I", "-X", "utf8", str(package / "__main__.py")]


def make_run_directory(root: Path) -> Path:
    """A new directory under `root`, named by the time. Raises DemoError."""
    name = time.strftime("demo-%Y%m%d-%H%M%S")
    try:
        root.mkdir(parents=True, exist_ok=True)
        for number in range(1, 100):
            path = root.resolve() / (name if number == 1 else f"{name}-{number}")
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
                return path
    except OSError as error:
        raise DemoError(f"cannot make a run in {root}: {error.strerror}; choose another place with --root") from None
    raise DemoError(f"{root / name} and 99 like it exist already")


class Job:
    """The workers of one demo. `start` starts them, `close` leaves none behind."""

    def __init__(self, plan: Plan, run_directory: Path) -> None:
        self.plan = plan
        self.run_directory = run_directory
        self.work = run_directory / "job"
        """The workers' working directory: the training script, shards and checkpoints, and what each launcher said."""
        self.launchers: list[subprocess.Popen[bytes]] = []
        self._port = socket.socket()

    def start(self) -> None:
        """Start all workers. Raises DemoError."""
        # Held, but not listened on, for as long as the job lives: rank 0 binds it too, and nobody else can take it.
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("127.0.0.1", 0))
        try:
            shutil.copytree(WORKER, self.work, ignore=shutil.ignore_patterns("__*__*"))
            for rank in range(self.plan.ranks):
                self.launchers.append(self._start_rank(rank))
        except OSError as error:
            raise DemoError(f"cannot start the workers: {error}") from None

    def _start_rank(self, rank: int) -> subprocess.Popen[bytes]:
        command = [
            *launcher(), f"--run-dir={self.run_directory}", f"--run-id={self.run_directory.name}", f"--rank={rank}",
            f"--world-size={self.plan.ranks}", f"--hold={self.plan.hold:g}",
            "--", "python3" if beside_python("python3") else sys.executable, TRAIN, *self.plan.arguments(),
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        environment.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(self.plan.ranks),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self._port.getsockname()[1]),
            PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            PYTHONUTF8="1", PYTHONDONTWRITEBYTECODE="1",
        )
        with self.console(rank).open("wb") as console:
            # In a session of its own, so that ctrl-C in the viewer's terminal is not ctrl-C for the training.
            return subprocess.Popen(command, cwd=self.work, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=console, stderr=subprocess.STDOUT, start_new_session=True)

    def console(self, rank: int) -> Path:
        """Where a worker's console goes; a platform would keep it."""
        return self.work / f"console-{rank}.txt"

    def wait_visible(self, timeout: float = 15.0) -> None:
        """Wait until the run can be watched. Raises DemoError when a launcher ends before that."""
        deadline = time.monotonic() + timeout
        while any(self.status(rank) is None for rank in range(self.plan.ranks)):
            for rank, process in enumerate(self.launchers):
                if process.poll() is not None and self.status(rank) is None:
                    raise DemoError(f"the launcher of rank {rank} ended at once: {self._last_words(rank)}")
            if time.monotonic() > deadline:
                raise DemoError(f"the launchers did not start in {timeout:.0f} s; see {self.work}/console-*.txt")
            time.sleep(0.02)

    def _last_words(self, rank: int) -> str:
        lines = self.console(rank).read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing")

    def status(self, rank: int) -> records.Status | None:
        """What a rank's launcher wrote last; None when it has not written yet."""
        attempt = self.run_directory / paths.rank_name(rank) / paths.attempt_name(1)
        try:
            return files.read_record(records.Status, str(attempt / paths.STATUS))
        except (OSError, ValueError):
            return None

    def watch(self, say: Callable[[str], None]) -> None:
        """Wait until every worker has ended or is held, and say what becomes of each."""
        pending = set(range(self.plan.ranks))
        while pending:
            for rank in sorted(pending):
                status = self.status(rank)
                is_gone = self.launchers[rank].poll() is not None
                held = status is not None and state.state_of(status, time.time()) == state.HELD
                if is_gone or held:
                    pending.remove(rank)
                    code = status.exit_code if status is not None else self.launchers[rank].returncode
                    say(f"rank {rank}: exit code {code}{', held' if held else ''}")
            time.sleep(0.1)

    def wait(self) -> None:
        """Wait until every launcher has ended by itself."""
        for process in self.launchers:
            process.wait()

    def alive(self) -> list[int]:
        """Process ids of the launchers that are there: ending one ends its training or its hold."""
        return [process.pid for process in self.launchers if process.poll() is None]

    def went_as_planned(self) -> bool:
        """Whether all launchers ended as they should: all with 0, or one rank with 1 and all others failed too."""
        codes = [process.poll() for process in self.launchers]
        failing = self.plan.failing_rank
        if failing is None:
            return not any(codes)
        return codes[failing] == 1 and all(code is not None and code > 0 for code in codes)

    def close(self) -> None:
        """End every worker that is there: SIGTERM ends a hold at once, and reaches the training of one that runs."""
        for process in self.launchers:
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT
        for rank, process in enumerate(self.launchers):
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._kill(rank, process)
        self._port.close()

    def leave(self) -> None:
        """Let the workers go on by themselves; they are no longer ours to end."""
        self.launchers = []

    def _kill(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        status = self.status(rank)
        process.kill()
        process.wait()
        if status is not None and status.pid is not None and status.exit_code is None:
            with contextlib.suppress(OSError):
                os.killpg(status.pid, signal.SIGKILL)
