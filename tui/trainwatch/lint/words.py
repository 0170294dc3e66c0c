"""Words of a tree of bash: what in them is literal, which variables and commands they hold."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainwatch.lint.syntax import Item, Literal, Substitution, Variable, Word

if TYPE_CHECKING:
    import tree_sitter

    Tree = tree_sitter.Node

Part = Literal | Variable | Substitution

KINDS = frozenset((
    "word", "number", "variable_name", "special_variable_name", "string", "raw_string", "ansi_c_string",
    "translated_string", "concatenation", "simple_expansion", "expansion", "command_substitution",
    "process_substitution", "arithmetic_expansion", "brace_expression", "extglob_pattern", "regex", "test_operator",
    "array",
))  # fmt: skip
"""Nodes of the tree that are words, or pieces of one."""
IN_QUOTES = '$`"\\\n'
"""What a backslash takes the meaning from inside double quotes; before all else it stands for itself."""


class Reader:
    """Makes words. `base` is where the tree's bytes begin in the script; `items` reads commands in substitutions."""

    def __init__(
        self, text: bytes, base: int, features: list[tuple[int, str]], items: Callable[[list[Tree]], list[Item]]
    ) -> None:
        self._text, self._base, self._features, self._items = text, base, features, items

    def word(self, node: Tree) -> Word:
        """One word."""
        parts: list[Part] = []
        self._parts(node, False, parts)
        start, end = self._base + node.start_byte, self._base + node.end_byte
        return Word(start, end, parts, self._text[start:end].decode("utf-8", "replace"))

    def heredoc(self, node: Tree, delimiter: str) -> Word:
        """The text of a here-document; with a quoted delimiter nothing in it is expanded."""
        start, end = self._base + node.start_byte, self._base + node.end_byte
        parts: list[Part] = []
        if any(quote in delimiter for quote in "'\"\\"):
            parts.append(Literal(start, end, self._text[start:end].decode("utf-8", "replace"), True))
        else:
            self._filled(node, node.start_byte, node.end_byte, parts)
        return Word(start, end, parts, self._text[start:end].decode("utf-8", "replace"))

    def arithmetic(self, node: Tree) -> Word:
        """`(( … ))` as a word: the variables that it names."""
        start, end = self._base + node.start_byte, self._base + node.end_byte
        parts: list[Part] = [Variable(start, end, "", "((")]
        self._named(node, parts)
        return Word(start, end, parts, self._text[start:end].decode("utf-8", "replace"))

    def _parts(self, node: Tree, quoted: bool, out: list[Part]) -> None:
        start, end = self._base + node.start_byte, self._base + node.end_byte
        kind = node.type
        if kind == "string":
            self._filled(node, node.start_byte + 1, node.end_byte - 1, out)
        elif kind == "raw_string":
            out.append(Literal(start, end, self._raw(start + 1, end - 1), True))
        elif kind == "ansi_c_string":
            self._features.append((start, "$'…'"))
            out.append(Literal(start, end, self._raw(start + 2, end - 1), True))
        elif kind == "simple_expansion":
            out.append(Variable(start, end, self._raw(start + 1, end), quoted=quoted))
        elif kind == "expansion":
            out.append(self._expansion(node, quoted))
        elif kind in ("command_substitution", "process_substitution"):
            opener = node.children[0].type
            if opener != "`" and kind == "process_substitution":
                self._features.append((start, "process substitution"))
            out.append(Substitution(start, end, opener, self._items(node.children), quoted))
        elif kind == "arithmetic_expansion":
            if node.children and node.children[0].type == "$[":
                self._features.append((start, "$[ ]"))
            out.append(Variable(start, end, "", "((", quoted))
            self._named(node, out)
        elif kind in ("concatenation", "translated_string") and node.children:
            if kind == "concatenation" and self._text[start : start + 1] == b"{" and b"," in self._text[start:end]:
                self._features.append((start, "brace expansion"))
            for child in node.children:
                self._parts(child, quoted, out)
        else:
            if kind == "brace_expression":
                self._features.append((start, "brace expansion"))
            out.append(Literal(start, end, unescaped(self._raw(start, end)), quoted))

    def _filled(self, node: Tree, begin: int, end: int, out: list[Part]) -> None:
        """What is in double quotes: its expansions, and all between them."""
        at, before = begin, len(out)
        for child in node.children:
            if child.type in KINDS and child.type not in ("word", "number", "test_operator"):
                self._quoted(at, child.start_byte, out)
                self._parts(child, True, out)
                at = child.end_byte
        self._quoted(at, end, out, empty=len(out) == before)

    def _quoted(self, start: int, end: int, out: list[Part], empty: bool = False) -> None:
        if end > start or empty:
            first, last = self._base + start, self._base + max(start, end)
            out.append(Literal(first, last, unescaped(self._raw(first, last), IN_QUOTES), True))

    def _expansion(self, node: Tree, quoted: bool) -> Variable:
        """`${…}`: the name, then the operator and what it takes."""
        made = Variable(self._base + node.start_byte, self._base + node.end_byte, "", quoted=quoted)
        rest: list[Part] = []
        rest_start = made.end
        for child in node.children[1:-1]:
            kind = child.type
            if not made.name and kind in ("variable_name", "special_variable_name", "subscript"):
                name, bracket, index = self._raw(*self._span(child)).partition("[")
                made.name, made.index = name, index[:-1] if bracket else ""
            elif not made.name:
                sign = self._raw(*self._span(child))
                made.length, made.indirect = made.length or sign == "#", made.indirect or sign == "!"
            elif not made.operator and not rest:
                made.operator = self._raw(*self._span(child))
            else:
                rest_start = min(rest_start, self._base + child.start_byte)
                self._parts(child, quoted, rest)
        if not made.name:  # ${#}, ${!}, ${?}: the sign is the name
            made.name, made.length, made.indirect = self._raw(made.start + 2, made.end - 1), False, False
        if rest:
            made.default = Word(rest_start, made.end - 1, rest, self._raw(rest_start, made.end - 1))
        return made

    def _named(self, node: Tree, out: list[Part]) -> None:
        """Variables of an arithmetic expression, with and without `$`."""
        for child in node.children:
            if child.type in ("variable_name", "word"):
                span = self._span(child)
                out.append(Variable(*span, self._raw(*span), operator="((", quoted=True))
            elif child.type in ("simple_expansion", "expansion", "command_substitution", "subscript"):
                if child.type == "subscript":
                    self._named(child, out)
                else:
                    self._parts(child, True, out)
            else:
                self._named(child, out)

    def _span(self, node: Tree) -> tuple[int, int]:
        return self._base + node.start_byte, self._base + node.end_byte

    def _raw(self, start: int, end: int) -> str:
        return self._text[start:end].decode("utf-8", "replace")


def unescaped(text: str, special: str | None = None) -> str:
    """Text without the backslashes that quote: before anything, or only before `special` characters."""
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and (special is None or text[at + 1] in special):
            at += 1
            if text[at] != "\n":
                out.append(text[at])
        else:
            out.append(text[at])
        at += 1
    return "".join(out)
