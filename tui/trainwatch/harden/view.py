"""A script as hardening sees it: walked like the linter does, with the place of each command and what becomes of it."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainwatch.lint import follow, linting, syntax
from trainwatch.lint.catalog import KNOWN_VARIABLES, Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.findings import Mark
from trainwatch.lint.scope import Context, Fate
from trainwatch.lint.source import Source
from trainwatch.lint.syntax import (
    AndOr,
    Case,
    Function,
    Group,
    If,
    Item,
    Loop,
    Node,
    Pipeline,
    Simple,
    Subshell,
    Variable,
    Word,
)
from trainwatch.lint.walk import Walk

SAFE_OPERATORS = frozenset((":-", "-", ":=", "=", ":+", "+", ":?", "?"))


@dataclass(slots=True)
class Place:
    """Where an item stands: its list, and what the list belongs to (None for the script itself)."""

    items: list[Item]
    index: int
    owner: Node | None
    function: Function | None


@dataclass(slots=True)
class Seen:
    """A simple command as it was passed: how much it matters, what becomes of its status."""

    node: Simple
    call: Call
    kind: Kind
    context: Context
    fate: Fate
    errexit: bool


@dataclass
class View:
    """One pass over a script. `marks` are the linter's findings in the script itself, not in what it calls."""

    text: bytes
    source: Source
    walk: Walk = field(init=False)
    seen: list[Seen] = field(default_factory=list)
    unset: dict[int, tuple[Variable, bool]] = field(default_factory=dict)
    """Expansions of what may not be set, by their place, and whether they stand in a test."""
    places: dict[int, Place] = field(default_factory=dict)
    """By the id of the item's node."""

    def marks(self, rule: str) -> list[Mark]:
        """What the linter found by a rule, in the order of the script."""
        found = [mark for mark in self.all_marks if mark.rule == rule]
        return sorted(found, key=lambda mark: mark.source.offset_in_file(mark.offset))

    @property
    def all_marks(self) -> list[Mark]:
        """Everything that the linter found in the script."""
        return [mark for mark in self.walk.marks
                if mark.source.file is self.source and not mark.source.is_ignored(mark.rule, mark.offset)]  # fmt: skip

    # -- where things stand

    def item_of(self, node: Node) -> Item | None:
        """The item that is this node, if it is one."""
        place = self.places.get(id(node))
        return place.items[place.index] if place is not None else None

    def at(self, offset: int) -> Node | None:
        """The smallest item that has this byte."""
        found: Node | None = None
        for items in self.lists():
            for item in items:
                node = item.node
                if node.start <= offset < max(node.end, node.start + 1) and (
                    found is None or node.end - node.start <= found.end - found.start
                ):
                    found = node
        return found

    def simple_at(self, offset: int) -> Simple | None:
        """The simple command that begins at a byte."""
        for node in self.source.nodes:
            if isinstance(node, Simple) and node.start == offset:
                return node
        return None

    def lists(self) -> Iterator[list[Item]]:
        """Every list of commands of the script, functions included, substitutions not."""
        yield self.source.script.body
        for node in self.nodes():
            yield from syntax.children(node)

    def nodes(self) -> Iterator[Node]:
        """Every command, also in functions, but not in substitutions."""
        waiting = [item.node for item in self.source.script.body]
        while waiting:
            node = waiting.pop(0)
            yield node
            if isinstance(node, Function):
                waiting.insert(0, node.body)
            elif isinstance(node, Pipeline):
                waiting = [*node.elements, *waiting]
            elif isinstance(node, AndOr):
                waiting = [node.first, *(part for _, part in node.rest), *waiting]
            else:
                waiting = [item.node for items in syntax.children(node) for item in items] + waiting

    def top(self, offset: int) -> Item | None:
        """The item of the script itself that has this byte."""
        for item in self.source.script.body:
            if item.node.start <= offset <= self.end(item):
                return item
        return None

    def end(self, item: Item) -> int:
        """Where an item ends, its `&` and the text of its here-documents included."""
        end = item.node.end
        for node in syntax.commands(item.node):
            for redirect in node.redirects:
                if redirect.body is not None:
                    close = self.text.find(b"\n", redirect.body.end)
                    end = max(end, close if close >= 0 else len(self.text))
        if item.background:
            there = self.text.find(b"&", item.node.end)
            end = max(end, there + 1)
        return end

    def indent(self, offset: int) -> str | None:
        """The white space before a place when nothing else is on its line, else None."""
        start = self.text.rfind(b"\n", 0, offset) + 1
        before = self.text[start:offset]
        return before.decode() if not before.strip() else None

    def raw(self, node: syntax.Span) -> str:
        """The text of a node."""
        return self.text[node.start : node.end].decode("utf-8", "surrogateescape")


def look(text: bytes, name: str, path: str, files: follow.Files, here: str, shell: str = "") -> View:
    """Walk a script as the linter does. Raises RecursionError."""
    source = follow.open_script(name, path, text)
    source.shell = shell or source.shell
    view = View(text, source)
    _find_places(view, source.script.body, None, None)

    def simple(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
        if walk.source is source:
            view.seen.append(Seen(node, call, kind, context, walk.fate(context), walk.scope.strict.errexit is True))
            _note_unset(view, walk, node.all_words(), node.name in ("[", "[[", "test"))
            _note_unset(view, walk, (r.body for r in node.redirects if r.body is not None), False)

    def compound(walk: Walk, node: Node, context: Context) -> None:
        if walk.source is source and isinstance(node, (Loop, Case)):
            _note_unset(view, walk, syntax.words_of(node), isinstance(node, Case))

    places = linting.places_of(source, here)
    view.walk = Walk(source, files, places, (simple, *linting.SIMPLE), (compound, *linting.NODES))
    view.walk.run(linting.options_of(source))
    linting.finish(view.walk, root=True)
    return view


def _find_places(view: View, items: list[Item], owner: Node | None, function: Function | None) -> None:
    for index, item in enumerate(items):
        view.places[id(item.node)] = Place(items, index, owner, function)
        for node in _inside(item.node):
            if isinstance(node, Function):
                inner = node.body
                lists = list(syntax.children(inner))
                for one in lists:
                    _find_places(view, one, inner, node)
            elif isinstance(node, (Group, Subshell, If, Loop, Case)):
                for one in syntax.children(node):
                    _find_places(view, one, node, function)


def _inside(node: Node) -> Iterator[Node]:
    """A node and the parts of its chains and pipes, not the commands inside compounds."""
    yield node
    if isinstance(node, Pipeline):
        for element in node.elements:
            yield from _inside(element)
    elif isinstance(node, AndOr):
        yield from _inside(node.first)
        for _, part in node.rest:
            yield from _inside(part)


def _note_unset(view: View, walk: Walk, words: Iterable[Word], test: bool) -> None:
    for word in words:
        for variable in word.variables():
            name = variable.name
            if variable.operator in SAFE_OPERATORS or variable.indirect or variable.index or not name:
                continue
            if name in KNOWN_VARIABLES or not (name[0].isalnum() or name[0] == "_") or name == "0":
                continue
            known = walk.scope.variables.get(name)
            if known is None or not known.sure:
                before = view.unset.get(variable.start)
                view.unset[variable.start] = (variable, test or (before is not None and before[1]))
