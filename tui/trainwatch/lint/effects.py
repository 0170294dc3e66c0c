"""What the shell's own commands change in the scope: variables, options, traps, the end of the script."""
from __future__ import annotations

from typing import TYPE_CHECKING

from trainwatch.lint import catalog
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.scope import Context, Value
from trainwatch.lint.syntax import Assignment, Literal, Simple, Substitution, Variable, Word

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

TESTS = frozenset(("[", "[[", "test", "(("))
SURE = catalog.TRIVIAL | {"mktemp", "readlink", "realpath", "cat", "cd", "tr", "sed", "cut"}
"""Commands whose output is hardly ever empty; `cat` and filters count with what feeds them."""


def apply(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """Change the scope as a command does. Runs after the rules have looked at the command."""
    scope = walk.scope
    for assignment in (*node.assigns, *node.declared) if not node.words or node.declared else ():
        _assign(walk, assignment, bool(node.declared))
    for word in node.all_words():
        for variable in word.variables():
            if variable.operator in (":?", "?", ":=", "="):
                scope.tested.add(variable.name)
                scope.variables.setdefault(variable.name, Value(None, False)).may_be_empty = False
    name = node.name
    if name in TESTS:
        scope.tested.update(variable.name for word in node.words for variable in word.variables())
    elif name == "read":
        for text in call.plain:
            scope.variables[text] = Value(None, True)
    elif name in ("exit", "return", "break", "continue"):
        scope.dead = "exit" if name == "exit" else "return" if name == "return" else "break"
    elif name == "exec" and len(node.words) > 1:
        scope.dead, scope.execs = "exit", True
    elif name == "cd" or name == "pushd":
        _changed_directory(walk, node)
    elif name == "popd":
        scope.directory = None
    scope.strict = scope.strict.after(node)
    walk.ever_strict = walk.ever_strict or bool(scope.strict.errexit)


def _assign(walk: Walk, assignment: Assignment, declared: bool) -> None:
    scope, word = walk.scope, assignment.value
    last = next((job for job in reversed(scope.jobs)), None)
    if last is not None and any(one.name == "!" for value in assignment.words() for one in value.variables()):
        last.variables.add(assignment.name)
        for job in scope.jobs if last.looped else ():
            if job.looped:
                job.variables.add(assignment.name)
    if assignment.append and assignment.name in scope.variables:
        old = scope.variables[assignment.name]
        scope.variables[assignment.name] = Value(None, old.may_be_empty and not (word is not None and word.known))
    elif assignment.array:
        scope.variables[assignment.name] = Value(None, not assignment.elements)
    elif word is None:
        scope.variables[assignment.name] = Value("", True)
    else:
        text = walk.directory_of(word)
        if text is None:
            text = scope.text(word)
        scope.variables[assignment.name] = Value(text, not text and _may_be_empty(walk, word, declared))


def _may_be_empty(walk: Walk, word: Word, declared: bool) -> bool:
    """Whether what is assigned may be nothing."""
    for part in word.parts:
        if isinstance(part, Literal):
            if part.text:
                return False
        elif isinstance(part, Variable):
            if not walk.scope.may_be_empty(part):
                return False
        elif isinstance(part, Substitution) and _sure(walk, part, declared):
            return False
    return True


def _sure(walk: Walk, substitution: Substitution, declared: bool) -> bool:
    """Whether the script does not go on when a substitution gives nothing."""
    names = [walk.resolve(item.node).name for item in substitution.body if isinstance(item.node, Simple)]
    if len(names) == len(substitution.body) and all(name in SURE for name in names):
        return True
    return bool(walk.scope.strict.errexit) and not declared


def _changed_directory(walk: Walk, node: Simple) -> None:
    scope = walk.scope
    target = next((word for word in node.words[1:] if not word.known.startswith("-")), None)
    if target is None:
        scope.directory = None
        return
    text = walk.directory_of(target)
    if text is None:
        text = scope.text(target)
    if text is None or scope.directory is None:
        scope.directory = text if text is not None and text.startswith("/") else None
    else:
        scope.directory = text if text.startswith("/") else f"{scope.directory}/{text}".lstrip("/") if (
            not scope.directory.startswith("/")) else f"{scope.directory}/{text}"  # fmt: skip
