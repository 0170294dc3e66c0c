"""Rules about a command's status: who hides it, who reads it too late, who never does."""
from __future__ import annotations

from typing import TYPE_CHECKING

from trainwatch.lint import catalog, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.scope import Context, Fate
from trainwatch.lint.syntax import (
    AndOr,
    Assignment,
    Group,
    If,
    Node,
    Pipeline,
    Simple,
    Subshell,
    Substitution,
)

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

TESTERS = frozenset(("grep", "egrep", "fgrep", "zgrep", "rg", "test", "[", "[[", "read", "cmp", "diff", "jq"))
"""At a pipe's end in a condition these are what is asked."""
SILENT = (catalog.TRIVIAL | catalog.QUERY) - {"sleep", "false", "xargs", "command", "curl", "mktemp"}
"""Handlers of nothing but these take a failure for success."""
CHAINED = frozenset(("break", "continue", "exit", "return"))


def pipelines(walk: Walk, node: Node, context: Context) -> None:
    """pipe-masks-exit: a step that matters stands before the last `|`, and nothing passes its failure on."""
    if not isinstance(node, Pipeline) or len(node.elements) < 2 or walk.scope.strict.pipefail is not False:
        return
    if context.reads == "pipe" or "handler" in context.inside:
        return
    end = _last(node.elements[-1])
    asked = isinstance(end, Simple) and walk.resolve(end).name in TESTERS
    if asked and (context.condition or node.negated):
        return
    passes_on = not isinstance(end, Simple) or walk.resolve(end).name in catalog.FILTERS
    for element in node.elements[:-1]:
        kind = walk.kind(element)
        if kind >= Kind.WORK or (kind == Kind.SETUP and walk.job and passes_on and not _feeds_loop(end)):
            name = walk.name_of(element)
            at = node.start if walk.kind(node.elements[0]) == kind or element is node.elements[0] else element.start
            fix = "run it by bash: sh has no pipefail everywhere" if walk.source.shell == "sh" else ""
            walk.mark("pipe-masks-exit", at, f"a failure of {name} is hidden" if name else "", fix)
            return


def _feeds_loop(end: Node) -> bool:
    return isinstance(end, syntax.Loop)


def _last(node: Node) -> Node:
    """What a pipe's last element comes down to."""
    while isinstance(node, Group) and node.body:
        node = node.body[-1].node
    return node


def chains(walk: Walk, node: Node, context: Context) -> None:
    """or-true: `|| true` and the like behind a step that matters."""
    if not isinstance(node, AndOr) or context.condition or context.inside & {"handler", "subst"}:
        return
    parts = [node.first, *(part for _, part in node.rest)]
    for index, (operator, part) in enumerate(node.rest):
        if operator != "||" or not absorbs(walk, part) or _goes_on(walk, node, index):
            continue
        if context.reads == "pipe" and not walk.scope.strict.pipefail:
            continue
        for before in reversed(parts[: index + 1]):
            if _matters(walk, before):
                if _is_masked_already(walk, before):
                    break
                name = walk.name_of(before)
                walk.mark("or-true", before.start, f"a failure of {name} is hidden" if name else "")
                return


def _goes_on(walk: Walk, node: AndOr, index: int) -> bool:
    """Whether something that is no mere word follows the handler in its chain."""
    return any(not absorbs(walk, part) for _, part in node.rest[index + 1 :])


def _matters(walk: Walk, node: Node) -> bool:
    """Whether a failure that `|| true` hides would matter: a step of the job, an installation in one."""
    kind = walk.kind(node)
    return kind >= Kind.SETUP if walk.job else kind >= Kind.WORK and _is_plain(walk, node)


def _is_masked_already(walk: Walk, node: Node) -> bool:
    if not isinstance(node, Pipeline) or walk.scope.strict.pipefail is not False:
        return False
    return walk.kind(node.elements[-1]) < Kind.SETUP


def absorbs(walk: Walk, handler: Node, depth: int = 0) -> bool:
    """Whether a handler does nothing about a failure: it says something, looks at something, and succeeds."""
    for one in syntax.commands(handler):
        if not isinstance(one, Simple):
            if isinstance(one, (Group, AndOr, Pipeline, Subshell)) and not getattr(one, "negated", False):
                continue
            return False
        if not one.words:
            return False  # an assignment: the failure is noted
        if one.name in ("exit", "return") and len(one.words) == 2 and one.words[1].text == "0":
            continue
        function = walk.function(one.name)
        if function is not None and depth < 5:
            if not absorbs(walk, function.body, depth + 1):
                return False
        elif one.name not in SILENT or one.name == "" or walk.kind(one) > Kind.QUERY:
            return False
    return True


