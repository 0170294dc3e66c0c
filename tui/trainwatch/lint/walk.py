"""The walk: a script's commands in the order in which bash would run them, each with what is in force there.

Branches are walked apart and merged, functions where they are called, subshells on a copy of the scope. The rules look
at each command as it is passed; what a rule has to know beside the command itself is in its `Context` and the `Scope`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from trainwatch.lint import reading, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.follow import Files
from trainwatch.lint.scope import Context, Fate, Job, Rest, Scope, Value
from trainwatch.lint.source import Source
from trainwatch.lint.strict import Strict
from trainwatch.lint.survey import Survey
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
    Word,
)

MAX_CALLS = 12
"""Functions inside functions, and scripts inside scripts, that are walked."""

SimpleRule = Callable[["Walk", Simple, Call, Kind, Context], None]
NodeRule = Callable[["Walk", Node, Context], None]


class Walk(Survey):
    """One script with all that it calls. `marks` has what was found."""

    def __init__(
        self, source: Source, files: Files, places: list[str], simple: Iterable[SimpleRule], node: Iterable[NodeRule]
    ) -> None:
        super().__init__(source, files, places)
        self.simple_rules, self.node_rules = list(simple), list(node)
        self._walked: dict[tuple[object, ...], Scope] = {}
        self._calling: list[int] = []
        self._called: set[int] = set()
        self._stale: set[tuple[int, int]] = set()

    # -- walking

    def run(self, strict: Strict) -> None:
        """Walk the whole script, then the functions that it never calls."""
        script = self.source.script
        self.scope.strict = strict
        body = script.body
        if script.broken is not None:
            body = [item for item in body if item.node.end <= script.broken]
        self.items(body, Context())
        ended = self.scope
        for function in [one for one in self.source.nodes if isinstance(one, Function)]:
            if id(function) not in self._called:
                self.scope = ended.copy()
                self.scope.dead, self.scope.jobs = "", []
                self.call(function, self.source, Context())
        self.scope = ended

    def items(self, items: list[Item], context: Context, loop: bool = False) -> None:
        """Walk a list."""
        for index, item in enumerate(items):
            if self.scope.dead:
                return
            rest = Rest(items, index, context.rest, loop)
            if item.background:
                self._background(item, context._replace(rest=rest))
                continue
            last = index == len(items) - 1
            fate, reads = (context.fate, context.reads) if last else self._fate_in(items, index)
            suppressor = context.suppressor
            if context.tests and suppressor is None:
                suppressor = item.node
            inner = context._replace(fate=fate, reads=reads, rest=rest, suppressor=suppressor, tests=False)
            self.node(item.node, inner)

    def _fate_in(self, items: list[Item], index: int) -> tuple[Fate, str]:
        """What becomes of the status of a command that others follow, and how it is read."""
        after = items[index + 1]
        if isinstance(after.node, Simple) and not after.background:
            name, words = after.node.name, after.node.words
            if name in ("exit", "return") and (len(words) == 1 or words[1].text not in ("0", None)):
                return Fate.CHECKED, ""
        result = Fate.LOST, ""
        for later in range(index + 1, min(index + 7, len(items))):
            found = reading.reading(items[later].node, self.used, self.function)
            if found is not None and later == index + 1 and not found.printed:
                result = Fate.CHECKED, found.kind
            elif found is not None and later > index + 1:
                if self.kind(items[index].node) >= Kind.PLAIN:
                    self._mark_stale(found.offset)
                    return Fate.CHECKED, found.kind
                return result
            if not reading.is_transparent(items[later]):
                break
        return result

    def _mark_stale(self, offset: int) -> None:
        if (id(self.source), offset) not in self._stale:
            self._stale.add((id(self.source), offset))
            self.mark("stale-status", offset)

    def node(self, node: Node, context: Context) -> None:
        """Walk one command of any kind."""
        if not isinstance(node, Simple):
            for rule in self.node_rules:
                rule(self, node, context)
            for word in syntax.words_of(node):
                self._word(word, context)
        walk = getattr(self, "_" + type(node).__name__.lower(), None)
        if walk is not None:
            walk(node, context)

    def _simple(self, node: Simple, context: Context) -> None:
        call = self.resolve(node)
        function = self.scope.functions.get(call.name) if not call.wrappers else None
        for word in node.all_words():
            self._word(word, context, whole=not node.words)
        for redirect in node.redirects:
            if redirect.body is not None:
                self._word(redirect.body, context)
        kind = self.kind(node)
        for rule in self.simple_rules:
            rule(self, node, call, kind, context)
        if function is not None:
            caller = context.caller or (node, self.source)
            self.call(function[0], function[1], context._replace(caller=caller))

    def _word(self, word: Word, context: Context, whole: bool = False) -> None:
        """The commands inside a word: in a subshell without errexit; only an assignment has their status."""
        for substitution in word.substitutions():
            with self.subshell():
                self.scope.strict = replace(self.scope.strict, errexit=False)
                fate = context.fate if whole and substitution.kind not in ("<(", ">(") else Fate.CHECKED
                self.items(substitution.body, Context(fate=fate, boundary="subst").within("subst", "piped"))

    def _pipeline(self, node: Pipeline, context: Context) -> None:
        if node.negated:
            fate = context.fate if context.condition else Fate.CHECKED
            suppressor = context.suppressor or node.elements[-1]
            context = context._replace(fate=fate, suppressor=suppressor)
        if len(node.elements) == 1:
            self.node(node.elements[0], context)
            return
        outcome = self.fate(context)
        for index, element in enumerate(node.elements):
            last = index == len(node.elements) - 1
            masked = not last and self.scope.strict.pipefail is False
            lost = Fate.LOST if masked else outcome
            inner = context._replace(boundary="pipe", boundary_fate=lost, caller=None,
                            fate=Fate.CHECKED if masked else context.fate,
                            boundary_followed=not self.nothing_after(context.rest))  # fmt: skip
            with self.subshell():
                self.node(element, inner if last else inner.within("piped"))

    def _andor(self, node: AndOr, context: Context) -> None:
        parts = [node.first, *(part for _, part in node.rest)]
        operators = [operator for operator, _ in node.rest]
        for index, part in enumerate(parts):
            before = self.scope.copy() if index else None
            inner = self._in_chain(parts, operators, index, context)
            self.node(part, inner.within("absent") if index and _looks(parts[index - 1]) else inner)
            if before is not None:
                before.jobs = self.scope.jobs
                before.tested |= self.scope.tested
                self.scope.merge(before)

    def _in_chain(self, parts: list[Node], operators: list[str], index: int, context: Context) -> Context:
        """What becomes of the status of one part of `a && b || c`."""
        if index == len(parts) - 1:
            return context
        suppressor = context.suppressor or parts[index]
        made = context._replace(suppressor=suppressor, condition=True, guarded=operators[index] == "&&")
        if "||" in operators[index:]:
            return made._replace(fate=Fate.CHECKED)
        following = parts[index + 1]
        if isinstance(following, Simple) and following.name in ("break", "exit", "return", "continue"):
            rest = context.rest
            tries_end = following.name == "break" and "counted" in context.inside and rest is not None
            if tries_end and rest is not None and rest.index + 1 < len(rest.items):
                return made  # `for i in 1 2 3; do step && break; sleep 5; done`: after the last try nothing fails
            return made._replace(fate=Fate.CHECKED)
        return made

    def handler(self, node: AndOr, index: int) -> Node | None:
        """What runs when a part of a chain fails; None when nothing does."""
        for operator, part in node.rest[index:]:
            if operator == "||":
                return part
        return None

    def _group(self, node: Group, context: Context) -> None:
        self.items(node.body, context)

    def _subshell(self, node: Subshell, context: Context) -> None:
        followed = not self.nothing_after(context.rest)
        inner = context._replace(boundary="paren", boundary_fate=self.fate(context), boundary_followed=followed,
                        caller=None)  # fmt: skip
        with self.subshell():
            self.items(node.body, inner)

    def _if(self, node: If, context: Context) -> None:
        ways: list[Scope] = []
        for condition, body in node.branches:
            self.items(condition, self._tested(context))
            looks = any(_looks(item.node) for item in condition)
            inner = context.within("absent") if looks else context
            with self.branch() as way:
                self.items(body, inner._replace(condition=False))
            ways.append(way[0])
        with self.branch() as way:
            self.items(node.otherwise or [], context._replace(condition=False))
        ways.append(way[0])
        self._join(ways)

    def _tested(self, context: Context) -> Context:
        return context._replace(fate=Fate.CHECKED, condition=True, tests=True, reads="", guarded=False)

    def _loop(self, node: Loop, context: Context) -> None:
        if node.variable:
            texts = [self.scope.text(word) for word in node.words]
            empty = not all(text for text in texts) and any(not word.known for word in node.words)
            self.scope.variables[node.variable] = Value(None, empty or not node.words)
        if node.condition:
            self.items(node.condition, self._tested(context).within("loop"))
        inner = context._replace(fate=Fate.LOST, reads="", condition=False).within("loop")
        counted = {"counted"} if node.kind == "for" else set()
        inner = inner._replace(inside=(inner.inside - {"counted"}) | counted)
        with self.branch() as way:
            self.items(node.body, inner, loop=True)
        way[0].dead = ""
        self._join([way[0], self.scope])

    def _case(self, node: Case, context: Context) -> None:
        if node.word is not None:
            self.scope.tested.update(variable.name for variable in node.word.variables())
        ways = []
        for _, body in node.arms:
            with self.branch() as way:
                self.items(body, context)
            ways.append(way[0])
        if not any(pattern.known in ("*", "(*") for patterns, _ in node.arms for pattern in patterns):
            ways.append(self.scope)
        self._join(ways or [self.scope])

    def _function(self, node: Function, context: Context) -> None:
        self.scope.functions[node.name] = (node, self.source)

    def _background(self, item: Item, context: Context) -> None:
        kind = self.kind(item.node)
        self.scope.jobs.append(Job(item.node, self.source, kind, "loop" in context.inside))
        inner = context._replace(fate=Fate.RESULT, suppressor=None, condition=False, reads="", rest=None,
                        boundary="job", boundary_fate=Fate.CHECKED)  # fmt: skip
        with self.subshell():
            self.scope.jobs = []
            self.node(item.node, inner.within("job"))

    # -- functions, subshells, branches

    def call(self, function: Function, source: Source, context: Context) -> None:
        """Walk a function's body where it is called, once for each way of being called."""
        strict = self.scope.strict
        key = (id(function), strict, context.fate, context.suppressor is None, context.boundary, context.boundary_fate,
               context.inside & {"subst", "handler"}, self.important_after(context.rest))  # fmt: skip
        known = self._walked.get(key)
        if known is not None or id(function) in self._calling or len(self._calling) >= MAX_CALLS:
            if known is not None:
                self.scope.strict, self.scope.dead = known.strict, known.dead
                self.scope.jobs += [job for job in known.jobs if job not in self.scope.jobs]
                self.scope.functions.update(known.functions)
            return
        self._calling.append(id(function))
        self._called.add(id(function))
        with self.in_source(source):
            self.node(function.body, context.within("function"))
        self._calling.pop()
        if self.scope.dead in ("return", "break"):
            self.scope.dead = ""
        self._walked[key] = self.scope.copy()

    def child(self, source: Source, strict: Strict) -> Walk | None:
        """Another shell, walked from its start to its end; None when it is running already."""
        from trainwatch.lint.linting import finish

        if source.path and source.outer is None and source.path in self.stack:
            return None
        source.job = source.job or (self.job and not self.absent)
        source.quiet = source.quiet or self.source.quiet
        inner = Walk(source, self.files, self.places, self.simple_rules, self.node_rules)
        inner.root, inner.depth, inner.written, inner.notes = self.root, self.depth + 1, self.written, self.notes
        inner.stack = [*self.stack, source.path]
        inner.run(strict)
        finish(inner, root=False)
        return inner

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """What happens inside changes nothing outside."""
        outer = self.scope
        self.scope = outer.copy()
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def branch(self) -> Iterator[list[Scope]]:
        """One of several ways; the scope at its end is in the list that is given."""
        way: list[Scope] = []
        outer = self.scope
        self.scope = outer.copy()
        try:
            yield way
        finally:
            way.append(self.scope)
            self.scope = outer

    def _join(self, ways: list[Scope]) -> None:
        joined = ways[0].copy()
        for way in ways[1:]:
            joined.merge(way)
        self.scope.take(joined)


def _looks(node: Node) -> bool:
    """Whether a test looks if a file or a directory is there."""
    return any(
        isinstance(one, Simple) and one.name in ("[", "[[", "test")
        and any(word.text in ("-e", "-f", "-d", "-s", "-r", "-L") for word in one.words)
        for one in syntax.commands(node)
    )  # fmt: skip
