"""Scripts are read as bash reads them, and no bytes at all stop the reader."""
from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.linting import lint
from trainwatch.lint.inputs import Unreadable
from trainwatch.lint.parse import parse
from trainwatch.lint.syntax import AndOr, Group, Item, Loop, Node, Pipeline, Simple, Subshell


def outline(node: Node | Item) -> str:
    """A command in one line, with what binds to what in parentheses."""
    if isinstance(node, Item):
        return outline(node.node) + (" &" if node.background else "")
    redirects = "".join(f" {one.operator}" for one in node.redirects)
    if isinstance(node, Simple):
        return " ".join(word.raw for word in node.words) + redirects
    if isinstance(node, Pipeline):
        return "(" + "! " * node.negated + " | ".join(outline(one) for one in node.elements) + ")"
    if isinstance(node, AndOr):
        return "[" + outline(node.first) + "".join(f" {how} {outline(one)}" for how, one in node.rest) + "]"
    if isinstance(node, (Group, Subshell, Loop)):
        return type(node).__name__ + "{" + "; ".join(outline(one) for one in node.body) + "}" + redirects
    return type(node).__name__


@pytest.mark.parametrize(
    ("script", "is_read_as"),
    [
        ("a | b | c || d", ["[(a | b | c) || d]"]),
        ("a && b > f", ["[a && b >]"]),
        ("! a 2>&1 | tee x", ["(! a >& | tee x)"]),
        ("a || { b; c; } && d &", ["[a || Group{b; c} && d] &"]),
        ("cat <<X 2>&1 | tee y || exit 1\nhi\nX\nnext", ["[(cat << >& | tee y) || exit 1]", "next"]),
        ("a <<X ; b\nhi\nX\nc", ["a <<", "b", "c"]),
        ("time { a; b; } | c", ["(Group{a; b} | c)"]),
        ("time -p ( a )", ["Subshell{a}"]),
        ("! { a; } && b", ["[(! Group{a}) && b]"]),
        ("for x do a; done", ["Loop{a}"]),
        ("cmd > f one two 2>&1 & b", ["cmd one two > >& &", "b"]),
        ("x=1 > f", [" >"]),
    ],
)
def test_operators_and_redirections_bind_as_in_bash(script, is_read_as):
    parsed = parse(script.encode())
    assert [outline(item) for item in parsed.body] == is_read_as
    assert parsed.broken is None


def test_words_know_what_is_literal_and_what_is_not():
    command = parse(b"run 'a b' \"c $d e\" f\\ g ${h:-$(i)}").body[0].node
    assert isinstance(command, Simple)
    assert [word.text for word in command.words] == ["run", "a b", None, "f g", None]
    assert command.words[2].known == "c  e"
    assert [variable.name for word in command.words for variable in word.variables()] == ["d", "h"]
    assert [outline(item) for s in command.words[4].substitutions() for item in s.body] == ["i"]


def test_a_chain_of_any_length_is_read():
    parsed = parse(b" && ".join([b"true"] * 5000))
    assert isinstance(parsed.body[0].node, AndOr)
    assert len(parsed.body[0].node.rest) == 4999


SHELL = st.sampled_from([
    "a", " ", "\n", ";", "|", "||", "&&", "&", "(", ")", "{", "}", "$(", "`", "'", '"', "<<X\n", "X\n", "if ", "then ",
    "fi", "for i ", "in ", "do ", "done", "case x in ", "esac", ";;", "f()", "$?", "${x:-", "[[ ", "]]", "((", "))",
    "set -e", "trap 'exit 0' EXIT", "wait", "exit 1", "2>&1", ">", "<(", "time ", "! ", "\\", "#", "=", "x=(",
    "bash -c '", "python train.py", "| tee log", "source x", "cd x", "rm -rf $x/", "é", "\0", "\r\n",
])  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.binary(max_size=200), st.lists(SHELL, max_size=40).map(lambda parts: "".join(parts).encode())))
def test_no_bytes_stop_the_linter(data):
    for name in ("x.sh", "x.yaml", "Dockerfile"):
        with suppress(Unreadable):  # which is an answer
            lint(data, name)


@pytest.mark.parametrize(
    "deep", [b"(" * 3000, b"$(" * 3000, b"{ " * 3000, b"if a; then " * 2000, b'"${x:-' * 2000, b"a | " * 3000 + b"a",
             b"f() { g; }\n" * 500, b"! " * 2000, b"<<X " * 300, b"[[ ( " * 1000, b"$((" * 2000])  # fmt: skip
def test_nothing_is_nested_too_deeply(deep):
    lint(b"set -e\n" + deep)
