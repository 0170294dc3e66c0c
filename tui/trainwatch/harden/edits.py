"""Changes to a script: ranges of its bytes that become another text, each for a reason."""
from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Edit:
    """`text` instead of the bytes from `start` to `end`; an insertion when they are the same."""

    start: int
    end: int
    order: int
    text: str = field(compare=False)
    why: str = field(compare=False)


@dataclass
class Edits:
    """The changes of one pass. Those that would touch another one's bytes are left for the next pass."""

    made: list[Edit] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.made)

    def replace(self, start: int, end: int, text: str, why: str) -> bool:
        """Note a change; False when another one is in its way, or has done it."""
        for one in self.made:
            if (start, end, text) == (one.start, one.end, one.text):
                return False
            if start < one.end and one.start < end:
                return False
            if start == end and one.start < start < one.end:
                return False
        self.made.append(Edit(start, end, len(self.made), text, why))
        return True

    def insert(self, at: int, text: str, why: str) -> bool:
        """Note an insertion; several at one place stand in the order in which they were noted."""
        return self.replace(at, at, text, why)

    def applied(self, text: bytes) -> bytes:
        """The script with all changes."""
        out, at = bytearray(), 0
        for edit in sorted(self.made):
            out += text[at : edit.start]
            out += edit.text.encode("utf-8", "surrogateescape")
            at = max(at, edit.end)
        return bytes(out + text[at:])


def unified(before: bytes, after: bytes, name: str) -> Iterator[str]:
    """A unified diff, as `diff -u` prints it."""
    old, new = (data.decode("utf-8", "surrogateescape").splitlines() for data in (before, after))
    yield from difflib.unified_diff(old, new, name, f"{name} (hardened)", lineterm="")
