"""Filters and order of rows: what a user types."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model.query import SORT_KEYS, QueryError, filter_rows, sort_rows
from trainwatch.model.rows import Row
from trainwatch_launcher.reader.changes import AttemptKey

ROWS = (
    Row(AttemptKey(0), "0", "gpu-01", "running", phase="Load data", phase_age=5, last_line="reading", output_bytes=10),
    Row(AttemptKey(1), "1", "gpu-02", "failed", phase="Train", phase_age=50, exit_code=1, exit_text="1",
        reason="ValueError: NaN", output_bytes=30),
    Row(AttemptKey(2), "2", "cpu-03", "held", phase="Train", phase_age=1, exit_code=137, exit_text="137 SIGKILL"),
    Row(AttemptKey(10), "10", "gpu-10", "finished", exit_code=0, exit_text="0", output_bytes=20),
    Row(AttemptKey(10, 2), "10#2", "gpu-11", "stalled", phase="Upload"),
)


@pytest.mark.parametrize(("query", "labels"), [
    ("", "0 1 2 10 10#2"),
    ("state:failed", "1"),
    ("state:f", "1 10"),
    ("state:failed,held", "1 2"),
    ("state:bad", "1 2"),
    ("state:live", "0 2 10#2"),
    ("host:gpu-0*", "0 1"),
    ("host:gpu", "0 1 10 10#2"),
    ("HOST:GPU-0?", "0 1"),
    ("rank:0-1", "0 1"),
    ("rank:2-", "2 10 10#2"),
    ("rank:0,10", "0 10 10#2"),
    ("rank:10#2,1", "1 10#2"),
    ("rank:10-2", ""),
    ("phase:train", "1 2"),
    ("phase:*data", "0"),
    ("exit:137", "2"),
    ("exit:sigkill", "2"),
    ("nan", "1"),
    ("NaN gpu", "1"),
    ("-gpu", "2"),
    ("-state:bad", "0 10 10#2"),
    ("state:bad rank:2", "2"),
    ("reading", "0"),
    ("upload", "10#2"),
    ("nothing-like-this", ""),
    ("state:", "0 1 2 10 10#2"),
    ("state:failed,", "1"),
    ("ValueError:", "1"),
    ("-", ""),
    ("[", ""),
    ("host:[", ""),
])  # fmt: skip
def test_a_filter_finds(query, labels):
    expected = labels.split() if query != "-" else [row.label for row in ROWS if "-" in row.host]
    assert [row.label for row in filter_rows(ROWS, query)] == expected


@pytest.mark.parametrize(("query", "said"), [
    ("state:bored", "no state is called 'bored'; states are starting,"),
    ("rank:x", "'x' is no rank; write rank:3, rank:0-7"),
    ("rank:1-x", "is no rank"),
    ("rank:-", "is no rank"),
    ("rank:,", "',' is no rank"),
])  # fmt: skip
def test_a_filter_that_means_nothing_says_what_would(query, said):
    with pytest.raises(QueryError, match=said):
        filter_rows(ROWS, query)


@given(st.text(alphabet="state:rankhost0-9,*[]!?-· \n\x00", max_size=20))
def test_anything_typed_is_a_filter_or_an_error_that_we_know(query):
    try:
        filter_rows(ROWS, query)
    except QueryError:
        pass


def labels(key, reverse=False):
    return [row.label for row in sort_rows(reversed(ROWS), key, reverse)]


def test_rows_are_sorted_by_any_column_and_unknown_facts_come_last():
    assert labels("rank") == ["0", "1", "2", "10", "10#2"]
    assert labels("rank", reverse=True) == ["10#2", "10", "2", "1", "0"]
    assert labels("state") == ["1", "2", "10#2", "0", "10"]
    assert labels("host") == ["2", "0", "1", "10", "10#2"]
    assert labels("output_bytes") == ["0", "10", "1", "2", "10#2"]
    assert labels("output_bytes", reverse=True) == ["1", "10", "0", "2", "10#2"]
    assert labels("phase_age", reverse=True) == ["1", "0", "2", "10", "10#2"]
    assert labels("exit_code") == ["10", "1", "2", "0", "10#2"]


def test_every_sort_key_works_and_others_are_refused():
    for key in SORT_KEYS:
        assert len(sort_rows(ROWS, key)) == len(ROWS)
    with pytest.raises(QueryError, match="cannot sort by 'colour'; sort by one of rank"):
        sort_rows(ROWS, "colour")
