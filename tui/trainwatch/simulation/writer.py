"""Writes a simulated run: what so many launchers would have written, up to now."""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwatch.simulation import texts
from trainwatch.simulation.plan import Moment, Plan, moment
from trainwatch_launcher.diagnosis.diagnose import diagnose
from trainwatch_launcher.diagnosis.facts import Facts
from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.gpus import IDLE, metrics
from trainwatch_launcher.rundir.records import INDEX_RECORD, RunInfo, Status, event

METRICS_EVERY = 10.0
STEP = 1.0
"""Seconds between two looks at a rank."""


@dataclass(frozen=True)
class Place:
    """Where one rank is written."""

    rank: int
    host: str
    run: Path

    def path(self, name: str) -> str:
        """A file of its attempt."""
        return str(self.run / paths.rank_name(self.rank) / paths.attempt_name(1) / name)


class Writer:
    """One rank's files. `advance` writes what happened since the last call."""

    def __init__(self, plan: Plan, place: Place, run_id: str, began: float) -> None:
        self.plan, self.place, self.began = plan, place, began
        paths.make_directories(str(place.run), place.path(paths.CONTROL), 0o700)
        self._at = 0.0
        self._size = self._lines = 0
        self._phase = ""
        self._measured = METRICS_EVERY
        self._printed = 0
        self._gpu_time = {"": 0.0, "idle": 0.0, "setup": 0.0, "training": 0.0, "held": 0.0}
        self.status = Status(
            time=began, run_id=run_id, rank=place.rank, local_rank=place.rank % plan.per_host, world_size=plan.ranks,
            host=place.host, launcher_pid=100 + place.rank, pid=20_000 + place.rank, started=began, phase="Start",
            phase_since=began, clock_offset=0.0,
        )  # fmt: skip
        self.status.extra["simulated"] = True
        facts: dict[str, Any] = {
            "argv": ["python", "train.py"], "cwd": "/job", "pid": self.status.pid, "rank": place.rank, "attempt": 1,
            "launcher_pid": self.status.launcher_pid, "local_rank": self.status.local_rank, "host": place.host,
            "world_size": plan.ranks, "run_id": run_id, "user": "simulated", "uid": 0, "simulated": True,
        }  # fmt: skip
        self._events = [event("start", began, **facts)]
        self._events.append(event("phase", began, name="Start", offset=0, source="launcher"))
        if plan.gpus:
            rows = gpu_rows(plan, place.rank, moment(plan, place.rank, 0.0))
            known = [{name: row[name] for name in ("index", "uuid", "name", "memory_total")} for row in rows]
            self._events.append(event("gpus", began, gpus=known, driver="550.54.15", cuda="12.4"))

    def advance(self, until: float) -> None:
        """Write all that happened up to `until` seconds after the run's start."""
        text: list[str] = []
        index: list[bytes] = []
        history: list[bytes] = []
        while self._at + STEP <= until and self.status.ended is None:
            self._at += STEP
            when = self.began + self._at
            before = len(text)
            if self.status.exited is None:
                self._second(text, history, when)
            self._count(when)
            if len(text) > before:
                index.append(struct.pack(INDEX_RECORD, when, self._size, self._lines))
                added = "".join(text[before:])
                self._size += len(added.encode())
                self._lines += added.count("\n")
                last = added.rstrip("\n").rpartition("\n")[2]
                self._set(last_output=when, last_line=last[:200].strip(), output_lines=self._lines)
        self._set(time=self.began + self._at, output_bytes=self._size)
        self._write("".join(text).encode(), b"".join(index), b"".join(history))

    def _second(self, text: list[str], history: list[bytes], when: float) -> None:
        """One second of a command that runs."""
        if self._fails(text, when):
            return
        now = moment(self.plan, self.place.rank, self._at)
        if now.phase != self._phase:
            self._phase = now.phase
            since = self.began + now.phase_since
            self._events.append(event("phase", since, name=now.phase, offset=self._size, source="marker"))
            text.append(texts.marker(now.phase))
        self._set(phase=now.phase, phase_since=self.began + now.phase_since, phase_count=now.phase_count,
                  gpus=gpu_rows(self.plan, self.place.rank, now))  # fmt: skip
        if not now.is_waiting:
            for _ in range(self.plan.lines):
                self._printed += 1
                text.append(texts.other_line(self.place.rank, when, self._printed))
            if now.step and now.step != self.status.step:
                text.append(texts.step_line(self.plan, now, when))
                self._progress(now, when)
        if self._at >= self._measured:
            self._measured += METRICS_EVERY
            history.append(files.encode(metrics(when, METRICS_EVERY, **self._sample(now))))

    def _progress(self, now: Moment, when: float) -> None:
        is_number = not math.isnan(now.loss)
        tokens = 512 * 4096 / now.step_time
        self._set(
            step=now.step, total=self.plan.steps, ms_per_iter=round(now.step_time * 1000, 1), grad_norm=0.731,
            loss=round(now.loss, 4) if is_number else None, loss_text="" if is_number else "nan", lr=1.5e-4,
            loss_bad_since=None if is_number else self.status.loss_bad_since or now.step,
            tokens_per_s=round(tokens), eta_s=round((self.plan.steps - now.step) * now.step_time),
            samples=float(now.step * 512), progress_format="megatron-lm", progress_since=when,
            first_step=self.status.first_step or when,
        )  # fmt: skip

    def _sample(self, now: Moment) -> dict[str, Any]:
        gpus = [
            {"index": row["index"], "util": [float(now.util), 100.0], "memory_used": [float(now.memory)] * 2,
             "power": [now.power, now.power + 30], "temperature": [float(now.temperature)] * 2}
            for row in gpu_rows(self.plan, self.place.rank, now)
        ]  # fmt: skip
        if not now.step:
            return {"gpus": gpus}
        known = {"step": now.step, "ms_per_iter": self.status.ms_per_iter, "tokens_per_s": self.status.tokens_per_s}
        if not math.isnan(now.loss):
            known["loss"] = round(now.loss, 4)
        return {"gpus": gpus, "progress": known}

    def _fails(self, text: list[str], when: float) -> bool:
        """Whether the command ends in this second, by its own fault or because another one did."""
        first = self.plan.first_failure()
        if first is None or self._at < first.after:
            return False
        if first.rank == self.place.rank:
            said, reason = texts.failure(self.plan, self.place.rank, first.fault, when)
            code = texts.CODES[first.fault]
        elif self._at >= first.after + self.plan.peers_fail_after * (1 + 0.1 * (self.place.rank % 7)):
            said, reason = texts.collateral(self.place.rank, self.status.step or 0, when, self.plan)
            code = 134
        else:
            return False
        text.append(said)
        self._end(code, reason, when, said)
        return True

    def _end(self, code: int, reason: str, when: float, said: str) -> None:
        """The command ends, having said something last, and its launcher says why."""
        signal = texts.SIGNALS.get(code)
        number = code - 128 if code > 128 else None
        why = diagnose(said.encode(), Facts(exit_code=code, signal=number)).at(self._lines, self._size)
        until = when + self.plan.hold
        self._events += [
            event("phase", when, name="Drain", offset=self._size, source="launcher"),
            event("exit", when, code=code, signal=signal, duration=when - self.began, reason=reason, oom_kills=0,
                  output_bytes=self._size, diagnosis=why.as_json()),
            event("hold", when, until=until, seconds=self.plan.hold, code=code),
        ]  # fmt: skip
        self._set(exited=when, exit_code=code, exit_signal=number, reason=reason, hold_until=until)
        self._set(gpus=[{**row, "util": 0, "power": 95.0} for row in self.status.extra.get("gpus", [])])

    def _count(self, when: float) -> None:
        """A second more on the bill."""
        gpus, kinds = self.plan.gpus, [""]
        if self.status.exited is not None:
            kinds += ["held", "idle"]
        else:
            now = moment(self.plan, self.place.rank, self._at)
            kinds += ["training" if now.step else "setup", *(["idle"] if now.util < IDLE else [])]
        for kind in kinds:
            self._gpu_time[kind] += gpus * STEP
        if gpus:
            self._set(**{f"gpu_seconds_{kind}" if kind else "gpu_seconds": t for kind, t in self._gpu_time.items()})

    def _set(self, **facts: Any) -> None:
        for name, value in facts.items():
            if name == "gpus":
                self.status.extra[name] = value
            else:
                setattr(self.status, name, value)

    def _write(self, text: bytes, index: bytes, history: bytes) -> None:
        events = b"".join(map(files.encode, self._events))
        self._events.clear()
        written = {paths.OUTPUT: text, paths.INDEX: index, paths.EVENTS: events, paths.METRICS: history}
        for name, data in written.items():
            if data:
                fd = files.open_append(self.place.path(name))
                try:
                    files.write_all(fd, data)
                finally:
                    os.close(fd)
        files.replace_file(self.place.path(paths.STATUS), self.status)


