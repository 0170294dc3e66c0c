"""Statuses that were lost are kept: what follows runs as before, and the script ends with the one that counts."""
from __future__ import annotations

from trainwatch.harden.plan import Plan
from trainwatch.harden.view import Place, View
from trainwatch.lint import syntax
from trainwatch.lint.checks.status import absorbs
from trainwatch.lint.reading import first, is_transparent
from trainwatch.lint.syntax import AndOr, Group, If, Node, Pipeline, Simple, Subshell, Variable


def kept_statuses(plan: Plan) -> None:
    """or-true and exit-status-lost: what follows runs as before, and the script ends with the status that was lost."""
    view = plan.view
    for mark in view.marks("or-true"):
        if mark.source is view.source:
            _or_true(plan, mark.offset)
    for mark in view.marks("exit-status-lost"):
        if mark.source is view.source:
            _lost(plan, mark.offset)


def _or_true(plan: Plan, offset: int) -> None:
    view = plan.view
    for node in view.nodes():
        if not isinstance(node, AndOr) or not node.start <= offset < node.end:
            continue
        for operator, part in node.rest:
            if operator == "||" and part.start > offset and absorbs(view.walk, part):
                _keep_in_handler(plan, offset, part)
                return


def _keep_in_handler(plan: Plan, offset: int, handler: Node) -> None:
    view, why = plan.view, "a failure is not taken for success: the script goes on as before and ends with its status"
    if in_subshell(view, handler):
        before = view.text.rfind(b"||", 0, handler.start)
        while view.text[before - 1 : before].isspace():
            before -= 1
        plan.edits.replace(before, handler.end, "", "a failure is not taken for success")
        return
    status = plan.keep_status(offset)
    name = handler.name if isinstance(handler, Simple) else ""
    if isinstance(handler, Group):
        plan.insert(handler.start + 1, f" {status}=$?;", why)
    elif name in ("true", ":"):
        plan.edits.replace(handler.start, handler.end, f"{status}=$?", why)
    elif name in ("exit", "return"):
        plan.edits.replace(handler.start, handler.end, name, "a failure is not taken for success")
    else:
        plan.edits.replace(handler.start, handler.end, f"{{ {status}=$?; {view.raw(handler)}; }}", why)


def in_subshell(view: View, node: Node) -> bool:
    """Whether a variable that is set here is lost when the subshell ends."""
    for one in view.nodes():
        if one.start <= node.start and node.end <= one.end and one is not node:
            if isinstance(one, Subshell) or (isinstance(one, Pipeline) and len(one.elements) > 1):
                return True
            item = view.item_of(one)
            if item is not None and item.background:
                return True
    return False


def _lost(plan: Plan, offset: int) -> None:
    view = plan.view
    why = "what follows runs as before, and the script ends with this step's status"
    node = view.at(offset)
    for one in view.nodes():
        asked = one.branches[0][0][-1].node if isinstance(one, If) and one.branches[0][0] else None
        if isinstance(one, If) and asked is not None and asked.start <= offset < asked.end:
            _lost_in_test(plan, one)
            return
    if node is None or in_subshell(view, node):
        return
    place = view.places[id(node)]
    after = place.items[place.index + 1].node if place.index + 1 < len(place.items) else None
    if isinstance(after, Simple) and after.assigns and _readings(after, "?"):
        plan.ends_with = after.assigns[0].name  # it is kept already, only not given on
        return
    status = plan.keep_status(offset)
    if isinstance(node, AndOr) and isinstance(node.rest[0][1], Simple) and node.rest[0][1].name == "break":
        plan.edits.replace(node.rest[0][1].start, node.rest[0][1].end, f"{{ {status}=0; break; }}", why)
    plan.insert(node.end, f" || {status}=$?", why)
    for variable in _readings(after, "?") if after is not None else []:
        plan.edits.replace(variable.start, variable.end, f"${status}", why)


def _lost_in_test(plan: Plan, node: If) -> None:
    why = "a failed training is not only talked about: the script ends with its status"
    condition, body = node.branches[0]
    asked = condition[-1].node
    negated = isinstance(asked, Pipeline) and asked.negated
    failed = body if negated else node.otherwise
    status = plan.keep_status(node.start)
    value = "1" if negated else "$?"
    if failed:
        plan.before(failed[0].node.start, f"{status}={value}", why)
    elif node.otherwise is None and not negated:
        plan.insert(asked.end, f" || {{ {status}=$?; false; }}", why)


def stale(plan: Plan) -> None:
    """stale-status: the status is kept right behind the command that is meant."""
    view, status = plan.view, plan.state.status
    why = "$? is read behind the command that is meant"
    for mark in view.marks("stale-status"):
        reader = view.at(mark.offset)
        if reader is None or mark.source is not view.source:
            continue
        place = _outermost(view, reader)
        at = place.index - 1
        while at > 0 and is_transparent(place.items[at]):
            at -= 1
        variable = _variable_at(view, mark.offset)
        if variable is None:
            continue
        index = variable.index or "0"
        value = f"${{PIPESTATUS[{index}]}}" if variable.name == "PIPESTATUS" else "$?"
        plan.after(place.items[at], f"{status}={value}", why)
        for item in place.items[at + 1 : place.index + 1]:
            for one in _readings(item.node, variable.name):
                plan.edits.replace(one.start, one.end, f"${status}", why)


def _outermost(view: View, node: Node) -> Place:
    """The place of the statement in whose list the command that is meant stands."""
    place = view.places[id(node)]
    while place.index == 0 and place.owner is not None and id(place.owner) in view.places:
        place = view.places[id(place.owner)]
    return place


def _readings(node: Node, name: str) -> list[Variable]:
    """Where a statement reads $? or PIPESTATUS of what stands before it: in its first command only."""
    one = first(node)
    words = one.all_words() if isinstance(one, Simple) else syntax.words_of(one)
    return [variable for word in words for variable in word.variables() if variable.name == name]


def _variable_at(view: View, offset: int) -> Variable | None:
    for node in view.source.nodes:
        for word in syntax.words_of(node):
            for variable in word.variables():
                if variable.start == offset:
                    return variable
    return None
