"""Strict mode at the top, without that anything that may fail today, or is not set today, ends the script."""
from __future__ import annotations

from trainwatch.harden.plan import Plan
from trainwatch.harden.view import Seen, View
from trainwatch.lint import syntax
from trainwatch.lint.catalog import QUERY, SIDE, TRIVIAL, Kind
from trainwatch.lint.reading import reading
from trainwatch.lint.scope import Fate
from trainwatch.lint.strict import NAMES, Strict, of_shebang
from trainwatch.lint.syntax import AndOr, Function, If, Item, Node, Pipeline, Simple, Substitution, Variable, Word

ENGINE = frozenset("""
    MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK NODE_RANK GROUP_RANK NNODES NPROC_PER_NODE JOB_COMPLETION_INDEX
    JOB_NAME PET_NNODES PET_NODE_RANK PET_MASTER_ADDR
""".split())  # noqa: SIM905
"""Variables that the platform sets, each one word: when one is missing nothing can work."""
MAY_FAIL = (QUERY | SIDE | {"[", "[[", "test", "((", "let", "expr", "read", "shift", "false"}) - {"mkdir"}
ENVIRONMENTS = frozenset(("conda", "mamba", "micromamba", "module", "ml", "activate", "deactivate"))
HARMLESS_PIPES = TRIVIAL | {"cat", "tee", "sed", "awk", "tr", "sort", "cut", "column"}


def strict(plan: Plan) -> None:
    """Turn on what is off; put `|| true` and `${X:-}` where a script that works today relies on its being off."""
    view, state = plan.view, plan.state
    if "strict" in state.done or not view.source.script.body:
        return
    state.done.add("strict")
    own = _at_top(view, of_shebang(view.text.split(b"\n", 1)[0].decode("utf-8", "replace")))
    errexit, nounset = not own.errexit, not own.nounset
    pipefail = not own.pipefail and view.source.shell == "bash" and not _reads_chain(view)
    if not (errexit or nounset or pipefail):
        return
    flags = "".join(letter for letter, on in (("e", errexit), ("u", nounset)) if on)
    words = ["set", *([f"-{flags}{'o' if pipefail else ''}"] if flags else ["-o"] if pipefail else [])]
    command = " ".join([*words, *(["pipefail"] if pipefail else [])])
    at = _first_place(view, bool(own.errexit or own.nounset))
    why = "a step that fails ends the script, a variable that is not set too, and a pipe fails when any part of it does"
    if isinstance(at, Item):
        plan.after(at, command, why)
    else:
        plan.before(at, command, why)
    if errexit:
        _windows(plan)
        _guards(plan)
    elif pipefail:
        _pipes(plan)
    if nounset:
        _unset(plan)
        _environments(plan)


def _reads_chain(view: View) -> bool:
    """Whether PIPESTATUS is read behind `a | b || true`: with pipefail `true` would run, and that is what is read."""
    return any(seen.context.reads == "pipe" and isinstance(view.at(seen.node.start), AndOr) for seen in view.seen)


def _at_top(view: View, own: Strict) -> Strict:
    """Strict mode as the script's own `set` lines leave it; one that it takes back later counts as set."""
    for item in view.source.script.body:
        if view.walk.kind(item.node) >= Kind.PLAIN and not isinstance(item.node, Function):
            break
        if isinstance(item.node, Simple) and item.node.name in ("set", "shopt"):
            later = own.after(item.node)
            own = Strict(*(getattr(own, name) or getattr(later, name) for name in NAMES))
    return own


def _first_place(view: View, has_set: bool) -> int | Item:
    """Behind the script's own `set` line, or before its first command (behind #!, comments and #SBATCH lines)."""
    body = view.source.script.body
    if has_set:
        for item in body:
            if isinstance(item.node, Simple) and item.node.name == "set":
                return item
    first = body[0].node.start
    line = view.text.rfind(b"\n", 0, first) + 1
    return line if not view.text[line:first].strip() else first


def _windows(plan: Plan) -> None:
    """`set +e` around a command whose status the next one reads: that goes on working as it does."""
    view = plan.view
    for items in view.lists():
        for index, item in enumerate(items[:-1]):
            after = items[index + 1]
            found = reading(after.node, view.walk.used, view.walk.function)
            talks = isinstance(after.node, (If, AndOr))
            if found is None or (found.printed and not talks) or item.background:
                continue
            if view.walk.kind(item.node) == Kind.TRIVIAL:
                continue
            if isinstance(item.node, Simple) and item.node.name in ("set", "true", "echo"):
                continue
            why = "its status is looked at by the next command, so it must not end the script before"
            plan.before(item.node.start, "set +e", why)
            plan.after(after, "set -e", why)


def _guards(plan: Plan) -> None:
    """`|| true` behind commands whose failure nobody minds, and idempotent ones instead of some others."""
    view, why = plan.view, "it may fail, as before, without ending the script"
    done: set[int] = set()
    for seen in view.seen:
        node = view.at(seen.node.start)
        if node is None or id(node) in done or not _is_loose(view, seen, node):
            continue
        done.add(id(node))
        if isinstance(node, Simple) and node.name == "mkdir":
            if not any(word.known.startswith("-") and "p" in word.known for word in node.words[1:]):
                plan.insert(node.words[0].end, " -p", "it may be there already")
            continue
        if _may_fail(view, node):
            plan.insert(node.end, " || true", why)
    for function in [one for one in view.nodes() if isinstance(one, Function)]:
        _last_test(plan, function)


