"""From bytes to a `Script`: tree-sitter's tree of bash, put right where its grammar binds differently from the shell.

tree-sitter-bash lets `|` bind looser than `||` after the first joint, attaches a redirection to a whole list, hides
what follows a here-document's start on the same line inside the redirection, and takes `time` and `! {` for commands.
So statements are flattened to commands and operators in the order written, and assembled again by the shell's own
grammar (POSIX 2.10); what cannot be read is never guessed at: `Script.broken` says from where on.
"""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from trainwatch.lint.grammar import Token, assemble
from trainwatch.lint.shapes import Shapes
from trainwatch.lint.syntax import Item, Node, Redirect, Script, Simple, Span

if TYPE_CHECKING:
    import tree_sitter

    Tree = tree_sitter.Node

SILENT = frozenset((
    ";", "\n", "then", "do", "done", "fi", "{", "}", "(", ")", "$(", "`", "<(", ">(", "comment", ";;", "in",
))  # fmt: skip
"""What stands between commands and says nothing."""
REPAIRS = 4
"""How often a script is parsed again after it was put right."""
MAX_DEPTH = 60
"""Nesting deeper than this is not followed: Python's own stack is the limit."""


@cache
def _grammar() -> tuple[tree_sitter.Parser, tree_sitter.Query]:
    """The parser, and what finds comments: imported when the first script is read."""
    import tree_sitter
    import tree_sitter_bash

    language = tree_sitter.Language(tree_sitter_bash.language())
    return tree_sitter.Parser(language), tree_sitter.Query(language, "(comment) @comment")


def parse(text: bytes) -> Script:
    """The script that these bytes are. Any bytes are taken; see `Script.broken`."""
    negated: set[int] = set()
    fixed = bytearray(text.replace(b"\0", b" "))
    for _ in range(REPAIRS):
        reading = _Reading(text, bytes(fixed), 0, negated)
        try:
            script = reading.script()
        except RecursionError:
            return Script([], [], 0)
        if not reading.repairs:
            break
        for start, new in reading.repairs:
            fixed[start : start + len(new)] = new
        negated |= reading.negated
    return script


