"""Filters and order of rows: what a user types."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model import query as queries
from trainwatch.model.gpus import Gpus
from trainwatch.model.progress import Progress
from trainwatch.model.query import FIELDS, HELP, QueryError, complete, filter_rows
from trainwatch.model.rows import Row
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu

ROWS = (
    Row(AttemptKey(0), "0", "gpu-01", "running", phase="Load data", phase_age=5, last_line="reading", output_bytes=10),
    Row(AttemptKey(1), "1", "gpu-02", "failed", phase="Train", phase_age=50, exit_code=1, exit_text="1",
        reason="ValueError: NaN", output_bytes=30),
    Row(AttemptKey(2), "2", "cpu-03", "held", phase="Train", phase_age=1, exit_code=137, exit_text="137 SIGKILL"),
    Row(AttemptKey(10), "10", "gpu-10", "finished", exit_code=0, exit_text="0", output_bytes=20),
    Row(AttemptKey(10, 2), "10#2", "gpu-11", "stalled", phase="Upload"),
)
GIB = 1 << 30
TRAINING = (
    Row(AttemptKey(0), "0", "a", "running", phase="Train", phase_age=30.0, last_output_age=1.0, elapsed=90.0,
        progress=Progress(step=1200, loss=2.5, tokens=41_000.0, eta=7300.0),
        gpus=Gpus((Gpu(temperature=61), Gpu(temperature=86)), util=97.0, memory_used=76 * GIB, memory_total=80 * GIB)),
    Row(AttemptKey(1), "1", "a", "running", phase="Train", phase_age=301.0, last_output_age=45.0,
        progress=Progress(step=1190, loss=float("nan")),
        gpus=Gpus((Gpu(temperature=60),), util=12.0, memory_used=8 * GIB, memory_total=80 * GIB)),
    Row(AttemptKey(2), "2", "b", "held", phase="Load: the data", exit_code=137, exit_text="137 SIGKILL",
        hold_left=500.0, reason="NCCL watchdog", last_line="loss=2.3 x<y"),
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


@pytest.mark.parametrize(("query", "labels"), [
    ("gpu<50", "1"), ("gpu<50%", "1"), ("gpu>=97", "0"), ("gpu=12", "1"), ("-gpu<50", "0 2"), ("!gpu<50", "0 2"),
    ("mem>90", "0"), ("mem:10", "1"), ("mem:5-20,90-", "0 1"), ("temp>85", "0"),
    ("step<1200", "1"), ("step:1190-1200", "0 1"), ("step>1.19k", "0"), ("lag>2", "1"), ("lag:0", "0"),
    ("loss:nan", "1"), ("loss:bad", "1"), ("loss:inf", ""), ("loss<3", "0"), ("rate>40k", "0"),
    ("age>5m", "1"), ("age<=30s", "0"), ("quiet>30", "1"), ("eta>2h", "0"), ("elapsed<2m", "0"), ("hold<10m", "2"),
    ("exit>0", "2"), ("exit:137", "2"), ("exit=sigkill", "2"), ("exit:0", ""),
    ('phase:"load: the"', "2"), ('phase:"Load*"', "2"), ('phase:"Load: the data",train', "0 1 2"),
    ('phase:"Load: th', "2"), ("rank:,", "0 1 2"),
    ('"loss=2.3 x<y"', "2"), ("x<y", "2"), ("reason:nccl", "2"), ("line:loss", "2"), ('"state:held"', ""),
    ("gpu<", "0 1 2"), ("loss:", "0 1 2"), ("-host:", "0 1 2"), ("host:a loss:nan gpu<50", "1"), ("STATE:HELD", "2"),
    ("@slow", "1"), ("-@slow", "0 2"), ("@deep host:a", "1"),
])  # fmt: skip
def test_numbers_quotes_and_saved_filters(query, labels):
    saved = {"slow": "gpu<50 host:a", "deep": "@slow lag>2"}
    assert [row.label for row in filter_rows(TRAINING, query, saved)] == labels.split()


@pytest.mark.parametrize(("query", "said"), [
    ("gpu<fast", "gpu is compared with a number: 'fast' is none"),
    ("age>5x", "age is compared with a number of seconds, or 5m, 2h: '5x' is none"),
    ("gpu<1,2", "gpu< wants one number, not '1,2'"),
    ("host<gpu", "host has no order; write host:gpu"),
    ("state>held", "state has no order; write state:held"),
    ("stat:held", "no field is called 'stat'; is it state\\? As text, in quotes: \"stat:held\""),
    ("gpus<50", "no field is called 'gpus'; is it gpu"),
    ("@fast", "no filter is saved as 'fast'; there are loop, slow"),
    ("@loop", "the saved filter 'loop' leads back to itself"),
])  # fmt: skip
def test_what_is_wrong_with_a_filter_is_named(query, said):
    with pytest.raises(QueryError, match=said):
        filter_rows(TRAINING, query, {"slow": "gpu<50", "loop": "@loop"})


PIECES = [*FIELDS, *":<>=-!@,\"", "<=", ">=", " ", "5", "5m", "nan", "1-2", "held", "gpu-0*", "[", "e9", ".", "x"]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_whatever_is_typed_lets_rows_through_or_says_why_not(words):
    typed = "".join(words)
    try:
        shown = filter_rows(TRAINING, typed, {"x": "@x"})
    except QueryError as error:
        shown, said = (), str(error)
    else:
        said = ""
    assert set(shown) <= set(TRAINING)
    assert "\n" not in said
    completed = complete(typed, {"host": ["gpu-01"], "phase": ["Load data"]}, {"x": ""})
    assert completed is None or completed != typed


@given(st.sampled_from(["state:held", "gpu<50", "host:a", "loss:nan", "rank:0-1", "137"]), st.sampled_from(["-", "!"]))
def test_a_word_and_its_negation_share_all_rows_between_them(word, sign):
    with_it, without = filter_rows(TRAINING, word), filter_rows(TRAINING, sign + word)
    assert sorted([*with_it, *without], key=lambda row: row.key) == list(TRAINING)


@pytest.mark.parametrize(("typed", "meant"), [
    ("sta", "state:"), ("-sta", "-state:"), ("host:a ga", None), ("host:a gp", "host:a gpu"),
    ("state:f", "state:finished"), ("state:failed,he", "state:failed,held"),
    ("host:gpu-0", "host:gpu-01"), ("phase:lo", 'phase:"Load data"'),
    ("@sl", "@slow"), ("", None), ("state:held", None), ("host:gpu-01 ", None), ("word", None),
])  # fmt: skip
def test_what_is_being_typed_is_completed(typed, meant):
    assert complete(typed, {"host": ["gpu-01", "gpu-02"], "phase": ["Load data"]}, {"slow": "gpu<50"}) == meant


def test_help_has_every_field():
    said = " ".join(word for word, _ in HELP)
    assert all(f"{field}:" in said or f"{field}<" in said for field in queries.FIELDS)
