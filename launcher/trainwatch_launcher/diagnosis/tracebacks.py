"""Python's tracebacks in a log: plain, chained, grouped, boxed, prefixed, interleaved between ranks, cut off."""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis.frames import (
    CARRIERS,
    EMBEDS,
    EXCEPTION,
    GROUP_MARK,
    GROUPS,
    HEADER,
    LINKS,
    LOOKS_RAISED,
    PROBES,
    WRAPPERS,
    frame_in,
    own,
    simple,
    undecorated,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.frames import Frame
    from trainwatch_launcher.diagnosis.lines import Line, Text

LONGEST_WALK = 3000
"""Lines that are looked at for one chain of tracebacks."""
STRANGERS = 60
"""So many lines of others may stand inside a traceback whose lines have no prefix."""
NOTES = 12
"""Lines after an exception that still belong to its message."""
MOST_NOTE = 600
BEGINS = re.compile(r"Traceback \(most recent call last\)(?::|[ \t]{0,80}(?:[-─╮]|$))")
"""A header, and no sentence about one."""
SPAWNED = re.compile(r"-- Process (\d{1,5}) terminated with the following error")
OTHERS = re.compile(r"(?:wandb|swanlab|srun|slurmstepd|mpirun|prterun|pdsh@[\w.-]{1,60}|COMET \w{4,8}"
                    r"|cp|mv|rm|ls|cat|tar|mkdir|chmod):")
"""Begins a line of another program, which goes on when this one has ended."""
NPU_NOTE = re.compile(r"\[(?:ERROR|Error)\](?: \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d \(PID:|: The )")
"""Begins a line of torch_npu's own message, which looks like a logger's."""
RULE = re.compile(r"[-=*#_]{4,}")
"""Begins a line that separates what comes after it."""


class Raised:
    """One exception of a chain. Line numbers are from 0."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.line: int | None = None
        """Where its class and message stand; None when the traceback is cut off before."""
        self.name = ""
        """The class as printed, `torch.OutOfMemoryError`."""
        self.message = ""
        self.notes: list[str] = []
        self.frames: list[Frame] = []
        self.end = start
        self.embeds = False
        """The next one of the chain is what happened inside it, in another process or as a member of a group."""

    @property
    def simple(self) -> str:
        """The class without its module."""
        return simple(self.name)

    @property
    def text(self) -> str:
        """`Class: message`."""
        return "%s: %s" % (self.name, self.message) if self.message else self.name

    @property
    def wraps(self) -> bool:
        """Whether it only says that something else failed."""
        return self.simple in WRAPPERS or self.name in WRAPPERS


class Chain:
    """Exceptions that belong together, in the order of the text, of one stream."""

    def __init__(self, stream: str, rank: int | None, before: str) -> None:
        self.stream, self.rank, self.before = stream, rank, before
        self.raised: list[Raised] = []
        self.linked = False
        """Another exception was raised from one of it or while it was handled."""

    @property
    def cause(self) -> Raised:
        """The exception that began it: the first, or what happened inside of that."""
        for number, one in enumerate(self.raised):
            last = number + 1 == len(self.raised)
            if last or not (one.embeds or one.wraps or one.simple in PROBES or one.line is None):
                return one
        return self.raised[-1]

    @property
    def start(self) -> int:
        """Its first line."""
        return self.raised[0].start

    @property
    def end(self) -> int:
        """Its last line."""
        return self.raised[-1].end

    @property
    def frame(self) -> Frame | None:
        """The user's own innermost frame, of the cause if it has one."""
        for one in [self.cause, *self.raised]:
            found = own(one.frames)
            if found is not None:
                return found
        return None


def chains(text: Text) -> tuple[list[Chain], set[int]]:
    """All chains of tracebacks of a text, in order, and the lines that belong to them."""
    found: list[Chain] = []
    taken: set[int] = set()
    for index in text.holding(HEADER.lower(), 60, 300):
        if index not in taken and BEGINS.search(text[index].body):
            chain = _Walk(text, index, taken).chain
            if chain.raised:
                found.append(chain)
    if not found:
        cut = _beheaded(text, taken)
        if cut is not None:
            found.append(cut)
    return found, taken


def _beheaded(text: Text, taken: set[int]) -> Chain | None:
    """The traceback whose beginning lies before the text that we have."""
    for index in range(min(len(text), 400)):
        if b'File "' in text.lines[index] and b", in " in text.lines[index]:
            walk = _Walk(text, index, taken, headless=True)
            raised = walk.chain.raised
            return walk.chain if raised and raised[0].line is not None and LOOKS_RAISED.match(raised[0].text) else None
    return None


class _Walk:
    """Goes through the lines of one stream from a header on."""

    def __init__(self, text: Text, index: int, taken: set[int], headless: bool = False) -> None:
        self.text, self.taken = text, taken
        first = text[index]
        self.stream = first.stream
        self.bare, self.stamped = not first.stream, first.stamped
        self.chain = Chain(first.stream, first.rank, _before(text, index))
        self.base = self._base(first) if not headless else max(0, first.indent - 2)
        self.head = first.body[: max(0, first.body.find(HEADER))]
        """What a logger puts before every line, as far as no prefix is known for it."""
        self.one: Raised | None = Raised(index)
        self.linked = False
        self.strangers = self.blanks = 0
        taken.add(index)
        if headless:
            self._inside(first, first.body)
        self._go(index)
        self._close()

    @staticmethod
    def _base(line: Line) -> int:
        """The indentation of the line that will name the exception."""
        body = line.body
        place = body.find(HEADER)
        lead = body[: len(body) - len(body.lstrip(" \t|+>"))]
        return len(lead) if place == len(lead) or "traceback :" in body[:place] else 0

    def _go(self, index: int) -> None:
        for at in range(index + 1, min(len(self.text), index + LONGEST_WALK)):
            if at in self.taken:
                continue
            line = self.text[at]
            if line.stream != self.stream and (self.bare or line.body.strip() or line.stream):
                continue
            railed = line.body.lstrip()[:1] in ("|", "+", "╭", "╰") or "│" in line.body
            body = undecorated(line.body) if railed else line.body
            if self.head and self.head.strip() and body.startswith(self.head):
                body = body[len(self.head) :]
            if not (self._inside(line, body) if self.one is not None else self._after(line, body)):
                return
            if self.one is None or self.strangers == 0:
                self.taken.add(at)

    def _inside(self, line: Line, body: str) -> bool:
        """A line between a header and its exception."""
        one = self.one
        assert one is not None
        frame = frame_in(body)
        if frame is not None:
            one.frames.append(frame)
            one.end = line.index
            self.strangers = 0
            return True
        stripped = body.strip()
        if HEADER in body:
            return not one.frames or line.index - one.end <= 4
        indent = len(body) - len(body.lstrip(" \t"))
        if not stripped or set(stripped) <= set("^~─│╭╮╰╯| -+") or (indent > self.base and one.frames):
            return True
        match = EXCEPTION.match(stripped)
        if match and (LOOKS_RAISED.match(stripped) or (one.frames and indent <= self.base and _is_class(match))):
            self._raised(line, match.group(1), match.group(2) or "", match.group(3) or "")
            return True
        self.strangers += 1
        return self.strangers <= (STRANGERS if self.bare else 4)

    def _raised(self, line: Line, name: str, inner: str, message: str) -> None:
        one = self.one
        assert one is not None
        one.line = one.end = line.index
        one.name, one.message = name, message.strip()
        carries = simple(name) in GROUPS or simple(name) in CARRIERS
        one.embeds = carries or bool(inner) or bool(EMBEDS.search(one.message))
        self.chain.raised.append(one)
        if len(self.chain.raised) > 1 and self.linked:
            self.chain.linked = True
        self.one, self.linked, self.strangers, self.blanks = None, False, 0, 0

    def _after(self, line: Line, body: str) -> bool:
        """A line after an exception: more of its message, a link to the next, or the end."""
        last = self.chain.raised[-1]
        stripped = body.strip()
        if any(link in body for link in LINKS):
            self.linked = True
            return True
        if HEADER in body:
            if not (self.linked or last.embeds):
                return False
            self._next(line)
            return True
        if frame_in(body) is not None and (last.embeds or not last.notes):
            self._next(line)
            self.base = max(0, line.indent - 2)
            last.embeds = True
            return self._inside(line, body)
        if not stripped:
            self.blanks += 1
            return self.blanks <= 4
        if stripped == '"""':
            return True  # the end of what another process sent
        if EMBEDS.search(stripped):
            last.embeds = True
            spawned = SPAWNED.match(stripped)
            if spawned and self.chain.rank is None:
                self.chain.rank = int(spawned.group(1))
            return True
        if last.simple in GROUPS or (last.embeds and GROUP_MARK.match(line.body)):
            return self._member(line, stripped)
        if self.linked:
            self.strangers += 1
            return self.strangers <= STRANGERS
        return self._note(line, stripped, last)

    def _member(self, line: Line, stripped: str) -> bool:
        """A line of an exception group between its members."""
        if set(stripped) <= set("+-| 0123456789."):
            return True
        match = EXCEPTION.match(stripped)
        if match and LOOKS_RAISED.match(stripped):
            self.one = Raised(line.index)
            self._raised(line, match.group(1), "", match.group(3) or "")
            return True
        return False

    def _note(self, line: Line, stripped: str, last: Raised) -> bool:
        other = line.told and line.level is not None and not NPU_NOTE.match(line.stated)
        if (
            len(last.notes) >= NOTES
            or self.blanks > 1
            or other
            or (line.stamped and not self.stamped)
            or RULE.match(stripped)
            or OTHERS.match(stripped)
        ):
            return False
        last.notes.append(stripped[:MOST_NOTE])
        last.end = line.index
        return True

    def _next(self, line: Line) -> None:
        self.one = Raised(line.index)
        self.base = self._base(line)

    def _close(self) -> None:
        """A traceback without its last line was cut off."""
        if self.one is not None and self.one.frames:
            self.chain.raised.append(self.one)


def _is_class(match: re.Match[str]) -> bool:
    """Whether what stands where an exception must stand can be one, whatever it is called."""
    name = match.group(1)
    return match.group(3) is not None or name[:1].isupper() or "." in name


def _before(text: Text, index: int) -> str:
    """What stands right before a header: in its own line, or the last words of its stream."""
    line = text[index]
    head = line.body[: max(0, line.body.find(HEADER))].strip(" │╭─+|\"'")
    if head:
        return head
    for at in range(index - 1, max(-1, index - 30), -1):
        before = text[at]
        if before.stream == line.stream and before.body.strip():
            return before.stated.strip()[:400]
    return ""
