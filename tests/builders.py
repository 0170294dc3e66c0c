"""Builds run directories and model states for tests, all around one fixed moment.

`RunBuilder` writes what launchers write, with rundir itself, so that a test says only what matters to it:

    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start().phase("Train").output(b"step 1\\n")
    run.rank(1).start().fail(1, reason="ValueError: boom", hold=600)
"""
from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from trainwatch.model.text import signal_name
from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.gpus import metrics
from trainwatch_launcher.rundir.records import Event, RunInfo, Status, event

NOW = 1_764_500_000.0
"""2025-11-30 10:53:20 UTC: the moment at which tests look."""
STARTED = NOW - 300.0
"""When ranks start unless a test says otherwise."""


class AttemptBuilder:
    """Writes one attempt's files; every method returns the builder, and leaves status.json up to date."""

    def __init__(self, directory: Path, status: Status) -> None:
        self.directory = directory
        self.status = status
        directory.mkdir(parents=True, exist_ok=True)
        (directory / paths.CONTROL).mkdir(exist_ok=True)

    @property
    def log(self) -> Path:
        return self.directory / paths.OUTPUT

    def set(self, **facts: Any) -> AttemptBuilder:
        """Change facts of status.json and write it."""
        self.status = self.status.replace(**facts)
        files.replace_file(str(self.directory / paths.STATUS), self.status)
        return self

    def event(self, kind: str, time: float = NOW, /, **facts: Any) -> AttemptBuilder:
        """Append one event."""
        return self.raw_event(files.encode(event(kind, time, **facts)))

    def raw_event(self, line: bytes) -> AttemptBuilder:
        """Append bytes to events.jsonl as they are."""
        with (self.directory / paths.EVENTS).open("ab") as out:
            out.write(line)
        return self

    def start(self, time: float = STARTED, *, argv: tuple[str, ...] = ("python", "train.py"), cwd: str = "/job",
              pid: int = 4242, launcher_pid: int = 4241, **more: Any) -> AttemptBuilder:
        """The command was spawned."""
        s = self.status
        self.event(
            "start", time, argv=list(argv), cwd=cwd, pid=pid, launcher_pid=launcher_pid, rank=s.rank, attempt=s.attempt,
            local_rank=s.local_rank, world_size=s.world_size, host=s.host, run_id=s.run_id, user="me", uid=0,
            launcher_version="0.1", python="3.11.7", clock_offset=s.clock_offset, sources={"rank": "RANK"}, **more,
        )  # fmt: skip
        self.phase("Start", time, source="launcher")
        return self.set(pid=pid, launcher_pid=launcher_pid, started=time)

    def phase(self, name: str, time: float = NOW - 60, *, source: str = "marker") -> AttemptBuilder:
        """The command said what it is doing."""
        offset = self.log.stat().st_size if self.log.exists() else 0
        self.event("phase", time, name=name, offset=offset, source=source)
        if source == "marker":
            self.set(phase=name, phase_since=time, phase_count=self.status.phase_count + 1)
        return self

    def output(self, data: bytes, time: float = NOW - 2, *, index: bool = True) -> AttemptBuilder:
        """The command printed something; an index record says when."""
        start = self.log.stat().st_size if self.log.exists() else 0
        if index:
            with (self.directory / paths.INDEX).open("ab") as out:
                out.write(struct.pack("<dQQ", time, start, self.status.output_lines or 0))
        with self.log.open("ab") as out:
            out.write(data)
        last = data.rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
        lines = (self.status.output_lines or 0) + data.count(b"\n")
        return self.set(output_bytes=start + len(data), output_lines=lines, last_output=time, last_line=last[:200])

    def metrics(self, time: float, seconds: float = 10.0, /, **facts: Any) -> AttemptBuilder:
        """Append one line of history, as of `seconds` up to `time`."""
        with (self.directory / paths.METRICS).open("ab") as out:
            out.write(files.encode(metrics(time, seconds, **facts)))
        return self

    def exit(self, code: int, time: float = NOW - 30, *, signal: int | None = None, reason: str = "",
             diagnosis: dict[str, Any] | None = None) -> AttemptBuilder:
        """The command ended."""
        started = self.status.started or time
        name = signal_name(signal) if signal is not None else None
        self.event("exit", time, code=code, signal=name, duration=time - started, cpu_user=1.5, cpu_system=0.5,
                   max_rss=1 << 28, oom_kills=0, output_bytes=self.status.output_bytes, reason=reason,
                   output_lines=self.status.output_lines, diagnosis=diagnosis)  # fmt: skip
        return self.set(exited=time, exit_code=code, exit_signal=signal, reason=reason)

    def hold(self, seconds: float = 10_000.0, time: float = NOW - 30) -> AttemptBuilder:
        """The launcher holds the failed worker."""
        self.event("hold", time, until=time + seconds, seconds=seconds, code=self.status.exit_code)
        return self.set(hold_until=time + seconds)

    def end(self, time: float = NOW - 1, *, code: int | None = None) -> AttemptBuilder:
        """The launcher left."""
        code = self.status.exit_code if code is None else code
        self.event("end", time, code=code)
        return self.set(ended=time, end_code=code, time=time)

    def fail(self, code: int = 1, time: float = NOW - 30, *, signal: int | None = None, reason: str = "",
             hold: float | None = 10_000.0, diagnosis: dict[str, Any] | None = None) -> AttemptBuilder:
        """The command failed; with `hold` it is held for so many seconds, without it the launcher left."""
        self.exit(code, time, signal=signal, reason=reason, diagnosis=diagnosis)
        return self.hold(hold, time) if hold is not None else self.end(time + 0.1)

    def finish(self, time: float = NOW - 30) -> AttemptBuilder:
        """The command ended well and the launcher left."""
        return self.exit(0, time).end(time + 0.1)