def steps(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """Collect steps whose failure nobody sees, for `no-errexit`, `exit-status-lost` and `errexit-suppressed`."""
    if kind == Kind.CONTROL and call.name not in ("wait", "source", "."):
        return
    if kind < Kind.CONTROL or "subst" in context.inside or "handler" in context.inside:
        return
    if call.name != node.name and "exec" in call.wrappers:
        return
    if call.name == "wait":
        kind = Kind.WORK if any(job.kind >= Kind.WORK for job in walk.scope.jobs) else Kind.PLAIN
    if walk.scope.functions.get(call.name) and not call.wrappers:
        return  # its body is walked
    if walk.fate(context) is not Fate.LOST:
        return
    strict = walk.scope.strict
    if strict.errexit and context.suppressor is not None:
        alone = _is_plain(walk, context.suppressor)
        if alone and kind < Kind.WORK:
            return
        if alone and not walk.important_after(context.rest, loops="counted" not in context.inside):
            walk.unchecked.append((node, walk.source, kind, "lost"))
            return
        walk.suppressed.setdefault(id(context.suppressor), (context.suppressor, walk.source, node))
        return
    lost = kind >= Kind.WORK and not walk.important_after(context.rest) and "loop" not in context.inside
    walk.unchecked.append((node, walk.source, kind, "lost" if lost else "goes on"))


def _is_plain(walk: Walk, node: Node) -> bool:
    """Whether a tested command is one program, or a pipe of some: nothing in which a second step could follow."""
    elements = node.elements if isinstance(node, Pipeline) else [node]
    return all(isinstance(one, Simple) and walk.function(one.name) is None for one in elements)


def tested(walk: Walk, node: Node, context: Context) -> None:
    """exit-status-lost, the long way: a training is tested, but its failure is only talked about."""
    if not isinstance(node, If) or len(node.branches) != 1 or context.condition or "subst" in context.inside:
        return
    condition, body = node.branches[0]
    if not condition or "loop" in context.inside or walk.important_after(context.rest):
        return
    asked = condition[-1].node
    negated = isinstance(asked, Pipeline) and asked.negated
    failed = body if negated else node.otherwise
    if walk.kind(asked) < Kind.TRAIN or isinstance(asked, AndOr) or context.reads:
        return
    if failed and not all(absorbs(walk, item.node) for item in failed):
        return
    if not negated and node.otherwise is None and any(_ends(item.node) for item in body):
        return  # whatever follows runs only after a failure
    walk.unchecked.append((asked, walk.source, Kind.TRAIN, "lost"))


def _ends(node: Node) -> bool:
    return any(isinstance(one, Simple) and one.name in ("exit", "return", "exec") for one in syntax.commands(node))


def substitutions(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """subst-masks-exit: `export X=$(command)`."""
    if node.name not in ("export", "local", "declare", "typeset", "readonly"):
        return
    for assignment in node.declared:
        substitution = _substitution(assignment)
        if substitution is not None and _can_fail(walk, substitution):
            first, name = node.name, assignment.name
            fix = f"{name}=$(…); {first} {name}" if first in ("export", "readonly") else f"{first} {name}; {name}=$(…)"
            walk.mark("subst-masks-exit", node.start, f"a failure inside $( ) is hidden by {first}", fix)
            return


def _substitution(assignment: Assignment) -> Substitution | None:
    """The commands whose output is the whole value, or a part of it."""
    for word in assignment.words() if not assignment.array else ():
        for part in word.parts:
            if isinstance(part, Substitution) and part.kind in ("$(", "`"):
                return part
    return None


def _can_fail(walk: Walk, substitution: Substitution) -> bool:
    """Whether a failure inside would be worth a stop: not text that is only cut, nor one that is handled inside."""
    if not substitution.body or isinstance(substitution.body[-1].node, AndOr):
        return False
    simples = [one for item in substitution.body for one in syntax.commands(item.node) if isinstance(one, Simple)]
    calls = [walk.resolve(one) for one in simples]
    if all(call.name in catalog.TRIVIAL | catalog.FILTERS for call in calls):
        texts = calls and (calls[0].name in catalog.TRIVIAL or any(r.operator == "<<<" for r in simples[0].redirects))
        return not (texts or not calls)
    return bool(calls)


def subshells(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """subshell-exit: `exit` that leaves a pipe or ( ) while the script goes on."""
    if node.name != "exit" or context.boundary not in ("pipe", "paren") or not context.boundary_followed:
        return
    value = node.words[1].text if len(node.words) > 1 else ""
    if value == "0":
        if context.boundary != "pipe" or "loop" not in context.inside:
            return
    elif context.boundary_fate is not Fate.LOST:
        return
    if context.boundary == "paren" and context.rest is not None and context.rest.items[0].node is node:
        return  # `(exit "$status")` sets $?
    where = "the pipe" if context.boundary == "pipe" else "( )"
    at, source = context.caller or (node, walk.source)
    with walk.in_source(source):
        walk.mark("subshell-exit", at.start, f"this leaves only {where}")
