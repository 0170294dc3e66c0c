"""What is linted: scripts, and the commands inside Dockerfiles and Kubernetes manifests."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from trainwatch.lint import catalog, follow
from trainwatch.lint.children import shell_of
from trainwatch.lint.commands import resolve
from trainwatch.lint.findings import NotFollowed
from trainwatch.lint.source import POSIX, Container, Source, aligned
from trainwatch.lint.strict import Strict
from trainwatch.lint.syntax import Literal, Simple, Word


class Unreadable(Exception):
    """A file is none of the kinds that can be linted; the message says what it is."""


@dataclass(frozen=True)
class Taken:
    """What a file holds: shell texts to lint, and scripts that it starts but that are not here."""

    sources: list[Source]
    missing: list[NotFollowed]


def read(name: str, path: str, text: bytes, files: follow.Files, shell: str = "") -> Taken:
    """The shell texts of a file, by its name and content. Raises Unreadable."""
    if b"\0" in text[:4096]:
        raise Unreadable("not a text file")
    base = name.rpartition("/")[2].lower()
    if base.endswith((".yaml", ".yml")) or (_looks_like_manifest(text) and not follow.shebang(text)):
        from trainwatch.lint import manifest

        outer = Container(name, text, path)
        return _taken(outer, manifest.commands(outer), files)
    if base.startswith(("dockerfile", "containerfile")) or base.endswith((".dockerfile", ".containerfile")) or (
        _looks_like_dockerfile(text) and not follow.shebang(text)
    ):  # fmt: skip
        outer = Container(name, text, path)
        return _taken(outer, _docker_commands(outer), files)
    line = follow.shebang(text)
    if line and follow.interpreter(line) not in follow.SHELL_NAMES:
        raise Unreadable(f"not a shell script: its first line is {line[:60]}")
    source = follow.open_script(name, path, text)
    source.shell = shell or source.shell
    return Taken([source], [])


def _looks_like_manifest(text: bytes) -> bool:
    lines = text[:20000].split(b"\n")
    return any(line.startswith(b"apiVersion:") for line in lines) and any(line.startswith(b"kind:") for line in lines)


def _looks_like_dockerfile(text: bytes) -> bool:
    for line in text[:4000].split(b"\n"):
        words = line.split()
        if words and not words[0].startswith(b"#") and words[0].upper() != b"ARG":
            return words[0] == b"FROM" and len(words) > 1
    return False


@dataclass(frozen=True)
class Started:
    """A container's first process: its words, whether it has GPUs, and the shell that is put before it, if any."""

    words: list[Word]
    gpus: bool = False
    text: Word | None = None
    """The whole command as one text, for a shell to read."""
    shell: tuple[str, ...] = ()


def _taken(outer: Source, started: Iterator[Started], files: follow.Files) -> Taken:
    taken = Taken([], [])
    for one in started:
        if one.text is not None:
            _add_text(taken, outer, one)
        elif one.words:
            _add_words(taken, outer, one, files)
    return taken


def _add_text(taken: Taken, outer: Source, one: Started) -> None:
    assert one.text is not None
    text = one.text.known.encode("utf-8", "surrogateescape")
    offsets = aligned(text, outer.text, one.text.start, one.text.end)
    shell = one.shell[0].rpartition("/")[2] if one.shell else "sh"
    made = Source(outer.name, text, outer.path, outer, offsets, shell="sh" if shell in POSIX else "bash")
    made.entry, made.job, made.options = True, one.gpus, Strict().options(one.shell[1:])
    taken.sources.append(made)


def _add_words(taken: Taken, outer: Source, one: Started, files: follow.Files) -> None:
    call = resolve(Simple(one.words[0].start, one.words[-1].end, one.words))
    supervised = any(wrapper in ("tini", "dumb-init", "catatonit") for wrapper in call.wrappers)
    shell = shell_of(call)
    if shell is not None and shell.string is not None:
        text = Word(shell.string.start, shell.string.end, shell.string.parts, shell.string.raw)
        _add_text(taken, outer, Started([], one.gpus, text, (shell.name,)))
        taken.sources[-1].options, taken.sources[-1].entry = shell.strict, not supervised
        return
    named = shell.file if shell is not None else call.words[0] if call.words else None
    if named is None or (shell is None and not (named.text or "").endswith((".sh", ".bash"))):
        return
    found = _beside(outer, named.text or "", files)
    if found is None:
        line = outer.place(named.start)[0]
        taken.missing.append(NotFollowed(outer.name, line, named.text or named.raw, "not found"))
        return
    path, content = found
    made = follow.open_script(_beside_name(outer, path), path, content)
    made.entry, made.job = not supervised, one.gpus
    if shell is not None:
        made.options = shell.strict
        made.shell = "sh" if shell.name == "sh" else made.shell
    taken.sources.append(made)


