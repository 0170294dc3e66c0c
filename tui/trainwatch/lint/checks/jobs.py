"""Rules about processes and signals: the background, `wait`, traps, and the container's first process."""
from __future__ import annotations

from typing import TYPE_CHECKING

from trainwatch.lint import syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.scope import Context, Fate, Job
from trainwatch.lint.source import Source, inside
from trainwatch.lint.syntax import Item, Node, Simple, Variable, Word

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

HANDLES = frozenset(("exit", "kill", "return", "exec", "wait", "pkill", "killall", "scontrol", "sbatch", "scancel",
                     "break", "eval", "touch"))  # fmt: skip
"""A handler with one of these does something about a signal."""
STOPS = frozenset(("TERM", "SIGTERM", "15"))
ENDS = frozenset(("EXIT", "0"))
ENTRY_WORDS = ("entrypoint", "pid 1", "pid1", "pid-1")


def waits(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """wait-loses-status; and what is waited for, or killed, is not left behind."""
    scope, words = walk.scope, node.words[1:]
    if node.name in ("kill", "pkill", "killall", "disown"):
        for job in scope.jobs:
            job.handled = job.handled or (node.name != "disown" and _names(job, words, scope.jobs))
        return
    if node.name != "wait":
        return
    pending = [job for job in scope.jobs if not job.handled and job.kind >= Kind.WORK]
    texts = [word.known for word in words]
    if "-n" in texts:
        for job in scope.jobs:
            job.handled = True
        return
    words = [word for word in words if not word.known.startswith("-")]
    named = [job for job in scope.jobs if _names(job, words, scope.jobs)] if words else scope.jobs
    if "handler" not in context.inside and pending:
        _judge(walk, node, words, [job for job in named if job in pending], pending, context)
    for job in named if words else scope.jobs:
        job.handled = True


def _judge(
    walk: Walk, node: Simple, words: list[Word], named: list[Job], pending: list[Job], context: Context
) -> None:
    many = len(pending) > 1 or any(job.looped for job in pending)
    if not words:
        walk.mark("wait-loses-status", node.start)
    elif len(words) > 1 or _is_list(words[0]):
        walk.mark("wait-loses-status", node.start, "only the last one's status counts")
        for job in pending:
            job.handled = True
    elif words[0].raw in ("$!", '"$!"', "${!}") and many:
        walk.mark("wait-loses-status", node.start, "only the last process is waited for")
        for job in pending:
            job.handled = True
    elif many and "loop" in context.inside and walk.fate(context) is Fate.LOST:
        walk.mark("wait-loses-status", node.start, "nothing looks at this status")
        for job in pending:
            job.handled = True


def _is_list(word: Word) -> bool:
    """Whether a word stands for several process ids."""
    for part in word.parts:
        if isinstance(part, Variable) and part.index in ("@", "*"):
            return True
        if isinstance(part, syntax.Substitution):
            return True
        if isinstance(part, Variable) and not part.quoted and part.name.lower().rstrip("_").endswith("s"):
            return True  # $PIDS, unquoted on purpose
    return False


def _names(job: Job, words: list[Word], jobs: list[Job]) -> bool:
    """Whether the words of `wait` or `kill` mean a job."""
    for word in words:
        if word.known.startswith("%") or word.known == "0" or any(word.substitutions()):
            return True
        for variable in word.variables():
            if variable.name in job.variables or (variable.name == "!" and jobs and job is jobs[-1]):
                return True
            if variable.name != "!" and not any(variable.name in one.variables for one in jobs):
                return True  # a variable whose way from $! we did not see
    return False


def left_behind(walk: Walk, jobs: list[Job]) -> None:
    """background-no-wait, at the end of a script."""
    if walk.scope.execs:
        return
    for job in jobs:
        if not job.handled and job.kind >= Kind.WORK:
            job.handled = True
            with walk.in_source(job.source):
                walk.mark("background-no-wait", job.node.start)


def traps(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """trap-masks-exit; and what a handler's commands do to the scope."""
    if node.name != "trap" or len(node.words) < 3:
        return
    words = node.words[1:]
    if words[0].text == "--":
        words = words[1:]
    if not words or (words[0].text or "").startswith("-") or len(words) < 2:
        return
    handler, signals = words[0], {(word.text or "").upper() for word in words[1:]}
    walk.scope.traps |= signals
    body, source = _body(walk, handler)
    if body is None:
        if handler.text == "" and signals & STOPS:
            walk.mark("trap-masks-exit", node.start, "TERM is ignored")
        return
    if "ERR" in signals and any(one.name == "exit" for one in _simples(walk, body)):
        walk.scope.error_trap = True
    if _is_replaced(context):
        signals = signals - STOPS
    if signals & (ENDS | STOPS | {"ERR"}):
        _masks(walk, node, body, source, signals)
    jobs = walk.scope.jobs
    for one in _simples(walk, body):
        if one.name in ("kill", "wait", "pkill"):
            for job in jobs:
                job.handled = job.handled or _names(job, one.words[1:], jobs)


def _is_replaced(context: Context) -> bool:
    """Whether the next command sets another handler for TERM."""
    rest = context.rest
    after = rest.items[rest.index + 1].node if rest is not None and rest.index + 1 < len(rest.items) else None
    return isinstance(after, Simple) and after.name == "trap" and any(
        (word.text or "").upper() in STOPS for word in after.words[2:])  # fmt: skip


def _body(walk: Walk, handler: Word) -> tuple[list[Item] | None, Source]:
    """The commands of a handler, and the text that they stand in."""
    text = handler.text
    if text is not None and text.strip() in walk.scope.functions:
        function, source = walk.scope.functions[text.strip()]
        return [Item(function.body)], source
    later = walk.function(text.strip()) if text is not None else None
    if later is not None:
        return [Item(later.body)], walk.source
    if not handler.known.strip():
        return None, walk.source
    source = inside(walk.source, handler, shell=walk.source.shell)
    return source.script.body, source


def _simples(walk: Walk, body: list[Item], depth: int = 0) -> list[Simple]:
    found = []
    for item in body:
        for one in syntax.commands(item.node):
            if isinstance(one, Simple):
                found.append(one)
                function = walk.function(one.name)
                if function is not None and depth < 4:
                    found += _simples(walk, [Item(function.body)], depth + 1)
    return found


def _masks(walk: Walk, node: Simple, body: list[Item], source: Source, signals: set[str]) -> None:
    simples = _simples(walk, body)
    requeues = any(one.name in ("sbatch", "scontrol") for one in simples)
    last, place = _exit(walk, body, source)
    if last is not None and not requeues and _replaces(walk, body, last):
        with walk.in_source(place):
            walk.mark("trap-masks-exit", last.start, "the handler ends with its own status")
        return
    if simples and all(one.name in (":", "true") for one in simples):
        return  # on purpose: the shell lives on to wait for what it runs, which got the signal too
    acts = any(one.name in HANDLES or (not one.words and one.assigns) or not one.name for one in simples)
    others = any(not walk.function(one.name) and walk.kind(one) >= Kind.PLAIN for one in simples)
    if signals & STOPS and not acts and not others:
        walk.mark("trap-masks-exit", node.start, "after TERM the script goes on as if nothing had happened")


def _exit(walk: Walk, body: list[Item], source: Source, depth: int = 0) -> tuple[Simple | None, Source]:
    """The `exit` that a handler comes to whatever happens, and where it stands."""
    for item in body:
        one = item.node
        if isinstance(one, syntax.Group):
            found = _exit(walk, one.body, source, depth)
            if found[0] is not None:
                return found
        if not isinstance(one, Simple):
            continue
        if one.name == "exit":
            return one, source
        if one.name in walk.scope.functions and depth < 4:
            function, place = walk.scope.functions[one.name]
            found = _exit(walk, [Item(function.body)], place, depth + 1)
            if found[0] is not None:
                return found
    return None, source


def _replaces(walk: Walk, body: list[Item], last: Simple) -> bool:
    """Whether an `exit` gives a status that is not the script's own: 0, or a `$?` read too late."""
    if len(last.words) < 2:
        return False
    if last.words[1].text == "0":
        return True
    if last.words[1].raw.strip('"') not in ("$?", "${?}"):
        return False
    flat = [one for item in body for one in syntax.commands(item.node) if isinstance(one, Simple)]
    return bool(flat) and flat[0] is not last


def first_process(walk: Walk) -> None:
    """missing-exec: the script is a container's first process, and its last command is not `exec`ed."""
    source, items = walk.source, walk.source.script.body
    if not items or items[-1].background or walk.scope.traps & (ENDS | STOPS) or walk.scope.execs:
        return
    node: Node = items[-1].node
    if not isinstance(node, Simple) or not _is_entry(source):
        return
    call = walk.resolve(node)
    runs_arguments = bool(node.words) and node.words[0].raw in ('"$@"', "$@", '"${@}"')
    if "exec" in call.wrappers or node.name == "exec" or walk.function(call.name) is not None:
        return
    if source.outer is not None and source.shell != "sh":
        return  # bash replaces itself by the last command of `bash -c`
    if runs_arguments or walk.kind(node) >= Kind.WORK:
        walk.mark("missing-exec", node.start)


def _is_entry(source: Source) -> bool:
    if source.entry:
        return True
    name = source.path.rpartition("/")[2].lower()
    if "entrypoint" in name:
        return True
    said = (source.text[comment.start : comment.end].decode("utf-8", "replace").lower()
            for comment in source.script.comments[:40])  # fmt: skip
    return any(word in comment for comment in said for word in ENTRY_WORDS)
