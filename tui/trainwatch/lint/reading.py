"""Who reads `$?` and PIPESTATUS, and which commands can stand between a command and its reader."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainwatch.lint import catalog
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
    Substitution,
    Variable,
    Word,
    commands,
)

PRINTERS = frozenset(("echo", "printf"))
QUIET = catalog.TRIVIAL | {"set", "export", "unset", "shopt", "readonly", "mkdir", "touch", "sync", "cd"}
"""After these `$?` is hardly what was meant, when a step of the job stands before them."""
DEVICES = ("/proc/", "/sys/")
"""Writing there may fail: whoever reads `$?` then means it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a command reads `$?` or PIPESTATUS first. `printed`: it only shows it, or talks about it, or keeps it and
    never looks."""

    kind: str
    offset: int
    printed: bool = False


def first(node: Node) -> Node:
    """The first command that runs in a node."""
    while True:
        if isinstance(node, AndOr):
            node = node.first
        elif isinstance(node, Pipeline):
            node = node.elements[0]
        elif isinstance(node, If) and node.branches[0][0]:
            node = node.branches[0][0][0].node
        elif isinstance(node, Loop) and node.condition:
            node = node.condition[0].node
        elif isinstance(node, (Group, Subshell)) and node.body:
            node = node.body[0].node
        else:
            return node


def reading(node: Node, used: frozenset[str], function: Callable[[str], Function | None]) -> Reading | None:
    """What a node reads of the command before it; `used` are the variables that are looked at, not only printed."""
    one = first(node)
    if isinstance(one, Function):
        return None
    if isinstance(one, Case):
        words: Iterator[Word] = iter([one.word] if one.word is not None else [])
    elif isinstance(one, Simple):
        called = function(one.name)
        if called is not None:
            inner = reading(called.body, used, lambda _: None)
            if inner is not None and not inner.printed:
                return Reading(inner.kind, one.start)
        words = one.all_words()
    elif isinstance(one, Loop):
        words = iter(one.words)
    else:
        return None
    for word in words:
        found = _in_word(word)
        if found is not None:
            printed = isinstance(one, Simple) and (one.name in PRINTERS or _only_kept(one, used))
            printed = printed or (isinstance(node, (If, AndOr)) and _only_talks(node))
            kind = "pipe" if found.name == "PIPESTATUS" else "status"
            return Reading(kind, found.start, printed)
    return None


def _in_word(word: Word) -> Variable | None:
    for variable in word.variables():
        if variable.name in ("?", "PIPESTATUS") and not variable.length:
            return variable
    for substitution in word.substitutions():  # $(( )) is a variable; $(echo $?) still sees it
        for item in substitution.body[:1]:
            one = first(item.node)
            if isinstance(one, Simple):
                for inner in one.all_words():
                    if (found := _in_word(inner)) is not None:
                        return found
    return None


def _only_kept(one: Simple, used: frozenset[str]) -> bool:
    """Whether it keeps the status in a variable that nothing looks at."""
    kept = [*one.assigns, *one.declared]
    return bool(kept) and (not one.words or bool(one.declared)) and not any(each.name in used for each in kept)


def used_variables(nodes: list[Node]) -> frozenset[str]:
    """The variables that the script looks at otherwise than by printing them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Simple):
            if node.name in PRINTERS:
                continue
            for word in node.all_words():
                found.update(variable.name for variable in word.variables())
            if node.name in ("export", "((", "let"):
                found.update(word.known for word in node.words[1:])
        elif isinstance(node, Case) and node.word is not None:
            found.update(variable.name for variable in node.word.variables())
        elif isinstance(node, Loop):
            for word in node.words:
                found.update(variable.name for variable in word.variables())
    return frozenset(found)


def is_transparent(item: Item) -> bool:
    """Whether nobody can mean this command when they read `$?` behind it."""
    node = item.node
    if item.background:
        return False
    if isinstance(node, Simple):
        if any((redirect.target.known if redirect.target else "").startswith(DEVICES) for redirect in node.redirects):
            return False
        if not node.words:
            return not any(_may_be_meant(assignment.words()) for assignment in node.assigns)
        if node.name in ("export", "readonly") and any(_may_be_meant(one.words()) for one in node.declared):
            return False
        return node.name in QUIET - {"cd", "test", "[", "[[", "((", "let", "expr"}
    if isinstance(node, (If, AndOr)):
        one = first(node)
        reads = isinstance(one, Simple) and any(_in_word(word) is not None for word in one.all_words())
        return reads and _only_talks(node)
    return False


def _only_talks(node: Node) -> bool:
    """Whether nothing in a test and its branches does anything about what was tested."""
    simples = [inner for inner in commands(node) if not isinstance(inner, (If, AndOr, Group))]
    return all(isinstance(inner, Simple) and bool(inner.words) and inner.name in QUIET for inner in simples)


def _may_be_meant(words: Iterator[Word]) -> bool:
    """Whether an assignment has a status of its own that is worth a look: `X=$(command)`, but not `NOW=$(date)`."""
    return any(
        not (isinstance(item.node, Simple) and item.node.name in catalog.TRIVIAL)
        for word in words
        for part in word.parts
        if isinstance(part, Substitution)
        for item in part.body
    )
