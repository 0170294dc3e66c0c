"""From nodes of tree-sitter's tree to commands: simple ones and compounds."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from trainwatch.lint import words
from trainwatch.lint.grammar import Token
from trainwatch.lint.syntax import (
    Assignment,
    Case,
    Function,
    Group,
    If,
    Item,
    Literal,
    Loop,
    Node,
    Simple,
    Subshell,
    Unknown,
    Word,
)

if TYPE_CHECKING:
    import tree_sitter

    Tree = tree_sitter.Node


class Shapes(ABC):
    """Makes a command of a node, by the node's type. `base` is where the tree's bytes begin in the script."""

    def __init__(self, text: bytes, base: int) -> None:
        self.text, self.base = text, base
        self.repairs: list[tuple[int, bytes]] = []
        """What to put in place before the script is parsed again: (offset, bytes)."""
        self.features: list[tuple[int, str]] = []
        self.broken: int | None = None
        self.words = words.Reader(text, base, self.features, self.items)

    @abstractmethod
    def items(self, nodes: list[Tree]) -> list[Item]:
        """The commands among the children of a list."""

    @abstractmethod
    def redirect(self, node: Tree, owner: Node, out: list[Token]) -> None:
        """Attach a redirection to its command."""

    @abstractmethod
    def error(self, node: Tree) -> None:
        """Something did not parse."""

    def is_broken(self, node: Tree) -> None:
        """What is understood ends here at the latest."""
        start = self.base + node.start_byte
        if self.broken is None or start < self.broken:
            self.broken = start

    def command(self, node: Tree) -> Node:
        """One command that is no list."""
        kind = node.type
        make = getattr(self, "_" + kind, None)
        if make is None:
            if node.has_error:
                self.is_broken(node)
            return Unknown(self.base + node.start_byte, self.base + node.end_byte)
        made: Node = make(node)
        return made

    def span(self, node: Tree) -> tuple[int, int]:
        """Where a node is in the script."""
        return self.base + node.start_byte, self.base + node.end_byte

    def raw(self, node: Tree) -> str:
        """A node as written."""
        return self.text[self.base + node.start_byte : self.base + node.end_byte].decode("utf-8", "replace")

    def _command(self, node: Tree) -> Node:
        made = Simple(*self.span(node), [])
        for child in node.children:
            kind = child.type
            if kind == "command_name":
                if child.end_byte > child.start_byte:
                    made.words.append(self.words.word(child.children[0]))
            elif kind == "variable_assignment":
                made.assigns.append(self._assigned(child))
            elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self.redirect(child, made, [])
            elif kind == "subshell":
                if made.name == "time":
                    self.repairs.append((made.start, b" " * (self.base + child.start_byte - made.start)))
                if made.name == "time" or not made.words:
                    inner = self.command(child)
                    inner.redirects += made.redirects
                    return inner
                self.is_broken(child)
            elif child.is_error:
                self.is_broken(child)
            else:
                made.words.append(self.words.word(child))
        if made.name == "time" and len(made.words) > 1:
            self._timed(made)
        if made.name in ("{", "}", "coproc") or (made.name == "!" and len(made.words) > 1):
            self.is_broken(node)
        return made

    def _timed(self, made: Simple) -> None:
        """`time` is a word of the grammar, not a command: it goes, and what it times is read in its place."""
        word = made.words[0]
        end = made.words[1].end if made.words[1].text == "-p" else word.end
        self.repairs.append((word.start, b" " * (end - word.start)))

    def _assigned(self, node: Tree) -> Assignment:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        raw = self.raw(name) if name is not None else ""
        made = Assignment(*self.span(node), raw.partition("[")[0], None)
        made.append = any(child.type == "+=" for child in node.children)
        made.array = "[" in raw
        if value is not None and value.type == "array":
            made.array = True
            made.elements = [self.words.word(child) for child in value.named_children if child.type != "comment"]
        elif value is not None:
            made.value = self.words.word(value)
        return made

    def _variable_assignment(self, node: Tree) -> Node:
        return Simple(*self.span(node), [], [self._assigned(node)])

    def _variable_assignments(self, node: Tree) -> Node:
        found = [self._assigned(child) for child in node.named_children if child.type == "variable_assignment"]
        return Simple(*self.span(node), [], found)

    def _declaration_command(self, node: Tree) -> Node:
        made = Simple(*self.span(node), [])
        for child in node.children:
            if child.type == "variable_assignment":
                made.declared.append(self._assigned(child))
            elif child.is_error:
                self.is_broken(child)
            else:
                made.words.append(self.words.word(child))
        return made

    _unset_command = _declaration_command

    def _test_command(self, node: Tree) -> Node:
        made = Simple(*self.span(node), [])
        self._leaves(node, made.words)
        return made

    def _leaves(self, node: Tree, out: list[Word]) -> None:
        for child in node.children:
            if child.type in words.KINDS or not child.children:
                out.append(self.words.word(child))
            else:
                self._leaves(child, out)

    def _compound_statement(self, node: Tree) -> Node:
        first = node.children[0] if node.children else None
        if first is not None and first.type == "((":
            inside = self.words.arithmetic(node)
            head = Word(inside.start, inside.start + 2, [Literal(inside.start, inside.start + 2, "((")], "((")
            return Simple(*self.span(node), [head, inside])
        return Group(*self.span(node), self.items(node.children))

    def _do_group(self, node: Tree) -> Node:
        return Group(*self.span(node), self.items(node.children))

    def _subshell(self, node: Tree) -> Node:
        return Subshell(*self.span(node), self.items(node.children))

    def _if_statement(self, node: Tree) -> Node:
        branches: list[tuple[list[Item], list[Item]]] = []
        otherwise: list[Item] | None = None
        clauses = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
        rest = [child for child in node.children if child.type not in ("elif_clause", "else_clause")]
        for clause in (rest, *(clause.children for clause in clauses)):
            if clause and clause[0].type == "else":
                otherwise = self.items(clause[1:])
                continue
            then = next((n for n, child in enumerate(clause) if child.type == "then"), len(clause))
            branches.append((self.items(clause[1:then]), self.items(clause[then + 1 :])))
        return If(*self.span(node), branches, otherwise)

    def _while_statement(self, node: Tree) -> Node:
        body = node.child_by_field_name("body")
        before = [child for child in node.children[1:] if child.type != "do_group"]
        kind = node.children[0].type if node.children else "while"
        return Loop(*self.span(node), kind, self.items(before), "", [], self._body(body))

    def _for_statement(self, node: Tree) -> Node:
        variable = node.child_by_field_name("variable")
        values = [self.words.word(child) for child in node.children_by_field_name("value")]
        for child in node.children:
            if child.is_error:
                self.error(child)
        name = self.raw(variable) if variable is not None else ""
        kind = node.children[0].type
        return Loop(*self.span(node), kind, [], name, values, self._body(node.child_by_field_name("body")))

    def _c_style_for_statement(self, node: Tree) -> Node:
        counter = node.child_by_field_name("initializer")
        name = self.raw(counter).partition("=")[0].strip() if counter is not None else ""
        return Loop(*self.span(node), "for((", [], name, [], self._body(node.child_by_field_name("body")))

    def _body(self, node: Tree | None) -> list[Item]:
        return self.items(node.children) if node is not None else []

    def _case_statement(self, node: Tree) -> Node:
        value = node.child_by_field_name("value")
        arms = []
        for child in node.children:
            if child.type == "case_item":
                patterns = [self.words.word(one) for one in child.children_by_field_name("value")]
                close = next((n for n, one in enumerate(child.children) if one.type == ")"), -1)
                rest = child.children[close + 1 :]
                for one in rest:
                    if one.type in (";&", ";;&"):
                        self.features.append((self.base + one.start_byte, "case's " + one.type))
                arms.append((patterns, self.items([one for one in rest if one.type not in (";&", ";;&")])))
            elif child.is_error:
                self.error(child)
        return Case(*self.span(node), self.words.word(value) if value is not None else None, arms)

    def _function_definition(self, node: Tree) -> Node:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            self.is_broken(node)
            return Unknown(*self.span(node))
        inner = self.command(body)
        for child in node.children_by_field_name("redirect"):
            self.redirect(child, inner, [])
        return Function(*self.span(node), self.raw(name), inner, keyword=node.children[0].type == "function")
