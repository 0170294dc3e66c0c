"""The reader: first everything, then what changed, and nothing that it finds stops it."""
from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, RunBuilder, at, crashed_run
from support.users import unprivileged_directory
from trainwatch_launcher.reader import directory as module
from trainwatch_launcher.reader.changes import (
    AttemptFound,
    AttemptKey,
    EventsAppended,
    RunFound,
    StatusChanged,
    Unreadable,
)
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir import paths


def kinds(changes):
    return [type(change).__name__ for change in changes]


def of(kind, changes):
    return [change for change in changes if isinstance(change, kind)]


def events_of(changes, rank):
    return [e.event for c in of(EventsAppended, changes) if c.key.rank == rank for e in c.events]


@pytest.fixture
def unprivileged():
    with unprivileged_directory() as directory:
        yield directory


def test_the_first_look_tells_everything_and_the_second_nothing(tmp_path):
    crashed_run(tmp_path / "run")
    reader = Reader(str(tmp_path / "run"))
    first = reader.poll()
    assert of(RunFound, first)[0].info.run_id == "run-1"
    assert sorted(c.key.rank for c in of(AttemptFound, first)) == [0, 1, 2, 3]
    assert {c.key.rank: c.status.exit_code for c in of(StatusChanged, first)} == {0: 143, 1: 143, 2: 1, 3: 137}
    assert events_of(first, 2) == ["start", "phase", "phase", "exit", "hold"]
    assert reader.poll() == []


def test_later_looks_tell_only_what_changed(tmp_path):
    run = RunBuilder(tmp_path / "run")
    zero, one = run.rank(0).start(), run.rank(1).start()
    reader = Reader(str(run.directory))
    reader.poll()
    zero.event("warning", NOW, kind="log", message="disk full")
    assert [(type(c), c.key) for c in reader.poll()] == [(EventsAppended, AttemptKey(0))]
    one.set(phase="Load")
    changes = reader.poll()
    assert [(c.key, c.status.phase) for c in changes] == [(AttemptKey(1), "Load")]


def test_a_rank_that_comes_later_is_found(tmp_path):
    run = RunBuilder(tmp_path / "run")
    reader = Reader(str(run.directory))
    assert kinds(reader.poll()) == ["RunFound"]
    run.rank(7).start()
    assert {c.key for c in of(AttemptFound, reader.poll())} == {AttemptKey(7)}


