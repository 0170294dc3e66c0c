"""The agent's life: from a greeting on stdout to the end of stdin. Nothing of it stays, whatever ended the viewer."""
from __future__ import annotations

import os
import time

from trainwatch_launcher.agent import frames
from trainwatch_launcher.agent.server import Server
from trainwatch_launcher.agent.waiting import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader
    from typing import Callable, NoReturn, Protocol

    class Code(Protocol):
        """Imports from memory. `rest` is called in any thread but the main one: compiled modules, or sources."""

        rest: Callable[[bool], bytes] | None

SILENCE = 120.0
"""A viewer speaks every few seconds. After so many seconds without a word it is gone, whatever the pipe says."""
CHUNK = 1 << 16


def main(
    stream: BufferedReader | None = None, code: Code | None = None, clock: Callable[[], float] = time.time
) -> NoReturn:
    """Serve the viewer at our stdin and stdout until it leaves. `stream` holds what was read of stdin and not used.

    `code` is where our modules come from when the viewer sent them; it asks for those that it has not got.
    """
    stdin = stream if stream is not None else open(0, "rb", closefd=False)  # noqa: SIM115 - as long as we live
    out = os.dup(1)
    os.dup2(2, 1)  # what prints by mistake must not get between the frames
    heard = [time.monotonic()]
    server = Server(lambda data: _write(out, data), clock)
    if code is not None:
        code.rest = server.rest_of_code
    start(_watch, heard)
    server.greet()
    decoder = frames.Decoder()
    while True:
        data = stdin.read1(CHUNK)
        heard[0] = time.monotonic()
        if not data:
            # not sys.exit: a thread may hang in a dead mount, and nobody must find us here for that
            os._exit(0)
        try:
            for header, body in decoder.feed(data):
                server.take(header, body)
        except frames.FrameError as error:
            os.write(2, ("trainwatch: %s\n" % error).encode("utf-8", "replace"))
            os._exit(1)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view):]
    except OSError:
        os._exit(0)  # nobody reads us any more


def _watch(heard: list[float]) -> None:
    while time.monotonic() - heard[0] < SILENCE:
        time.sleep(SILENCE / 4)
    os._exit(0)
