"""`[time] [worker-N] ` before each line on the console, for platforms that add none. The log stays as it is."""
from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


class LinePrefix:
    """Puts a prefix at the start of each line of a stream that comes in chunks of any size.

    Only a newline begins a line: a `\\r` bar redraws its own.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.time) -> None:
        self._name, self._clock = name, clock
        self._at_start = True

    def __call__(self, data: bytes) -> bytes:
        """The chunk with prefixes, all with the time of now."""
        if not data:
            return data
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._clock()))
        prefix = ("[%s] [%s] " % (stamp, self._name)).encode("utf-8", "replace")
        head = prefix if self._at_start else b""
        self._at_start = data.endswith(b"\n")
        body = data[:-1] if self._at_start else data
        return head + body.replace(b"\n", b"\n" + prefix) + (b"\n" if self._at_start else b"")
