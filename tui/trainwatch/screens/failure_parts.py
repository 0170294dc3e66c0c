"""What the failure screen says, as text and styles: a story's parts, cut for the width."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from trainwatch.model import text
from trainwatch.model.story import ROOT, SAME, VICTIM, Ending, Story, fold_words, kind_words
from trainwatch.widgets import states
from trainwatch.widgets.excerpt import Excerpt
from trainwatch.widgets.fit import fit_frame
from trainwatch.widgets.header import Part, fit_most, hanging, wrapped
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.rundir.state import FAILED, HELD

INDENT = 11
MOST_LINES = 3
"""Lines that a summary may take."""
STYLES = {ROOT: "bold $state-failed", SAME: "$state-failed", VICTIM: "$tw-muted"}
AXIS = 10
"""Cells that a time axis needs to say anything."""


def cause_parts(story: Story, now: float, width: int) -> list[Part]:
    """Who, what, where, when, how sure, what to do, and how long one can still look."""
    mark = states.symbol(FAILED)
    head = f"{mark} {fit_most(clean(story.who), max(12, width - 30))}  {kind_words(story.kind)}"
    parts: list[Part] = [(head, "bold $state-failed")]
    if story.ended and cell_len(head) + len(story.ended) + 3 <= width:
        parts.append((f"   {story.ended}", "$state-failed"))
    parts.append(("\n", ""))
    told = wrapped(clean(story.summary), max(10, width - 2))
    if len(told) > MOST_LINES:
        told = [*told[: MOST_LINES - 1], fit_most(" ".join(told[MOST_LINES - 1 :]), width - 2)]
    parts += [(f"  {line}\n", "bold") for line in told if line]
    facts = [
        ("at", clean(story.frame), ""),
        ("when", _when(story, now), ""),
        ("because", clean(story.why) if story.why not in story.summary else "", ""),
        ("confidence", story.sure, "" if story.clear else "bold $state-stalled"),
        ("or else", clean(story.runner_up), "$state-stalled"),
        ("what to do", clean(story.hint), "$tw-accent"),
        ("GPU time", clean(story.cost), ""),
        ("hold", _hold(story), f"bold {states.variable(HELD)}"),
    ]
    for name, value, style in facts:
        if value:
            parts += hanging(name, value, INDENT, width, style)
    return parts


def _when(story: Story, now: float) -> str:
    parts = [f"{text.time_of_day(story.time, now)}, {text.duration(now - story.time)} ago"]
    if story.phase:
        parts.append(f"in {clean(story.phase)}")
    if story.step is not None:
        parts.append(f"step {story.step}")
    return " · ".join(parts)


def _hold(story: Story) -> str:
    if story.hold_left is None:
        return ""
    return f"{text.countdown(story.hold_left)} left: s opens a shell there, e holds it longer"


def log_parts(excerpt: Excerpt, width: int) -> list[Part]:
    """Lines of the log, each on one row; the one that says why is marked."""
    if excerpt.problem:
        return [(clean(excerpt.problem), "$state-stalled")]
    if not excerpt.lines:
        return [("nothing: the log is empty", "$tw-muted")]
    parts: list[Part] = []
    for number, line in enumerate(excerpt.lines):
        is_hit = number == excerpt.hit
        parts.append(("▶ " if is_hit else "  ", "bold $state-failed"))
        parts.append((f"{fit_frame(line, max(4, width - 2))}\n", "bold $state-failed" if is_hit else ""))
    return parts


def followed_parts(story: Story, width: int, most: int) -> list[Part]:
    """Who went wrong after it, folded by kind; then the first ones in their order, along the time."""
    if not story.folds:
        alone = "no other rank has gone wrong" if story.ranks > 1 else "it is the only rank"
        return [(alone, "$tw-muted")]
    parts: list[Part] = []
    for fold in story.folds:
        parts.append((f"{fold_words(fold)}\n", "bold" if fold.part == VICTIM else "bold $state-failed"))
        parts.append((f"  {fit_most(fold.ranks, max(8, width - 2))}\n", "$tw-muted"))
    shown = chosen(story.order, most)
    parts.append(("\n", ""))
    name = min(10, max(5, *(cell_len(one.label) for one in shown)))
    kinds = min(16, max(cell_len(kind_words(one.kind)) for one in shown))
    room = width - name - kinds - 12
    span = max(1.0, shown[-1].time - shown[0].time)
    for one in shown:
        parts += _row(one, story.time, shown[0].time, span, name, kinds, room)
    if len(story.order) > len(shown):
        last = story.order[-1].time - story.time
        left = len(story.order) - len(shown)
        parts.append((f"… {left} more, the last {text.duration(max(0.0, last))} after it", "$tw-muted"))
    return parts


def chosen(order: Sequence[Ending], most: int) -> list[Ending]:
    """The first ones, and among them always the one where it began."""
    shown = list(order[:most])
    root = next((one for one in order if one.part == ROOT), None)
    if root is not None and root not in shown:
        shown = [*shown[:-1], root]
    return shown


def _row(one: Ending, began: float, first: float, span: float, name: int, kinds: int, room: int) -> list[Part]:
    style = STYLES.get(one.part, "")
    kind = fit_most(kind_words(one.kind), kinds)
    parts: list[Part] = [
        (f"{fit_most(one.label, name):>{name}} ", "bold" if one.part == ROOT else ""),
        (kind + " " * (kinds - cell_len(kind)), style), (" ", ""),
    ]  # fmt: skip
    if room >= AXIS:
        at = round((room - 1) * min(1.0, max(0.0, (one.time - first) / span)))
        parts += [("─" * at, "$tw-rule"), ("●", style or "$state-failed"), ("─" * (room - 1 - at), "$tw-rule")]
    return [*parts, (f" {_after(one.time - began):>8}\n", style or "")]


def _after(seconds: float) -> str:
    """`+0.4s`, `+12s`, `-3s`: seconds are told in tenths where these say who was first."""
    size = abs(seconds)
    told = f"{size:.1f}s" if size < 9.95 else text.duration(size)
    return f"{'-' if seconds < -0.05 else '+'}{told}"


def calm_parts(found: Sequence[tuple[str, str]], width: int) -> list[Part]:
    """That nothing failed, and what stands out instead; `found` are sentences with their tones."""
    parts: list[Part] = [("No rank has failed.\n", "bold $state-finished")]
    if not found:
        return [*parts, ("And none stands out: no stall, no straggler, no loss or GPU that is not well.", "$tw-muted")]
    parts.append(("What stands out:\n\n", "$tw-muted"))
    for said, tone in found:
        style = "$state-failed" if tone == "bad" else "$state-stalled"
        parts += hanging("▲", clean(said), 2, width, style, style)
    return parts