def _is_loose(view: View, seen: Seen, node: Node) -> bool:
    if seen.fate is not Fate.LOST or seen.context.inside & {"subst", "handler"} or seen.context.suppressor is not None:
        return False
    item = view.item_of(node)
    return item is not None and not item.background and not isinstance(node, AndOr)


def _may_fail(view: View, node: Node) -> bool:
    if isinstance(node, Pipeline):
        simples = [one for one in syntax.commands(node) if isinstance(one, Simple)]
        quiet = all(isinstance(one, Simple) and one.name in HARMLESS_PIPES for one in node.elements)
        return view.walk.kind(node) < Kind.CONTROL and not quiet and not node.negated and bool(simples)
    if not isinstance(node, Simple):
        return False
    if not node.words:
        inner = [part for one in node.assigns for word in one.words() for part in word.parts
                 if isinstance(part, Substitution)]  # fmt: skip
        kinds = [view.walk.kind(item.node) for part in inner for item in part.body]
        names = {one.name for part in inner for item in part.body for one in syntax.commands(item.node)
                 if isinstance(one, Simple)}  # fmt: skip
        return bool(kinds) and max(kinds) < Kind.PLAIN and not names <= HARMLESS_PIPES
    function = view.walk.function(node.name)
    if function is not None:
        ends = any(isinstance(one, Simple) and one.name == "exit" for one in syntax.commands(function.body))
        return view.walk.kind(node) < Kind.PLAIN and not ends
    if node.name == "rm" and any(word.known.startswith("-") and "f" in word.known for word in node.words[1:]):
        return False
    return view.walk.resolve(node).name in MAY_FAIL


def _last_test(plan: Plan, function: Function) -> None:
    """`[ … ] && step` at the end of a function: when the test says no, the function's call must not end the script."""
    lists = list(syntax.children(function.body))
    last = lists[0][-1].node if lists and lists[0] else None
    if not isinstance(last, AndOr) or len(last.rest) != 1 or last.rest[0][0] != "&&":
        return
    first = last.first
    if isinstance(first, Simple) and first.name in ("[", "[[", "test", "(("):
        at = plan.view.text.find(b"&&", first.end)
        why = "a test that says no is no failure of the function"
        plan.insert(first.start, "! ", why)
        plan.edits.replace(at, at + 2, "||", why)


def _pipes(plan: Plan) -> None:
    """With pipefail only: pipes of questions, whose left end may fail today."""
    view = plan.view
    for seen in view.seen:
        node = view.at(seen.node.start)
        if node is None or seen.context.suppressor is not None or not _has_pipe(node):
            continue
        if _may_fail(view, node):
            item = view.item_of(node)
            if item is not None and not item.background and not seen.context.inside & {"subst", "handler"}:
                plan.insert(node.end, " || true", "a part of it may fail, as before")


def _has_pipe(node: Node) -> bool:
    if isinstance(node, Pipeline):
        return len(node.elements) > 1
    return isinstance(node, Simple) and not node.words and any(
        isinstance(item.node, Pipeline)
        for one in node.assigns for word in one.words() for part in word.substitutions() for item in part.body
    )  # fmt: skip


def _unset(plan: Plan) -> None:
    """`${X:-}` for what may not be set, so that it stays an empty word; what the platform sets must be there."""
    view = plan.view
    before: set[str] = set()
    for offset, (variable, test) in sorted(view.unset.items()):
        name = variable.name
        if (name in ENGINE and not test) or (name.startswith("SLURM_") and not test):
            if not variable.quoted and not variable.operator:
                _quote(plan, variable)
            continue
        why = f"{name} may not be set, and is empty then, as before"
        if variable.operator == "((":
            plan.edits.replace(offset, variable.end, f"${{{name}:-0}}", why)
        elif variable.operator or variable.length:
            top = view.top(offset)
            if top is not None and name not in before and name[0].isalpha():
                before.add(name)
                plan.before(top.node.start, f"{name}=${{{name}:-}}", why)
        else:
            plan.edits.replace(offset, variable.end, f"${{{name}:-}}", why)


def _quote(plan: Plan, variable: Variable) -> None:
    """Quotes around a word that is one variable of the platform's, each of which is a single word."""
    for seen in plan.view.seen:
        for word in seen.node.words:
            if word.parts == [variable] and seen.node.name not in ("[[", "(("):
                plan.edits.replace(word.start, word.end, f'"{word.raw}"', "quoted, as paths and names should be")
                return


def _environments(plan: Plan) -> None:
    """`set +u` around what sets up an environment: such scripts use what is not set."""
    view, why = plan.view, "environments are often set up by scripts that use unset variables"
    for items in view.lists():
        run: list[Item] = []
        for item in [*items, None]:
            if item is not None and _sets_environment(view, item.node):
                run.append(item)
            elif run:
                plan.before(run[0].node.start, "set +u", why)
                for one in run:
                    if isinstance(one.node, Simple) and one.node.name != "eval":
                        plan.insert(one.node.end, " || exit 1", "a wrong environment ends the script")
                plan.after(run[-1], "set -u", why)
                run = []


def _sets_environment(view: View, node: Node) -> bool:
    if not isinstance(node, Simple):
        return False
    if node.name in ENVIRONMENTS:
        return node.name not in ("conda", "mamba", "micromamba") or _is_activation(node.words)
    if node.name == "eval":
        return True
    if node.name not in ("source", ".") or len(node.words) < 2:
        return False
    text = view.walk.scope.text(node.words[1])
    return text is None or not any(view.walk.files.read(path) for path in (f"{p}/{text}" for p in view.walk.places))


def _is_activation(words: list[Word]) -> bool:
    return any(word.text in ("activate", "deactivate", "load", "purge") for word in words[1:3])
