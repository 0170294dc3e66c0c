"""Kubernetes manifests (and Compose files): the `command` and `args` of their containers."""
from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from trainwatch.lint import inputs
from trainwatch.lint.source import Source
from trainwatch.lint.syntax import Literal, Word

MAX_NODES = 200_000
"""Values of a file that are looked at: aliases can make a small file endless."""


def commands(outer: Source) -> Iterator[inputs.Started]:
    """What each container of a YAML file starts. Raises Unreadable when it is not YAML."""
    yaml: Any = import_module("yaml")  # no types for it
    text = outer.text.decode("utf-8", "replace")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.compose_all(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        what = getattr(error, "problem", None) or "not understood"
        raise inputs.Unreadable(f"not valid YAML{where}: {what}") from None
    except RecursionError:
        raise inputs.Unreadable("not valid YAML: nested too deeply") from None
    places = _Places(outer.text, text)
    for document in documents:
        for container in _containers(document):
            made = _started(container, places)
            if made is not None:
                yield made


class _Places:
    """From positions in characters, which YAML counts, to bytes."""

    def __init__(self, data: bytes, text: str) -> None:
        self._lines, at = [0], data.find(b"\n")
        while at >= 0:
            self._lines.append(at + 1)
            at = data.find(b"\n", at + 1)
        self.data, self._text_lines = data, text.split("\n")

    def offset(self, mark: Any) -> int:
        """The byte at a mark."""
        if mark.line >= len(self._lines):
            return len(self.data)
        before = self._text_lines[mark.line][: mark.column] if mark.line < len(self._text_lines) else ""
        there = self._lines[mark.line] + len(before.encode("utf-8", "replace"))
        return min(int(there), len(self.data))


def _containers(root: Any) -> Iterator[dict[str, Any]]:
    """Every mapping that has an image, and a command or arguments."""
    waiting, seen = [root], 0
    while waiting and seen < MAX_NODES:
        node = waiting.pop(0)
        seen += 1
        if node is None or not isinstance(node.value, list):
            continue
        if node.id == "mapping":
            keys = {key.value: value for key, value in node.value if isinstance(key.value, str)}
            if "image" in keys and keys.keys() & {"command", "args", "entrypoint"}:
                yield keys
            waiting += [value for _, value in node.value]
        else:
            waiting += node.value


def _started(container: dict[str, Any], places: _Places) -> inputs.Started | None:
    words: list[Word] = []
    for key in ("entrypoint", "command", "args"):
        value = container.get(key)
        if value is None:
            continue
        if value.id == "sequence":
            words += [_word(one, places) for one in value.value if one.id == "scalar"]
        elif value.id == "scalar" and key != "args":
            words += _split(_word(value, places))
    return inputs.Started(words, _has_gpus(container)) if words else None


def _split(word: Word) -> list[Word]:
    """A command written as one text, which Compose splits as a shell does, but for nothing else."""
    import shlex

    try:
        return [
            Word(word.start, word.end, [Literal(word.start, word.end, text)], text) for text in shlex.split(word.known)
        ]
    except ValueError:
        return []


def _word(node: Any, places: _Places) -> Word:
    start, end = places.offset(node.start_mark), places.offset(node.end_mark)
    if node.style in ("|", ">"):
        line_end = places.offset(node.start_mark)
        newline = places.data.find(b"\n", line_end, end)
        start = newline + 1 if newline >= 0 else start
    elif node.style in ("'", '"'):
        start += 1
    return Word(start, end, [Literal(start, end, node.value)], node.value)


def _has_gpus(container: dict[str, Any]) -> bool:
    resources = container.get("resources")
    if resources is None or resources.id != "mapping":
        return False
    for _, amounts in resources.value:
        for name, amount in amounts.value if amounts.id == "mapping" else ():
            if isinstance(name.value, str) and inputs.is_gpu(name.value) and amount.value not in ("0", ""):
                return True
    return False
