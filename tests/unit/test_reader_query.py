"""Looking for something in a log: whoever looks finds the same, and the same as plain tools."""
from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainwatch_launcher.reader import sieve
from trainwatch_launcher.reader.pieces import Piece
from trainwatch_launcher.reader.query import Query, QueryError
from trainwatch_launcher.reader.sieve import Cancelled, Tools, count, sift

NO_GREP = Tools(path="/nonexistent")
TEXTS = ["loss", "Loss", "a.b", "é", "日本", "[x]", "x|y", "50%", "\\d", "  ", "^a", "ß"]
EXPRESSIONS = [
    "loss", "l.ss", "l.+s", "^loss$", r"\bloss\b", r"\d+", r"\w+=\d", "(?:ab)+", "a{2,3}", "[a-c]+x", "[^a]b",
    "[^\"]*x$", "lo(s)s|nan", "é+", "日.語", "(?=l)loss", r"\s$", "^$", "^.{3}$", "x?", r"\.", "a|",
    "(?i:LOSS)", r"\Aab", r"(a)\1",
]  # fmt: skip
WORDS = st.sampled_from([
    "loss", "Loss", "LOSS", "l0ss", "ab", "aab", "aaab", "ax", "\"x", "nan", "é", "éé", "É", "日本語", " ", "  ", "1",
    "x=1", "", "cb", "a.b", "[x]", "x|y", "50%", "\\d", "^a", "ß", "\t",
])  # fmt: skip
LINES = st.lists(WORDS, max_size=5).map("".join)
LOGS = st.lists(LINES, max_size=12).map("\n".join)


def found(query, data, tools=sieve.HERE, cut=None):
    """Where lines that match begin; the data in one piece or cut behind each line."""
    pieces = [data] if cut is None else data.splitlines(keepends=True)
    at, given_ = 0, []
    for piece in pieces:
        given_.append(Piece.of(0, at, piece))
        at += len(piece)
    return [start for _, starts in sift(query, given_, lambda: False, tools) for start in starts]


def expected(pattern, data):
    at, starts = 0, []
    for line in data.split(b"\n")[:None if not data.endswith(b"\n") and data else -1]:
        if pattern.search(line.decode("utf-8", "replace")):
            starts.append(at)
        at += len(line) + 1
    return starts


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([(text, False) for text in TEXTS] + [(text, True) for text in EXPRESSIONS]), LOGS, st.booleans())
@example(("[^a]b", True), "éb\nab", True)
@example(("^.{3}$", True), "日本語\nabc\n", False)
def test_grep_and_python_find_what_python_finds_line_by_line(asked, text, cut):
    query = Query(*asked)
    data = text.encode()
    flags = re.IGNORECASE if query.ignore_case else 0
    should = expected(re.compile(query.source, flags), data)
    assert found(query, data, cut=cut or None) == should
    assert count(query, [Piece.of(0, 0, data)] if data else [], lambda: False) == len(should)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(EXPRESSIONS), LOGS, st.binary(max_size=20))
def test_without_grep_the_same_is_found_slower(text, log, noise):
    data = log.encode() + b"\n" + noise.replace(b"\x1b", b"")
    query = Query(text, True)
    assert found(query, data, NO_GREP) == expected(re.compile(query.source, query.pattern.flags), data)


@pytest.mark.parametrize("text", ["loss", "Loss", "l[oa]ss", "los+", "[0-9]+$"])
def test_counts_are_those_of_grep(tmp_path, text):
    data = b"".join(b"step %d Loss %d loss\n" % (n, n % 7) if n % 3 else b"L\xffss \xe9 %d\n" % n for n in range(5000))
    (tmp_path / "log").write_bytes(data)
    case = [] if any(c.isupper() for c in text) else ["-i"]
    plain = subprocess.run(["grep", "-a", "-c", "-E", *case, "-e", text, tmp_path / "log"], stdout=subprocess.PIPE,
                           env={"LC_ALL": "C"}, check=False)
    assert len(found(Query(text, True), data)) == int(plain.stdout)


def test_colours_do_not_hide_text_and_lines_are_found_where_they_are():
    lines = [b"one\n", b"lo\x1b[31mss=\x1b[1m0.3\x1b[0m\n", b"\x1b[2mthree\x1b[0m\n", b"loss=0.3\n"]
    data = b"".join(lines)
    assert found(Query("loss=0.3"), data) == [4, len(b"".join(lines[:3]))]
    assert found(Query("three"), data) == [len(lines[0] + lines[1])]


def test_case_matters_once_a_capital_is_typed_but_not_in_an_escape():
    assert Query("error").ignore_case
    assert not Query("Error").ignore_case
    assert Query(r"\S+error", True).ignore_case
    assert Query("ERROR", case=False).ignore_case


def test_lines_without_it_can_be_asked_for():
    data = b"noise 1\nnews\nnoise 2\n"
    assert found(Query("noise", invert=True), data) == [8]
    assert found(Query("noise", invert=True), data, NO_GREP) == [8]


@pytest.mark.parametrize("tools", [sieve.HERE, NO_GREP], ids=["grep", "python"])
def test_an_expression_that_takes_for_ever_is_given_up_and_can_be_cancelled(tools, monkeypatch):
    monkeypatch.setattr(sieve, "STUCK", 0.5)
    data = b"a" * 5000 + b"\n"
    with pytest.raises(QueryError, match="too long"):
        found(Query("^(a|aa)+$(?<=b)", True), data, tools)
    with pytest.raises(Cancelled):
        list(sift(Query("^(a|aa)+$(?<=b)", True), [Piece.of(0, 0, data)], lambda: True, tools))


@pytest.mark.parametrize(("text", "regex", "why"), [
    ("(", True, "no regular expression"), ("", False, "nothing to look for"), ("a\nb", False, "one line"),
    ("x" * 5000, False, "one line"), ("a{99999999999}", True, "no regular expression"),
])  # fmt: skip
def test_what_cannot_be_looked_for_is_said_in_one_line(text, regex, why):
    with pytest.raises(QueryError, match=why):
        Query(text, regex)
