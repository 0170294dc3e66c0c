"""What the app knows of a run: holds that are kept while shells are open, and requests that nobody answers."""
from __future__ import annotations

import asyncio
import contextlib

from builders import NOW, RunBuilder
from support.screens import StillSource
from trainwatch import following as module
from trainwatch.following import Following
from trainwatch_launcher.reader.changes import AttemptKey

KEY = AttemptKey(2)


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 20)


@contextlib.asynccontextmanager
async def followed(tmp_path, monkeypatch, **options):
    """A run with a rank that is held for another 30 seconds, on a clock that stands still."""
    monkeypatch.setattr(module, "KEEP_EVERY", 0.01)
    RunBuilder(tmp_path / "run").rank(2).start().fail(3, NOW - 30, hold=60)
    source = StillSource(tmp_path / "run")
    now = [NOW]
    following = Following(source, lambda: now[0], **options)
    task = asyncio.create_task(following.follow(lambda: None))
    await until(lambda: following.loaded)
    yield following, source, now
    await following.close()
    await task


async def test_a_hold_is_kept_while_a_shell_is_open_and_that_goes_without_saying(tmp_path, monkeypatch):
    async with followed(tmp_path, monkeypatch) as (following, source, _):
        with following.shell_open(KEY) as kept:
            assert kept
            assert following.kept == {KEY}
            await until(lambda: source.requests)
            assert source.requests == [(KEY, "extend", 20 * 60.0 - 30)]
            source.answer(0, "done")
            await until(lambda: following.run.attempts[KEY].answer("request-0"))
            assert following.answers() == []
        assert following.kept == frozenset()
        await until(lambda: following._kept_by.done())
        assert len(source.requests) == 1


async def test_a_hold_that_cannot_be_kept_is_told_once(tmp_path, monkeypatch):
    async with followed(tmp_path, monkeypatch) as (following, source, now):
        with following.shell_open(KEY):
            for number in range(2):
                await until(lambda number=number: len(source.requests) == number + 1)
                source.answer(number, "the hold is over")
                await until(lambda number=number: following.run.attempts[KEY].answer(f"request-{number}"))
                said = [answer.said for answer in following.answers()]
                assert said == (["The hold of rank 2 is not kept: it says: the hold is over"] if number == 0 else [])
                for _ in range(8):
                    now[0] += 2
                    following.now()


async def test_a_launcher_that_does_not_answer_finds_no_pile_of_requests_later(tmp_path, monkeypatch):
    async with followed(tmp_path, monkeypatch) as (following, source, now):
        with following.shell_open(KEY):
            await until(lambda: source.requests)
            for _ in range(6):
                now[0] += 2
                following.now()
            found = []
            await until(lambda: found.extend(following.answers()) or found)
            assert "is not kept: no answer to extend after 10 s. The request is taken back." in found[0].said
            assert source.withdrawn == ["request-0"]


async def test_nothing_is_kept_when_one_does_not_want_it_or_nobody_holds(tmp_path, monkeypatch):
    async with followed(tmp_path, monkeypatch, keep_hold=False) as (following, source, _):
        with following.shell_open(KEY) as kept:
            assert not kept
            assert following.kept == frozenset()
    async with followed(tmp_path / "gone", monkeypatch) as (following, source, _):
        RunBuilder(tmp_path / "gone" / "run").rank(3).start().fail(1, hold=None)
        source.look()
        await until(lambda: AttemptKey(3) in following.run.attempts)
        with following.shell_open(AttemptKey(3)) as kept:
            assert not kept
        assert source.requests == []
