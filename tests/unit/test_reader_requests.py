"""Requests: written whole, owned, answered by id; refused with a sentence that says what to do."""
from __future__ import annotations

import errno
import os
import stat

import pytest

from builders import RunBuilder
from support.users import NOBODY, unprivileged_directory
from trainwatch_launcher.reader import requests
from trainwatch_launcher.reader.requests import RequestError, whoami, withdraw_request, write_request
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import read_record
from trainwatch_launcher.rundir.records import Request

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture
def attempt(tmp_path):
    return RunBuilder(tmp_path / "run").rank(0)


def control_of(attempt):
    return attempt.directory / paths.CONTROL


def test_a_request_lies_complete_under_its_id(attempt):
    identity = write_request(str(attempt.directory), "extend", seconds=600)
    assert os.listdir(control_of(attempt)) == [identity + ".json"]
    path = control_of(attempt) / (identity + ".json")
    request = read_record(Request, str(path))
    assert (request.id, request.command, request.seconds, request.by) == (identity, "extend", 600, whoami())
    assert request.time > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_request_has_an_id_of_its_own(attempt):
    assert len({write_request(str(attempt.directory), "release") for _ in range(50)}) == 50


def test_who_asks_can_be_said(attempt):
    identity = write_request(str(attempt.directory), "signal", signal="SIGUSR1", by="ann@laptop")
    request = read_record(Request, str(control_of(attempt) / (identity + ".json")))
    assert (request.by, request.signal) == ("ann@laptop", "SIGUSR1")


@pytest.mark.parametrize(("arguments", "said"), [
    ({"command": "dance"}, "a launcher knows no dance; it knows release, extend, signal, stop"),
    ({"command": "extend"}, "extend needs a number of seconds above 0"),
    ({"command": "extend", "seconds": -5.0}, "above 0"),
    ({"command": "extend", "seconds": float("nan")}, "above 0"),
    ({"command": "signal"}, "signal needs the signal's name"),
])  # fmt: skip
def test_a_request_that_makes_no_sense_is_refused(attempt, arguments, said):
    with pytest.raises(RequestError, match=said):
        write_request(str(attempt.directory), **arguments)
    assert os.listdir(control_of(attempt)) == []


def test_a_control_directory_that_is_a_link_is_not_followed(attempt, tmp_path):
    control_of(attempt).rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    control_of(attempt).symlink_to(elsewhere)
    with pytest.raises(RequestError, match="cannot be asked for anything"):
        write_request(str(attempt.directory), "release")
    assert os.listdir(elsewhere) == []


def test_a_missing_control_directory_and_a_missing_run_are_told_apart(attempt, tmp_path):
    control_of(attempt).rmdir()
    with pytest.raises(RequestError, match="is missing: its launcher takes no requests"):
        write_request(str(attempt.directory), "release")
    with pytest.raises(RequestError, match="moved or removed"):
        write_request(str(tmp_path / "gone"), "release")


@pytest.mark.parametrize(("number", "said"), [
    (errno.EROFS, "mounted read-only"), (errno.ENOSPC, "no space left"), (errno.EDQUOT, "quota"),
    (errno.EIO, "cannot be written: Input/output error"),
])  # fmt: skip
def test_a_file_system_that_does_not_take_it_is_named_with_the_fix(attempt, monkeypatch, number, said):
    def fail(_fd, _data):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(requests, "write_all", fail)
    with pytest.raises(RequestError, match=said) as raised:
        write_request(str(attempt.directory), "release")
    assert "\n" not in str(raised.value)
    assert str(control_of(attempt)) in str(raised.value)
    assert os.listdir(control_of(attempt)) == []


def test_without_permission_to_write_the_user_is_told_whom_to_ask():
    with unprivileged_directory() as directory:
        attempt = RunBuilder(directory / "run").rank(0)
        control_of(attempt).chmod(0o500)
        with pytest.raises(RequestError, match="no permission to write"):
            write_request(str(attempt.directory), "release")
        control_of(attempt).chmod(0o700)


@AS_ROOT
def test_a_request_for_somebody_elses_run_is_refused_before_it_would_be_ignored(tmp_path):
    with unprivileged_directory() as directory:
        attempt = RunBuilder(directory / "run").rank(0)
        os.seteuid(0)
        os.chown(attempt.directory, 12345, -1)
        os.seteuid(NOBODY)
        with pytest.raises(RequestError, match="belongs to user 12345; ask as that user or as root"):
            write_request(str(attempt.directory), "release")


@AS_ROOT
def test_what_root_asks_the_launchers_user_can_read(attempt):
    os.chown(attempt.directory, NOBODY, NOBODY)
    identity = write_request(str(attempt.directory), "release")
    facts = (control_of(attempt) / (identity + ".json")).stat()
    assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (NOBODY, 0o600)


def test_a_request_that_nobody_took_is_taken_back_and_one_that_was_taken_is_not(attempt):
    here = str(attempt.directory)
    first, second = write_request(here, "release"), write_request(here, "extend", seconds=60)
    assert withdraw_request(here, first)
    assert os.listdir(control_of(attempt)) == [second + ".json"]
    assert not withdraw_request(here, first)
    (control_of(attempt) / (second + ".json")).unlink()  # as the launcher does
    assert not withdraw_request(here, second)
    control_of(attempt).rmdir()
    assert not withdraw_request(here, second)


@pytest.mark.parametrize("identity", ["", "../status", "/etc/passwd"])
def test_only_a_request_can_be_taken_back(attempt, identity):
    with pytest.raises(RequestError, match="is no request"):
        withdraw_request(str(attempt.directory), identity)
