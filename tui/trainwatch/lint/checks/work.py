"""Rules about what the commands do: downloads on GPU time, stages, directories, deletions, variables."""
from __future__ import annotations

from typing import TYPE_CHECKING

from trainwatch.lint import catalog, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.scope import Context, Fate, Rest
from trainwatch.lint.syntax import Item, Literal, Node, Pipeline, Simple, Variable, Word

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

MARKER = "=== [Phase]"
DESTROYS = frozenset(("rm", "mv", "rmdir", "find", "truncate", "shred", "git", "make", "unlink"))
ALWAYS_THERE = frozenset(("/", "-", "..", ".", "~", "/tmp", "../.."))


def setup(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """setup-on-gpu-time: an installation or a download in a script that runs where GPUs are."""
    if not walk.source.job or "handler" in context.inside:
        return
    if kind == Kind.SETUP or _saves(call, node, context):
        walk.mark("setup-on-gpu-time", node.start, call.name)


def _saves(call: Call, node: Simple, context: Context) -> bool:
    """curl whose answer goes into a file or an unpacker."""
    if call.name != "curl" or any(text in ("-X", "-d", "--data", "-I", "--head", "-XPOST") for text in call.texts):
        return False
    return any(r.descriptor == 1 and r.operator in (">", ">>") and r.target is not None
               and not r.target.known.startswith("/dev/") for r in node.redirects)  # fmt: skip


def fed(walk: Walk, node: Node, context: Context) -> None:
    """The same for a download that is piped into an unpacker or a shell."""
    if not isinstance(node, Pipeline) or not walk.source.job:
        return
    first, last = node.elements[0], node.elements[-1]
    if isinstance(first, Simple) and isinstance(last, Simple) and walk.resolve(first).name == "curl":
        taker = walk.resolve(last).name
        if walk.kind(first) < Kind.SETUP and (taker in catalog.SHELLS or walk.kind(last) == Kind.SETUP):
            walk.mark("setup-on-gpu-time", node.start, "curl")


def directories(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """cd-unchecked: nothing looks whether `cd` worked, and what follows depends on it."""
    if node.name not in ("cd", "pushd") or context.guarded:
        return
    if walk.fate(context) is not Fate.LOST:
        return
    target = next((word for word in node.words[1:] if not word.known.startswith("-")), None)
    if target is None or target.text in ALWAYS_THERE or _own_directory(walk, target):
        return
    if not _relative_work(walk, context.rest):
        return
    if walk.scope.strict.errexit and context.suppressor is not None:
        walk.suppressed.setdefault(id(context.suppressor), (context.suppressor, walk.source, node))
    else:
        walk.mark("cd-unchecked", node.start)


def absorbed(walk: Walk, node: Node, context: Context) -> None:
    """The same for `cd DIR || true`."""
    from trainwatch.lint.checks.status import absorbs

    if not isinstance(node, syntax.AndOr) or context.condition:
        return
    operator, handler = node.rest[0]
    one = node.first
    if operator == "||" and isinstance(one, Simple) and one.name in ("cd", "pushd") and absorbs(walk, handler):
        target = one.words[1] if len(one.words) > 1 else None
        if target is not None and target.text not in ALWAYS_THERE and _relative_work(walk, context.rest):
            walk.mark("cd-unchecked", one.start)


def _own_directory(walk: Walk, word: Word) -> bool:
    """The directory of the script itself, which is there."""
    return walk.directory_of(word) is not None or word.raw.strip('"') in ("$PWD", "$HOME", "$(pwd)", "~", "$OLDPWD")


def _relative_work(walk: Walk, rest: Rest | None) -> bool:
    """Whether what follows, up to the next change of directory, works where it stands."""
    while rest is not None:
        for item in rest.items[rest.index + 1 :]:
            for one in syntax.commands(item.node):
                if not isinstance(one, Simple):
                    continue
                if one.name in ("cd", "popd"):
                    return False
                if _is_relative(walk, one):
                    return True
        rest = rest.outer
    return False


def _is_relative(walk: Walk, one: Simple) -> bool:
    call = walk.resolve(one)
    kind = walk.kind(one)
    if kind < Kind.SIDE or call.name in ("wait", "exit", "export", "set", "return", "source", "."):
        targets = [redirect.target.known for redirect in one.redirects if redirect.operator.startswith(">")
                   and redirect.target is not None and "&" not in redirect.operator]  # fmt: skip
        return any(target and not target.startswith(("/", "&")) for target in targets)
    if call.path.startswith("./") or call.name in ("git", "make", "ninja", "cmake"):
        return True
    plain = [word for word in call.words[1:] if not word.known.startswith("-")]
    return any(isinstance(word.parts[0], Literal) and not word.known.startswith(("/", "~"))
               for word in plain if word.parts and word.known)  # fmt: skip


def deletions(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """rm-unguarded: `rm -rf "$DIR/"*` with a variable that may be empty."""
    if call.name != "rm":
        return
    flags = "".join(text for text in call.texts if text.startswith("-"))
    if "r" not in flags.lower():
        return
    for word in call.words[1:]:
        variable = _dangerous(walk, word)
        if variable is not None:
            walk.mark("rm-unguarded", node.start, f"${{{variable.name}}} may be empty",
                      f'"${{{variable.name}:?}}", which stops the script when it is empty')  # fmt: skip
            return


def _dangerous(walk: Walk, word: Word) -> Variable | None:
    """The variable without which a path is one far above: `$X/…`, `/data/$X`, `$X*`."""
    parts = word.parts
    for index, part in enumerate(parts):
        if not isinstance(part, Variable) or not walk.scope.may_be_empty(part):
            continue
        before = "".join(one.text for one in parts[:index] if isinstance(one, Literal))
        unknown = any(not isinstance(one, Literal) for one in parts[:index])
        after = parts[index + 1] if index + 1 < len(parts) else None
        text = after.text if isinstance(after, Literal) else ""
        if not before and not unknown and text[:1] in ("/", "*"):
            return part
        ends = all(isinstance(one, Literal) and one.text.strip("/*") == "" for one in parts[index + 1 :])
        if before.endswith("/") and ends and not unknown:
            return part
    return None


def phases(walk: Walk) -> None:
    """no-phase-marker, at the end: a job of several commands that names none of its stages."""
    body = walk.source.script.body
    if not walk.source.job or walk.says_phases or _is_single(body):
        return
    for item in body:
        if walk.kind(item.node) >= Kind.WORK and not isinstance(item.node, syntax.Function):
            walk.mark("no-phase-marker", item.node.start)
            return


def _is_single(body: list[Item]) -> bool:
    """One command, with nothing around it that could be a stage."""
    return len(body) < 2 and all(isinstance(item.node, (Simple, Pipeline)) for item in body)


def markers(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """Note that the script prints phase markers."""
    if any(MARKER in word.known for word in node.words):
        walk.says_phases = True
    for redirect in node.redirects:
        if redirect.body is not None and MARKER in redirect.body.known:
            walk.says_phases = True


def variables(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """Collect for `no-nounset`: expansions of what the script has not set, while `set -u` is off."""
    if walk.scope.strict.nounset is not False or walk.source.quiet or node.name in ("[", "[[", "test", "unset", "(("):
        return
    appended = {each.name for each in (*node.assigns, *node.declared)}
    for word in node.all_words():
        for variable in word.variables():
            if _may_be_unset(walk, variable) and variable.name not in appended:
                walk.unset.append((variable, walk.source))


def _may_be_unset(walk: Walk, variable: Variable) -> bool:
    name = variable.name
    if variable.operator or variable.indirect or not name or not (name[0].isalpha() or name[0] == "_"):
        return False
    if name in catalog.KNOWN_VARIABLES or name in catalog.LISTS or name.startswith(("BASH_", "SLURM_")):
        return False
    return name not in walk.assigned and name not in walk.scope.tested and name not in walk.scope.variables


def no_nounset(walk: Walk) -> None:
    """no-nounset, at the end: unless a file that was not found may set what is expanded."""
    if walk.sources_unknown:
        return
    for variable, source in walk.unset:
        if variable.name not in walk.assigned and variable.name not in walk.scope.tested:
            with walk.in_source(source):
                walk.mark("no-nounset", variable.start, f"${variable.name} may not be set")
            return
