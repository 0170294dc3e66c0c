"""Records: typed, tolerant of what they do not know, and never crashed by what somebody's file says."""
from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.rundir.files import decode, encode
from trainwatch_launcher.rundir.record import NewerFormatError, Record, RecordError, is_a
from trainwatch_launcher.rundir.records import Event, Request, RunInfo, Status, event

RECORDS = (RunInfo, Status, Event, Request)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({name for kind in RECORDS for name in kind._fields} | {"self", "cls", "kind", "extra", "to_json", ""})


def test_a_field_without_a_default_must_be_there():
    with pytest.raises(RecordError, match="Status needs time"):
        Status(run_id="r")
    with pytest.raises(RecordError, match="RunInfo needs run_id"):
        RunInfo.from_json({"created": 1.0})


def test_absent_facts_have_their_defaults():
    status = Status(time=1.0)
    assert (status.rank, status.attempt, status.pid, status.last_line, status.interval) == (0, 1, None, "", 5.0)


def test_a_value_of_the_wrong_type_counts_as_absent():
    status = Status.from_json({"time": 1.0, "rank": "3", "pid": 1.5, "host": 7, "interval": None, "exit_code": True})
    assert (status.rank, status.pid, status.host, status.interval, status.exit_code) == (0, None, "", 5.0, None)


def test_a_required_field_of_the_wrong_type_is_an_error():
    for wrong in (None, "now", True, [], float("nan"), float("inf"), 10**400):
        with pytest.raises(RecordError):
            Status.from_json({"time": wrong})


def test_unknown_fields_are_kept_and_written_again():
    data = {"time": 1.0, "colour": "blue", "deep": {"a": [1, 2]}}
    again = json.loads(encode(Status.from_json(data).replace(rank=3)))
    assert again["colour"] == "blue"
    assert again["deep"] == {"a": [1, 2]}
    assert again["rank"] == 3


def test_null_for_a_fact_that_may_be_absent_stays_null():
    assert Status.from_json({"time": 1.0, "pid": None}).pid is None


def test_an_integer_may_stand_where_a_float_is_declared():
    assert Status.from_json({"time": 7}).time == 7


def test_a_command_with_something_else_than_texts_in_it_counts_as_absent():
    assert RunInfo.from_json({"run_id": "r", "created": 1.0, "command": ["a", 1]}).command == []


@pytest.mark.parametrize(
    ("kind", "version"), [(Status, "format"), (RunInfo, "format"), (Request, "format"), (Event, "v")])
def test_a_newer_format_is_told_apart_from_a_damaged_one(kind, version):
    command = "release" if kind is Request else []
    good = {"time": 1.0, "run_id": "r", "created": 1.0, "event": "x", "id": "i", "command": command}
    assert kind.from_json({**good, version: 1})
    for newer in (2, 3.0, 10**30):
        with pytest.raises(NewerFormatError, match="newer than this trainwatch"):
            kind.from_json({**good, version: newer})


def test_an_event_may_have_a_fact_that_is_called_format():
    assert Event.from_json({"v": 1, "time": 1.0, "event": "x", "format": 9}).integer("format") == 9


def test_facts_named_like_python_words_do_no_harm():
    found = Event.from_json({"v": 1, "time": 1.0, "event": "x", "self": 1, "cls": 2, "data": 3, "": 4, "replace": 5})
    assert found.integer("self") == 1
    assert found.replace(time=2.0).integer("replace") == 5


def test_facts_of_an_event_are_asked_for_by_type():
    found = event("exit", 2.0, code=3, why="because", seconds=1.5, names=["a", 1, "b"], flag=True, big=10**30)
    assert [found.integer(name) for name in ("code", "why", "flag", "big")] == [3, None, None, None]
    assert (found.text("why"), found.text("code")) == ("because", "")
    assert (found.number("seconds"), found.number("code"), found.number("flag")) == (1.5, 3.0, None)
    assert (found.texts("names"), found.texts("why")) == (["a", "b"], [])


def test_equal_records_are_equal_and_hash_alike():
    assert Status(time=1.0, rank=2) == Status(time=1.0, rank=2) != Status(time=1.0, rank=3)
    assert len({Status(time=1.0, rank=2), Status(time=1.0, rank=2)}) == 1
    assert Status(time=1.0) != "Status"


def test_a_change_makes_a_copy():
    before = Status(time=1.0)
    assert before.replace(rank=5).rank == 5
    assert before.rank == 0


def test_a_copy_cannot_lose_what_must_be_there():
    with pytest.raises(RecordError):
        Record.__init__(object.__new__(Status), rank=1)


def test_undecodable_bytes_of_a_command_survive_the_way():
    argument = b"caf\xe9".decode("utf-8", "surrogateescape")
    again = decode(RunInfo, encode(RunInfo(run_id="r", created=1.0, command=[argument])))
    assert again.command[0].encode("utf-8", "surrogateescape") == b"caf\xe9"


@given(st.sampled_from(RECORDS), JSON)
def test_any_json_is_a_record_or_an_error_that_we_know(kind, data):
    try:
        kind.from_json(data)
    except RecordError:
        pass


@given(st.sampled_from(RECORDS), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8))
def test_whatever_stands_in_our_fields_gives_usable_values_or_a_known_error(kind, data):
    try:
        record = kind.from_json(data)
    except RecordError:
        return
    for name, (declared, nullable) in kind._fields.items():
        value = getattr(record, name)
        assert (value is None and nullable) or is_a(value, declared)
    assert decode(kind, encode(record)).to_json().keys() == record.to_json().keys()
    if isinstance(record, Status):
        assert math.isfinite(1.5 * record.time - record.interval)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_an_error_that_we_know(data):
    for kind in RECORDS:
        try:
            decode(kind, data)
        except RecordError:
            pass


def test_json_nested_too_deep_is_a_known_error():
    with pytest.raises(RecordError):
        decode(Status, b'{"time":1,"x":' + b"[" * 200_000)


@pytest.mark.parametrize("number", [1e18, -1e300, 1e308, 10**18, 10**400])
def test_a_number_beyond_all_times_and_sizes_counts_as_absent(number):
    assert Status.from_json({"time": 1.0, "hold_until": number, "clock_offset": number}).hold_until is None
    assert event("hold", 1.0, until=number).number("until") is None
    assert Status.from_json({"time": 1.0, "output_bytes": 10**17}).output_bytes == 10**17
