"""Files of a run directory: torn at any byte, full of garbage, replaced, truncated: the good part is read."""
from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.files import LineFile, create_once, encode, read_record, replace_file
from trainwatch_launcher.rundir.record import RecordError
from trainwatch_launcher.rundir.records import Event, RunInfo, Status, event
from trainwatch_launcher.rundir.state import state_of

LINES = [encode(event("phase", float(n), name="x" * n)) for n in range(1, 6)]


def times(events):
    return [e.time for e in events]


@given(st.integers(min_value=0, max_value=sum(map(len, LINES))))
def test_a_file_torn_at_any_byte_gives_its_whole_lines_and_later_the_rest(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "events"
    whole = b"".join(LINES)
    path.write_bytes(whole[:cut])
    log = LineFile(str(path))
    first = log.read(Event)
    assert len(first) == whole[:cut].count(b"\n")
    path.write_bytes(whole)
    assert times(first + log.read(Event)) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert log.corrupt == 0


@given(st.lists(st.binary(max_size=40) | st.sampled_from(LINES), max_size=12))
def test_garbage_between_lines_is_skipped_and_the_good_lines_stay(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("garbage") / "events"
    path.write_bytes(b"".join(b"\n" + part + b"\n" for part in parts))
    good = sum(part in LINES for part in parts)
    assert len(LineFile(str(path)).read(Event)) >= good


def test_corrupt_lines_are_counted(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(LINES[0] + b"{nonsense\n" + b"[]\n\n" + LINES[1])
    log = LineFile(str(path))
    assert times(log.read(Event)) == [1.0, 2.0]
    assert log.corrupt == 2


def test_lines_of_a_newer_format_are_counted_apart(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(LINES[0] + b'{"v":2,"time":3,"event":"x"}\n')
    log = LineFile(str(path))
    assert times(log.read(Event)) == [1.0]
    assert (log.corrupt, log.newer) == (0, 1)


def test_a_line_beyond_all_bounds_is_skipped_once_its_end_has_come(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(LINES[0] + b"x" * (3 * files.MAX_LINE))
    log = LineFile(str(path))
    assert times(log.read(Event)) == [1.0]
    with path.open("ab") as out:
        out.write(b"y" * 100 + b"\n" + LINES[1])
    assert times(log.read(Event)) == [2.0]
    assert log.corrupt == 1


def test_a_long_command_line_is_no_line_beyond_bounds(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(encode(event("start", 1.0, argv=["x" * 700_000])) + LINES[1])
    assert times(LineFile(str(path)).read(Event)) == [1.0, 2.0]


def test_reading_stops_at_the_bound_and_goes_on_there(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(b"".join(LINES) * 40_000)
    log = LineFile(str(path))
    found = len(log.read(Event, most=1))
    assert log.behind
    while log.behind:
        found += len(log.read(Event, most=1))
    assert found == 200_000


def test_a_truncated_file_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(b"".join(LINES))
    log = LineFile(str(path))
    log.read(Event)
    path.write_bytes(LINES[2])
    assert times(log.read(Event)) == [3.0]


def test_a_file_in_the_place_of_another_is_read_from_its_beginning_when_that_is_asked_for(tmp_path):
    path, new = tmp_path / "events", tmp_path / "new"
    path.write_bytes(b"".join(LINES[:3]))
    log, appended = LineFile(str(path), replaced=True), LineFile(str(path))
    assert times(log.read(Event)) == times(appended.read(Event)) == [1.0, 2.0, 3.0]
    assert (log.read(Event), log.again) == ([], False)
    new.write_bytes(b"".join(LINES))
    new.replace(path)
    assert (times(log.read(Event)), log.again) == ([1.0, 2.0, 3.0, 4.0, 5.0], True)
    assert (log.read(Event), log.again) == ([], False)
    assert times(appended.read(Event)) == [4.0, 5.0]  # another number of the same file does not repeat its lines


def test_a_missing_file_has_no_records_yet(tmp_path):
    log = LineFile(str(tmp_path / "events"))
    assert log.read(Event) == []
    (tmp_path / "events").write_bytes(LINES[0])
    assert times(log.read(Event)) == [1.0]


def test_a_link_a_directory_and_a_pipe_in_a_files_place_are_refused_without_waiting(tmp_path):
    replace_file(str(tmp_path / "real"), Status(time=1.0))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "directory", "pipe"):
        with pytest.raises((OSError, RecordError)):
            read_record(Status, str(tmp_path / name))


def test_a_snapshot_is_replaced_whole(tmp_path):
    path = str(tmp_path / "status")
    replace_file(path, Status(time=1.0, last_line="x" * 5000))
    replace_file(path, Status(time=2.0))
    assert read_record(Status, path).time == 2.0
    assert os.listdir(tmp_path) == ["status"]


def test_a_reader_never_sees_half_a_snapshot(tmp_path):
    path = str(tmp_path / "status")
    replace_file(path, Status(time=0.0))
    done = threading.Event()

    def write():
        for n in range(300):
            replace_file(path, Status(time=float(n), last_line="y" * (n * 50 % 9000)))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        read_record(Status, path)
    writer.join()


def test_of_many_launchers_that_come_at_once_one_writes_the_run_file(tmp_path):
    path = str(tmp_path / paths.RUN_FILE)
    wrote = []
    gate = threading.Barrier(8)

    def come(n):
        gate.wait()
        wrote.append(create_once(path, RunInfo(run_id="r", created=float(n))))

    threads = [threading.Thread(target=come, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wrote) == [False] * 7 + [True]
    assert read_record(RunInfo, path).run_id == "r"
    assert os.listdir(tmp_path) == [paths.RUN_FILE]


def test_the_run_file_is_made_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = str(tmp_path / paths.RUN_FILE)
    assert create_once(path, RunInfo(run_id="r", created=1.0))
    assert not create_once(path, RunInfo(run_id="other", created=2.0))
    assert read_record(RunInfo, path).run_id == "r"
    assert os.listdir(tmp_path) == [paths.RUN_FILE]


def test_a_run_file_that_cannot_be_finished_is_not_left_half(tmp_path, monkeypatch):
    def full(_fd, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(OSError, match="No space left"):
        create_once(str(tmp_path / paths.RUN_FILE), RunInfo(run_id="r", created=1.0))
    assert os.listdir(tmp_path) == []


def test_names_of_directories_are_numbers_and_nothing_else():
    assert paths.number_of(paths.rank_name(3), paths.RANK_PREFIX) == 3
    assert paths.number_of(paths.rank_name(123456), paths.RANK_PREFIX) == 123456
    for wrong in ("rank-", "rank--1", "rank-1x", "rank-٣", "rank-²", "RANK-1", "attempt-1", "rank-1 ", "rank- 1"):
        assert paths.number_of(wrong, paths.RANK_PREFIX) is None


def test_attempts_are_claimed_one_after_the_other(tmp_path):
    rank = str(tmp_path / paths.rank_name(0))
    assert [paths.claim_attempt(rank)[0] for _ in range(3)] == [1, 2, 3]
    os.rmdir(os.path.join(rank, paths.attempt_name(2)))
    assert paths.claim_attempt(rank)[0] == 4


def test_two_launchers_that_claim_at_once_get_different_attempts(tmp_path):
    rank = str(tmp_path / paths.rank_name(0))
    gate = threading.Barrier(6)
    claimed = []

    def claim():
        gate.wait()
        claimed.append(paths.claim_attempt(rank)[0])

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("facts", "state"), [
    ({}, "starting"),
    ({"pid": 1}, "running"),
    ({"pid": 1, "stalled_since": 90.0}, "stalled"),
    ({"pid": 1, "exit_code": 0}, "finished"),
    ({"pid": 1, "exit_code": 0, "ended": 99.0}, "finished"),
    ({"pid": 1, "exit_code": 1}, "failed"),
    ({"pid": 1, "exit_code": 1, "ended": 99.0}, "failed"),
    ({"pid": 1, "exit_code": 1, "hold_until": 900.0}, "held"),
    ({"pid": 1, "exit_code": 1, "hold_until": 50.0}, "held"),
    ({"pid": 1, "exit_code": 1, "hold_until": 900.0, "ended": 99.0}, "ended"),
    ({"pid": None, "exit_code": 127, "ended": 99.0}, "failed"),
    ({"pid": 1, "time": 84.0}, "lost"),
    ({"pid": 1, "exit_code": 1, "hold_until": 900.0, "time": 84.0}, "lost"),
    ({"pid": 1, "exit_code": 1, "time": 1.0, "ended": 1.0}, "failed"),
    ({"pid": 1, "time": 60.0, "interval": 20.0}, "running"),
])  # fmt: skip
def test_the_state_follows_from_the_facts(facts, state):
    assert state_of(Status(**{"time": 99.0, **facts}), 100.0) == state


def test_a_writer_that_moves_writes_again_what_the_old_file_never_stored(tmp_path):
    old = files.open_append(str(tmp_path / "old"))
    writer = files.LineWriter(old)
    for number in range(4):
        writer.append(event(f"e{number}", float(number)))
    stored = (tmp_path / "old").read_bytes().splitlines(keepends=True)
    (tmp_path / "new").write_bytes(b"".join(stored[:2]) + stored[2][:10])  # as the file server has it: with a torn end
    writer.move(files.open_append(str(tmp_path / "new")))
    writer.append(event("e4", 4.0))
    found = LineFile(str(tmp_path / "new"))
    assert [each.event for each in found.read(Event)] == ["e0", "e1", "e2", "e3", "e4"]
    assert found.corrupt == 1
