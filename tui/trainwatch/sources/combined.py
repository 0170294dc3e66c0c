"""One log that holds several ranks' lines, each with its rank before it: which form, which ranks, whose a line is.

What such prefixes look like, `trainwatch_launcher.diagnosis.prefixes` knows.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainwatch_launcher.diagnosis import prefixes

SAMPLE = 256 << 10
"""Bytes of the beginning and of the end that show which form a log uses."""
SHARE = 0.4
"""So many of its lines begin with a rank."""
NUMBER = r"(\d{1,6})"
# (expression, whether anything but white space may stand before it)
FORMS: tuple[tuple[str, bool], ...] = (
    (prefixes.KINDLY_RANK.pattern, True), (prefixes.ROLE.pattern, True), (prefixes.OPEN_MPI.pattern, True),
    (prefixes.BRACKET.pattern, False), (prefixes.TASK.pattern, False),
)  # fmt: skip
LOOKED_AT = 400
"""Bytes of a line in which its rank is looked for."""
BEFORE = 60
"""Characters that may stand before a rank in brackets: a time."""


@dataclass(frozen=True)
class Combined:
    """A form of prefixes that a log uses."""

    form: str
    after_time: bool
    ranks: tuple[int, ...]
    """Those that were seen."""

    def only(self, ranks: Iterable[int]) -> str:
        """An expression for lines of these ranks."""
        which = "|".join(str(rank) for rank in sorted(set(ranks)))
        return "^" + self._before + self.form.replace(NUMBER, f"0*(?:{which})")

    def rank_of(self, line: bytes) -> int | None:
        """Whose line it is; None when it does not say."""
        named = self.form.replace(NUMBER, r"(?P<rank>\d{1,6})")
        found = re.match(self._before + named, line[:LOOKED_AT].decode("utf-8", "replace"))
        return int(found["rank"]) if found else None

    @property
    def _before(self) -> str:
        return f"[^\\n]{{0,{BEFORE}}}?" if self.after_time else ""


def form_of(sample: bytes) -> Combined | None:
    """Which form a log uses, judged by some of its lines; None when they are those of one process."""
    lines = [line for line in sample.split(b"\n") if line.strip()]
    texts = [line[:200].decode("utf-8", "replace") for line in lines]
    doubtful = prefixes.doubtful(texts)
    for form, after_time in FORMS:
        if (form == prefixes.TASK.pattern and ":" not in doubtful) or (
            form == prefixes.BRACKET.pattern and "]" not in doubtful
        ):
            continue
        seen = _seen(Combined(form, after_time, ()), lines)
        if len(set(seen)) > 1 and len(seen) >= SHARE * len(lines):
            return Combined(form, after_time, tuple(sorted(set(seen))))
    return None


def _seen(form: Combined, lines: Sequence[bytes]) -> list[int]:
    return [rank for rank in map(form.rank_of, lines) if rank is not None]
