"""The agent's own locks: nothing that happened is missed, and no more is done than there is credit for."""
from __future__ import annotations

from support.waiting import wait_until
from trainwatch_launcher.agent.waiting import Credit, Signal, start
from trainwatch_launcher.agent.workers import THREADS, WAITING, Workers


def test_a_signal_is_seen_whether_it_came_before_or_while_somebody_waited():
    signal, seen = Signal(), []
    assert not signal.is_set()
    signal.wait(0.0)
    signal.set()
    signal.set()
    signal.wait()
    assert signal.is_set()
    signal.clear()
    assert not signal.is_set()

    def wait() -> None:
        signal.wait()
        seen.append(signal.is_set())

    start(wait)
    signal.set()
    assert wait_until(lambda: seen) == [True]


def test_no_more_is_taken_than_there_is_credit_for():
    credit, taken = Credit(2), []

    def take() -> None:
        for number in range(1000):
            credit.take()
            taken.append(number)

    start(take)
    wait_until(lambda: len(taken) == 2)
    for given in range(3, 1001):
        credit.give()
        if given % 100 == 0:
            wait_until(lambda given=given: len(taken) == given)
    wait_until(lambda: len(taken) == 1000)


def test_jobs_go_on_beside_one_that_hangs_and_too_many_are_refused():
    workers, done, hanging = Workers(), [], Signal()
    for number in range(50):
        assert workers.do(lambda number=number: done.append(number))
    wait_until(lambda: len(done) == 50)
    workers.do(hanging.wait)
    workers.do(lambda: done.append(50))
    wait_until(lambda: len(done) == 51)
    for _ in range(THREADS - 1):
        workers.do(hanging.wait)
    wait_until(lambda: not workers._jobs)
    assert all(workers.do(lambda: done.append(0)) for _ in range(WAITING))
    assert not workers.do(lambda: done.append(0))
    hanging.set()
    wait_until(lambda: len(done) == 51 + WAITING)
