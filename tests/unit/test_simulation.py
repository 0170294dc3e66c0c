"""A simulated run must look to readers like a real one, and say what it is."""
from __future__ import annotations

import json

import pytest

from trainwatch.cli import main
from trainwatch_launcher.reader.changes import EventsAppended, RunFound, StatusChanged
from trainwatch_launcher.reader.directory import Reader


def simulate(*arguments: str) -> int:
    return main(["simulate", *arguments])


def status(capsys: pytest.CaptureFixture[str], run: str) -> dict:
    capsys.readouterr()
    main(["status", run, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_rank_that_was_told_to_fail_is_the_first_and_the_others_follow(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert simulate(run, "--ranks=16", "--age=200", "--once", "--trouble=5:120:oom") == 0
    found = status(capsys, run)
    ranks = found["ranks"]
    assert len(ranks) == 16
    assert {rank["state"] for rank in ranks} == {"held"}
    assert found["run"]["first_failure"]["rank"] == 5
    assert "out of memory" in found["run"]["first_failure"]["reason"]


def test_without_trouble_all_ranks_train_and_their_hosts_are_shared(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert simulate(run, "--ranks=12", "--per-host=4", "--age=100", "--once") == 0
    ranks = status(capsys, run)["ranks"]
    assert {rank["state"] for rank in ranks} == {"running"}
    assert [rank["host"] for rank in ranks] == ["gpu-00"] * 4 + ["gpu-01"] * 4 + ["gpu-02"] * 4


def test_its_files_say_that_it_is_made_up(tmp_path):
    run = tmp_path / "run"
    assert simulate(str(run), "--ranks=1", "--age=60", "--once") == 0
    changes = Reader(str(run)).poll()
    said = [change.info.extra for change in changes if isinstance(change, RunFound)]
    said += [change.status.extra for change in changes if isinstance(change, StatusChanged)]
    said += [change.events[0].extra for change in changes if isinstance(change, EventsAppended)]
    assert len(said) == 3
    assert all(facts["simulated"] is True for facts in said)


def test_a_run_that_is_there_is_not_written_over(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert simulate(run, "--ranks=1", "--age=2", "--once") == 0
    assert simulate(run, "--ranks=1", "--age=2", "--once") == 1
    assert "a run already" in capsys.readouterr().err


@pytest.mark.parametrize("trouble", ["5", "5:1", "5:x:oom", "5:1:boom", "-1:1:oom"])
def test_a_trouble_that_is_none_is_refused_with_the_kinds_that_there_are(trouble, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        simulate(str(tmp_path / "run"), f"--trouble={trouble}")
    assert left.value.code == 2
    assert "exception, oom" in capsys.readouterr().err
