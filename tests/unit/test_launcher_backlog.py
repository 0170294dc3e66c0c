"""A backlog gives back what it was given, in order, wherever it kept it; and says what it dropped."""
from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.backlog import Backlog, is_local_disk, open_spool


def spool() -> int:
    return os.open("/tmp", os.O_RDWR | os.O_TMPFILE)


STEPS = st.lists(st.one_of(st.binary(min_size=1, max_size=400), st.integers(1, 500)), max_size=80)


@given(STEPS)
def test_bytes_come_back_in_order_from_memory_and_spool(steps):
    backlog = Backlog(memory=1000, spool_max=2000)
    backlog.give_spool(spool())
    given_, taken, offset = b"", b"", 0
    for step in steps:
        if isinstance(step, bytes):
            if backlog.append(offset, step):
                given_ += step
                offset += len(step)
        elif backlog:
            at, data = backlog.first()
            assert at == len(taken)
            count = min(step, len(data))
            taken += bytes(data[:count])
            backlog.consume(count)
        assert backlog.size == len(given_) - len(taken)
    while backlog:
        _, data = backlog.first()
        taken += bytes(data)
        backlog.consume(len(data))
    assert taken == given_


def test_it_refuses_what_does_not_fit_and_takes_more_after_it_was_emptied():
    backlog = Backlog(memory=10, spool_max=10)
    backlog.give_spool(spool())
    assert backlog.append(0, b"x" * 10)
    assert backlog.append(10, b"y" * 10)
    assert not backlog.append(20, b"z")
    assert backlog.clear() == [(0, 10), (10, 20)]
    assert backlog.append(20, b"z" * 10)
    assert backlog.append(30, b"z" * 10)


def test_without_a_place_for_a_spool_memory_is_all():
    backlog = Backlog(memory=10, spool_max=1000)
    assert not backlog.wants_spool
    assert backlog.append(0, b"x" * 10)
    assert backlog.wants_spool, "early, because opening it takes a while"
    backlog.give_spool(-1)
    assert not backlog.wants_spool
    assert not backlog.append(10, b"y")


def test_a_line_each_does_not_cost_a_piece_each():
    backlog = Backlog()
    for i in range(10_000):
        backlog.append(i * 80, b"x" * 80)
    assert len(backlog._pieces) < 20


def test_the_spool_has_no_name_and_lies_on_a_disk():
    fd = open_spool()
    if fd >= 0:
        assert os.fstat(fd).st_nlink == 0
        os.close(fd)
    assert not is_local_disk("/dev/shm")
    assert not is_local_disk("/proc")
    assert is_local_disk("/")
