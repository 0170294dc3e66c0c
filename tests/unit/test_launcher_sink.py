"""A sink writes everything in order, or knows exactly what it did not."""
from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.waiting import wait_until
from trainwatch_launcher import sink as subject
from trainwatch_launcher.backlog import Backlog
from trainwatch_launcher.helpers import Helpers
from trainwatch_launcher.sink import Sink


class Pipe:
    """A pipe that is read only when the test says so."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.got = b""

    def read_all(self) -> None:
        def read() -> None:
            while True:
                data = os.read(self.reader, 65536)
                if not data:
                    return
                self.got += data

        self.thread = threading.Thread(target=read, daemon=True)
        self.thread.start()

    def close(self) -> bytes:
        os.close(self.writer)
        self.thread.join(10)
        os.close(self.reader)
        return self.got


@pytest.fixture
def reports():
    return []


def make(fd: int, reports: list, **how) -> Sink:
    def report(sink, recovered, message) -> None:
        reports.append((recovered, message))

    return Sink("console", fd, report, subject.GONE, Helpers(0), **how)


def finish(sink: Sink, patience: float = 5.0) -> None:
    """As the launcher does at its end."""
    sink.close()
    wait_until(lambda: sink.finished(patience), timeout=30)
    sink.finish()


def put(sink: Sink, data: bytes) -> None:
    """As the pump does."""
    if not (sink.queued and sink.enqueue(data)):
        sink.write(data)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=60))
def test_whatever_is_put_comes_out_in_order(chunks):
    pipe = Pipe()
    pipe.read_all()
    sink = make(pipe.writer, [])
    for number, chunk in enumerate(chunks):
        sink.post(chunk) if number % 7 == 3 else put(sink, chunk)
    finish(sink)
    assert pipe.close() == b"".join(chunks)
    assert sink.lost == []


def test_a_write_that_returns_as_it_is_taken_over_has_one_drainer():
    # two would write each waiting byte twice, into the log or to the console
    pipe = Pipe()
    sink = make(pipe.writer, [])
    for _ in range(8):
        sink._helpers._add()
    first, rest = b"a" * 65536, [b"%06d" % number * 20_000 for number in range(20)]
    os.set_blocking(pipe.writer, True)
    sink.write(first)
    sink.post(rest[0])  # a drainer starts, as after a slow write, and hangs
    wait_until(lambda: sink.hangs or sink._draining)
    sink.take_over()
    threading.Thread(target=sink.taken_over, daemon=True).start()
    for data in rest[1:]:
        put(sink, data)
    pipe.read_all()
    finish(sink)
    assert pipe.close() == first + b"".join(rest)


def test_a_hanging_write_is_taken_over_and_order_kept(reports):
    pipe = Pipe()
    sink = make(pipe.writer, reports)
    first = b"a" * 200_000  # more than the pipe holds: the write hangs

    def stuck_pump() -> None:
        sink.write(first)
        sink.taken_over()

    thread = threading.Thread(target=stuck_pump)
    thread.start()
    wait_until(lambda: sink.position == len(first))
    sink.take_over()
    put(sink, b"b" * 1000)
    put(sink, b"c" * 1000)
    assert sink.behind == 2000
    pipe.read_all()
    thread.join(10)
    wait_until(lambda: not sink.queued, what="direct writing again")
    put(sink, b"d")
    finish(sink)
    assert pipe.close() == first + b"b" * 1000 + b"c" * 1000 + b"d"
    assert reports == [(False, "does not take output"), (True, "takes output again")]


def test_a_full_backlog_drops_and_counts(reports):
    sink = make(-1, reports, backlog=Backlog(memory=1000))
    for _ in range(3):
        put(sink, b"x" * 400)
    assert sink.lost == [[800, 1200]]
    pipe = Pipe()
    pipe.read_all()
    sink.attach(pipe.writer)
    wait_until(lambda: sink.behind == 0)
    put(sink, b"y")
    finish(sink)
    assert pipe.close() == b"x" * 800 + b"y"
    assert reports[-1] == (False, "400 bytes were lost")


def test_what_is_never_written_is_counted_at_the_end(reports):
    pipe = Pipe()
    sink = make(pipe.writer, reports)
    os.set_blocking(pipe.writer, False)
    sink.post(b"z" * 200_000)
    finish(sink, 0.2)
    (start, end), = sink.lost
    assert end == 200_000
    assert start < end


def test_a_file_that_refuses_is_tried_again(tmp_path, reports, monkeypatch):
    monkeypatch.setattr(subject, "RETRY", 0.05)
    full = os.open("/dev/full", os.O_WRONLY)
    sink = make(full, reports)
    put(sink, b"one ")
    put(sink, b"two ")
    wait_until(lambda: reports, what="a report")
    good = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    os.dup2(good, full)
    wait_until(lambda: sink.behind == 0, what="the backlog to be written")
    put(sink, b"three")
    finish(sink)
    assert (tmp_path / "out").read_bytes() == b"one two three"
    assert reports == [(False, "No space left on device"), (True, "takes output again")]


def test_a_sink_that_is_gone_takes_everything_and_loses_it(reports):
    sink = make(-1, reports)
    put(sink, b"abc")
    sink.abandon("never there")
    put(sink, b"def")
    finish(sink)
    assert sink.lost == [[0, 6]]


def test_a_patient_sink_makes_the_pump_wait_for_a_slow_file(reports):
    pipe = Pipe()
    sink = make(pipe.writer, reports, patient=True, backlog=Backlog(memory=100_000))
    data = [bytes([i % 256]) * 10_000 for i in range(100)]

    def pump() -> None:
        for chunk in data:
            sink.post(chunk)

    thread = threading.Thread(target=pump)
    thread.start()
    wait_until(lambda: sink.behind > 80_000, what="a full backlog")
    assert thread.is_alive()
    pipe.read_all()
    thread.join(10)
    finish(sink)
    assert pipe.close() == b"".join(data)
    assert sink.lost == []


def test_without_a_thread_to_be_had_bytes_wait_and_follow_when_there_is_one(reports, monkeypatch):
    pipe = Pipe()
    sink = make(pipe.writer, reports)
    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refuse)
        sink.post(b"one ")
        put(sink, b"two ")
    pipe.read_all()
    put(sink, b"three")
    finish(sink)
    assert pipe.close() == b"one two three"
    assert sink.lost == []


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_the_spool_s_disk_loses_is_counted_and_the_rest_is_written(reports):
    backlog = Backlog(memory=1000, spool_max=10_000)
    spool = os.memfd_create("spool")
    backlog.give_spool(spool)
    sink = make(-1, reports, backlog=backlog)
    for letter in b"abc":
        put(sink, bytes([letter]) * 900)
    os.ftruncate(spool, 900)
    pipe = Pipe()
    pipe.read_all()
    sink.attach(pipe.writer)
    wait_until(lambda: sink.behind == 0)
    put(sink, b"d")
    finish(sink)
    assert pipe.close() == b"a" * 900 + b"b" * 900 + b"d"
    assert sink.lost == [[1800, 2700]]


def test_a_file_can_be_exchanged_between_two_writes(tmp_path, reports):
    first, second = tmp_path / "first", tmp_path / "second"
    sink = make(os.open(first, os.O_RDWR | os.O_CREAT), reports)
    put(sink, b"one ")

    def move(old: int) -> int:
        new = os.open(second, os.O_RDWR | os.O_CREAT)
        os.write(new, os.pread(old, 100, 0))
        put(sink, b"two ")  # what comes meanwhile waits
        return new

    sink.exchange(move)
    wait_until(lambda: sink.position == 8, what="the move")
    put(sink, b"three")
    finish(sink)
    assert second.read_bytes() == b"one two three"


def test_what_the_old_file_took_and_never_stored_is_counted_as_lost(tmp_path, reports):
    sink = make(os.open(tmp_path / "old", os.O_RDWR | os.O_CREAT), reports)
    put(sink, b"stored in vain")

    def move(old: int) -> int:
        (tmp_path / "new").write_bytes(b"stored")  # the file server's copy, when it came back
        return os.open(tmp_path / "new", os.O_RDWR | os.O_APPEND)

    sink.exchange(move)
    put(sink, b" and on")
    finish(sink)
    assert (tmp_path / "new").read_bytes() == b"stored and on"
    assert sink.lost == [[6, 14]]
