"""Commands and operators in the order written, bound as the shell's grammar binds them (POSIX 2.10)."""
from __future__ import annotations

from trainwatch.lint.syntax import AndOr, Item, Node, Pipeline, Unknown

Token = str | Node
"""`&&`, `||`, `|`, `|&`, `!`, `;`, `&`, or a command."""


def assemble(tokens: list[Token]) -> list[Item]:
    """Commands and operators in the order written, as the shell's grammar binds them."""
    items: list[Item] = []
    current: list[Token] = []
    for token in [*tokens, ";"]:
        if token in (";", "&"):
            if current:
                items.append(Item(_and_or(current), background=token == "&"))
                current = []
            elif token == "&" and items:
                items[-1].background = True
        else:
            current.append(token)
    return items


def _and_or(tokens: list[Token]) -> Node:
    parts: list[list[Token]] = [[]]
    operators: list[str] = []
    for token in tokens:
        if token in ("&&", "||"):
            operators.append(str(token))
            parts.append([])
        else:
            parts[-1].append(token)
    made = [_pipeline(part) for part in parts]
    first = next((one for one in made if one is not None), Unknown(0, 0))
    if len(made) == 1:
        return first
    rest = [(op, node or Unknown(first.end, first.end)) for op, node in zip(operators, made[1:], strict=True)]
    return AndOr(first.start, rest[-1][1].end, made[0] or first, rest)


def _pipeline(tokens: list[Token]) -> Node | None:
    negated = tokens.count("!") % 2 == 1
    elements = [token for token in tokens if isinstance(token, Node)]
    both = [token == "|&" for token in tokens if token in ("|", "|&")]
    if not elements:
        return None
    if len(elements) == 1 and "!" not in tokens:
        return elements[0]
    return Pipeline(elements[0].start, elements[-1].end, elements, both, negated)

