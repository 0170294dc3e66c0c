"""Phase markers before the stages of a script that names none."""
from __future__ import annotations

from trainwatch.harden.plan import Plan
from trainwatch.harden.view import View
from trainwatch.lint import catalog, commands, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.syntax import Function, Group, Item, Simple


def phases(plan: Plan) -> None:
    """no-phase-marker: a line before each step of the job."""
    view, state = plan.view, plan.state
    if "phases" in state.done or not view.marks("no-phase-marker"):
        return
    state.done.add("phases")
    before = ""
    for item in _stages(view):
        if view.walk.kind(item.node) < Kind.WORK or isinstance(item.node, Function):
            continue
        name = _name(view, item)
        if name != before:
            command = f'echo "=== [Phase] {name} ==="'
            plan.before(item.node.start, command, "the stage is seen in the output, and by trainwatch with its time")
        before = name


def _stages(view: View) -> list[Item]:
    """The commands that are the script's stages: its own, or those of `main` when it does nothing but call that."""
    body = view.source.script.body
    steps = [item for item in body if view.walk.kind(item.node) >= Kind.WORK and not isinstance(item.node, Function)]
    if len(steps) == 1 and isinstance(steps[0].node, Simple):
        function = view.walk.function(steps[0].node.name)
        if function is not None and isinstance(function.body, Group):
            return function.body.body
    return body


def _name(view: View, item: Item) -> str:
    """What to call a stage: by the script that it runs."""
    simples = [one for one in syntax.commands(item.node) if isinstance(one, Simple)]
    best = max(simples, key=view.walk.kind)
    call = view.walk.resolve(best)
    function = view.walk.function(call.name)
    script = next((text for text in call.plain if text.endswith((".py", ".sh", ".bash"))), "")
    if function is not None or not script:
        script = call.name if function is not None or not commands.is_python(call.name) else script
    stem = script.rpartition("/")[2].partition(".")[0]
    if script.endswith(".prepare.sh"):
        return "Prepare"
    if view.walk.kind(item.node) == Kind.TRAIN and (not stem or stem in catalog.TRAINERS | catalog.TRAINING_WORDS
                                                    or "train" in script.lower() or stem == "srun"):  # fmt: skip
        return "Train"
    words = "".join(letter if letter.isalnum() else " " for letter in stem).split()
    name = " ".join(words)[:40] or "Work"
    return name[:1].upper() + name[1:]
