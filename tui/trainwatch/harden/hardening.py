"""The passes of hardening: each walks the script anew, changes one kind of thing, and says why."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from trainwatch.harden import fixes, launching, phases, prepare, statuses, strictness
from trainwatch.harden.plan import Plan, State
from trainwatch.harden.view import View, look
from trainwatch.lint import follow
from trainwatch.lint.catalog import Kind
from trainwatch.lint.findings import Finding, finding
from trainwatch.lint.syntax import AndOr, Node, Simple

PASSES = 3
"""How often the repairs of single findings are repeated: one may uncover another."""


@dataclass(frozen=True)
class Hardened:
    """A hardened script, what was changed, its prepare script if it has one, and what was left as it is."""

    text: bytes
    reasons: list[str]
    prepare: bytes
    left: list[Finding]
    broken: int = 0
    """The line from which on the script was not understood; then it is not changed."""


def harden(
    text: bytes, name: str, path: str, files: follow.Files, here: str, *, bash_only: bool = False,
    prepare_name: str = "", shell: str = ""
) -> Hardened:  # fmt: skip
    """The better script. A script in which the linter finds nothing comes back as it is."""
    state = State(bash_only, prepare_name)
    first = look(text, name, path, files, here, shell)
    if first.source.script.broken is not None:
        return Hardened(text, [], b"", [], first.source.place(first.source.script.broken)[0])
    if not first.all_marks:
        return Hardened(text, [], b"", [])
    state.choose_names(first)
    repairs = (statuses.kept_statuses, statuses.stale, fixes.processes, fixes.traps, fixes.substitutions,
               fixes.redirections, fixes.deletions, fixes.directories)  # fmt: skip
    late = (fixes.children, fixes.suppressed, fixes.loops_in_pipes, fixes.directories, fixes.substitutions)
    stages = ((fixes.shebang,), (apart,), *([repairs] * PASSES), (launching.launch,), (strictness.strict,),
              (launching.define,), *([late] * PASSES), (prepare.move,), (phases.phases,), (fixes.entry,))  # fmt: skip
    whys: list[str] = []
    for stage in stages:
        view = look(text, name, path, files, here, shell)
        if view.source.script.broken is not None:
            break
        plan = Plan(view, state)
        for change in stage:
            change(plan)
        plan.settle()
        text = plan.edits.applied(text)
        whys += dict.fromkeys(edit.why for edit in sorted(plan.edits.made, key=lambda edit: edit.order) if edit.text
                              or edit.end > edit.start)  # fmt: skip
    last = look(text, name, path, files, here, shell)
    left = [finding(mark) for mark in last.all_marks]
    made = "\n".join(state.prepare) + "\n" if state.prepare else ""
    return Hardened(text, list(dict.fromkeys(whys)), made.encode("utf-8", "surrogateescape"), sorted(left))


def apart(plan: Plan) -> None:
    """Statements that share a line get one each, and a chain of && that is a script's own becomes statements."""
    view: View = plan.view
    body = view.source.script.body
    if not any(view.marks(rule) for rule in ("pipe-masks-exit", "setup-on-gpu-time", "no-phase-marker", "or-true")):
        return
    why = "one command on each line"
    for item in body:
        node = item.node
        if isinstance(node, AndOr) and not item.background and all(operator == "&&" for operator, _ in node.rest):
            last = item is body[-1]
            if not last and not view.marks("no-errexit"):
                continue
            parts = [node.first, *(part for _, part in node.rest)]
            if not all(_is_step(view, part) for part in parts[:-1]):
                continue  # a test: what follows depends on it
            for one, other in pairwise(parts):
                if not any(word in view.text[one.end : other.start] for word in (b"#", b"<<")):
                    plan.edits.replace(one.end, other.start, "\n", why)
    for one_item, other_item in pairwise(body):
        start, end = view.end(one_item), other_item.node.start
        between = view.text[start:end]
        if b"\n" not in between and between.strip() in (b";", b"") and end > start:
            plan.edits.replace(start, end, "\n", why)


def _is_step(view: View, node: Node) -> bool:
    """Whether a part of a chain does something, rather than ask."""
    if isinstance(node, Simple) and node.name in ("cd", "mkdir", "export", "source", "."):
        return True
    return view.walk.kind(node) >= Kind.PLAIN