class RunBuilder:
    """Writes one run directory."""

    def __init__(self, directory: Path, run_id: str = "run-1", world_size: int | None = 4,
                 command: tuple[str, ...] = ("python", "train.py")) -> None:
        self.directory = directory
        self.info = RunInfo(run_id=run_id, created=STARTED, world_size=world_size, command=list(command))
        directory.mkdir(parents=True, exist_ok=True)
        files.create_once(str(directory / paths.RUN_FILE), self.info)

    def rank(self, rank: int, attempt: int = 1, *, host: str | None = None, time: float = NOW,
             clock_offset: float | None = 0.0) -> AttemptBuilder:
        """An attempt of a rank, with a status whose heartbeat is `time`."""
        directory = self.directory / paths.rank_name(rank) / paths.attempt_name(attempt)
        status = Status(
            time=time, run_id=self.info.run_id, rank=rank, attempt=attempt, world_size=self.info.world_size,
            host=host if host is not None else f"gpu-{rank:02d}", clock_offset=clock_offset,
        )  # fmt: skip
        return AttemptBuilder(directory, status).set()

    def local(self, rank: int, local_rank: int, attempt: int = 1, local_attempt: int = 1) -> AttemptBuilder:
        """An attempt of a nested launcher inside a rank's attempt, which is made when absent."""
        parent = self.directory / paths.rank_name(rank) / paths.attempt_name(attempt)
        directory = parent / paths.local_name(local_rank) / paths.attempt_name(local_attempt)
        status = Status(
            time=NOW, run_id=self.info.run_id, rank=rank, attempt=local_attempt, local_rank=local_rank,
            world_size=self.info.world_size, host=f"gpu-{rank:02d}", clock_offset=0.0,
        )  # fmt: skip
        return AttemptBuilder(directory, status).set()


GIB = 1 << 30


def gpu(rank: int, index: int, **facts: Any) -> dict[str, Any]:
    """One GPU of a rank as status.json tells it: an H100 at work."""
    return {
        "index": index, "uuid": f"GPU-{rank:04d}-{index}", "name": "NVIDIA H100 80GB HBM3", "util": 97 - index % 3,
        "memory_used": (68 + index % 4) * GIB, "memory_total": 80 * GIB, "power": 640.0 + index, "power_limit": 700.0,
        "temperature": 58 + index, "clock": 1755, "throttle": ["sw_power_cap"], "nvlink_rx": 9e10, "nvlink_tx": 9e10,
        "pcie_rx": 3e9, "pcie_tx": 1e9, **facts,
    }  # fmt: skip


def training_at(step: int, time: float = NOW, *, loss: float | str = 2.0, **facts: Any) -> dict[str, Any]:
    """What status.json says of progress at a step; `loss` may be "nan"."""
    text = loss if isinstance(loss, str) else ""
    return {
        "step": step, "total": 48_000, "loss": None if text else loss, "loss_text": text, "tokens_per_s": 412_000.0,
        "lr": 3e-4, "grad_norm": 0.82, "tflops_per_gpu": 412.0, "mfu": 41.7, "progress_format": "megatron-lm",
        "progress_since": time, "first_step": STARTED + 60, **facts,
    }  # fmt: skip


def with_history(attempt: AttemptBuilder, lines: int = 180, gpus: int = 8, until: float = NOW) -> AttemptBuilder:
    """An hour, or as many lines as are wanted, of a training that goes on as it should: loss falls, GPUs are busy."""
    rank = attempt.status.rank
    for number in range(lines):
        wave = (number * 7 + rank * 3) % 11 - 5
        pause = number % 60 in (58, 59)
        busy = {"util": [4.0 if pause else 96.0 + wave / 3, 100.0], "power": [180 if pause else 640 + wave, 690]}
        attempt.metrics(
            until - 10.0 * (lines - number), progress={
                "step": 8 * number + 8, "loss": round(1.8 + 2.2 / (1 + number / 20) + wave / 200, 4),
                "ms_per_iter": 1240.0 + wave * 6 + rank * 4, "tokens_per_s": 412_000.0 - wave * 900,
            },
            gpus=[{"index": index, **busy} for index in range(gpus)],
        )  # fmt: skip
    return attempt


def crashed_run(directory: Path) -> RunBuilder:
    """Four ranks: 2 failed first with a real error and is held, the others were killed for it; 1 is held no more."""
    run = RunBuilder(directory)
    for rank in range(4):
        log = b"".join(b"step %d loss %.3f\n" % (step, 2.0 / (step + 1)) for step in range(200))
        run.rank(rank).start().phase("Train", NOW - 240).output(log, NOW - 100)
    boom = b"Traceback (most recent call last):\n  File \"train.py\", line 7\nValueError: loss is nan\n"
    at(run, 2).output(boom, NOW - 62).fail(1, NOW - 60, reason="ValueError: loss is nan", hold=600)
    at(run, 0).fail(143, NOW - 55, signal=15, hold=600)
    at(run, 1).fail(143, NOW - 54, signal=15, hold=600).end()
    at(run, 3).fail(137, NOW - 53, signal=9, hold=600)
    return run


def at(run: RunBuilder, rank: int, attempt: int = 1) -> AttemptBuilder:
    """Go on with an attempt that was written before."""
    directory = run.directory / paths.rank_name(rank) / paths.attempt_name(attempt)
    return AttemptBuilder(directory, files.read_record(Status, str(directory / paths.STATUS)))


def read_events(directory: Path) -> list[Event]:
    """All events of an attempt's directory."""
    return files.LineFile(str(directory / paths.EVENTS)).read(Event)