def test_a_second_attempt_and_nested_ranks_are_found_without_waiting_for_the_full_scan(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    reader = Reader(str(run.directory), rescan=1e9)
    reader.poll()
    run.rank(0, attempt=2).start()
    assert {c.key for c in of(AttemptFound, reader.poll())} == {AttemptKey(0, 2)}
    run.local(0, 5, attempt=2).start()
    changes = reader.poll()
    assert {c.key for c in of(AttemptFound, changes)} == {AttemptKey(0, 2, 5, 1)}
    assert of(StatusChanged, changes)[0].status.local_rank == 5
    run.local(0, 5, attempt=2, local_attempt=2)
    assert {c.key for c in of(AttemptFound, reader.poll())} == {AttemptKey(0, 2, 5, 2)}


def test_a_change_that_a_directorys_time_does_not_show_is_found_by_the_full_scan(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    os.utime(run.directory, (1.0, 1.0))
    reader = Reader(str(run.directory), rescan=0.0)
    reader.poll()
    run.rank(1).start()
    os.utime(run.directory, (1.0, 1.0))
    assert {c.key for c in of(AttemptFound, reader.poll())} == {AttemptKey(1)}


def test_quiet_ranks_are_not_opened_again(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run")
    for rank in range(20):
        run.rank(rank).start()
    for path in [run.directory, *run.directory.rglob("*")]:
        os.utime(path, (NOW, NOW))
    reader = Reader(str(run.directory), rescan=1e9)
    reader.poll()
    opened = []
    real_open, real_list = os.open, os.listdir
    monkeypatch.setattr(os, "open", lambda *a, **k: opened.append(a) or real_open(*a, **k))
    monkeypatch.setattr(os, "listdir", lambda *a: opened.append(a) or real_list(*a))
    assert reader.poll() == []
    assert opened == []


def test_an_attempt_that_has_ended_is_not_looked_at_any_more(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().finish()
    reader = Reader(str(run.directory), rescan=1e9)
    for _ in range(1 + module.QUIET_POLLS):
        reader.poll()
    looked = []
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looked.append(path) or real(path))
    reader.poll()
    assert not [path for path in looked if paths.RANK_PREFIX in path]


def test_a_watcher_names_what_changed_and_only_that_is_read(tmp_path):
    run = RunBuilder(tmp_path / "run")
    zero, one = run.rank(0).start(), run.rank(1).start()
    reader = Reader(str(run.directory))
    reader.poll()
    zero.set(phase="A")
    one.set(phase="B")
    changes = reader.poll([str(one.directory / paths.STATUS)])
    assert [(c.key.rank, c.status.phase) for c in changes] == [(1, "B")]
    assert reader.poll([str(zero.log), str(zero.directory / "x.tmp"), "/elsewhere/rank-00000/x"]) == []
    assert [c.status.phase for c in reader.poll()] == ["A"]


def test_a_watcher_that_names_something_new_finds_it_whole(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    reader = Reader(str(run.directory), rescan=1e9)
    reader.poll()
    run.rank(3).start()
    nested = run.local(0, 1).start()
    changes = reader.poll([str(run.directory / paths.rank_name(3)), str(nested.directory / paths.STATUS)])
    assert {c.key for c in of(AttemptFound, changes)} == {AttemptKey(3), AttemptKey(0, 1, 1, 1)}


def test_a_run_whose_run_file_could_not_be_written_is_still_a_run(tmp_path):
    run = crashed_run(tmp_path / "run")
    (run.directory / paths.RUN_FILE).unlink()
    changes = Reader(str(run.directory)).poll()
    assert not of(RunFound, changes)
    assert len(of(StatusChanged, changes)) == 4
    assert not of(Unreadable, changes)


def test_an_attempt_without_a_status_is_found_with_its_directorys_time(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0)
    (attempt.directory / paths.STATUS).unlink()
    os.utime(attempt.directory, (NOW, NOW))
    found = of(AttemptFound, Reader(str(run.directory)).poll())
    assert [(c.key, c.directory, c.modified) for c in found] == [(AttemptKey(0), str(attempt.directory), NOW)]


def test_a_damaged_status_is_told_once_and_taken_back_when_it_is_whole(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    status = attempt.directory / paths.STATUS
    good = status.read_bytes()
    status.write_bytes(good[:50])
    reader = Reader(str(run.directory))
    problems = of(Unreadable, reader.poll())
    assert [(p.key, p.path) for p in problems] == [(AttemptKey(0), os.path.relpath(status, run.directory))]
    assert "not understood" in problems[0].message
    assert reader.poll() == []
    status.write_bytes(good)
    changes = reader.poll()
    assert [p.message for p in of(Unreadable, changes)] == [""]
    assert of(StatusChanged, changes)[0].status.pid == 4242


def test_a_newer_format_is_told_in_one_line_once_and_the_rest_is_shown(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    newer = run.rank(1).start()
    reader = Reader(str(run.directory))
    for time in (NOW, NOW + 1):
        newer.set(format=2, time=time)
        newer.raw_event(b'{"v":2,"time":%d,"event":"x"}\n' % time)
    first = reader.poll()
    assert {c.key.rank for c in of(StatusChanged, first)} == {0}
    messages = [p.message for p in of(Unreadable, first)]
    assert len(messages) == 2
    assert all("upgrade trainwatch" in message and "\n" not in message for message in messages)
    newer.set(time=NOW + 2)
    newer.raw_event(b'{"v":2,"time":9,"event":"x"}\n')
    assert reader.poll() == []


def test_a_torn_event_is_not_there_yet(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start()
    reader = Reader(str(run.directory))
    reader.poll()
    attempt.raw_event(b'{"v":1,"time":5,"ev')
    assert reader.poll() == []
    attempt.raw_event(b'ent":"hold"}\n')
    assert events_of(reader.poll(), 0) == ["hold"]


def test_corrupt_events_are_told_once_and_the_others_are_read(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0).start().raw_event(b"\x00\xff garbage\n").event("hold", NOW, until=NOW)
    reader = Reader(str(run.directory))
    first = reader.poll()
    assert events_of(first, 0) == ["start", "phase", "hold"]
    assert len(of(Unreadable, first)) == 1
    attempt.raw_event(b"more garbage\n")
    assert reader.poll() == []


def test_very_many_events_come_in_several_looks_and_none_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EVENTS_AT_ONCE", 1000)
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0)
    line = b'{"v":1,"time":5,"event":"x"}\n'
    attempt.raw_event(line * 200_000)
    reader = Reader(str(run.directory))
    found = len(events_of(reader.poll(), 0))
    assert reader.behind
    while reader.behind:
        found += len(events_of(reader.poll(), 0))
    assert found == 200_000


def test_directories_without_permission_are_told_once_and_the_rest_is_read(unprivileged):
    run = RunBuilder(unprivileged / "run")
    run.rank(0).start()
    closed = run.rank(1).start()
    closed.directory.parent.chmod(0)
    reader = Reader(str(run.directory), rescan=0.0)
    try:
        first = reader.poll()
        assert {c.key.rank for c in of(StatusChanged, first)} == {0}
        assert [p.message for p in of(Unreadable, first)] == ["no permission to read it"]
        assert reader.poll() == []
    finally:
        closed.directory.parent.chmod(0o700)
    again = reader.poll()
    assert {c.key.rank for c in of(StatusChanged, again)} == {1}


def test_a_run_removed_while_it_is_read_is_told_and_nothing_else_happens(tmp_path):
    run = crashed_run(tmp_path / "run")
    reader = Reader(str(run.directory))
    reader.poll()
    shutil.rmtree(run.directory / paths.rank_name(3))
    assert reader.poll() == []
    shutil.rmtree(run.directory)
    assert [p.message for p in reader.poll()] == ["it is gone"]
    assert reader.poll() == []
    crashed_run(tmp_path / "run")
    assert of(StatusChanged, reader.poll())


def test_files_and_odd_names_among_the_ranks_are_passed_over(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(3).start()
    (run.directory / "rank-00001").write_text("a file")
    (run.directory / "rank-x").mkdir()
    (run.directory / "rank-3").mkdir()
    (run.directory / "rank-00002").mkdir()
    (run.directory / "rank-00002" / "attempt-1").write_text("a file")
    (run.directory / "rank-00004").symlink_to("/nowhere")
    changes = Reader(str(run.directory)).poll()
    assert {c.key.rank for c in of(AttemptFound, changes)} == {3}


def test_links_in_place_of_the_small_files_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"time": 1.0, "host": "secret"}\n')
    run = RunBuilder(tmp_path / "run")
    attempt = run.rank(0)
    for name in (paths.STATUS, paths.EVENTS):
        (attempt.directory / name).unlink(missing_ok=True)
        (attempt.directory / name).symlink_to(secret)
    changes = Reader(str(run.directory)).poll()
    assert not of(StatusChanged, changes)
    assert not of(EventsAppended, changes)
    assert len(of(Unreadable, changes)) == 2


@settings(max_examples=60)
@given(st.sampled_from([paths.RUN_FILE, paths.STATUS, paths.EVENTS]), st.binary(max_size=120))
def test_no_content_of_any_file_stops_the_reader(tmp_path_factory, name, content):
    run = RunBuilder(tmp_path_factory.mktemp("run") / "run")
    attempt = run.rank(0).start()
    run.rank(1).start()
    where = run.directory if name == paths.RUN_FILE else attempt.directory
    (where / name).write_bytes(content)
    reader = Reader(str(run.directory))
    assert 1 in {c.key.rank for c in of(StatusChanged, reader.poll())}
    reader.poll()


def test_at_goes_on_with_what_was_written(tmp_path):
    run = crashed_run(tmp_path / "run")
    at(run, 1).set(phase="Again")
    changes = Reader(str(run.directory)).poll()
    assert {c.status.phase for c in of(StatusChanged, changes) if c.key.rank == 1} == {"Again"}
