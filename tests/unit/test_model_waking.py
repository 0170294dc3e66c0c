"""A viewer that did not run for a while: nothing is lost before it has been looked at again, and then all that is."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder, at
from support.screens import app_on, screen_text, settle, wait_for
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.waking import ANEW, CONNECT, GAP, Waking
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader


class Watched:
    """A run with a running rank and one that has ended, and who watches it."""

    def __init__(self, directory):
        self.run = RunBuilder(directory)
        self.run.rank(0).start()
        self.run.rank(1).start().finish()
        self._reader, self._state = Reader(str(directory)), EMPTY
        self.waking = Waking()

    def now(self, clock, connected=True):
        self._state = apply(self._state, self._reader.poll())
        return self.waking.now(clock, self._state, lambda: connected)

    def beat(self, time):
        at(self.run, 0).set(time=time)


@pytest.fixture
def watched(tmp_path):
    watched = Watched(tmp_path / "run")
    assert watched.now(NOW) == NOW
    return watched


def test_time_goes_on_as_the_clock_does(watched):
    assert [watched.now(NOW + second) for second in range(1, 100)] == [NOW + second for second in range(1, 100)]


def test_after_a_gap_time_stands_back_until_all_that_lived_has_been_read_anew(watched):
    assert watched.now(NOW + 3600) == NOW
    assert watched.now(NOW + 3601) == NOW + 1
    watched.beat(NOW + 3601)
    assert watched.now(NOW + 3602) == NOW + 3602


def test_what_does_not_come_back_is_lost_after_a_while(watched):
    watched.now(NOW + 3600)
    seconds = int(ANEW) + 1
    times = [watched.now(NOW + 3600 + second) for second in range(1, seconds + 1)]
    assert times[-2] == NOW + seconds - 1
    assert times[-1] == NOW + 3600 + seconds


def test_hosts_that_must_be_connected_to_again_have_more_time(watched):
    watched.now(NOW + 3600, connected=False)
    seconds = int(CONNECT) + 1
    times = [watched.now(NOW + 3600 + second, connected=False) for second in range(1, seconds + 1)]
    assert times[-2] == NOW + seconds - 1
    assert times[-1] == NOW + 3600 + seconds


def test_a_second_gap_adds_to_the_first(watched):
    watched.now(NOW + 100)
    assert watched.now(NOW + 200) == NOW
    watched.beat(NOW + 200)
    assert watched.now(NOW + 201) == NOW + 201


def test_a_run_in_which_nothing_lives_has_nothing_to_wait_for(tmp_path):
    RunBuilder(tmp_path / "run").rank(0).start().finish()
    state = apply(EMPTY, Reader(str(tmp_path / "run")).poll())
    waking = Waking()
    waking.now(NOW, state)
    assert waking.now(NOW + 3600, state) == NOW + 3600


def test_a_clock_that_is_set_back_is_followed(watched):
    assert watched.now(NOW - 3600) == NOW - 3600
    watched.now(NOW)
    assert watched.now(NOW - 10) == NOW - 10


async def test_the_screen_calls_nobody_silent_because_it_slept_itself(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start()
    app = app_on(tmp_path / "run")
    clock = [NOW]
    app._clock = lambda: clock[0]
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        assert "1 running" in screen_text(pilot)
        clock[0] += 600
        app._tick()
        await pilot.pause()
        assert "1 running" in screen_text(pilot)
        at(run, 0).set(time=NOW + 600)
        app._source.look()
        await wait_for(pilot, lambda: app.run_state.attempts[AttemptKey(0)].status.time == NOW + 600)
        assert app.following.now() == NOW + 600
        app._tick()
        await pilot.pause()
        assert "1 running" in screen_text(pilot)
        for _ in range(60):
            clock[0] += GAP / 2
            app._tick()
        await wait_for(pilot, lambda: "went silent first" in screen_text(pilot))
