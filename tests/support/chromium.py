"""A real Chromium without a window, driven over its DevTools protocol: what a page receives, its keys, its size."""
from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)  # fmt: skip
"""Without a sandbox: tests run as root, in containers. Nothing is looked up on the network."""
PATIENCE = 60.0


class Page:
    """One page. `received` is all that its WebSockets got so far, as bytes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.received = b""
        self.requested: list[str] = []
        """The addresses that the page asked for."""
        self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said.get("result", said))
            elif said["method"] == "Network.webSocketFrameReceived":
                frame = said["params"]["response"]
                data = frame["payloadData"]
                self.received += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
            elif said["method"] == "Network.requestWillBeSent":
                self.requested.append(said["params"]["request"]["url"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        return await asyncio.wait_for(answer, PATIENCE)

    async def open(self, address: str) -> None:
        """Go to an address."""
        for domain in ("Network", "Page", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=address)

    async def key(self, character: str) -> None:
        """Press the key of a character."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=character, key=character)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=character)

    async def click(self, x: int, y: int) -> None:
        """Click somewhere: as for a person, keys go to where was clicked."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def resize(self, width: int, height: int) -> None:
        """Give the page another size, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def text(self) -> str:
        """The page's own text."""
        answer = await self.call("Runtime.evaluate", expression="document.body ? document.body.innerText : ''")
        return str(answer["result"]["value"])

    async def wait_for(self, text: bytes, since: int = 0) -> int:
        """Wait until the page has received some bytes after `since`; how many it has received by then."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while text not in self.received[since:]:
            late = asyncio.get_running_loop().time() > deadline
            assert not late, f"{text!r} did not come: {self.received[since:][-3000:]!r}"
            await asyncio.sleep(0.05)
        return len(self.received)

    def close(self) -> None:
        """Listen no more."""
        self._listener.cancel()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    """A page of a new Chromium, with nothing in it."""
    program = shutil.which("chromium")
    assert program is not None, "Debian's package chromium is not installed"
    place = tempfile.mkdtemp(prefix="tw-chromium-")
    process = await asyncio.create_subprocess_exec(
        program, *OPTIONS, f"--user-data-dir={place}", "about:blank", stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        port = await _port(Path(place) / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as listed:
                target = next(entry for entry in await listed.json() if entry["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                yield page
                page.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
        shutil.rmtree(place, ignore_errors=True)


async def _port(file: Path) -> int:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(file.read_text().splitlines()[0])
        assert asyncio.get_running_loop().time() < deadline, "Chromium did not start"
        await asyncio.sleep(0.05)
