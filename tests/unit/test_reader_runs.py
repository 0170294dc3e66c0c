"""What a path on the command line means, and which runs lie under a root."""
from __future__ import annotations

import json
import os

import pytest

from builders import NOW, RunBuilder
from support.users import unprivileged_directory
from trainwatch_launcher.reader import runs
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.runs import TargetError, find_runs, locate
from trainwatch_launcher.rundir import paths


def refusal(path):
    with pytest.raises(TargetError) as raised:
        locate(str(path))
    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_run_directory_is_a_run(tmp_path):
    run = RunBuilder(tmp_path / "run")
    found = locate(str(run.directory))
    assert (found.path, found.is_root, found.key) == (str(run.directory), False, None)


def test_a_directory_with_ranks_but_without_a_run_file_is_a_run(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0)
    (run.directory / paths.RUN_FILE).unlink()
    assert locate(str(run.directory)).path == str(run.directory)


def test_a_run_with_a_damaged_run_file_and_ranks_is_a_run(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0)
    (run.directory / paths.RUN_FILE).write_text("{")
    assert locate(str(run.directory)).path == str(run.directory)


def test_a_directory_of_runs_is_a_root(tmp_path):
    RunBuilder(tmp_path / "root" / "a")
    found = locate(str(tmp_path / "root"))
    assert (found.path, found.is_root) == (str(tmp_path / "root"), True)


def test_a_path_inside_a_run_means_its_run_and_says_who(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(2, attempt=3).directory
    local = run.local(2, 1, attempt=3, local_attempt=4).directory
    for path, key in [
        (rank.parent, AttemptKey(2, 0)),
        (rank, AttemptKey(2, 3)),
        (rank / paths.CONTROL, AttemptKey(2, 3)),
        (local.parent, AttemptKey(2, 3, 1, 0)),
        (local, AttemptKey(2, 3, 1, 4)),
    ]:
        found = locate(str(path))
        assert (found.path, found.key) == (str(run.directory), key)


def test_a_relative_path_and_a_trailing_slash_do_as_well(tmp_path, monkeypatch):
    RunBuilder(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert locate("run/").path == locate("./run").path == str(tmp_path / "run")


def test_a_link_to_a_run_is_a_run(tmp_path):
    RunBuilder(tmp_path / "run")
    (tmp_path / "latest").symlink_to("run")
    assert locate(str(tmp_path / "latest")).path == str(tmp_path / "latest")


def test_a_missing_path_a_file_and_a_file_of_a_run_are_told_apart(tmp_path):
    (tmp_path / "file").write_text("x")
    assert "does not exist" in refusal(tmp_path / "nothing")
    assert "is a file, not a run directory" in refusal(tmp_path / "file")
    run = RunBuilder(tmp_path / "run")
    log = run.rank(0).output(b"x").log
    assert refusal(log).endswith(f"the run that it belongs to is {run.directory}")


def test_an_empty_directory_and_one_without_runs_are_told_apart(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other" / "things").mkdir(parents=True)
    assert "is empty; no launcher has written there yet" in refusal(tmp_path / "empty")
    assert "holds no run" in refusal(tmp_path / "other")


def test_another_tools_run_file_is_no_run(tmp_path):
    (tmp_path / paths.RUN_FILE).write_text('{"name": "mine"}')
    assert "damaged or another tool's" in refusal(tmp_path)


def test_a_run_of_a_newer_format_is_named_with_the_fix(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0)
    (run.directory / paths.RUN_FILE).write_text(json.dumps({**run.info.to_json(), "format": 2}))
    message = refusal(run.directory)
    assert "format 2 is newer than this trainwatch (it knows format 1); upgrade trainwatch" in message


def test_a_directory_that_may_not_be_read_is_named_with_the_fix():
    with unprivileged_directory() as directory:
        run = RunBuilder(directory / "run")
        run.directory.chmod(0)
        assert "no permission" in refusal(run.directory)
        run.directory.chmod(0o700)


def test_a_root_of_runs_that_may_not_be_read_is_not_said_to_hold_none():
    with unprivileged_directory() as directory:
        (directory / "things").mkdir()
        for name in ("a", "b"):
            RunBuilder(directory / name).directory.chmod(0)
        said = refusal(directory)
        assert "no permission to read" in said
        assert "--share-group" in said
        assert "holds no run" not in said
        RunBuilder(directory / "c")
        assert locate(str(directory)).is_root
        assert sorted(run.is_closed for run in find_runs(str(directory))) == [False, True, True]
        for name in ("a", "b"):
            (directory / name).chmod(0o700)


def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    assert "cannot be read" in refusal(tmp_path / ("x" * 300))


def test_runs_are_found_the_newest_first(tmp_path):
    for age, name in enumerate(("c", "a", "b")):
        run = RunBuilder(tmp_path / name, run_id=f"id-{name}", world_size=8, command=("python", name))
        (run.directory / paths.RUN_FILE).write_text(json.dumps({**run.info.to_json(), "created": NOW - age}))
    (tmp_path / "not-a-run").mkdir()
    (tmp_path / "file").write_text("x")
    found = find_runs(str(tmp_path))
    assert [(run.run_id, run.time, run.world_size, run.command) for run in found] == [
        ("id-c", NOW, 8, ("python", "c")), ("id-a", NOW - 1, 8, ("python", "a")), ("id-b", NOW - 2, 8, ("python", "b"))]


def test_runs_that_cannot_be_opened_are_listed_with_the_reason(tmp_path):
    newer = RunBuilder(tmp_path / "newer")
    (newer.directory / paths.RUN_FILE).write_text('{"format": 2}')
    bare = RunBuilder(tmp_path / "bare")
    bare.rank(0)
    (bare.directory / paths.RUN_FILE).unlink()
    found = {run.run_id: run.problem for run in find_runs(str(tmp_path))}
    assert found["bare"] == ""
    assert "upgrade trainwatch" in found["newer"]


def test_a_huge_root_is_looked_at_in_bounded_time(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "MAX_ENTRIES", 10)
    for n in range(30):
        RunBuilder(tmp_path / f"run-{n}")
    assert len(find_runs(str(tmp_path))) == 10
    assert len(find_runs(str(tmp_path), most=3)) == 3
    assert locate(str(tmp_path)).is_root


def test_a_root_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        find_runs(os.path.join(str(tmp_path), "none"))
