"""The newest values, from the end of the output alone: the cost at a heartbeat is the same however chatty a log is."""
from __future__ import annotations

from trainwatch_launcher.progress.context import Context
from trainwatch_launcher.progress.lines import EXPLICIT
from trainwatch_launcher.progress.stream import Point, Reader
from trainwatch_launcher.progress.values import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

    from trainwatch_launcher.progress.explicit import Pattern
    from trainwatch_launcher.progress.values import Values

TAIL = 64 << 10
"""Bytes of output that are looked at."""
FIRST_LOOK = 12 << 10
"""Bytes that are enough when training steps come densely."""


class Progress:
    """The newest value of every key, and the format of the newest point. Explicit lines win over all others."""

    def __init__(self) -> None:
        self.format = ""
        self.points = 0
        self._found: Values = {}
        self._said: Values = {}

    def add(self, point: Point) -> None:
        """Take a newer point."""
        self.points += 1
        if point.format == EXPLICIT:
            self._said.update(point.values)
            self.format = EXPLICIT
            return
        if self.format != EXPLICIT and not (point.format in ("tqdm", "generic") and self.format):
            self.format = point.format  # a bar beside a framework's own lines does not name the format
        self._found.update(point.values)

    @property
    def values(self) -> Values:
        """The newest values."""
        return {**self._found, **self._said}

    def as_fields(self) -> dict[str, int | float | str | None]:
        """The values as fields of a status: every key, None for what is not known or no finite number.

        `loss_text` says "nan", "inf" or "-inf" when the loss is none.
        """
        values = self.values
        fields: dict[str, int | float | str | None] = {
            key: None if isinstance(values.get(key), str) else values.get(key) for key in KEYS
        }
        loss = values.get("loss")
        fields["loss_text"] = loss if isinstance(loss, str) else ""
        fields["progress_format"] = self.format
        return fields

    def __bool__(self) -> bool:
        return bool(self._found or self._said)


class Watcher:
    """Looks at the end of one command's output at every heartbeat, and remembers what tells its bars apart."""

    def __init__(self, own: Sequence[Pattern] = ()) -> None:
        self._own = own
        self._context = Context()
        self._seen = b""
        self._latest: Progress | None = None

    def look(self, tail: bytes, whole: bool = False) -> Progress | None:
        """What the end of the output says now; None when it says nothing.

        `whole`: it begins where the output began. Otherwise its first line is cut and does not count, nor does a last
        line that is still being written, unless it is a complete bar.
        """
        if tail == self._seen:
            return self._latest
        self._seen = tail
        text = complete(tail, whole)
        found = None
        if len(text) > 2 * FIRST_LOOK:
            found = self._read(complete(text[-FIRST_LOOK:], False))
        if found is None or not {"step", "loss"} <= set(found.values):
            found = self._read(text)
        self._latest = found
        return found

    def _read(self, text: bytes) -> Progress | None:
        self._context.block = None
        reader = Reader(self._own, self._context)
        found = collect(reader.feed(text) + reader.finish())
        return found or None


def complete(tail: bytes, whole: bool) -> bytes:
    """The tail without what is cut: its first line or state, and a last one that is not finished."""
    tail = tail[-TAIL:] if len(tail) > TAIL else tail
    if not whole:
        begin = min((at for at in (tail.find(b"\n"), tail.find(b"\r")) if at >= 0), default=len(tail))
        tail = tail[begin:]
    end = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
    last = tail[end:].rstrip()
    return tail if last.endswith((b"]", b"}", b"\x1b[A")) else tail[:end]


def collect(points: Iterable[Point]) -> Progress:
    """Points as their newest values."""
    progress = Progress()
    for point in points:
        progress.add(point)
    return progress


def latest(tail: bytes, own: Sequence[Pattern] = ()) -> Progress | None:
    """The newest values that the end of some output states. A program that asks again and again keeps a Watcher."""
    return Watcher(own).look(tail)
