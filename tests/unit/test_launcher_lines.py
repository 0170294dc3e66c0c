"""Line numbers are right, or said to be unknown, however the output comes."""
from __future__ import annotations

import threading

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


def test_two_that_catch_up_at_once_count_each_line_once():
    # the recorder and, after a failure, the diagnosis: else the banner and the index would lead to wrong lines
    text = bytes(bytearray(b"a line\n") * subject.FLOOD)
    both_read = threading.Barrier(2)

    def read(offset: int, length: int) -> bytes:
        try:
            both_read.wait(0.02)  # broken after the first wait that was for nothing
        except threading.BrokenBarrierError:
            pass
        return text[offset : offset + length]

    counter = LineCounter(read)
    counter.note(NOW, text)
    threads = [threading.Thread(target=counter.catch_up, args=(60.0,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.counted, counter.total()) == (len(text), text.count(b"\n"))


def test_a_total_that_is_not_known_is_none_rather_than_too_small():
    text = b"\n" * subject.FLOOD
    counter = counter_of(bytearray(text))
    assert counter.total() == 0
    counter.note(NOW, text)
    assert counter.total() is None
    counter.catch_up(60.0)
    assert counter.total() == subject.FLOOD


def test_after_a_loss_records_are_written_while_the_command_runs():
    # nobody can count on any more: a viewer would have no times at all before the end, and after a crash never
    counter = counter_of(bytearray(b"a\n"))
    counter.note(NOW, b"a\n")
    counter.note(NOW + 1, b"b\n")
    counter.note(NOW + 2, b"c\n", lost=2)
    counter.note(NOW + 3, b"d\n", lost=2)
    assert counter.take() == [(NOW, 0, 0), (NOW + 1, 2, 1), (NOW + 2, 2, LINE_UNKNOWN), (NOW + 3, 4, LINE_UNKNOWN)]
    assert counter.total() is None


def test_a_clock_that_is_set_back_still_makes_records():
    counter = counter_of(bytearray(b"a\nb\n"))
    counter.note(NOW, b"a\n")
    counter.note(NOW - 3600, b"b\n")
    assert counter.take() == [(NOW, 0, 0), (NOW - 3600, 2, 1)]
