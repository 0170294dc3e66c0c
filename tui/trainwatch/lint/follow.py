"""Where a called script lies, as far as the calling one says it. The only module here that looks at files."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trainwatch.lint import strict
from trainwatch.lint.source import POSIX, Source
from trainwatch.lint.syntax import AndOr, Item, Literal, Node, Simple, Substitution, Variable, Word

MAX_SIZE = 1 << 20
"""Bytes of a script that is followed."""
MAX_FILES = 60
SHELL_NAMES = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"))


class Files(Protocol):
    """What a script is read through."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes; None when there is no such file, or it cannot be read."""


@dataclass
class Disk:
    """The files of this machine, each read once."""

    seen: dict[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """See Files."""
        path = os.path.normpath(path)
        if path not in self.seen:
            self.seen[path] = self._read(Path(path)) if len(self.seen) < MAX_FILES * 8 else None
        return self.seen[path]

    def _read(self, path: Path) -> bytes | None:
        try:
            if not path.is_file():
                return None
            with path.open("rb") as file:
                return file.read(MAX_SIZE)
        except (OSError, ValueError):
            return None


@dataclass
class NoFiles:
    """A world without files."""

    def read(self, path: str) -> bytes | None:
        """See Files."""
        return None


def candidates(text: str, directory: str | None, places: list[str]) -> list[str]:
    """Where a path may lead that is relative to a working directory that only the run knows."""
    if text.startswith("~/"):
        return [str(Path.home() / text[2:])]
    if text.startswith("/"):
        return [text]
    found = []
    for place in places:
        for base in ([os.path.join(place, directory)] if directory else []) + [place]:  # noqa: PTH118 - strings
            path = os.path.normpath(os.path.join(base, text))  # noqa: PTH118
            if path not in found:
                found.append(path)
    return found


def shebang(text: bytes) -> str:
    """A script's first line when it names an interpreter, else ``."""
    line = text[:256].split(b"\n", 1)[0].rstrip(b"\r")
    return line.decode("utf-8", "replace") if line.startswith(b"#!") else ""


def interpreter(line: str) -> str:
    """The interpreter's name in a first line, without its directory: `bash` of `#!/usr/bin/env -S bash -e`."""
    for word in line.removeprefix("#!").split():
        name = word.rpartition("/")[2]
        if name not in ("env", "busybox") and not word.startswith("-") and "=" not in word:
            return name
    return ""


def open_script(name: str, path: str, text: bytes) -> Source:
    """A script that its own first line starts."""
    shell = interpreter(shebang(text))
    return Source(name, text, path, shell="sh" if shell in POSIX else "bash")


def is_shell(text: bytes) -> bool:
    """Whether a file may be a shell script: its first line names a shell, or nothing."""
    line = shebang(text)
    return b"\0" not in text[:1024] and (not line or interpreter(line) in SHELL_NAMES)


def options_of(text: bytes) -> strict.Strict:
    """The strict mode that a script's first line asks for."""
    return strict.of_shebang(shebang(text))


def own_directory(word: Word, place: str, variables: dict[str, str | None]) -> str | None:
    """What a word is when it means the script's own directory: `$(cd "$(dirname "$0")" && pwd)/..`; else None."""
    found, own = "", False
    for part in word.parts:
        if isinstance(part, Literal):
            found += part.text
        elif (isinstance(part, Substitution) and _means_directory(part.body)) or (
            isinstance(part, Variable) and _is_directory(part, place, variables)
        ):
            found, own = found + place, True
        else:
            return None
    return found if own else None


def _is_directory(variable: Variable, place: str, variables: dict[str, str | None]) -> bool:
    """`${0%/*}`, or a variable that was set to the directory."""
    if variable.name in ("0", "BASH_SOURCE"):
        return variable.operator in ("%", "%%")
    return not variable.operator and bool(place) and variables.get(variable.name) == place


def _means_directory(body: list[Item]) -> bool:
    """`dirname "$0"`, or `cd "$(dirname "$0")" && pwd`."""
    nodes: list[Node] = []
    for item in body:
        if isinstance(item.node, AndOr):
            nodes += [item.node.first, *(node for _, node in item.node.rest)]
        else:
            nodes.append(item.node)
    simples = [node for node in nodes if isinstance(node, Simple)]
    if len(simples) != len(nodes) or not simples:
        return False
    if len(simples) == 1 and simples[0].name == "dirname":
        return any(mentions_itself(word) for word in simples[0].words[1:])
    if [one.name for one in simples] == ["cd", "pwd"] and len(simples[0].words) > 1:
        word = simples[0].words[-1]
        known = word.parts[:1]
        inner = [part for part in word.parts if isinstance(part, Substitution)]
        return bool(known) and len(inner) == 1 and len(word.parts) == 1 and _means_directory(inner[0].body)
    return False


def mentions_itself(word: Word) -> bool:
    """Whether a word has the script's own name in it."""
    if any(variable.name in ("0", "BASH_SOURCE") for variable in word.variables()):
        return True
    return any(
        isinstance(item.node, Simple) and any(mentions_itself(inner) for inner in item.node.words[1:])
        for substitution in word.substitutions()
        for item in substitution.body
    )
