"""Names of attempts: each has its own, and what the table shows can be typed."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model.naming import NamingError, labels, parse, spans
from trainwatch_launcher.reader.changes import AttemptKey

RANK, ATTEMPT = st.integers(0, 5), st.integers(1, 3)
OUTER = st.tuples(RANK, ATTEMPT).map(lambda numbers: AttemptKey(*numbers))
INNER = st.tuples(RANK, ATTEMPT, RANK, ATTEMPT).map(lambda numbers: AttemptKey(*numbers))


def test_an_attempts_number_is_said_where_another_could_be_meant():
    keys = [AttemptKey(0), AttemptKey(1, 1), AttemptKey(1, 2), AttemptKey(2, 1), AttemptKey(2, 1, 0, 1),
            AttemptKey(2, 1, 1, 1), AttemptKey(2, 1, 1, 2), AttemptKey(3, 2)]
    assert list(labels(keys).values()) == ["0", "1#1", "1#2", "2", "2.0", "2.1#1", "2.1#2", "3#2"]


@given(st.sets(OUTER | INNER, max_size=12))
def test_no_two_attempts_are_called_the_same_and_every_name_is_understood(keys):
    named = labels(keys)
    assert len(set(named.values())) == len(keys)
    for key, label in named.items():
        (name,) = parse(label)
        same_kind = [other for other in keys if (other.local_rank < 0) == (key.local_rank < 0)]
        assert [other for other in same_kind if name.covers(other)] == [key]


@pytest.mark.parametrize(("written", "covered"), [
    ("1", {(1, 1), (1, 2), (1, 2, 0, 1)}), ("1#2", {(1, 2), (1, 2, 0, 1)}), ("1.0", {(1, 2, 0, 1)}),
    ("0-1", {(0, 1), (1, 1), (1, 2), (1, 2, 0, 1)}), ("1-", {(1, 1), (1, 2), (1, 2, 0, 1)}), (" 0 , 7", {(0, 1)}),
    ("1#2.0#1", {(1, 2, 0, 1)}), ("1#3", set()), ("2-1", set()),
])  # fmt: skip
def test_a_name_covers_what_it_leaves_open(written, covered):
    keys = [AttemptKey(0), AttemptKey(1), AttemptKey(1, 2), AttemptKey(1, 2, 0, 1)]
    names = parse(written)
    assert {key for key in keys if any(name.covers(key) for name in names)} == {AttemptKey(*c) for c in covered}


@pytest.mark.parametrize("written", ["x", "1-x", "-", "1·2", "1#", "#1", "1.", "1.x", "1#2#3", "１", "9" * 30, "1,x"])
def test_what_names_no_rank_is_refused_in_its_own_words(written):
    with pytest.raises(NamingError, match="is no rank; write 3, 0-7"):
        parse(written)


@pytest.mark.parametrize("written", ["", ",", "  "])
def test_nothing_is_no_name(written):
    with pytest.raises(NamingError, match="no rank is named"):
        parse(written)


@given(st.text(alphabet="0123-.#, x", max_size=12))
def test_anything_written_is_names_or_an_error_that_we_know(written):
    try:
        assert parse(written)
    except NamingError:
        pass


def test_ranks_are_listed_in_few_words():
    assert spans([3, 0, 1, 2, 7, 9, 10]) == "0-3, 7, 9-10"
    assert spans([]) == ""
