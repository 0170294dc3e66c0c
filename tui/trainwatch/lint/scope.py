"""What is known at one point of a script: strict mode, variables, functions, processes in the background."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from trainwatch.lint import catalog
from trainwatch.lint.catalog import Kind
from trainwatch.lint.source import Source
from trainwatch.lint.strict import Strict
from trainwatch.lint.syntax import Function, Item, Literal, Node, Variable, Word


class Fate(Enum):
    """What becomes of a command's status."""

    CHECKED = auto()
    """Somebody looks at it, or `set -e` ends the script."""
    RESULT = auto()
    """It becomes the script's own."""
    LOST = auto()
    """Nobody ever sees it."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What runs after a command: the items of its list behind `index`, then what is behind the list itself."""

    items: list[Item]
    index: int
    outer: Rest | None
    again: bool = False
    """It is in a loop: it may itself run again."""


class Context(NamedTuple):
    """Where a command stands. A tuple, because there is one for each command: copies of it have to be cheap."""

    fate: Fate = Fate.RESULT
    suppressor: Node | None = None
    """The command that is tested, inside which `set -e` does nothing."""
    tests: bool = False
    """The list is a condition: `set -e` does nothing in any of its commands."""
    condition: bool = False
    """Its status is tested at once: `if`, `while`, `&&`, `||`, `!`."""
    guarded: bool = False
    """What follows runs only if it succeeds."""
    reads: str = ""
    """What the next command reads of this one: `status`, `pipe` (PIPESTATUS) or nothing."""
    rest: Rest | None = None
    boundary: str = ""
    """The nearest thing that `exit` leaves: `pipe`, `paren`, `job`, `` for the script."""
    boundary_fate: Fate = Fate.RESULT
    boundary_followed: bool = False
    caller: tuple[Node, Source] | None = None
    """The call of a function, inside the same boundary, by which this came to run."""
    inside: frozenset[str] = frozenset()
    """Any of `absent` (it runs only if a file is or is not there), `subst`, `handler`, `loop`, `counted` (a `for`),
    `function`, `job`, `piped` (its output is a pipe or taken by $( ))."""

    def within(self, *names: str) -> Context:
        """The same, inside something more."""
        return self._replace(inside=self.inside | set(names))


@dataclass(slots=True)
class Value:
    """What is known of a variable: its text if it is the same in every run, and whether it may be empty."""

    text: str | None = None
    may_be_empty: bool = True
    sure: bool = True
    """It is set whichever way the script came here."""


@dataclass(eq=False, slots=True)
class Job:
    """A process in the background."""

    node: Node
    source: Source
    kind: Kind
    looped: bool
    variables: set[str] = field(default_factory=set)
    handled: bool = False


@dataclass(slots=True)
class Scope:
    """What is in force where the walk is."""

    strict: Strict = field(default_factory=Strict)
    error_trap: bool = False
    """An ERR trap ends the script: as good as errexit."""
    traps: set[str] = field(default_factory=set)
    variables: dict[str, Value] = field(default_factory=dict)
    tested: set[str] = field(default_factory=set)
    """Variables that the script has looked at, so that it knows when they are empty."""
    functions: dict[str, tuple[Function, Source]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    directory: str | None = ""
    """Where `cd` has gone, from where the script started; None when that is not known."""
    dead: str = ""
    """`exit`, `return` or `break` when nothing after this point runs."""
    execs: bool = False

    def copy(self) -> Scope:
        """For a subshell or a branch. Jobs are shared: whoever waits for one has waited."""
        return Scope(self.strict, self.error_trap, set(self.traps), dict(self.variables), set(self.tested),
                     dict(self.functions), list(self.jobs), self.directory, self.dead, self.execs)  # fmt: skip

    def merge(self, other: Scope) -> None:
        """After either of two ways: this one and the other."""
        if other.dead:
            return
        if self.dead:
            self.take(other)
            return
        self.strict = self.strict.merged(other.strict)
        self.error_trap = self.error_trap and other.error_trap
        self.traps |= other.traps
        for name in self.variables.keys() | other.variables.keys():
            one, two = self.variables.get(name), other.variables.get(name)
            if one is None or two is None:
                known = one or two
                empty = known is None or known.may_be_empty or known.text == ""
                self.variables[name] = Value(None, empty, sure=False)
            elif one != two:
                self.variables[name] = Value(None, one.may_be_empty or two.may_be_empty, one.sure and two.sure)
        self.tested |= other.tested
        self.functions = {**other.functions, **self.functions}
        self.jobs += [job for job in other.jobs if job not in self.jobs]
        self.directory = self.directory if self.directory == other.directory else None
        self.execs = self.execs or other.execs

    def take(self, other: Scope) -> None:
        """Become the other."""
        for name in Scope.__slots__:
            setattr(self, name, getattr(other, name))

    # -- variables

    def text(self, word: Word) -> str | None:
        """A word's value, as far as the script itself says it."""
        found = ""
        for part in word.parts:
            if isinstance(part, Literal):
                found += part.text
            elif isinstance(part, Variable) and (value := self.variable_text(part)) is not None:
                found += value
            else:
                return None
        return found

    def variable_text(self, variable: Variable) -> str | None:
        """A variable's value, when the script has set it to something literal."""
        known = self.variables.get(variable.name)
        if variable.length or variable.indirect or variable.index:
            return None
        if variable.operator == "" and known is not None:
            return known.text
        if variable.operator in (":-", "-") and variable.default is not None:
            return known.text if known is not None else None
        return None

    def may_be_empty(self, variable: Variable) -> bool:
        """Whether an expansion may give nothing, so that what stands beside it becomes another path."""
        name, operator = variable.name, variable.operator
        if operator in (":?", "?", "((") or variable.length or name in ("?", "#", "$", "!", "0"):
            return False
        if name in self.tested:
            return False
        if operator in (":-", ":=", "-", "="):
            default = variable.default
            if default is None or not default.parts:
                return True
            inside = [one for one in default.parts if isinstance(one, Variable)]
            return not default.known and (not inside or all(self.may_be_empty(one) for one in inside))
        if name in catalog.KNOWN_VARIABLES or name.startswith(("SLURM_", "BASH_")):
            return False
        known = self.variables.get(name)
        if known is not None:
            return known.may_be_empty
        return self.strict.nounset is False or name in ("@", "*")