def _beside(outer: Source, text: str, files: follow.Files) -> tuple[str, bytes] | None:
    """A script of an image, looked for beside the file that names it: its path there is another one."""
    place = PurePath(outer.path).parent if outer.path else PurePath()
    parts = PurePath(text).parts
    for start in range(len(parts)):
        path = str(place.joinpath(*parts[start:])) if parts[start] != "/" else text
        content = files.read(path)
        if content is not None and follow.is_shell(content):
            return path, content
    return None


def _beside_name(outer: Source, path: str) -> str:
    prefix = outer.path[: len(outer.path) - len(outer.name)] if outer.path.endswith(outer.name) else ""
    return path[len(prefix) :] if prefix and path.startswith(prefix) else path


# -- Dockerfiles


def _docker_commands(outer: Source) -> Iterator[Started]:
    """CMD and ENTRYPOINT of the last stage; the last of each counts."""
    shell: tuple[str, ...] = ("/bin/sh", "-c")
    last: dict[str, Word] = {}
    for instruction, argument in _instructions(outer.text):
        if instruction == "FROM":
            last, shell = {}, ("/bin/sh", "-c")
        elif instruction == "SHELL":
            shell = tuple(word.known for word in _json_words(argument) or []) or shell
        elif instruction in ("CMD", "ENTRYPOINT"):
            last[instruction] = argument
    entry, command = last.get("ENTRYPOINT"), last.get("CMD")
    entry_words = _json_words(entry) if entry is not None else None
    command_words = _json_words(command) if command is not None else None
    if entry is not None and entry_words is None:
        yield Started([], text=entry, shell=shell)
    elif entry_words is not None:
        yield Started([*entry_words, *(command_words or [])])
    elif command is not None and command_words is None:
        yield Started([], text=command, shell=shell)
    elif command_words is not None:
        yield Started(command_words)


def _instructions(text: bytes) -> Iterator[tuple[str, Word]]:
    """Each instruction with its argument, continued lines joined; here-documents are passed over."""
    at, end_marks = 0, list[bytes]()
    lines = text.split(b"\n")
    number = 0
    while number < len(lines):
        start, pieces = at, list[bytes]()
        while number < len(lines):
            line = lines[number]
            number += 1
            at += len(line) + 1
            stripped = line.rstrip(b" \t\r")
            if pieces and stripped.lstrip().startswith(b"#"):
                continue  # a comment between continued lines
            pieces.append(stripped[:-1] if stripped.endswith(b"\\") else stripped)
            if not stripped.endswith(b"\\"):
                break
        joined = b"\n".join(pieces) if len(pieces) > 1 else pieces[0]
        if end_marks:
            if joined.strip() == end_marks[0]:
                end_marks.pop(0)
            continue
        words = joined.split(None, 1)
        if len(words) < 2 or words[0].startswith(b"#"):
            continue
        name = words[0].decode("ascii", "replace").upper()
        if name in ("RUN", "COPY", "ADD") and b"<<" in words[1]:
            tag = words[1].split(b"<<", 1)[1].lstrip(b"-").split()
            end_marks = [tag[0].strip(b"'\"")] if tag and tag[0].strip(b"'\"").isalnum() else []
        said = words[1].replace(b"\n", b" \\\n" if not words[1].lstrip().startswith(b"[") else b" ")
        value = said.decode("utf-8", "replace")
        begin = start + text[start:at].find(words[1].split(b"\n")[0].strip()[:20])
        yield name, Word(begin, min(at, len(text)), [Literal(begin, min(at, len(text)), value)], value)


def _json_words(argument: Word | None) -> list[Word] | None:
    """The words of an instruction in its JSON form; None for the shell form."""
    if argument is None or not argument.known.lstrip().startswith("["):
        return None
    try:
        values = json.loads(argument.known)
    except ValueError:
        return None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    return [
        Word(argument.start, argument.end, [Literal(argument.start, argument.end, value)], value) for value in values
    ]


def command_line(text: str, shell: str = "") -> Source:
    """`--command STRING`: what a shell is given to run."""
    made = Source("command", text.encode("utf-8", "surrogateescape"), shell=shell or "bash")
    made.options = Strict()
    return made


def is_gpu(name: str) -> bool:
    """Whether the name of a container's resource means a GPU."""
    return name.endswith((".com/gpu", ".com/npu")) or "gpu" in name.lower() or name.startswith("nvidia.com/mig")


def runs_a_shell(words: list[str]) -> bool:
    """Whether an argument list starts a shell."""
    return bool(words) and words[0].rpartition("/")[2] in catalog.SHELLS
