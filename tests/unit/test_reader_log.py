"""Reading a log: any place of it, by byte, line and time; the answers are those of counting it all."""
from __future__ import annotations

import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, RunBuilder
from support.users import unprivileged_directory
from trainwatch_launcher.reader import log, records
from trainwatch_launcher.reader.log import LogIndex
from trainwatch_launcher.rundir import paths

CHUNKS = st.lists(st.binary(max_size=30) | st.sampled_from([b"\n", b"\n\n\n", b"line\n", b"torn"]), max_size=12)


def attempt_with(directory, chunks, index=True):
    attempt = RunBuilder(directory / "run").rank(0)
    for at, chunk in enumerate(chunks):
        attempt.output(chunk, NOW + at, index=index)
    return attempt


def true_offset(data, line):
    """Where a line begins, by counting everything; None when it is not there."""
    starts = [0] if data else []
    starts += [at + 1 for at, byte in enumerate(data) if byte == 10 and at + 1 < len(data)]
    return starts[line] if 0 <= line < len(starts) else None


@settings(max_examples=150)
@given(CHUNKS, st.booleans())
def test_lines_and_offsets_are_those_of_counting_with_and_without_an_index(tmp_path_factory, chunks, index):
    attempt = attempt_with(tmp_path_factory.mktemp("log"), chunks, index)
    data = b"".join(chunks)
    found = LogIndex(str(attempt.directory))
    for line in range(data.count(b"\n") + 3):
        assert found.line_to_offset(line) == true_offset(data, line)
    for offset in range(len(data) + 2):
        assert found.offset_to_line(offset) == data[:offset].count(b"\n")
    assert found.line_count() == data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


@settings(max_examples=60)
@given(CHUNKS, st.binary(max_size=120))
def test_garbage_in_the_index_never_makes_it_fail(tmp_path_factory, chunks, garbage):
    attempt = attempt_with(tmp_path_factory.mktemp("log"), chunks, index=False)
    (attempt.directory / paths.INDEX).write_bytes(garbage)
    found = LogIndex(str(attempt.directory))
    for place in (0, 1, 7, 10**12):
        found.line_to_offset(place)
        found.offset_to_line(place)
        found.time_to_offset(float(place))
        found.offset_to_time(place)


def test_records_that_run_backwards_or_lie_beyond_the_log_are_dropped(tmp_path):
    attempt = attempt_with(tmp_path, [b"a\n" * 50, b"b\n" * 50])
    index = attempt.directory / paths.INDEX
    bad = [(NOW, 2**63, 3), (NOW, 50, 60), (float("nan"), 120, 60), (-5.0, 120, 60)]
    index.write_bytes(b"".join(struct.pack("<dQQ", *record) for record in bad) + index.read_bytes())
    found = LogIndex(str(attempt.directory))
    assert found.line_to_offset(75) == 150
    assert found.offset_to_line(199) == 99
    assert found.time_to_offset(NOW + 1) == 100


@pytest.mark.parametrize("cut", range(25))
def test_a_torn_index_record_is_not_there_yet(tmp_path, cut):
    attempt = attempt_with(tmp_path, [b"a\n", b"b\n"])
    index = attempt.directory / paths.INDEX
    whole = index.read_bytes()
    index.write_bytes(whole[:24 + cut])
    found = LogIndex(str(attempt.directory))
    assert found.time_to_offset(NOW + 1) == (2 if cut == 24 else 0)
    index.write_bytes(whole)
    assert found.time_to_offset(NOW + 1) == 2


def test_times_lead_to_places_and_back(tmp_path):
    attempt = attempt_with(tmp_path, [b"a\n", b"b\n", b"c\n"])
    found = LogIndex(str(attempt.directory))
    assert [found.time_to_offset(NOW + t) for t in (-1, 0, 0.5, 1, 1.9, 2, 99)] == [0, 0, 0, 2, 2, 4, 4]
    assert [found.offset_to_time(offset) for offset in (0, 1, 2, 5, 99)] == [NOW, NOW, NOW + 1, NOW + 2, NOW + 2]


def test_without_an_index_nobody_knows_the_time(tmp_path):
    found = LogIndex(str(attempt_with(tmp_path, [b"a\n"], index=False).directory))
    assert found.time_to_offset(NOW) is None
    assert found.offset_to_time(0) is None


def test_a_clock_that_was_set_back_leaves_times_searchable(tmp_path):
    attempt = RunBuilder(tmp_path / "run").rank(0)
    for time in (NOW, NOW + 100, NOW + 50, NOW + 101):
        attempt.output(b"x\n", time)
    found = LogIndex(str(attempt.directory))
    assert found.time_to_offset(NOW + 101) == 6
    assert found.time_to_offset(NOW + 99) == 0


