"""Taking stacks, inside: how many processes, for how long, in which order; and what the tools' answers mean."""
from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from trainwatch_launcher.child import Process
from trainwatch_launcher.rundir.stacks import parse
from trainwatch_launcher.stacks import armed, spy, taking


class Recorder:
    def __init__(self, directory):
        self.attempt = SimpleNamespace(path=lambda name: str(directory / name)) if directory else None
        self.told, self.status = {}, {}

    def event_at(self, when, kind, **facts):
        self.told = facts

    def update(self, **changes):
        self.status.update(changes)


def taken(directory, pids):
    """What a launcher tells after taking the stacks of these processes, each one the parent of the next."""
    living = [Process(pid, "x", "S", parent, 0) for pid, parent in zip(pids, [1, *pids], strict=False)]
    worker = SimpleNamespace(
        identity=SimpleNamespace(rank=3, host="gpu-01"), processes=lambda: living[::-1], recorder=Recorder(directory),
        place=SimpleNamespace(file_mode=0o600), say=lambda *_: None, children=set())  # fmt: skip
    taking.take(worker, 4, "me@here", "r1")
    return worker.recorder


@pytest.fixture
def two():
    started = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    yield [one.pid for one in started]
    for one in started:
        one.kill()
        one.communicate()


def test_of_too_many_the_parents_are_looked_into_and_the_rest_is_said(tmp_path, two, monkeypatch):
    monkeypatch.setattr(taking, "MOST", 1)
    told = taken(tmp_path, two).told
    assert (told["processes"], told["left_out"], told["file"]) == (1, 1, "stacks-4.txt")
    dump = parse((tmp_path / "stacks-4.txt").read_bytes())
    assert [one.pid for one in dump.processes] == two[:1]
    assert dump.left_out == 1


def test_when_the_time_is_up_the_kernel_is_still_asked(tmp_path, two, monkeypatch):
    monkeypatch.setattr(taking, "ALL", 0.0)
    recorder = taken(tmp_path, two)
    dump = parse((tmp_path / "stacks-4.txt").read_bytes())
    assert [one.tried for one in dump.processes] == [["no time was left for it"]] * 2
    assert all(one.tasks for one in dump.processes)
    assert recorder.status == {"stacks": 4}


def test_processes_that_have_gone_are_left_out(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    told = taken(tmp_path, [gone.pid]).told
    assert (told["file"], told["note"]) == (None, "no process of the command is left")


def test_without_a_run_directory_and_on_a_full_disk_it_is_said(tmp_path, two):
    assert taken(None, two).told["note"] == "not written: there is no run directory"
    told = taken(tmp_path / "missing", two)
    assert (told.told["file"], told.told["note"]) == (None, "not written: No such file or directory")
    assert told.status == {}


@pytest.mark.parametrize(("said", "meant", "forbidden"), [
    ("Permission Denied: Try running again with elevated permissions by going 'sudo env'\n", "--cap-add", True),
    ("Error: Failed to suspend\nCaused by: EPERM: Operation not permitted\n", "not permitted", True),
    ("Error: Failed to find python version from target process\n", "finds no Python", False),
    ("Error: No such file or directory (os error 2)\n\nStack backtrace:\n   0: x\n", "py-spy: Error: No such", False),
    ("", "it said nothing", False),
])
def test_what_py_spy_complains_of_is_one_line(said, meant, forbidden):
    error = spy.complaint(said)
    assert meant in str(error)
    assert "\n" not in str(error)
    assert error.forbidden is forbidden


def test_what_faulthandler_writes_is_read_from_every_python():
    text = """Thread 0x00007f11 [pin_memory] (most recent call first):
  File "/job/a \\u8bad.py", line 3 in wait
  File "/usr/lib/threading.py", line ??? in run

Current thread 0x00007f22 (most recent call first):
  File "/job/train.py", line 9 in <lambda>
  File "/job/train.py", line 12 in <module>
"""
    main, other = armed.threads_in(text, 7)
    assert (main.id, main.name) == (7, "MainThread")
    assert [frame.function for frame in main.frames] == ["<lambda>", "<module>"]
    assert (other.name, [(frame.file, frame.line) for frame in other.frames]) == (
        "pin_memory", [("/job/a \\u8bad.py", 3), ("/usr/lib/threading.py", 0)])  # fmt: skip
    cut = armed.threads_in(text + "...\n", 7)
    assert [thread.name for thread in cut] == ["pin_memory", ""]  # which one is the main one is not known then
    assert armed.threads_in("nothing\n", 7) == []
