"""Where each rank's cell stands in the grid: hosts in blocks, as large as the screen allows."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trainwatch_launcher.reader.changes import AttemptKey

GAP = 2
"""Columns between two hosts that have names; without names one is enough."""
LONGEST_NAME = 16
LONGEST_ROW = 32
"""Cells of one host in a row."""


@dataclass(frozen=True)
class Style:
    """How large cells are."""

    pitch: int
    """Columns from one cell to the next."""
    named: bool
    """Whether hosts have their names beside them."""
    halves: bool = False
    """Two rows of cells in each line of the screen."""
    numbered: bool = False
    """Whether a cell has its rank's label in it."""


WIDE, NARROW, NAMELESS, DENSE = Style(2, True), Style(1, True), Style(1, False), Style(1, False, True)


@dataclass(frozen=True)
class Name:
    """A host's name beside its cells."""

    x: int
    y: int
    width: int
    text: str


@dataclass(frozen=True)
class Layout:
    """Cells and names on a plane: x in columns, y in rows of cells (half lines in the dense style)."""

    style: Style = WIDE
    places: dict[AttemptKey, tuple[int, int]] = field(default_factory=dict)
    names: tuple[Name, ...] = ()
    rows: int = 0

    @property
    def lines(self) -> int:
        """Lines of the screen that it takes."""
        return (self.rows + 1) // 2 if self.style.halves else self.rows

    def line_of(self, key: AttemptKey) -> int:
        """The line that a cell stands in."""
        y = self.places[key][1]
        return y // 2 if self.style.halves else y

    def at(self, x: int, y: int) -> AttemptKey | None:
        """The rank whose cell is at a column of a row of cells; None between them."""
        return next((key for back in range(self.style.pitch) if (key := self._by_place.get((x - back, y)))), None)

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], AttemptKey]:
        return {place: key for key, place in self.places.items()}

    def neighbour(self, key: AttemptKey, dx: int, dy: int) -> AttemptKey:
        """The next cell in a direction, the nearest one in the next row; the same when there is none."""
        x, y = self.places[key]
        if dx:
            row = sorted((place[0], other) for other, place in self.places.items() if place[1] == y)
            index = [other for _, other in row].index(key) + dx
            return row[index][1] if 0 <= index < len(row) else key
        rows = {place[1] for place in self.places.values()}
        beyond = [row for row in rows if (row - y) * dy > 0]
        if not beyond:
            return key
        target = min(beyond, key=lambda row: abs(row - y))
        there = [(abs(place[0] - x), place[0], other) for other, place in self.places.items() if place[1] == target]
        return min(there)[2]


def arrange(groups: Iterable[tuple[str, Sequence[AttemptKey]]], width: int, height: int, label: int = 4) -> Layout:
    """Hosts, each with its ranks, as large as fits into `width` columns and `height` lines; else dense, to be scrolled.

    `label`: columns of the longest label of a rank.
    """
    found = [(name, list(keys)) for name, keys in groups if keys]
    layout = Layout()
    for style in (Style(label + 3, True, numbered=True), WIDE, NARROW, NAMELESS, DENSE):
        layout = _flow(found, style, max(8, width))
        if layout.lines <= height:
            break
    return layout


def _flow(groups: Sequence[tuple[str, Sequence[AttemptKey]]], style: Style, width: int) -> Layout:
    """Hosts from left to right and from top to bottom, in columns of one width."""
    label = min(LONGEST_NAME, max((len(name) for name, _ in groups), default=0)) if style.named else 0
    indent = label + 1 if label else 0
    longest = max((len(keys) for _, keys in groups), default=0)
    per_row = max(1, min(longest, LONGEST_ROW if len(groups) > 1 else longest, (width - indent) // style.pitch))
    gap = GAP if style.named else 1
    unit = indent + per_row * style.pitch + gap
    across = max(1, (width + gap) // unit)
    places: dict[AttemptKey, tuple[int, int]] = {}
    names: list[Name] = []
    top = 0
    for first in range(0, len(groups), across):
        height = 0
        for column, (name, keys) in enumerate(groups[first : first + across]):
            left = column * unit
            if label:
                names.append(Name(left, top, label, name))
            for number, key in enumerate(keys):
                places[key] = (left + indent + number % per_row * style.pitch, top + number // per_row)
            height = max(height, -(-len(keys) // per_row))
        top += height
    return Layout(style, places, tuple(names), top)
