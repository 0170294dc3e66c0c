"""Every record of the run directory: its fields, their units, and where the facts come from.

All times are Unix seconds on the worker's clock. Absent facts are None.
"""
from __future__ import annotations

from trainwatch_launcher.rundir.record import FORMAT, Record, is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


INDEX_RECORD = "<dQQ"
"""One record of output.index, as `struct` writes it: time, byte offset, newlines before that offset."""


LINE_UNKNOWN = (1 << 64) - 1
"""The newline count of an index record that nobody had time to count."""


class RunInfo(Record):
    """run.json: what is the same for all workers. Written once, by whichever launcher comes first."""

    format: int = FORMAT
    run_id: str
    created: float
    world_size: int | None = None
    """Number of ranks, where the first launcher knew it."""
    command: list[str] = []  # noqa: RUF012 - never changed in place
    """The first launcher's command, undecodable bytes as surrogate escapes."""
    launcher_version: str = ""


class Status(Record):
    """status.json: all that a table row needs, replaced at most once a second and at least every `interval` seconds."""

    format: int = FORMAT
    time: float
    """When this snapshot was taken; the heartbeat."""
    interval: float = 5.0
    """Longest time between two heartbeats, in seconds. Three of them without one: the attempt is lost."""

    run_id: str = ""
    rank: int = 0
    attempt: int = 1
    local_rank: int | None = None
    world_size: int | None = None
    host: str = ""

    launcher_pid: int | None = None
    pid: int | None = None
    """The command's process id, as the launcher sees it (its own PID namespace)."""
    started: float | None = None
    """When the command was spawned."""

    phase: str | None = None
    phase_since: float | None = None
    phase_count: int = 0
    stalled_since: float | None = None
    stacks: int | None = None
    """The newest of its files with stacks."""

    output_bytes: int = 0
    output_lines: int | None = None
    """None when a flood of output, or bytes that the log has lost, left lines uncounted."""
    last_output: float | None = None
    last_line: str = ""
    """The last line of output, at most 200 characters, control sequences removed."""

    step: int | None = None
    """As the newest line of progress states it; so are all values up to `reward` (see docs/progress.md)."""
    total: int | None = None
    epoch: float | None = None
    epochs_total: int | None = None
    loss: float | None = None
    loss_text: str = ""
    """`nan`, `inf` or `-inf` when the loss is none that JSON can hold; empty otherwise."""
    loss_bad_since: int | None = None
    """The step at which the loss was first seen to be no finite number; None while it is one."""
    lr: float | None = None
    grad_norm: float | None = None
    ms_per_iter: float | None = None
    eta_s: float | None = None
    """Seconds left, as printed."""
    tokens_per_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    samples_per_s: float | None = None
    samples_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    mfu: float | None = None
    """Per cent."""
    tokens: float | None = None
    samples: float | None = None
    reward: float | None = None
    progress_format: str = ""
    """The framework in whose words the newest progress was stated; empty when there is none."""
    progress_since: float | None = None
    """When the step (or, without one, any value of progress) last changed."""
    first_step: float | None = None
    """When the first step was seen: what came before is setup."""

    gpu_note: str = ""
    """Why nothing is known of GPUs, empty when all is well. The GPUs themselves: `gpus_of(status)`."""
    gpu_seconds: float | None = None
    """Seconds times GPUs of this attempt so far; None without GPUs. Of these: idle, setup, training, held."""
    gpu_seconds_idle: float | None = None
    gpu_seconds_setup: float | None = None
    gpu_seconds_training: float | None = None
    gpu_seconds_held: float | None = None

    exited: float | None = None
    exit_code: int | None = None
    """As a shell gives it: 128+n for signal n."""
    exit_signal: int | None = None
    reason: str = ""
    """The diagnosis in one line, empty when there is none."""

    hold_until: float | None = None
    ended: float | None = None
    end_code: int | None = None
    """What the launcher itself exited with."""

    warning: str = ""
    """The newest warning that still holds, empty when all is well."""
    clock_offset: float | None = None
    """File server's clock minus the worker's, in seconds, as measured at the start."""


class Event(Record):
    """One line of events.jsonl: a time, a name, and the facts that belong to it (see docs/run-directory.md)."""

    v: int = FORMAT
    time: float
    event: str

    def text(self, name: str) -> str:
        """The fact `name` as text; empty when it is absent or something else."""
        value = self.extra.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float | None:
        """The fact `name` as a number; None when it is absent or something else."""
        value = self.extra.get(name)
        return float(value) if isinstance(value, (int, float)) and is_a(value, "float") else None

    def integer(self, name: str) -> int | None:
        """The fact `name` as an integer; None when it is absent or something else."""
        value = self.extra.get(name)
        return value if isinstance(value, int) and is_a(value, "int") else None

    def texts(self, name: str) -> list[str]:
        """The fact `name` as a list of texts; what is no text in it is left out."""
        value = self.extra.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class Request(Record):
    """One file in control/: something that a person asks of a launcher."""

    format: int = FORMAT
    id: str
    command: str
    """`release`, `extend`, `signal`, `stop` or `stacks`."""
    by: str = ""
    """Who asks: user@host."""
    time: float = 0.0
    seconds: float | None = None
    """`extend`: how much longer to hold."""
    signal: str | None = None
    """`signal`: its name, with or without SIG."""


class PeerFailure(Record):
    """One file in the run's failures/: that a rank has failed, for the other launchers of the run."""

    format: int = FORMAT
    rank: int
    attempt: int = 1
    time: float
    """When its command ended, on the file server's clock."""
    host: str = ""
    kind: str = ""
    """The kind of its failure; empty when it could not be diagnosed."""
    summary: str = ""
    level: float = 2.5
    """How near to a cause that is: see `diagnosis.levels`."""
    mark: str = ""
    """The same for the same fault."""


def event(kind: str, time: float, /, **facts: Any) -> Event:
    """An event of this format's version: what happened, when, and its facts."""
    return Event(time=time, event=kind, **facts)
