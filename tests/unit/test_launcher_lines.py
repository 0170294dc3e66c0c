"""Line numbers are right, or said to be unknown, however the output comes."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher import lines as subject
from trainwatch_launcher.lines import LineCounter
from trainwatch_launcher.rundir.records import LINE_UNKNOWN

NOW = 1_800_000_000.0
CHUNKS = st.lists(st.tuples(st.binary(min_size=1, max_size=30).map(lambda b: b.replace(b"a", b"\n")), st.floats(0, 1)))


def counter_of(text: bytearray) -> LineCounter:
    return LineCounter(lambda offset, length: bytes(text[offset : offset + length]))


@given(CHUNKS, st.integers(1, 40), st.lists(st.booleans()))
def test_each_record_tells_the_newlines_before_its_offset(chunks, flood, catch_ups):
    subject_flood, subject.FLOOD = subject.FLOOD, flood
    try:
        text = bytearray()
        counter = counter_of(text)
        records, now = [], NOW
        for number, (chunk, pause) in enumerate(chunks):
            now += pause
            counter.note(now, chunk)
            text += chunk
            if number < len(catch_ups) and catch_ups[number]:
                counter.catch_up(1.0)
                records += counter.take()
        counter.catch_up(5.0)
        records += counter.take(all_of_them=True)
    finally:
        subject.FLOOD = subject_flood
    assert (counter.size, counter.lines) == (len(text), text.count(b"\n"))
    assert [line for _, _, line in records] == [text[:offset].count(b"\n") for _, offset, _ in records]
    assert [time for time, _, _ in records] == sorted(time for time, _, _ in records)


def test_records_come_at_most_ten_times_a_second():
    counter = counter_of(bytearray(b"x\n" * 1000))
    for i in range(1000):
        counter.note(NOW + i / 1000, b"x\n")
    assert 9 <= len(counter.take()) <= 11


def test_a_flood_that_cannot_be_read_back_leaves_lines_unknown():
    counter = LineCounter(lambda offset, length: b"")
    counter.note(NOW, b"\n" * subject.FLOOD)
    counter.note(NOW + 1, b"after\n")
    assert counter.catch_up(1.0) is False
    assert counter.take() == [(NOW, 0, 0)]
    assert counter.take(all_of_them=True) == [(NOW + 1, subject.FLOOD, LINE_UNKNOWN)]


def test_a_clock_that_is_set_back_still_makes_records():
    counter = counter_of(bytearray(b"a\nb\n"))
    counter.note(NOW, b"a\n")
    counter.note(NOW - 3600, b"b\n")
    assert counter.take() == [(NOW, 0, 0), (NOW - 3600, 2, 1)]
