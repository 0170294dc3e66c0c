"""One change for each rule of the linter that can be mended where it was found."""
from __future__ import annotations

from trainwatch.harden.plan import Plan, wait_loop
from trainwatch.harden.statuses import in_subshell
from trainwatch.harden.view import Place, View
from trainwatch.lint.catalog import SHELLS, Kind
from trainwatch.lint.commands import resolve
from trainwatch.lint.scope import Fate
from trainwatch.lint.syntax import (
    AndOr,
    Function,
    Group,
    Item,
    Literal,
    Loop,
    Node,
    Pipeline,
    Simple,
    Subshell,
    Substitution,
    Variable,
)


def shebang(plan: Plan) -> None:
    """sh-bashism, and pipes under sh, which has no pipefail: the script becomes a bash script."""
    view = plan.view
    wants = [*view.marks("sh-bashism"), *view.marks("pipe-masks-exit")]
    line = view.text.split(b"\n", 1)[0]
    if view.source.shell != "sh" or not any(mark.source is view.source for mark in wants) or not line.startswith(b"#!"):
        return
    for name in (b"dash", b"ash", b"sh"):
        at = line.rfind(name)
        if at >= 0:
            plan.edits.replace(at, at + len(name), "bash", "it is written in bash, or needs what only bash has")
            return


def processes(plan: Plan) -> None:
    """background-no-wait and wait-loses-status: each process is waited for, and a failure is kept."""
    view, state = plan.view, plan.state
    behind, waits = view.marks("background-no-wait"), view.marks("wait-loses-status")
    if not behind and not waits:
        return
    own = False
    for mark in waits:
        node = view.simple_at(mark.offset)
        if node is None or mark.source is not view.source or in_subshell(view, node):
            continue
        own = _mend_wait(plan, node) or own
    if own or behind:
        offsets = {mark.offset for mark in behind}
        for items in view.lists():
            for item in items:
                known = item.node.start in offsets if not own else view.walk.kind(item.node) >= Kind.WORK
                if item.background and known:
                    _remember_process(plan, item)
        plan.waits_at_end = bool(behind) and not own
        if plan.keeps_processes is not None and view.source.shell == "sh":
            state.done.add("no processes")


def _mend_wait(plan: Plan, node: Simple) -> bool:
    """Returns whether our own list of processes is needed."""
    view, why = plan.view, "each process is waited for, and a failure is kept"
    status, words = plan.state.status, node.words[1:]
    place = view.places.get(id(node))
    if place is None:
        return False
    if len(words) == 1 and isinstance(place.owner, Loop):
        plan.keep_status(node.start)
        plan.insert(node.end, f" || {status}=$?", why)
        return False
    plan.keep_status(node.start)
    if words and not (len(words) == 1 and words[0].raw.strip('"') in ("$!", "${!}")):
        listed = " ".join(word.raw for word in words)
        loop = f'for pid in {listed}; do wait "$pid" || {status}=$?; done'
        plan.edits.replace(node.start, node.end, loop, why)
        return False
    plan.edits.replace(node.start, node.end, wait_loop(plan.state.processes, status), why)
    return True


def _remember_process(plan: Plan, item: Item) -> None:
    view, name = plan.view, plan.state.processes
    end = view.end(item)
    rest = view.text[end:].split(b"\n", 1)[0].strip()
    tail = "" if not rest or rest.startswith((b"#", b";")) else ";"
    plan.insert(end, f' {name}+=("$!"){tail}', "the process is remembered, to be waited for")
    at = item.node.start
    plan.keeps_processes = at if plan.keeps_processes is None else min(plan.keeps_processes, at)


def traps(plan: Plan) -> None:
    """trap-masks-exit: a handler keeps the status, and a stop ends the script."""
    view = plan.view
    for mark in view.marks("trap-masks-exit"):
        at = mark.source.offset_in_file(mark.offset)
        if view.text[at : at + 4] == b"exit":
            end = at + 4
            while end < len(view.text) and view.text[end : end + 1] in (b" ", b"\t"):
                end += 1
            value = view.text[end : end + 1]
            length = 1 if value == b"0" else view.text[end:].find(b"?") + 1 if value in (b"$", b'"') else 0
            length += view.text[end + length : end + length + 1] == b'"' and value == b'"'
            plan.edits.replace(at, end + length, "exit", "`exit` alone keeps the status that the script ended with")
        elif view.text[at : at + 4] == b"trap":
            _end_on_stop(plan, at)


