"""The line above the ranks of a group: what they have in common, how many they are, how they stand. Pure."""

from __future__ import annotations

from rich.cells import cell_len

from trainwatch.model.order import Group
from trainwatch.widgets import states
from trainwatch.widgets.cells import LABEL, MUTED, PLAIN
from trainwatch.widgets.header import fit_most
from trainwatch.widgets.logtext import clean

UNKNOWN = {"host": "host unknown", "phase": "no phase yet"}
NAME_SHARE = 3
"""The name takes at most one part in so many of the line."""


def parts(group: Group, width: int) -> tuple[tuple[str, str], ...]:
    """Pieces of text with their component classes, in at most `width` cells: what does not fit is left out whole."""
    name = clean(group.name) or UNKNOWN.get(group.by, "")
    shown = [("▸ " if group.folded else "▾ ", MUTED), (fit_most(name, max(12, width // NAME_SHARE)), LABEL)]
    more = [(f"  {group.count} {'rank' if group.count == 1 else 'ranks'}", MUTED)]
    if group.by != "state":
        more += [
            (f"  {states.symbol(state)} {count} {state}", states.component(state)) for state, count in group.states
        ]
    if group.steps is not None:
        low, high = group.steps
        more.append((f"  step {low}" if low == high else f"  step {low}–{high}", PLAIN))
    if group.util is not None:
        more.append((f"  gpu {group.util:.0f}%", MUTED))
    for part in more:
        if sum(cell_len(text) for text, _ in shown) + cell_len(part[0]) > width:
            break
        shown.append(part)
    return tuple(shown)
