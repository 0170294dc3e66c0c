"""What the details of a rank say of its work: progress and GPUs, now and over time, as styled text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainwatch.model import gpus, history, naming, text
from trainwatch.model.history import Sample
from trainwatch.model.progress import Progress, loss_text, quantity, step_text, step_time_text, trouble_text
from trainwatch.model.rows import Row
from trainwatch.model.state import Attempt
from trainwatch.widgets import spark
from trainwatch.widgets.cells import GIB
from trainwatch.widgets.header import Part, fit_most, hanging
from trainwatch.widgets.logtext import clean
from trainwatch.widgets.states import WORKING
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.records import Status

LABEL = 12
BAR = 16
MIN_SPARK, MAX_SPARK = 6, 40
COLORS = {gpus.LOST: "bold $state-failed", gpus.ECC: "bold $state-failed", gpus.HOT: "$state-stalled",
          gpus.THROTTLED: "$state-stalled"}  # fmt: skip


def progress(attempt: Attempt, row: Row, samples: Sequence[Sample], now: float, width: int) -> list[Part]:
    """Each value of progress on a line, loss and step time with their course; then what the time went into."""
    known, status = attempt.progress, attempt.status
    if status is None or not known.known:
        return [("no progress yet in a format that is known: docs/progress.md", "$tw-muted")]
    room = max(MIN_SPARK, min(MAX_SPARK, width - LABEL - 24))
    trouble = trouble_text(known)
    lines: list[tuple[str, str, str, str]] = [
        ("step", step_text(known), _bar(known), ""),
        ("epoch", _epoch(known), "", ""),
        ("time left", text.duration(known.eta) if row.state in WORKING else "", "", ""),
        ("loss", loss_text(known.loss), _course(history.LOSS.of(samples).values or known.losses, room),
         "bold $state-failed" if trouble else "bold"),
        ("", trouble, "", "bold $state-failed"),
        ("step time", step_time_text(known.step_time), _course(history.STEP_TIME.of(samples).values, room, 0), ""),
        *((label, value, "", "") for label, value in _values(status)),
        *((label, value, "", "") for label, value in _time(attempt, row)),
        ("said by", status.progress_format, "", "$tw-muted"),
    ]
    parts: list[Part] = []
    for label, value, picture, style in lines:
        if value and picture:
            value = fit_most(clean(value), 22)
            parts += [(f"{label:<{LABEL}}", "$tw-muted"), (f"{value:<22}", style), (f"  {picture}\n", "$tw-accent")]
        elif value:
            parts += hanging(label, clean(value), LABEL, width, style)
    return parts


def _bar(known: Progress) -> str:
    share = known.share
    if share is None:
        return ""
    bar = spark.bar(share, BAR)
    return f"{bar}{spark.REST * (BAR - len(bar))} {share:.1%}"


def _epoch(known: Progress) -> str:
    if known.epoch is None or known.step is None:
        return ""  # without a step the epoch stands in its place
    return f"{known.epoch:.4g}" + (f" of {known.epochs}" if known.epochs else "")


def _course(values: Sequence[float], width: int, low: float | None = None) -> str:
    return spark.line(values, width, low) if len(values) > 1 else ""


def _values(status: Status) -> list[tuple[str, str]]:
    """What else the training prints, each with its unit."""
    said = [
        ("tokens/s", status.tokens_per_s, ""), ("", status.tokens_per_s_per_gpu, " tokens/s a GPU"),
        ("samples/s", status.samples_per_s, ""), ("", status.samples_per_s_per_gpu, " samples/s a GPU"),
        ("TFLOP/s", status.tflops_per_gpu, " a GPU"), ("MFU", status.mfu, " %"),
        ("tokens", status.tokens, " so far"), ("samples", status.samples, " so far"),
    ]  # fmt: skip
    rows = [(label, f"{quantity(value)}{unit}") for label, value, unit in said if value is not None]
    exact = [("learn. rate", status.lr), ("grad norm", status.grad_norm), ("reward", status.reward)]
    return [*rows, *((label, f"{value:.4g}") for label, value in exact if value is not None)]


def _time(attempt: Attempt, row: Row) -> list[tuple[str, str]]:
    """How the time and the GPUs' time divide into setup, training, idleness and hold."""
    status = attempt.status
    if status is None:
        return []
    split = ""
    if status.first_step is not None and status.started is not None and row.elapsed is not None:
        setup = max(0.0, min(row.elapsed, status.first_step - status.started))
        split = f"{text.duration(setup)} before the first step, {text.duration(row.elapsed - setup)} since"
    return [("time", split), ("GPU hours", _gpu_hours(status))]


def _gpu_hours(status: Status) -> str:
    if status.gpu_seconds is None:
        return ""
    parts = ((status.gpu_seconds_setup, "before the first step"), (status.gpu_seconds_training, "training"),
             (status.gpu_seconds_held, "held"), (status.gpu_seconds_idle, "idle"))  # fmt: skip
    told = [f"{_hours(seconds)} {what}" for seconds, what in parts if seconds]
    return f"{_hours(status.gpu_seconds)}" + (f": {', '.join(told)}" if told else "")


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.2f}" if hours < 1 else quantity(hours)