def _end_on_stop(plan: Plan, at: int) -> None:
    view, node = plan.view, plan.view.simple_at(at)
    if node is None or len(node.words) < 3 or not node.words[1].known.strip():
        return
    handler, signals = node.words[1], {word.known.upper() for word in node.words[2:]}
    why = "after TERM the script ends, as it is told"
    item = view.item_of(node)
    if signals & {"EXIT", "0"} and item is not None:
        plan.after(item, "trap 'exit 143' TERM", why)
    elif isinstance(handler.parts[0], Literal) and not handler.parts[0].quoted:
        plan.edits.replace(handler.start, handler.end, f"'{handler.raw}; exit 143'", why)
    else:
        plan.insert(handler.end - 1, "; exit 143", why)


def substitutions(plan: Plan) -> None:
    """subst-masks-exit: first the value, then the export."""
    view, why = plan.view, "a failure of the command is seen: the status is no longer that of export or local"
    for mark in view.marks("subst-masks-exit"):
        node = view.simple_at(mark.offset)
        if node is None or mark.source is not view.source or id(node) not in view.places or len(node.words) != 1:
            continue
        risky = [one for one in node.declared
                 if one.value and any(isinstance(part, Substitution) for part in one.value.parts)]  # fmt: skip
        safe = [one for one in node.declared if one not in risky]
        indent = view.indent(node.start)
        joint = "; " if indent is None else f"\n{indent}"
        values = [view.raw(one) for one in risky]
        names = [one.name for one in risky]
        keep = [view.raw(one) for one in safe]
        if node.name in ("export", "readonly"):
            lines = [*values, " ".join([node.name, *keep, *names])]
        else:
            lines = [" ".join([node.name, *keep, *names]), *values]
        plan.edits.replace(node.start, node.end, joint.join(lines), why)


def redirections(plan: Plan) -> None:
    """redirect-order: stdout first, then stderr to the same place."""
    view = plan.view
    for mark in view.marks("redirect-order"):
        for node in view.nodes():
            if node.start != mark.offset or mark.source is not view.source or not node.redirects:
                continue
            joins = [one for one in node.redirects if one.operator == ">&" and one.descriptor == 2]
            last = max((one.end for one in node.redirects if one.body is None), default=node.end)
            if joins:
                end = joins[0].end
                while view.text[end : end + 1] == b" ":
                    end += 1
                plan.edits.replace(joins[0].start, end, "", "stderr goes to the file too")
                plan.insert(last, " 2>&1", "stderr goes to the file too")
                break


def deletions(plan: Plan) -> None:
    """rm-unguarded: an empty variable stops the script."""
    view, why = plan.view, "an empty variable stops the script instead of deleting what lies above"
    for mark in view.marks("rm-unguarded"):
        node = view.simple_at(mark.offset)
        for word in node.words[1:] if node is not None and mark.source is view.source else ():
            if "/" not in word.known and "*" not in word.known:
                continue
            for part in word.parts:
                if isinstance(part, Variable) and part.operator in ("", ":-") and not part.length and not part.indirect:
                    text = f"${{{part.name}:?}}"
                    plan.edits.replace(part.start, part.end, text if part.quoted else f'"{text}"', why)


def directories(plan: Plan) -> None:
    """cd-unchecked, for `cd DIR || echo …`: strict mode does the rest."""
    view = plan.view
    for mark in view.marks("cd-unchecked"):
        for node in view.nodes():
            if isinstance(node, AndOr) and node.start == mark.offset and mark.source is view.source:
                handler = node.rest[0][1]
                ends = "return 1" if (place := view.places.get(id(node))) and place.function else "exit 1"
                silent = isinstance(handler, Simple) and handler.name in ("true", ":")
                text = ends if silent else f"{{ {view.raw(handler).strip()}; {ends}; }}"
                plan.edits.replace(handler.start, handler.end, text, "nothing works in the wrong directory")