def test_a_growing_log_is_followed(tmp_path):
    attempt = attempt_with(tmp_path, [b"a\nb"])
    found = LogIndex(str(attempt.directory))
    assert found.line_to_offset(2) is None
    attempt.output(b"b\nc\n", NOW + 9)
    assert found.line_to_offset(2) == 5
    assert found.line_count() == 3
    assert found.time_to_offset(NOW + 9) == 3


def test_a_log_that_was_truncated_is_read_anew(tmp_path):
    attempt = attempt_with(tmp_path, [b"a\n" * 100])
    found = LogIndex(str(attempt.directory))
    assert found.line_count() == 100
    attempt.log.write_bytes(b"long line\n")
    assert found.line_to_offset(0) == 0
    assert found.offset_to_line(9) == 0
    assert found.line_count() == 1


def test_a_log_without_an_index_is_counted_once_however_often_it_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "CHECKPOINT", 1 << 16)
    monkeypatch.setattr(log, "CHUNK", 1 << 14)
    attempt = RunBuilder(tmp_path / "run").rank(0)
    line = b"x" * 63 + b"\n"
    attempt.log.write_bytes(line * 40_000)
    found = LogIndex(str(attempt.directory))
    assert found.offset_to_line(64 * 39_990) == 39_990
    sizes = []
    real = log.read
    monkeypatch.setattr(log, "read", lambda path, at, length: sizes.append(length) or real(path, at, length))
    assert found.offset_to_line(64 * 39_999 + 5) == 39_999
    assert found.line_to_offset(20_000) == 64 * 20_000
    assert found.line_to_offset(39_999) == 64 * 39_999
    logs = [size for size in sizes if size <= 1 << 14]
    assert sum(logs) < 6 << 16


def test_a_very_long_index_stays_in_bounded_memory_and_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_RECORDS", 64)
    attempt = RunBuilder(tmp_path / "run").rank(0)
    attempt.log.write_bytes(b"ab\n" * 1000)
    (attempt.directory / paths.INDEX).write_bytes(
        b"".join(struct.pack("<dQQ", NOW + n, 3 * n, n) for n in range(1000)))
    found = LogIndex(str(attempt.directory))
    assert all(found.line_to_offset(line) == 3 * line for line in range(1000))
    assert all(found.offset_to_line(offset) == offset // 3 for offset in range(0, 3000, 7))
    assert len(found._records) < 64
    place = found.time_to_offset(NOW + 500)
    assert place is not None
    assert 1500 - 3 * 64 <= place <= 1500


def test_ranges_are_read_as_they_are(tmp_path):
    attempt = attempt_with(tmp_path, [bytes(range(256))])
    path = str(attempt.log)
    assert log.read(path, 10, 5) == bytes(range(10, 15))
    assert log.read(path, 250, 100) == bytes(range(250, 256))
    assert (log.read(path, 999, 5), log.read(path, 0, 0), log.read(path, -1, 5)) == (b"", b"", b"")
    assert log.size(path) == 256


def test_a_log_that_is_not_there_is_empty(tmp_path):
    path = str(tmp_path / "none")
    assert log.size(path) == 0
    assert log.read(path, 0, 10) == b""
    found = LogIndex(str(tmp_path))
    assert (found.line_count(), found.line_to_offset(0), found.offset_to_line(5)) == (0, None, 0)


def test_a_log_that_cannot_be_seen_is_no_empty_one():
    with unprivileged_directory() as directory:
        attempt = RunBuilder(directory / "run").rank(0).output(b"hello\n")
        attempt.directory.chmod(0)
        with pytest.raises(PermissionError):
            log.size(str(attempt.log))
        with pytest.raises(PermissionError):
            LogIndex(str(attempt.directory)).line_count()
        attempt.directory.chmod(0o700)
        assert log.size(str(attempt.log)) == 6


def test_a_link_in_the_logs_place_is_not_followed(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert log.size(str(tmp_path / "link")) == 0
    with pytest.raises(OSError, match="symbolic links"):
        log.read(str(tmp_path / "link"), 0, 10)


def test_a_sparse_log_of_ten_gigabytes_opens_at_its_end_by_reading_little(tmp_path, monkeypatch):
    attempt = RunBuilder(tmp_path / "run").rank(0)
    end = 10 << 30
    with attempt.log.open("wb") as out:
        out.truncate(end)
    tail = b"the end\n" * 10
    with attempt.log.open("ab") as out:
        out.write(tail)
    (attempt.directory / paths.INDEX).write_bytes(struct.pack("<dQQ", NOW, end, 123_456_789))
    found = LogIndex(str(attempt.directory))
    got = []
    real = os.pread

    def pread(fd, length, at):
        got.append(real(fd, length, at))
        return got[-1]

    monkeypatch.setattr(os, "pread", pread)
    assert found.offset_to_line(end + 16) == 123_456_791
    assert found.line_to_offset(123_456_792) == end + 24
    assert sum(map(len, got)) < 1000
