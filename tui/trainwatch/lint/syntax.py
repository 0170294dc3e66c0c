"""What a shell script says, as values: statements, commands, words. `parse` makes them; nothing here knows how.

Offsets are bytes of the script's own text, `end` excluded.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Span:
    """A range of the script."""

    start: int
    end: int


@dataclass(slots=True)
class Literal(Span):
    """Text that stands for itself, quotes and backslashes already taken away."""

    text: str
    quoted: bool = False


@dataclass(slots=True)
class Variable(Span):
    """An expansion: `$X`, `${X:-default}`, `$?`. `operator` is what follows the name, such as `:-` or `//`, or ``."""

    name: str
    operator: str = ""
    quoted: bool = False
    default: Word | None = None
    index: str = ""
    length: bool = False
    """`${#X}`."""
    indirect: bool = False
    """`${!X}`."""


@dataclass(slots=True)
class Substitution(Span):
    """Commands inside a word; `kind` is `$(`, `` ` ``, `<(` or `>(`."""

    kind: str
    body: list[Item]
    quoted: bool = False


@dataclass(slots=True)
class Word(Span):
    """One word: what it is made of, in order."""

    parts: list[Literal | Variable | Substitution]
    raw: str
    text: str | None = field(init=False)
    """The word's value when it is the same in every run, else None."""
    known: str = field(init=False)
    """The literal text of the word, with nothing where something is only known when it runs."""

    def __post_init__(self) -> None:
        literal = [part.text for part in self.parts if isinstance(part, Literal)]
        self.known = "".join(literal)
        self.text = self.known if len(literal) == len(self.parts) else None

    def variables(self) -> Iterator[Variable]:
        """Every variable of the word itself, those in defaults too, but not in substitutions."""
        if self.text is not None:
            return
        for part in self.parts:
            if isinstance(part, Variable):
                yield part
                if part.default is not None:
                    yield from part.default.variables()

    def substitutions(self) -> Iterator[Substitution]:
        """Every substitution of the word."""
        if self.text is not None:
            return
        for part in self.parts:
            if isinstance(part, Substitution):
                yield part
            elif isinstance(part, Variable) and part.default is not None:
                yield from part.default.substitutions()


@dataclass(slots=True)
class Redirect(Span):
    """`2>&1`, `> log`, a here-document. `fd` is -1 when it is not written."""

    fd: int
    operator: str
    target: Word | None
    body: Word | None = None
    """The text of a here-document."""

    @property
    def descriptor(self) -> int:
        """The descriptor that is redirected; 1 for both outputs at once."""
        if self.fd >= 0:
            return self.fd
        return 0 if self.operator.startswith("<") else 1


@dataclass(slots=True)
class Assignment(Span):
    """`X=value`, `X+=value`, `X[1]=value`; arrays have their elements in `elements`."""

    name: str
    value: Word | None
    append: bool = False
    array: bool = False
    elements: list[Word] = field(default_factory=list)

    def words(self) -> Iterator[Word]:
        """All words in it."""
        if self.value is not None:
            yield self.value
        yield from self.elements


@dataclass(slots=True)
class Node(Span):
    """A command of any kind, with its redirections."""

    redirects: list[Redirect] = field(default_factory=list, kw_only=True)


@dataclass(slots=True)
class Simple(Node):
    """A command: words, and assignments before them. `[ … ]`, `[[ … ]]` and `(( … ))` are ones named so.

    For `export`, `local` and the like `declared` has what they assign.
    """

    words: list[Word]
    assigns: list[Assignment] = field(default_factory=list)
    declared: list[Assignment] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its first word when that is literal, else ``."""
        text = self.words[0].text if self.words else None
        return "" if text is None else text.lstrip("\\") if text[:1] == "\\" else text

    def all_words(self) -> Iterator[Word]:
        """Its words, also those of assignments and redirections; here-documents are not words."""
        yield from self.words
        for assignment in (*self.assigns, *self.declared):
            yield from assignment.words()
        for redirect in self.redirects:
            if redirect.target is not None:
                yield redirect.target


@dataclass(slots=True)
class Pipeline(Node):
    """Commands joined by `|` (or `|&`), maybe negated: also `! cmd`, with a single element."""

    elements: list[Node]
    both: list[bool]
    """For each joint whether it is `|&`."""
    negated: bool = False


@dataclass(slots=True)
class AndOr(Node):
    """`a && b || c`: the first, and what follows with its operator."""

    first: Node
    rest: list[tuple[str, Node]]


@dataclass(slots=True)
class Item:
    """One command of a list."""

    node: Node
    background: bool = False


@dataclass(slots=True)
class Group(Node):
    """`{ … }`."""

    body: list[Item]


@dataclass(slots=True)
class Subshell(Node):
    """`( … )`."""

    body: list[Item]


@dataclass(slots=True)
class If(Node):
    """Each branch is a condition and its commands."""

    branches: list[tuple[list[Item], list[Item]]]
    otherwise: list[Item] | None


@dataclass(slots=True)
class Loop(Node):
    """`while`, `until`, `for`, `select`; `for ((` has kind `for((`."""

    kind: str
    condition: list[Item]
    variable: str
    words: list[Word]
    body: list[Item]


@dataclass(slots=True)
class Case(Node):
    """`case`: the word, and for each arm its patterns and commands."""

    word: Word | None
    arms: list[tuple[list[Word], list[Item]]]


@dataclass(slots=True)
class Function(Node):
    """A function's definition; `keyword` when written with `function`."""

    name: str
    body: Node
    keyword: bool = False


@dataclass(slots=True)
class Unknown(Node):
    """What the parser did not understand."""


@dataclass(slots=True)
class Script:
    """A whole script. `broken` is the offset from which on it was not understood, or None."""

    body: list[Item]
    comments: list[Span]
    broken: int | None = None
    feature: list[tuple[int, str]] = field(default_factory=list)
    """Bash syntax that leaves no trace in the values above: (offset, what it is)."""


def children(node: Node) -> Iterator[list[Item]]:
    """The lists of commands directly inside a compound command."""
    if isinstance(node, (Group, Subshell)):
        yield node.body
    elif isinstance(node, If):
        for condition, body in node.branches:
            yield condition
            yield body
        if node.otherwise is not None:
            yield node.otherwise
    elif isinstance(node, Loop):
        yield node.condition
        yield node.body
    elif isinstance(node, Case):
        for _, body in node.arms:
            yield body


def commands(node: Node) -> Iterator[Node]:
    """A node and all commands in it, in the order written; not those in substitutions and function definitions."""
    yield node
    if isinstance(node, Pipeline):
        for element in node.elements:
            yield from commands(element)
    elif isinstance(node, AndOr):
        yield from commands(node.first)
        for _, other in node.rest:
            yield from commands(other)
    elif not isinstance(node, Function):
        for items in children(node):
            for item in items:
                yield from commands(item.node)


def words_of(node: Node) -> Iterator[Word]:
    """The words of one node itself: not of the commands inside it."""
    if isinstance(node, Simple):
        yield from node.all_words()
        return
    if isinstance(node, Loop):
        yield from node.words
    elif isinstance(node, Case) and node.word is not None:
        yield node.word
    for redirect in node.redirects:
        if redirect.target is not None:
            yield redirect.target


def everything(items: list[Item]) -> list[Node]:
    """Every command of a list at any depth, in the order written, with those in functions and substitutions."""
    found: list[Node] = []
    waiting = [item.node for item in reversed(items)]
    while waiting:
        node = waiting.pop()
        found.append(node)
        inner: list[Node] = []
        if isinstance(node, Pipeline):
            inner += node.elements
        elif isinstance(node, AndOr):
            inner += [node.first, *(part for _, part in node.rest)]
        elif isinstance(node, Function):
            inner.append(node.body)
        else:
            inner += [item.node for body in children(node) for item in body]
        for word in words_of(node):
            inner += [item.node for substitution in word.substitutions() for item in substitution.body]
        for redirect in node.redirects:
            if redirect.body is not None:
                inner += [item.node for one in redirect.body.substitutions() for item in one.body]
        waiting += reversed(inner)
    return found
