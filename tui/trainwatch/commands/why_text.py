"""A cause as a person reads it: who, what, where, what to do, and who died of it, in a few lines."""
from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from trainwatch.model import text
from trainwatch.model.cause import Cause

RED, YELLOW, GREEN, DIM, BOLD, RESET = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
WIDTH = 100


def lines_of(
    cause: Cause | None, file: str | None, what: str, hosts: Mapping[int, str] | None = None, colours: bool = False
) -> list[str]:
    """The lines for a person. `what` is what was looked at, `file` that of the cause's line."""

    def paint(words: str, *codes: str) -> str:
        return "".join(codes) + words + RESET if colours else words

    if cause is None:
        return [paint(f"{text.printable(what)}: nothing failed", GREEN)]
    lines = [paint(_headline(cause, hosts or {}), BOLD, RED if cause.clear else YELLOW)]
    lines += [paint(f"  {line}", BOLD) for line in _wrapped(text.printable(cause.summary), WIDTH)]
    place = _place(cause, file)
    if place:
        lines.append(f"  {place}")
    if cause.why and cause.why not in cause.summary:
        lines.append(f"  {text.printable(cause.why)}")
    shown = [one for one in cause.evidence if one.text and one.text[:80] not in cause.summary][:4]
    for one in shown:
        number = f"{one.line:>7} " if one.line is not None else "        "
        lines.append(paint(f"  {number}| {text.printable(one.text)[: WIDTH + 40]}", DIM))
    if cause.hint:
        lines += ["", *(f"  {line}" for line in _wrapped(cause.hint, WIDTH))]
    lines += ["", *tail] if (tail := [f"  {line}" for line in _others(cause)]) else []
    return lines


def _headline(cause: Cause, hosts: Mapping[int, str]) -> str:
    who = ""
    if cause.rank is not None:
        host = hosts.get(cause.rank, "")
        inner = f" (process {cause.inner_rank})" if cause.inner_rank is not None else ""
        who = f"rank {cause.label or cause.rank}{inner}" + (f" on {text.printable(host)}" if host else "") + ": "
    sure = "" if cause.clear else " (not clear)"
    code = f", exit {text.exit_text(cause.exit_code)}" if cause.exit_code else ""
    return f"{who}{cause.kind.replace('_', ' ')}{code}{sure}"


def _place(cause: Cause, file: str | None) -> str:
    parts = []
    if file and cause.line is not None:
        parts.append(f"{text.printable(file)}:{cause.line}")
    elif file and cause.offset is not None:
        parts.append(f"{text.printable(file)}, byte {cause.offset:,}")
    if cause.frame:
        parts.append(f"at {text.printable(cause.frame)}")
    return "   ".join(parts)


def _others(cause: Cause) -> list[str]:
    """Who died of it, folded by kind, and what else it could be."""
    lines = []
    if cause.collateral:
        kinds = dict(cause.kinds)
        counted = Counter(kinds.get(rank, "") for rank in cause.collateral)
        named = ", ".join(
            f"{count} {kind.replace('_', ' ')}" for kind, count in counted.most_common() if kind not in ("", "none")
        )
        count = len(cause.collateral)
        ranks = "rank" if count == 1 else "ranks"
        lines.append(f"{count} {ranks} died of it: {spans(cause.collateral)}" + (f" ({named})" if named else ""))
    if cause.same and cause.rank is not None:
        lines.append(f"the same fault on rank{'s' if len(cause.same) > 1 else ''} {spans(cause.same)}")
    if cause.runner_up:
        lines.append(f"it could also be {text.printable(cause.runner_up)}")
    return lines


def spans(numbers: Sequence[int]) -> str:
    """Numbers in short: `0-36,38-511`."""
    parts: list[str] = []
    start = last = None
    for number in sorted(numbers):
        if last is not None and number == last + 1:
            last = number
            continue
        if start is not None:
            parts.append(f"{start}-{last}" if last != start else str(start))
        start = last = number
    if start is not None:
        parts.append(f"{start}-{last}" if last != start else str(start))
    return ",".join(parts)


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words[:600], width, break_long_words=True, break_on_hyphens=False) or [""]
