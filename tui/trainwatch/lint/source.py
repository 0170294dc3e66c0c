"""A piece of shell text and where it comes from: a file, or a string inside one."""
from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from trainwatch.lint import parse as parsing
from trainwatch.lint.strict import Strict
from trainwatch.lint.syntax import Literal, Node, Script, Span, Word, everything

IGNORE = "trainwatch: ignore"
"""What a comment says to silence rules, on the same line or the line before."""
POSIX = frozenset(("sh", "dash", "ash"))


@dataclass(eq=False)
class Source:
    """Shell text. `outer` is what it stands in, and `offsets` has for each of its bytes where that stands there."""

    name: str
    text: bytes
    path: str = ""
    """The file's path, `` when it has none."""
    outer: Source | None = None
    offsets: list[int] = field(default_factory=list)
    shell: str = "bash"
    """Which shell runs it: `bash`, or `sh` for any that promises no more than POSIX."""
    quiet: bool = False
    """Not the user's own: walked for what it sets, but never judged."""
    entry: bool = False
    """It is a container's first process."""
    job: bool = False
    """It is known to run where GPUs are allocated."""
    options: Strict | None = None
    """The strict mode that it is started with; None: what its first line asks for."""

    @cached_property
    def script(self) -> Script:
        """The text, parsed."""
        return parsing.parse(self.text)

    @cached_property
    def nodes(self) -> list[Node]:
        """Every command of the text, at any depth."""
        return everything(self.script.body)

    @cached_property
    def _lines(self) -> list[int]:
        starts, at = [0], self.text.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find(b"\n", at + 1)
        return starts

    @property
    def file(self) -> Source:
        """What it stands in, in the end: something that has a file's name."""
        return self.outer.file if self.outer is not None else self

    def offset_in_file(self, offset: int) -> int:
        """The same place as a byte of `file`."""
        if self.outer is None:
            return offset
        if not self.offsets:
            return self.outer.offset_in_file(0)
        return self.outer.offset_in_file(self.offsets[min(max(offset, 0), len(self.offsets) - 1)])

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) in the file, both from 1; columns are characters."""
        file, at = self.file, self.offset_in_file(offset)
        line = bisect_right(file._lines, at)
        start = file._lines[line - 1]
        return line, len(file.text[start:at].decode("utf-8", "replace")) + 1

    def line_text(self, line: int) -> str:
        """A line of the file, by its number."""
        file = self.file
        if not 0 < line <= len(file._lines):
            return ""
        start = file._lines[line - 1]
        end = file._lines[line] - 1 if line < len(file._lines) else len(file.text)
        return file.text[start:end].decode("utf-8", "replace").rstrip("\r")

    @cached_property
    def ignored(self) -> dict[int, frozenset[str]]:
        """For each line of this text the rules that a comment silences there; `*` is all."""
        found: dict[int, frozenset[str]] = {}
        for comment in self.script.comments:
            said = self.text[comment.start : comment.end].decode("utf-8", "replace")
            _, marker, rest = said.partition(IGNORE)
            if not marker:
                continue
            names = frozenset(("*",))
            if rest.startswith("["):
                names = frozenset(name.strip() for name in rest[1:].partition("]")[0].split(","))
            line = bisect_right(self._lines, comment.start)
            alone = not self.text[self._lines[line - 1] : comment.start].strip()
            for silenced in (line, line + 1) if alone else (line,):
                found[silenced] = found.get(silenced, frozenset()) | names
        return found

    def is_ignored(self, rule: str, offset: int) -> bool:
        """Whether a comment silences a rule at a place, in this text or in what it stands in."""
        names = self.ignored.get(bisect_right(self._lines, offset), frozenset())
        if "*" in names or rule in names:
            return True
        if self.outer is None or not self.offsets or not self.outer.text:
            return False
        return self.outer.is_ignored(rule, self.offsets[min(max(offset, 0), len(self.offsets) - 1)])


@dataclass(eq=False)
class Container(Source):
    """A file that is no shell script itself, but has some in it: YAML, a Dockerfile."""

    @cached_property
    def script(self) -> Script:
        """Nothing: only what is in it is shell."""
        comments, at = [], 0
        for line in self.text.split(b"\n"):
            mark = line.find(b"#")
            if mark >= 0 and IGNORE.encode() in line:
                comments.append(Span(at + mark, at + len(line)))
            at += len(line) + 1
        return Script([], comments)


def inside(outer: Source, word: Word, shell: str = "bash") -> Source:
    """The shell text that a word holds: `bash -c 'WORD'`. What it expands stays written as it is."""
    text, offsets = bytearray(), list[int]()
    for part in word.parts:
        raw = outer.text[part.start : part.end]
        if isinstance(part, Literal):
            value = part.text.encode("utf-8", "surrogateescape")
            offsets += aligned(value, outer.text, part.start, part.end)
            text += value
        else:
            text += raw
            offsets += range(part.start, part.end)
    return Source(outer.name, bytes(text), outer.path, outer, offsets, shell, quiet=outer.quiet)


def aligned(inner: bytes, outer: bytes, start: int, end: int) -> list[int]:
    """For each byte of `inner`, which is `outer[start:end]` without its quoting, where it stands."""
    found, at = [], start
    for byte in inner:
        there = outer.find(byte, at, end)
        if there < 0 and byte in b"\n\t":  # written as \n, or folded from a space
            there = outer.find(b"\\", at, end)
        if there >= 0:
            at = there + 1
            found.append(there)
        else:
            found.append(min(at, max(end - 1, start)))
    return found