def gpu_rows(plan: Plan, rank: int, now: Moment) -> list[dict[str, Any]]:
    """The GPUs of a rank as its status has them."""
    first = rank % plan.per_host * plan.gpus
    hot = now.temperature >= 84
    return [
        {"index": first + number, "uuid": f"GPU-{rank // plan.per_host:06d}-{first + number:04d}",
         "name": "NVIDIA H100 80GB HBM3", "util": now.util, "memory_used": now.memory, "memory_total": 80 << 30,
         "power": round(now.power, 1), "power_limit": 700.0, "temperature": now.temperature,
         "clock": 1410 if hot else 1980, "throttle": ["hw_thermal"] if hot else []}
        for number in range(plan.gpus)
    ]  # fmt: skip


def begin(directory: Path, plan: Plan, began: float) -> list[Writer]:
    """Make the run directory and its ranks. Raises OSError, FileExistsError when there is a run already."""
    run_id = directory.resolve().name
    directory.parent.mkdir(parents=True, exist_ok=True)
    paths.make_directory(str(directory), 0o700)
    info = RunInfo(run_id=run_id, created=began, world_size=plan.ranks, command=["python", "train.py"])
    info.extra["simulated"] = True
    if not files.create_once(str(directory / paths.RUN_FILE), info):
        raise FileExistsError(17, "there is a run already")
    width = max(2, len(str(max(0, plan.ranks - 1) // plan.per_host)))
    hosts = [f"gpu-{rank // plan.per_host:0{width}d}" for rank in range(plan.ranks)]
    return [Writer(plan, Place(rank, host, directory), run_id, began) for rank, host in enumerate(hosts)]
