"""What the walk knows of the scripts that it walks, and where it notes what was found: all that rules ask for."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from trainwatch.lint import commands, follow, reading, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.facts import assigned_names, is_job
from trainwatch.lint.findings import Mark, NotFollowed
from trainwatch.lint.follow import Files
from trainwatch.lint.scope import Context, Fate, Rest, Scope
from trainwatch.lint.source import Source
from trainwatch.lint.syntax import Function, Node, Simple, Variable, Word


class Survey:
    """The scripts, the scope at the point where the walk is, and the notes."""

    def __init__(self, source: Source, files: Files, places: list[str]) -> None:
        self.source, self.files, self.places = source, files, places
        self.marks: list[Mark] = []
        self.notes: list[NotFollowed] = []
        self.scope = Scope()
        self.depth = 0
        self.stack: list[str] = [source.path]
        self.root = source
        self.written: dict[str, Source] = {}
        """Scripts that the script itself writes, by their path."""
        self.absent = False
        """What is called now is called only because something is missing: no part of the job when that was prepared."""
        self.says_phases = False
        self.ever_strict = False
        """errexit was on somewhere."""
        self.sources_unknown = False
        """A sourced file was not found: it may set anything."""
        self.unset: list[tuple[Variable, Source]] = []
        self.unchecked: list[tuple[Node, Source, Kind, str]] = []
        """Steps whose failure is not seen: (command, its text, how much it matters, `lost` or `goes on`)."""
        self.suppressed: dict[int, tuple[Node, Source, Node]] = {}
        """Tested commands in which a step's failure is not seen: (command, its text, the step)."""
        self.used: frozenset[str] = frozenset()
        self.assigned: set[str] = set()
        self.all_functions: dict[str, Function] = {}
        self.guarded_bash = b"BASH_VERSION" in source.text
        """The script asks which shell it has."""
        self.learn(source)
        source.job = source.job or self._is_job(source)
        self.job = source.job
        self._kinds: dict[int, Kind] = {}
        self._resolved: dict[int, Call] = {}

    def mark(self, rule: str, offset: int, message: str = "", fix: str = "") -> None:
        """Note that a rule's condition holds."""
        if not self.source.quiet:
            self.marks.append(Mark(rule, self.source, offset, message, fix))

    def resolve(self, command: Simple) -> Call:
        """The command behind its wrappers."""
        found = self._resolved.get(id(command))
        if found is None:
            found = self._resolved[id(command)] = commands.resolve(command)
        return found

    def function(self, name: str) -> Function | None:
        """The function of that name, wherever the script defines it."""
        return self.all_functions.get(name)

    def kind(self, node: Node) -> Kind:
        """How much the failure of anything in a node matters."""
        known = self._kinds.get(id(node))
        if known is None:
            self._kinds[id(node)] = Kind.TRIVIAL  # while we look: a function that calls itself
            if isinstance(node, Simple):
                known = self._kind_of(node)
            else:
                inner = (self.kind(one) for one in syntax.commands(node) if isinstance(one, Simple))
                known = max(inner, default=Kind.TRIVIAL)
            self._kinds[id(node)] = known
        return known

    def _kind_of(self, command: Simple) -> Kind:
        call = self.resolve(command)
        function = self.function(call.name) if not call.wrappers else None
        return self.kind(function.body) if function is not None else commands.kind_of(call, self.job)

    def important_after(self, rest: Rest | None, loops: bool = True) -> bool:
        """Whether a step of the job runs later; in a loop the command itself may, unless `loops` is false."""
        while rest is not None:
            behind = rest.items[rest.index + 1 :]
            if (loops and rest.again) or any(self.kind(item.node) >= Kind.SETUP for item in behind):
                return True
            rest = rest.outer
        return False

    def nothing_after(self, rest: Rest | None) -> bool:
        """Whether this is the last command of the script."""
        while rest is not None:
            if rest.again or rest.index + 1 < len(rest.items):
                return False
            rest = rest.outer
        return True

    def fate(self, context: Context) -> Fate:
        """What becomes of a status, strict mode considered; what is not known counts as checked."""
        if self.scope.error_trap or (self.scope.strict.errexit is not False and context.suppressor is None):
            return Fate.CHECKED
        if self.scope.strict.errexit is None:
            return Fate.CHECKED
        return context.fate

    @contextmanager
    def in_source(self, source: Source) -> Iterator[None]:
        """Offsets are those of another text meanwhile."""
        outer, self.source = self.source, source
        try:
            yield
        finally:
            self.source = outer

    def learn(self, source: Source) -> None:
        """Take note of a file's functions and variables before it is walked."""
        for node in source.nodes:
            if isinstance(node, Function):
                self.all_functions.setdefault(node.name, node)
        self.used |= reading.used_variables(source.nodes)
        self.assigned |= assigned_names(source.nodes)

    def _is_job(self, source: Source) -> bool:
        comments = [source.text[c.start : c.end].decode("utf-8", "replace") for c in source.script.comments]
        return is_job(source.nodes, comments)

    def open(self, text: str, path: str, content: bytes) -> Source:
        """A script that was found. It is the user's own when it lies beside or below the first one."""
        made = follow.open_script(self._name(text, path), path, content)
        made.quiet = not self._is_own(path)
        return made

    def _name(self, text: str, path: str) -> str:
        """A found script's name, as the first one's was given: relative if that was."""
        root = self.root.file
        if root.path and not root.name.startswith("/") and root.name.endswith(PurePath(root.path).name):
            prefix = root.path[: len(root.path) - len(root.name)]
            if prefix and path.startswith(prefix):
                return path[len(prefix) :]
        return path

    def _is_own(self, path: str) -> bool:
        if path.endswith("/bin/activate"):
            return False
        homes = {place for place in self.places if place.strip("/")}
        return any(path.startswith(home.rstrip("/") + "/") for home in homes) or not path.startswith(commands.SYSTEM)

    def directory_of(self, word: Word) -> str | None:
        """A word's value when it means the script's own directory, with what follows it."""
        place = str(PurePath(self.source.path).parent) if self.source.path else self.places[-1]
        return follow.own_directory(word, place, {name: value.text for name, value in self.scope.variables.items()})

    def note(self, offset: int, script: str, why: str) -> None:
        """Something could not be looked at."""
        if not self.source.quiet:
            self.notes.append(NotFollowed(self.source.file.name, self.source.place(offset)[0], script, why))

    def name_of(self, node: Node) -> str:
        """What to call a command in a message: its program's name."""
        simples = [one for one in syntax.commands(node) if isinstance(one, Simple)]
        best = max(simples, key=self.kind, default=None)
        name = self.resolve(best).name if best is not None else ""
        return name if name.isprintable() and len(name) < 40 else ""
