"""Python sources without what only people and checkers read: comments, docstrings, the types of arguments.

Every statement stays on its line, so that tracebacks tell true ones.
"""
from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

BETWEEN = (tokenize.NL, tokenize.COMMENT)
BEGINNING = (tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


TYPE_CHECKING = False
if TYPE_CHECKING:
    Place = tuple[int, int]  # a line, from 1, and a byte in it, from 0

BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def slim(source: bytes) -> bytes:
    """The same program with nothing where comments, docstrings and types were."""
    return dense(untyped(unsaid(source)))


def dense(source: bytes) -> bytes:
    """With one blank for each level of indentation, and none that no two words need between them."""
    lines = source.decode("utf-8").split("\n")
    kept = {number for number, line in enumerate(lines, 1) if line.endswith("\\")}
    written: dict[int, str] = {}
    depth, fresh, last = 0, True, 0
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        elif token.type == tokenize.NEWLINE:
            fresh = True
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
            row = token.start[0]
            if token.string in ("]", "}") and written.get(last, "").endswith(","):
                written[last] = written[last][:-1]  # the last comma of a list
            last = row
            before = written.get(row, " " * depth if fresh else "")
            written[row] = before + " " * _needs_blank(before, token) + token.string
            fresh = False
            kept.update(range(row + 1, token.end[0] + 1))  # inside a string blanks are its own
    shown = [line if number in kept else written.get(number, line.strip()) for number, line in enumerate(lines, 1)]
    ends = {number for number in kept if number - 1 not in kept and not lines[number - 1].endswith("\\")}
    for number in ends:  # the line in which a string begins that goes on in the next
        shown[number - 2] = lines[number - 2]
    return "\n".join(shown).rstrip("\n").encode("utf-8") + b"\n"


def _needs_blank(before: str, token: tokenize.TokenInfo) -> bool:
    last = before[-1:]
    is_word = last.isalnum() or last in ("_", '"', "'")
    return is_word and (token.string[:1].isalnum() or token.string[:1] == "_" or token.type == tokenize.STRING)


def untyped(source: bytes) -> bytes:
    """Without the types of arguments, results and variables, and without what only type checkers import.

    Those of derived classes stay: records are made of them.
    """
    lines = source.split(b"\n")
    for first, last, kept in sorted(_types(ast.parse(source), lines), reverse=True):
        (top, left), (bottom, right) = first, last
        joined = lines[top - 1][:left] + kept + lines[bottom - 1][right:]
        lines[top - 1 : bottom] = [joined.rstrip(), *[b""] * (bottom - top)]
    return b"\n".join(lines)


def _types(tree: ast.Module, lines: list[bytes]) -> Iterator[tuple[Place, Place, bytes]]:
    """What to cut: from where, to where, and what stands there instead. No two of them overlap."""
    hidden = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_for_checkers(node)]
    within = {id(inner) for block in hidden for inner in ast.walk(block)}
    derived = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.bases]
    in_classes = {id(each) for one in derived for each in one.body}
    for block in hidden:
        if block in tree.body:
            yield _begin(block), _end(block), b""
        else:
            yield _end(block.test), _end(block.body[-1]), b": pass"
    yield from _not_needed(tree, hidden, in_classes)
    for node in ast.walk(tree):
        if id(node) in within:
            continue
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield (node.lineno, node.col_offset + len(node.arg.encode())), _end(node.annotation), b""
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            begin = lines[node.returns.lineno - 1].rfind(b" ->", 0, node.returns.col_offset)
            if begin >= 0:
                yield (node.returns.lineno, begin), _end(node.returns), b""
        elif isinstance(node, ast.AnnAssign) and node.value is not None and id(node) not in in_classes:
            yield _end(node.target), _end(node.annotation), b""


def _not_needed(tree: ast.Module, hidden: list[ast.If], in_classes: set[int]) -> Iterator[tuple[Place, Place, bytes]]:
    """At a module's top: what only the cut parts had needed."""
    annotated = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    flags = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"]
    asked = sum(isinstance(node.ctx, ast.Load) for node in flags)
    typed = any(id(node) in in_classes or node.value is None for node in annotated)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__" and not typed:
            yield _begin(node), _end(node), b""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        is_flag = isinstance(target, ast.Name) and target.id == "TYPE_CHECKING"
        if is_flag and asked == len(hidden) and all(block in tree.body for block in hidden):
            yield _begin(node), _end(node), b""


def _begin(node: ast.stmt) -> Place:
    return node.lineno, node.col_offset


def _is_for_checkers(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse


def _end(node: ast.expr | ast.stmt) -> Place:
    return node.end_lineno or 0, node.end_col_offset or 0


def unsaid(source: bytes) -> bytes:
    """Without comments and docstrings. Where one is all that a function has, an empty string stands in its place."""
    tokens = list(tokenize.tokenize(io.BytesIO(source).readline))
    alone = {(node.body[0].lineno, node.body[0].col_offset) for node in ast.walk(ast.parse(source))
             if isinstance(node, BLOCKS) and len(node.body) == 1}  # fmt: skip
    lines = source.decode("utf-8").split("\n")
    for token in reversed(unread(tokens)):
        (first, left), (last, right) = token.start, token.end
        kept = '""' if token.type != tokenize.COMMENT and token.start in alone else ""
        joined = lines[first - 1][:left] + kept + lines[last - 1][right:]
        lines[first - 1 : last] = [joined.rstrip(), *[""] * (last - first)]
    return "\n".join(lines).encode("utf-8")


def unread(tokens: list[tokenize.TokenInfo]) -> list[tokenize.TokenInfo]:
    """Comments, but not a first line that says how the file is run, and strings that are statements, in order."""
    found, before = [], tokenize.ENCODING
    for number, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            is_unread = token.start != (1, 0)
        else:
            ends = token.type == tokenize.STRING and tokens[number + 1].type in (tokenize.NEWLINE, tokenize.COMMENT)
            is_unread = ends and before in BEGINNING
        if is_unread:
            found.append(token)
        if token.type not in BETWEEN:
            before = token.type
    return found