def gpu_lines(attempt: Attempt, row: Row, samples: Sequence[Sample], width: int) -> list[Part]:
    """A line for each GPU: busy, memory, power, temperature, clock; busy and power also over time."""
    each = attempt.gpus.each
    if not each:
        note = attempt.gpus.note or "nothing is known of GPUs"
        return [(clean(note), "$tw-muted")]
    names = [_name(gpu) for gpu in each]
    first = max(3, *(len(name) for name in names))
    fixed = first + 2 + 5 + 2 + 7 + 2 + 9 + 2 + 6 + 2 + 8
    room = width - fixed - 4
    busy = max(0, min(MAX_SPARK, room * 3 // 5))
    power = max(0, min(MAX_SPARK // 2, room - busy))
    busy, power = (busy if busy >= MIN_SPARK else 0), (power if power >= MIN_SPARK else 0)
    parts: list[Part] = [] if row.gpus.each else [("as it was last\n", "$tw-muted")]
    parts.append((
        f"{'GPU':<{first}}  {'busy':>5}{' ' * (busy + 2 if busy else 0)}  {'memory':>7}  {'power':>9}"
        f"{' ' * (power + 2 if power else 0)}  {'heat':>6}  {'clock':>8}\n", "$tw-muted"))  # fmt: skip
    for gpu, name in zip(each, names, strict=True):
        parts += _gpu(gpu, f"{name:<{first}}", samples, busy, power)
    return [*parts, *_held_back(each), *_links(each)]


def _name(gpu: Gpu) -> str:
    return ("?" if gpu.index is None else str(gpu.index)) + (f" {clean(gpu.mig)}" if gpu.mig else "")


def _gpu(gpu: Gpu, name: str, samples: Sequence[Sample], busy: int, power: int) -> list[Part]:
    ail = gpus.ail_of(gpu)
    color = COLORS.get(ail, "")
    which = gpu.index, gpu.mig
    percent = "" if gpu.util is None else f"{min(999, gpu.util)}%"
    parts: list[Part] = [(name, f"bold {color}".strip()), (f"  {percent:>5}", "")]
    if busy:
        drawn = spark.line(history.of_gpu(samples, which, "util").values, busy, 0, 100)
        parts.append((f"  {drawn:<{busy}}", "$tw-accent"))
    parts += [(f"  {_memory(gpu):>7}  {_power(gpu):>9}", "")]
    if power:
        top = gpu.power_limit or None
        drawn = spark.line(history.of_gpu(samples, which, "power").values, power, 0, top)
        parts.append((f"  {drawn:<{power}}", "$tw-accent"))
    degrees = "" if gpu.temperature is None else f"{gpu.temperature} °C"
    clock = "" if gpu.clock is None else f"{gpu.clock} MHz"
    parts += [(f"  {degrees:>6}", color if ail == gpus.HOT else ""), (f"  {clock:>8}\n", "")]
    for note, style in _notes(gpu):
        parts.append((f"{'':<{len(name)}}  {note}\n", style))
    return parts


def _memory(gpu: Gpu) -> str:
    if gpu.memory_used is None or gpu.memory_total is None:
        return ""
    return f"{min(gpu.memory_used / GIB, 9999):.0f}/{min(gpu.memory_total / GIB, 9999):.0f}G"


def _power(gpu: Gpu) -> str:
    if gpu.power is None:
        return ""
    return f"{gpu.power:.0f}/{gpu.power_limit:.0f} W" if gpu.power_limit else f"{gpu.power:.0f} W"


def _notes(gpu: Gpu) -> list[Part]:
    """What is not as it should be, each on a line of its own."""
    ail = gpus.ail_text(gpu)
    found: list[Part] = [(ail, COLORS.get(gpus.ail_of(gpu), ""))] if ail else []
    if gpu.ecc_corrected or gpu.remapped_corrected or gpu.remapped_uncorrected:
        rows = (gpu.remapped_corrected or 0) + (gpu.remapped_uncorrected or 0)
        found.append((f"{gpu.ecc_corrected or 0} corrected memory errors, {rows} rows replaced", "$tw-muted"))
    others = [process for process in gpu.processes() if process.ours is False]
    if others:
        memory = sum(process.memory or 0 for process in others) / GIB
        count = f"{len(others)} processes of others" if len(others) > 1 else "a process of others"
        found.append((f"{count} on it, with {memory:.1f} GiB", "$state-stalled"))
    return found


def _held_back(each: Sequence[Gpu]) -> list[Part]:
    """What keeps clocks below their highest and is normal under load: a line for each reason."""
    parts: list[Part] = []
    for reason in sorted({reason for gpu in each for reason in gpu.throttle} - gpus.THERMAL - gpus.BRAKES):
        held = [gpu.index for gpu in each if reason in gpu.throttle and gpu.index is not None]
        parts.append((f"{clean(reason)} holds back {naming.spans(held) or '?'}\n", "$tw-muted"))
    return parts


def _links(each: Sequence[Gpu]) -> list[Part]:
    """What goes over the links of all GPUs together."""
    said = []
    for name, to, back in (("NVLink", "nvlink_rx", "nvlink_tx"), ("PCIe", "pcie_rx", "pcie_tx")):
        pair = [[rate for gpu in each if (rate := getattr(gpu, side)) is not None] for side in (to, back)]
        if all(pair):
            said.append(f"{name} {quantity(sum(pair[0]) / 1e9)} in, {quantity(sum(pair[1]) / 1e9)} out GB/s")
    return [(" · ".join(said) + "\n", "$tw-muted")] if said else []
