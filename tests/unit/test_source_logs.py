"""Questions on logs: the same answers from this machine, from an agent, and from several hosts as one."""
from __future__ import annotations

import asyncio
import contextlib
import sys
from array import array

import pytest

from builders import NOW, RunBuilder
from support.following import following
from support.pythons import every_python
from trainwatch.link import CONNECTED
from trainwatch.model.state import EMPTY, apply
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import SourceError
from trainwatch.sources.channel import ExecWay
from trainwatch.sources.local import LocalSource
from trainwatch.sources.merged import MergedSource
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.pages import Page

KEYS = [AttemptKey(rank) for rank in range(4)]
SHIFTS = [0.0, 0.0, 10.0, 0.0]


def write(run, rank):
    attempt = run.rank(rank)
    for second in range(30):
        attempt.output(b"step %d of rank %d\n" % (second, rank), NOW + second - SHIFTS[rank] + rank / 8)


def agent(name, directory, python=sys.executable):
    return AgentSource(ExecWay(name), str(directory), python=python)


async def asked(source, operation, keys=KEYS, shifts=SHIFTS, **facts):
    return [part async for part in source.ask_logs(operation, keys, shifts, **facts)]


async def lines(source, **facts):
    return [entry.data for _, body in await asked(source, "page", **facts) for entry in Page.decode(body)]


async def check(source):
    [(ends, _)] = await asked(source, "ends")
    assert len(ends["ends"]) == 4
    order = [b"step %d of rank %d" % (second, rank) for second in range(30) for rank in range(4)]
    assert await lines(source, down=True, count=500) == order
    assert await lines(source, down=False, count=7) == order[-7:]
    [(place, _)] = await asked(source, "cuts", time=NOW + 20)
    assert await lines(source, down=True, count=5, cuts=place["cuts"]) == order[80:85]
    [(place, _)] = await asked(source, "cuts", log=2, offset=0)
    assert await lines(source, down=True, count=2, cuts=place["cuts"]) == order[2:4]
    [(place, _)] = await asked(source, "cuts", share=0.0)
    assert await lines(source, down=True, count=2, cuts=place["cuts"]) == order[:2]
    assert await lines(source, down=True, count=9, queries=[{"text": "step 7 "}]) == order[28:32]
    (start, _), *blocks = await asked(source, "search", queries=[{"text": "rank 3"}], down=False)
    assert start["ends"] == ends["ends"]
    assert sum(facts["count"] for facts, _ in blocks if facts["log"] == 3) == 30
    assert sum(len(array("Q", body)) for _, body in blocks) == 30
    assert (await asked(source, "count", KEYS[1:2], [0]))[-1][0]["lines"] == 30
    with pytest.raises(SourceError, match="no regular expression"):
        await asked(source, "page", down=True, count=1, queries=[{"text": "(", "regex": True}])
    with pytest.raises(SourceError, match="no attempt 1 of rank 9"):
        await asked(source, "ends", [AttemptKey(9)], [0.0])


def whole_run(directory):
    run = RunBuilder(directory)
    for rank in range(4):
        write(run, rank)
    return run


async def test_this_machine_answers(tmp_path):
    whole_run(tmp_path / "run")
    async with following(LocalSource(tmp_path / "run")) as follower:
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 4)
        await check(follower.source)


@every_python
async def test_an_agent_answers_the_same_on_every_promised_python(tmp_path, python):
    whole_run(tmp_path / "run")
    async with following(agent("there", tmp_path / "run", python)) as follower:
        await follower.until(lambda f: f.source.link.state == CONNECTED)
        await check(follower.source)


async def test_several_hosts_answer_as_one(tmp_path):
    for host, ranks in enumerate([(0, 3), (1, 2)]):
        run = RunBuilder(tmp_path / str(host))
        for rank in ranks:
            write(run, rank)
    source = MergedSource("hosts", [agent(f"host-{host}", tmp_path / str(host)) for host in range(2)])
    async with following(source) as follower:
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 4)
        await follower.until(lambda f: all(link.up for link in f.source.links))
        await check(source)
        with pytest.raises(SourceError, match="one log at a time"):
            await asked(source, "count")


@pytest.mark.parametrize("kind", ["local", "agent"])
async def test_a_search_that_nobody_waits_for_any_more_ends_and_others_go_on(tmp_path, kind):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).log.write_bytes(b"x\n" * 60_000_000)
    source = LocalSource(tmp_path / "run") if kind == "local" else agent("there", tmp_path / "run")
    async with following(source) as follower:
        await follower.until(lambda f: len(apply(EMPTY, f.seen).attempts) == 1)
        await follower.until(lambda f: all(link.up for link in f.source.links))
        for _ in range(8):  # more than there are threads for it
            async with contextlib.aclosing(
                source.ask_logs("search", KEYS[:1], [0.0], queries=[{"text": "(x|y)+$", "regex": True}], down=True)
            ) as parts:
                async for facts, _ in parts:
                    assert facts["total"] == 120_000_000
                    break
        found = asked(source, "page", KEYS[:1], [0.0], down=True, count=1, queries=[{"text": "x"}])
        assert await asyncio.wait_for(found, 60)
