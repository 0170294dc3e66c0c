"""Strict mode: what errexit, nounset and pipefail are, and what `set` and a shell's options make of them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainwatch.lint.syntax import Simple

LETTERS = {"e": "errexit", "u": "nounset"}
NAMES = ("errexit", "nounset", "pipefail")


@dataclass(frozen=True, slots=True)
class Strict:
    """Each option is on, off, or (None) only known when it runs."""

    errexit: bool | None = False
    nounset: bool | None = False
    pipefail: bool | None = False
    inherited: bool = False
    """SHELLOPTS is exported: bash children start with the same."""

    def merged(self, other: Strict) -> Strict:
        """What is known after either of two ways."""
        same = {
            name: getattr(self, name) if getattr(self, name) == getattr(other, name) else None for name in NAMES
        }  # fmt: skip
        return Strict(**same, inherited=self.inherited and other.inherited)

    def after(self, command: Simple) -> Strict:
        """What is in force after a command: `set`, `shopt -o`, `export SHELLOPTS`; any other changes nothing."""
        if command.name == "set":
            return self.options([word.text for word in command.words[1:]])
        if command.name == "shopt":
            texts = [word.text or "" for word in command.words[1:]]
            flags = "".join(text[1:] for text in texts if text.startswith("-"))
            if "o" in flags and ("s" in flags or "u" in flags):
                return self._named([text for text in texts if not text.startswith("-")], "s" in flags)
        exports = command.name in ("export", "declare", "typeset", "readonly")
        if exports and any(word.text == "SHELLOPTS" for word in command.words[1:]):
            return replace(self, inherited=True)
        return self

    def options(self, texts: Sequence[str | None]) -> Strict:
        """The same with the options of `set` or of a shell's command line: `-euo pipefail`, `+e`."""
        now, rest = self, list(texts)
        while rest:
            text = rest.pop(0)
            if not text or text in ("-", "--") or text[0] not in "-+" or len(text) < 2 or text.startswith("--"):
                break
            on = text[0] == "-"
            for letter in text[1:]:
                if letter in LETTERS:
                    now = now._named([LETTERS[letter]], on)
                elif letter == "o" and rest:
                    now = now._named([rest.pop(0) or ""], on)
        return now

    def _named(self, names: Iterable[str], on: bool) -> Strict:
        known = {name: on for name in names if name in NAMES}
        return replace(self, **known) if known else self


def of_shebang(line: str) -> Strict:
    """What a script's first line asks for: `#!/bin/bash -eu`."""
    words = line.removeprefix("#!").split()
    words = words[1:]
    if words[:1] == ["-S"] or (words and not words[0].startswith("-")):  # env bash, env -S bash -e
        words = words[2:] if words[0] == "-S" else words[1:]
    return Strict().options(words)
