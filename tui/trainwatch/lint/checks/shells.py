"""Rules about syntax: redirections in the wrong order, and bash under sh."""
from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from trainwatch.lint import syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.scope import Context
from trainwatch.lint.syntax import Function, Loop, Node, Pipeline, Redirect, Simple, Variable, Word

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

BASH_COMMANDS = {
    "[[": "[[ ]]", "((": "(( ))", "source": "source", "declare": "declare", "typeset": "typeset", "let": "let",
    "shopt": "shopt", "pushd": "pushd", "popd": "popd", "mapfile": "mapfile", "readarray": "readarray",
    "disown": "disown", "select": "select", "function": "function", "builtin": "builtin", "coproc": "coproc",
}  # fmt: skip
BASH_OPTIONS = {
    "read": ("-a", "-t", "-n", "-N", "-d", "-s"), "printf": ("-v",), "wait": ("-n",), "export": ("-f", "-n"),
    "exec": ("-a",), "trap": (),
}  # fmt: skip
BASH_VARIABLES = frozenset((
    "RANDOM", "BASH_SOURCE", "PIPESTATUS", "FUNCNAME", "SECONDS", "BASHPID", "EPOCHSECONDS", "SRANDOM",
))  # fmt: skip
TESTS = frozenset(("[", "test"))
BASH_OPERATORS = frozenset(("//", "/", "/#", "/%", "^", "^^", ",", ",,", "@", ":"))


def redirects(walk: Walk, node: Node, context: Context) -> None:
    """redirect-order: `2>&1 > FILE`, where stdout is no pipe that stderr could be meant for."""
    if "piped" in context.inside:
        return
    order = [redirect for redirect in node.redirects if redirect.descriptor in (1, 2)]
    for at, redirect in enumerate(order):
        if not _joins(redirect):
            continue
        before = [one for one in order[:at] if one.descriptor == 1]
        after = next((one for one in order[at + 1 :] if one.descriptor == 1), None)
        again = any(one.descriptor == 2 for one in order[at + 1 :])
        if not before and not again and after is not None and after.operator in (">", ">>", ">|"):
            walk.mark("redirect-order", node.start)


def simple_redirects(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """The same for a simple command."""
    redirects(walk, node, context)


def _joins(redirect: Redirect) -> bool:
    target = redirect.target.text if redirect.target is not None else ""
    return redirect.descriptor == 2 and redirect.operator == ">&" and target == "1"


def bashisms(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """sh-bashism, in a simple command."""
    if walk.source.shell != "sh":
        return
    for assignment in (*node.assigns, *node.declared):
        if assignment.array:
            _found(walk, assignment.start, "an array")
        elif assignment.append:
            _found(walk, assignment.start, "+=")
    name, texts = node.name, [word.text for word in node.words[1:]]
    if name in BASH_COMMANDS and walk.function(name) is None:
        _found(walk, node.start, BASH_COMMANDS[name])
        if name in ("[[", "(("):
            return
    options = list(takewhile(lambda text: text is not None and text.startswith("-"), texts))
    if any(text in BASH_OPTIONS.get(name, ()) for text in options):
        _found(walk, node.start, f"an option of bash's {name}")
    if name in ("[", "test") and "==" in texts:
        _found(walk, node.start, f"== in {name}")
    if name == "set" and "pipefail" in texts:
        _found(walk, node.start, "pipefail")
    if name == "trap" and any(text in ("ERR", "DEBUG", "RETURN") for text in texts):
        _found(walk, node.start, "a trap on ERR, DEBUG or RETURN")
    if name not in TESTS:
        for word in node.all_words():
            _expansions(walk, word)
    _redirections(walk, node)


def bash_syntax(walk: Walk, node: Node, context: Context) -> None:
    """sh-bashism, in a compound command."""
    if walk.source.shell != "sh":
        return
    if isinstance(node, Function) and node.keyword:
        _found(walk, node.start, "the word function")
    elif isinstance(node, Loop) and node.kind in ("for((", "select"):
        _found(walk, node.start, "for ((" if node.kind == "for((" else "select")
    elif isinstance(node, Pipeline) and any(node.both):
        _found(walk, node.start, "|&")
    for word in syntax.words_of(node):
        _expansions(walk, word)
    _redirections(walk, node)


def features(walk: Walk) -> None:
    """sh-bashism, for syntax that leaves no trace in a command."""
    if walk.source.shell == "sh":
        for offset, what in walk.source.script.feature:
            _found(walk, offset, what)


def _redirections(walk: Walk, node: Node) -> None:
    for redirect in node.redirects:
        if redirect.operator in ("&>", "&>>", "<<<"):
            _found(walk, redirect.start, redirect.operator)


def _expansions(walk: Walk, word: Word) -> None:
    for variable in word.variables():
        what = _bash_expansion(variable)
        if what and not (variable.name in BASH_VARIABLES and variable.name in walk.scope.tested):
            _found(walk, variable.start, what)


def _bash_expansion(variable: Variable) -> str:
    if variable.index:
        return "an array"
    if variable.indirect and variable.name:
        return "${!NAME}"
    if variable.operator in BASH_OPERATORS:
        return "${NAME%s}" % (variable.operator + "…")
    return f"${variable.name}" if variable.name in BASH_VARIABLES else ""


def _found(walk: Walk, offset: int, what: str) -> None:
    if not walk.guarded_bash:
        walk.mark("sh-bashism", offset, what)
