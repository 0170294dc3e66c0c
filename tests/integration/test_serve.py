"""The screen in a real browser, and who is kept out."""
from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest

from builders import crashed_run
from support.chromium import chromium
from trainwatch.cli import main

TOKEN = "a-token-of-32-characters-for-this"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.asynccontextmanager
async def served(run, *options: str, **environ: str) -> AsyncIterator[str]:
    """`trainwatch serve` on a free port; its address as it was printed."""
    command = [sys.executable, "-m", "trainwatch", "serve", str(run), f"--port={free_port()}", *options]
    env = {**os.environ, "TRAINWATCH_TOKEN": TOKEN, **environ}
    env.pop("TMUX", None)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env, start_new_session=True)
    try:
        line = (await process.stdout.readline()).decode()
        address = line.split()[0]
        async with aiohttp.ClientSession() as session:
            for _ in range(600):
                with contextlib.suppress(aiohttp.ClientError):
                    await session.get(address)
                    break
                await asyncio.sleep(0.05)
        yield address
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_a_browser_shows_the_run_takes_keys_and_follows_its_size(tmp_path):
    crashed_run(tmp_path / "run")
    async with served(tmp_path / "run") as address, chromium() as page:
        await page.open(address)
        at = await page.wait_for(b"failed first")
        await page.click(300, 60)
        await page.key("t")
        at = await page.wait_for(b"first in", at)
        await page.key("s")
        at = await page.wait_for(b"has no shell", at)
        await page.resize(1400, 900)
        await page.wait_for(b"run-1", at)
        elsewhere = [url for url in page.requested if not url.startswith((address, "data:", "ws"))]
        assert [url for url in elsewhere if "fonts.googleapis" not in url] == [], "nothing is loaded from elsewhere"


async def test_on_another_address_nobody_comes_in_without_the_token(tmp_path):
    crashed_run(tmp_path / "run")
    async with served(tmp_path / "run", "--bind=0.0.0.0") as address, aiohttp.ClientSession() as session:
        port = re.search(r":(\d+)/", address).group(1)
        base = f"http://127.0.0.1:{port}"
        assert TOKEN in address
        for path in ("/", "/ws", "/?token=wrong", "/static/js/textual.js"):
            async with session.get(base + path) as answer:
                assert answer.status == 403, path
                assert "token" in await answer.text()
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as known, known.get(f"{base}/?token={TOKEN}") as answer:
            assert answer.status == 200
            assert str(answer.url) == f"{base}/", "the token does not stay in the address"
            async with known.ws_connect(f"{base}/ws?width=80&height=24") as screen:
                said = b""
                while b"failed first" not in said:
                    message = await asyncio.wait_for(screen.receive(), 60)
                    said += message.data if isinstance(message.data, bytes) else str(message.data).encode()


@pytest.mark.parametrize(("headers", "said"), [
    ({"Origin": "http://evil.example"}, "another page"),
    ({"Host": "evil.example:8000"}, "asked for as"),
])
async def test_pages_of_others_cannot_speak_for_the_person(tmp_path, headers, said):
    crashed_run(tmp_path / "run")
    async with (
        served(tmp_path / "run") as address, aiohttp.ClientSession() as session,
        session.get(f"{address}ws", headers=headers) as answer,
    ):  # fmt: skip
        assert answer.status == 403
        assert said in await answer.text()


async def test_more_pages_than_allowed_are_told_so(tmp_path):
    crashed_run(tmp_path / "run")
    async with (
        served(tmp_path / "run", "--sessions=1") as address, aiohttp.ClientSession() as session,
        session.ws_connect(f"{address}ws") as first,
    ):  # fmt: skip
        await asyncio.wait_for(first.receive(), 60)
        async with session.get(f"{address}ws") as answer:
            assert answer.status == 503
            assert "--sessions" in await answer.text()


def test_a_port_that_is_taken_and_a_run_that_is_none_are_said_at_once(tmp_path, capsys):
    crashed_run(tmp_path / "run")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", str(tmp_path / "run"), "--bind=127.0.0.1", f"--port={port}"]) == 1
    assert "cannot listen" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
