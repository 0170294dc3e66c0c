"""The text that is looked at, as lines: found by literals, and taken apart only when somebody asks for one."""
from __future__ import annotations

import re
from bisect import bisect_right

from trainwatch_launcher.diagnosis.prefixes import LONGEST, Prefix, doubtful, split

CONTROL = re.compile(
    rb"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]"
    rb"|[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]"
)
BAR = re.compile(r"\d{1,9}/(?:\d{1,9}|\?) \[[^\[\]\r]{0,120}\](?:,? ?[A-Za-z_]{1,30}=[\w.+-]{1,30},?){0,8} ?")
DIGITS = b"0123456789"
OWN_STREAM = re.compile(r"(?:(?:rank\d{1,6}|task\d{1,6}|\[\w{1,40}\]:? ?)(?:/(?=.)|$)){1,3}$")
"""Prefixes that only repeat whose log it is."""
HEAD = 300
"""So many bytes at the beginning of a line may say whose it is."""
SAMPLE = 400
"""So many of the last lines say which prefixes a log uses."""


class Line:
    """One line, numbered from 0 in its text."""

    __slots__ = ("body", "found", "index", "level", "rank", "stamped", "stated", "stream", "told")

    def __init__(self, index: int, found: Prefix) -> None:
        self.index, self.found = index, found
        self.body, self.stated, self.stamped = found.body, found.stated, found.stamped
        self.rank, self.stream, self.level, self.told = found.rank, found.stream, found.level, found.told

    @property
    def indent(self) -> int:
        """Blanks before its words."""
        return len(self.body) - len(self.body.lstrip(" \t"))


class Text:
    """A log, or the end of one, without control sequences. Lines are numbered from 0 here and split at newlines only.

    `rank` is the rank of every line that does not say another one; None when the log may be of many.
    """

    def __init__(self, data: bytes, rank: int | None = None) -> None:
        self.rank = rank
        self.raw = data
        clean = CONTROL.sub(b"", data) if data.translate(None, _PLAIN) else data
        self.lines = [line if len(line) <= LONGEST else _clipped(line) for line in clean.split(b"\n")]
        self._shapes = Shapes(b"\n".join(self.lines))
        if not self.lines[-1]:
            self.lines.pop()
        self._known: dict[int, Line] = {}
        sample = [_text(line) for line in self.lines[-SAMPLE:]]
        self._tasks = doubtful(sample)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Line:
        line = self._known.get(index)
        if line is None:
            found = split(self._words(self.lines[index]), self._tasks)
            if self.rank is not None and found.rank in (None, self.rank):
                found.rank = self.rank
                found.stream = "" if OWN_STREAM.match(found.stream) else found.stream
            line = self._known[index] = Line(index, found)
        return line

    def _words(self, line: bytes) -> str:
        """What a terminal would leave of a line, behind the prefix that says whose it is."""
        text = _text(line)
        if len(text) + 1 < len(line) and (b"\r" in line[:-1] or b"%|" in line):
            first = line[:HEAD].partition(b"\r")[0].decode("utf-8", "replace")
            owner = first[: len(first) - len(split(first, self._tasks).stated)]
            return text if text.startswith(owner) else owner + text
        return text

    def offset(self, index: int) -> int:
        """Where a line begins in the text as it was given, in bytes."""
        at = 0
        for _ in range(index):
            at = self.raw.find(b"\n", at) + 1
        return at

    def holding(self, literal: str, first: int = 40, last: int = 200) -> list[int]:
        """Lines that hold a literal in lower case, in order: the first and the last so many of them."""
        wanted = literal.encode()
        found: list[int] = []
        for shape in self._shapes.holding(wanted.translate(None, DIGITS)):
            members = self._shapes.members[shape]
            if len(members) > first + last:
                members = members[:first] + members[-last:]
            found += [index for index in members if wanted in self.lines[index].lower()]
        found.sort()
        return found if len(found) <= first + last else found[:first] + found[len(found) - last :]


class Shapes:
    """Lines that are alike but for their digits, as one: most of a training's log is a few shapes."""

    def __init__(self, clean: bytes) -> None:
        self.members: list[list[int]] = []
        """The lines of each shape, by their numbers."""
        known: dict[bytes, int] = {}
        for index, shape in enumerate(clean.lower().translate(None, DIGITS).split(b"\n")):
            number = known.get(shape)
            if number is None:
                known[shape] = len(self.members)
                self.members.append([index])
            else:
                self.members[number].append(index)
        self._text = b"\n".join(known)
        self._starts: list[int] = []
        place = 0
        for shape in known:
            self._starts.append(place)
            place += len(shape) + 1

    def holding(self, wanted: bytes) -> list[int]:
        """The numbers of all shapes that hold some bytes without digits."""
        found: list[int] = []
        at = self._text.find(wanted)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            found.append(number)
            if number + 1 >= len(self._starts):
                break
            at = self._text.find(wanted, self._starts[number + 1])
        return found


_PLAIN = bytes(sorted({*range(0x20, 0x7F), *range(0x80, 0x100), 0x09, 0x0A, 0x0D}))


def _clipped(line: bytes) -> bytes:
    """Both ends of a line that is too long to be looked at."""
    return line[: LONGEST // 2] + line[-LONGEST // 2 :]


def _text(line: bytes) -> str:
    """What a terminal would leave of a line, without a progress bar that stands before something else."""
    if b"\r" in line:
        parts = [part for part in line.split(b"\r") if part.strip()]
        line = parts[-1] if parts else b""
    text, rest = line.decode("utf-8", "replace"), ""
    if "/" in text and ("%|" in text or "it/s" in text or "s/it" in text):
        for match in BAR.finditer(text):
            if text[match.end() :].strip():
                rest = text[match.end() :]
        return rest or text
    return text
