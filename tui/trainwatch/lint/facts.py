"""Facts about a whole script, found before it is walked."""
from __future__ import annotations

from trainwatch.lint import catalog, commands, syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.syntax import Node, Simple


def assigned_names(nodes: list[Node]) -> set[str]:
    """Every variable that a script gives a value anywhere."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Simple):
            found.update(each.name for each in (*node.assigns, *node.declared))
            if node.name in ("read", "local", "declare", "typeset", "getopts", "mapfile", "readarray", "printf"):
                found.update(word.known for word in node.words[1:])
            for word in node.all_words():
                found.update(one.name for one in word.variables() if one.operator in (":=", "=", ":?", "?"))
        elif isinstance(node, syntax.Loop) and node.variable:
            found.add(node.variable)
    return found


def is_job(nodes: list[Node], comments: list[str]) -> bool:
    """Whether a script runs where GPUs are: it trains, or is a batch script that asks for GPUs."""
    for comment in comments:
        if comment.startswith("#SBATCH") and ("gpu" in comment or "--gres" in comment):
            return True
    uses_gpus, works = False, False
    for node in nodes:
        if not isinstance(node, Simple):
            continue
        kind = commands.kind_of(commands.resolve(node), False)
        if kind == Kind.TRAIN:
            return True
        works = works or kind == Kind.WORK
        names = [each.name for each in (*node.assigns, *node.declared)]
        names += [variable.name for word in node.words for variable in word.variables()]
        uses_gpus = uses_gpus or any(name.startswith(catalog.JOB_VARIABLES) for name in names)
    return uses_gpus and works