class _Reading(Shapes):
    """One pass over one tree. `base` is where its bytes begin in the whole script."""

    def __init__(self, text: bytes, parsed: bytes, base: int, negated: set[int]) -> None:
        super().__init__(text, base)
        self.parsed, self.negated, self.depth = parsed, set(negated), 0
        self.root = _grammar()[0].parse(parsed).root_node

    def script(self) -> Script:
        """The whole of it."""
        if self.root.type != "program":
            self.error(self.root)
            return Script([], self._comments(self.root), self._first_error(self.root), [])
        body = self.items(self.root.children)
        return Script(body, self._comments(self.root), self.broken, self.features)

    def _comments(self, node: Tree) -> list[Span]:
        from tree_sitter import QueryCursor

        found = QueryCursor(_grammar()[1]).captures(node).get("comment", [])
        return [Span(self.base + one.start_byte, self.base + one.end_byte) for one in found]

    def _first_error(self, node: Tree) -> int:
        """Where the first thing stands that does not fit, below a root that is an error itself."""
        for child in node.children:
            if child.is_error or child.is_missing:
                return self.base + child.start_byte
        return self.base + node.start_byte

    # -- statements

    def items(self, nodes: list[Tree]) -> list[Item]:
        """The commands among these children of a list."""
        tokens: list[Token] = []
        if self.depth > MAX_DEPTH:
            if nodes:
                self.is_broken(nodes[0])
            return []
        self.depth += 1
        for node in nodes:
            kind = node.type
            if kind == "&":
                tokens.append("&")
            elif node.is_error:
                self.error(node)
            elif node.is_missing:
                self.is_broken(node)
            elif kind not in SILENT and node.is_named:
                self.flatten(node, tokens)
                tokens.append(";")
        self.depth -= 1
        return assemble(tokens)

    def error(self, node: Tree) -> None:
        """Something that did not parse: `for x do` is put right for the next pass, all else ends what is understood."""
        for one, other in zip(node.children, node.children[1:], strict=False):
            if one.type == "for" and other.type == "variable_name":
                gap = self.base + other.end_byte
                if self.text[gap : gap + 1].isspace() and self.text[gap : gap + 64].split()[:1] == [b"do"]:
                    self.repairs.append((gap, b";"))
        self.is_broken(node)

    def flatten(self, node: Tree, out: list[Token]) -> None:
        """Append a statement's commands and operators in the order written."""
        waiting = [node]
        while waiting:  # no recursion: a chain of a thousand commands is a thousand nodes deep
            node = waiting.pop()
            kind = node.type
            if kind in ("list", "pipeline"):
                waiting += reversed(node.children)
            elif kind in ("&&", "||", "|", "|&"):
                out.append(kind)
            elif node.is_error:
                self.error(node)
            elif kind == "negated_command":
                self._negated(node, out)
            elif kind == "redirected_statement":
                self._redirected(node, out)
            elif node.is_named and kind != "comment":
                if self.base + node.start_byte in self.negated:
                    out.append("!")
                out.append(self.command(node))

    def _negated(self, node: Tree, out: list[Token]) -> None:
        inner = node.named_children[0] if node.named_children else None
        if inner is None:
            self.is_broken(node)
            return
        if inner.type == "command" and self.raw(inner.children[0]).split()[:1] == ["{"]:  # read as a command named {
            self.repairs.append((self.base + node.start_byte, b" "))
            self.negated.add(self.base + inner.start_byte)
        out.append("!")
        self.flatten(inner, out)

    def _redirected(self, node: Tree, out: list[Token]) -> None:
        begin = len(out)
        body = node.child_by_field_name("body")
        if body is not None:
            self.flatten(body, out)
        owner = out[-1] if len(out) > begin else None
        if not isinstance(owner, Node):
            owner = Simple(self.base + node.start_byte, self.base + node.end_byte, [])
            out.append(owner)
        for child in node.children_by_field_name("redirect"):
            self.redirect(child, owner, out)

    def redirect(self, node: Tree, owner: Node, out: list[Token]) -> None:
        """Attach a redirection to its command; words and operators behind it go where they belong."""
        start, end = self.base + node.start_byte, self.base + node.end_byte
        if node.type == "heredoc_redirect":
            self._heredoc(node, owner, out)
            return
        children = node.children
        fd, operator, targets = -1, "<<<" if node.type == "herestring_redirect" else "", []
        for child in children:
            if child.type == "file_descriptor":
                digits = self.raw(child)
                fd = int(digits) if digits.isdigit() and len(digits) < 5 else -1
            elif child.is_error:
                self.is_broken(child)
            elif not child.is_named:
                operator = child.type
            else:
                targets.append(self.words.word(child))
        closes = operator.endswith("-")
        target = None if closes or not targets else targets.pop(0)
        end = target.end if target is not None and targets else end
        owner.redirects.append(Redirect(start, end, fd, operator, target))
        if targets and isinstance(owner, Simple):
            owner.words.extend(targets)
            owner.end = max(owner.end, targets[-1].end)
        owner.end = max(owner.end, end)

    def _heredoc(self, node: Tree, owner: Node, out: list[Token]) -> None:
        """A here-document. What stands behind its start on that line is read apart: a piece of script of its own."""
        begin = next((child for child in node.children if child.type == "heredoc_start"), None)
        text = next((child for child in node.children if child.type == "heredoc_body"), None)
        if begin is None:
            self.is_broken(node)
            return
        body = self.words.heredoc(text, self.raw(begin)) if text is not None else None
        start, end = self.base + node.start_byte, self.base + begin.end_byte
        operator = node.children[0].type
        owner.redirects.append(Redirect(start, end, -1, operator, self.words.word(begin), body))
        owner.end = max(owner.end, end)
        line_end = self.parsed.find(b"\n", begin.end_byte)
        rest = self.parsed[begin.end_byte : line_end if line_end >= 0 else len(self.parsed)]
        if not rest.strip():
            return
        inner = _Reading(self.text, b":" + rest, end - 1, self.negated)
        tokens: list[Token] = []
        for child in inner.root.children:
            if child.type == "&":
                tokens.append("&")
            elif child.is_error or child.is_missing:
                self.is_broken(node)
            elif child.is_named and child.type != "comment":
                inner.flatten(child, tokens)
                tokens.append(";")
        self.features += inner.features
        if inner.broken is not None or not tokens or not isinstance(tokens[0], Simple):
            self.is_broken(node)
            return
        colon = tokens[0]
        del tokens[0]
        owner.redirects += colon.redirects
        if isinstance(owner, Simple):
            owner.words += colon.words[1:]
        if colon.words[1:] or colon.redirects:
            owner.end = max(owner.end, colon.end)
        while tokens and tokens[-1] == ";":
            tokens.pop()
        out += tokens
