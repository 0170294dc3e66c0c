"""The line below the header: how far the run is, and the line below that: what is noteworthy about it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len

from trainwatch.model import text
from trainwatch.model.bill import GpuHours
from trainwatch.model.progress import Progress, loss_text, rate_text, step_text
from trainwatch.model.whole import Whole
from trainwatch.widgets import spark
from trainwatch.widgets.header import Part, fit_most

BAR, WIDE_BAR, SPARK = 8, 16, 12


def whole_parts(whole: Whole, width: int, hours: GpuHours | None = None, price: float | None = None) -> list[Part]:
    """Step, time left, loss, rate, GPUs, what they cost; what has no room is left out, the last first.

    `price`: of an hour of one GPU.
    """
    wide = width >= 110
    pieces = [
        _steps(whole, wide), _left(whole), _loss(whole.loss, wide), _rate(whole.progress), _gpus(whole, wide),
        _bill(hours, price),
    ]  # fmt: skip
    parts: list[Part] = [(" ", "")]
    used = 1
    for piece in pieces:
        length = sum(cell_len(part) for part, _ in piece)
        if piece and used + length + 2 <= width:
            parts += [*piece, ("   " if wide else "  ", "")]
            used += length + (3 if wide else 2)
    return parts


def _steps(whole: Whole, wide: bool) -> list[Part]:
    said = step_text(whole.progress)
    if not said:
        return []
    parts: list[Part] = [("step ", "$tw-muted")] if whole.progress.step is not None and wide else []
    parts.append((said, "bold"))
    share = whole.progress.share
    if share is not None:
        room = WIDE_BAR if wide else BAR
        bar = spark.bar(share, room)
        parts += [(f" {bar}", "$tw-accent"), (spark.REST * (room - len(bar)), "$tw-rule"), (f" {share:.0%}", "")]
    return parts


def _left(whole: Whole) -> list[Part]:
    eta = text.duration(whole.progress.eta)
    return [("eta ", "$tw-muted"), (eta, "")] if eta and whole.working else []


def _loss(progress: Progress, wide: bool) -> list[Part]:
    if progress.loss is None:
        return []
    said = loss_text(progress.loss)
    if not math.isfinite(progress.loss) or progress.usual_loss is not None:
        return [("loss ", "$tw-muted"), (said, "bold $state-failed")]
    parts: list[Part] = [("loss ", "$tw-muted"), (said, "bold")]
    if len(progress.losses) > 1:
        parts.append((f" {spark.ARROWS[progress.trend]}", ""))
        if wide:
            parts.append((f" {spark.line(progress.losses, SPARK)}", "$tw-accent"))
    return parts


def _rate(progress: Progress) -> list[Part]:
    said = rate_text(progress)
    return [(said, "")] if said else []


def _gpus(whole: Whole, wide: bool) -> list[Part]:
    if whole.util is None:
        return []
    parts: list[Part] = [("GPU ", "$tw-muted"), (f"{min(999.0, whole.util):.0f}%", "")]
    if wide and whole.gpus > 1:
        parts.append((f" of {whole.gpus}", "$tw-muted"))
    return parts


def _bill(hours: GpuHours | None, price: float | None) -> list[Part]:
    """`3.2 GPU-h, 0.9 idle`; with a price `3.2 GPU-h = 8.00, 2.25 idle`."""
    if hours is None:
        return []
    parts: list[Part] = [(_hours(hours.total), ""), (" GPU-h", "$tw-muted")]
    if price is not None:
        parts.append((f" = {hours.at(price).total:,.2f}", "bold"))
    idle = _hours(hours.idle) if price is None else f"{hours.at(price).idle:,.2f}"
    return [*parts, (f", {idle} idle", "$tw-muted")] if hours.idle else parts


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 0.95 else f"{hours:.2f}"


def notice_parts(told: Sequence[tuple[str, str]], width: int, leads: bool) -> list[Part]:
    """What is noteworthy, the most urgent first, as much as fits; the key that leads there, and how many more.

    `leads`: whether `w` leads to the first of them. Each comes as (sentence, tone).
    """
    if not told:
        return []
    key = ("  w  go there " if width >= 110 else "  w ") if leads else ""
    room = width - 3 - len(key)
    shown: list[Part] = []
    used = 0
    for place, (sentence, tone) in enumerate(told):
        more = len(told) - place
        keep = len(f"  +{more} more: p") if more > 1 else 0
        if place and used + 3 + cell_len(sentence) + keep > room:
            shown.append((f"  +{more} more: p", "$tw-muted"))
            used += len(f"  +{more} more: p")
            break
        said = fit_most(sentence, max(20, room - used - keep))
        shown += [(" · ", "$tw-muted")] if place else []
        shown.append((said, "bold $state-failed" if tone == "bad" else "bold $state-stalled"))
        used += cell_len(said) + (3 if place else 0)
    parts: list[Part] = [(" ▲ ", "bold $state-failed" if told[0][1] == "bad" else "bold $state-stalled"), *shown]
    if key:
        parts += [(" " * max(1, width - 2 - used - len(key)), ""), (key[1:4], "bold reverse"), (key[4:], "$tw-muted")]
    return parts