def children(plan: Plan) -> None:
    """strict-not-inherited: the child gets strict mode on its command line."""
    view, why = plan.view, "a new shell starts without strict mode"
    for mark in view.marks("strict-not-inherited"):
        node = view.simple_at(mark.offset)
        if node is None or mark.source is not view.source:
            continue
        shell = next((word for word in resolve(node).words[:1] if (word.text or "").rpartition("/")[2] in SHELLS), None)
        inner = next((word for word in node.words if (word.text or "").rpartition("/")[2] in SHELLS), None)
        if shell is not None or inner is not None:
            word = shell or inner
            assert word is not None
            posix = (word.text or "").rpartition("/")[2] in ("sh", "dash", "ash")
            plan.insert(word.end, " -e" if posix else " -eo pipefail", why)
        elif resolve(node).name == "ssh":
            _remote(plan, node, why)
        else:
            plan.insert(resolve(node).words[0].start, "bash -eo pipefail ", why)


def _remote(plan: Plan, node: Simple, why: str) -> None:
    body = next((one.body for one in node.redirects if one.body is not None), None)
    if body is not None:
        plan.insert(body.start, "set -e\n", why)
        return
    text = next((word for word in reversed(node.words) if word.raw[:1] in ("'", '"')), None)
    if text is not None:
        plan.insert(text.start + 1, "set -e; ", why)


def suppressed(plan: Plan) -> None:
    """errexit-suppressed: a failed step leaves the function, or the subshell, in which `set -e` does nothing."""
    view = plan.view
    starts = {mark.offset for mark in view.marks("errexit-suppressed") if mark.source is view.source}
    if not starts:
        return
    for seen in view.seen:
        if not seen.errexit or seen.context.suppressor is None or seen.fate is not Fate.LOST:
            continue
        if seen.context.suppressor.start not in starts or seen.context.inside & {"subst", "handler"}:
            continue
        changes_shell = seen.call.name in ("cd", "source", ".", "wait")
        if seen.kind < Kind.CONTROL or (seen.kind == Kind.CONTROL and not changes_shell):
            continue
        node = view.at(seen.node.start)
        place = view.places.get(id(node)) if node is not None else None
        if node is None or place is None or (place.index == len(place.items) - 1 and isinstance(place.owner, Group)
                                             and place.function is not None and place.function.body is place.owner):
            continue  # fmt: skip
        if isinstance(place.owner, Subshell) or (place.function is None and place.owner is None):
            leave = "exit"
        elif place.function is not None:
            leave = "return"
        else:
            _join(plan, place, node)
            continue
        plan.insert(node.end, f" || {leave}", "a failed step is seen, although `set -e` does nothing here")


def _join(plan: Plan, place: Place, node: Node) -> None:
    """In a group that is tested, a step is joined to the next one by &&."""
    if place.index + 1 >= len(place.items) or not isinstance(place.owner, Group):
        return
    following, text = place.items[place.index + 1].node, plan.view.text
    between = text[node.end : following.start]
    why = "a failed step is seen, although `set -e` does nothing here"
    if not between.strip():
        plan.insert(node.end, " &&", why)
    elif between.strip() == b";":
        at = text.find(b";", node.end)
        plan.edits.replace(node.end, at + 1, " &&", why)


def loops_in_pipes(plan: Plan) -> None:
    """subshell-exit, for `exit 0`: the loop reads from a process instead of a pipe, and is no subshell."""
    view, why = plan.view, "the loop is no subshell, so `exit` leaves the script"
    for mark in view.marks("subshell-exit"):
        for node in view.nodes():
            if not isinstance(node, Pipeline) or len(node.elements) != 2 or not node.start <= mark.offset < node.end:
                continue
            left, loop = node.elements
            if isinstance(loop, Loop) and mark.source is view.source:
                given = f"< <({view.raw(left)})"
                if isinstance(left, Simple) and left.name == "cat" and len(left.words) == 2 and not left.redirects:
                    given = f"< {left.words[1].raw}"
                plan.edits.replace(left.start, loop.start, "", why)
                plan.insert(loop.end, f" {given}", why)


def entry(plan: Plan) -> None:
    """missing-exec: the last command takes the shell's place."""
    for mark in plan.view.marks("missing-exec"):
        node = plan.view.simple_at(mark.offset)
        if node is not None and node.words and mark.source is plan.view.source:
            at = node.start if node.assigns else node.words[0].start
            plan.insert(at, _exec(node), "signals reach the command")


def _exec(node: Simple) -> str:
    return "exec env " if node.assigns else "exec "


def is_function(view: View, node: Node) -> bool:
    """Whether a command calls a function of the script."""
    return isinstance(node, Simple) and isinstance(view.walk.function(node.name), Function)
