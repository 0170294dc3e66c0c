"""Answers a viewer's requests, each as soon as it can be; nothing that one of them waits for stops the others."""
from __future__ import annotations

import os
import sys
import time
import zlib

from trainwatch_launcher.agent import frames, wire
from trainwatch_launcher.agent.follow import Follower
from trainwatch_launcher.agent.logs import LogDesk
from trainwatch_launcher.agent.operations import OPERATIONS, OperationError
from trainwatch_launcher.agent.resume import Have, Resumption
from trainwatch_launcher.agent.waiting import Credit, Lock, Signal, get_ident
from trainwatch_launcher.agent.workers import Workers
from trainwatch_launcher.rundir import jsontext
from trainwatch_launcher.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Sequence

    from trainwatch_launcher.reader.changes import AttemptKey, Change

CREDIT = 4
"""So many frames of changes are on their way before the viewer says that it has taken one."""
COMPRESSION = 6
"""Of changes, as one stream: a status that differs by its time costs some 40 bytes."""


class Server:
    """One viewer's agent. `write` sends bytes to it and may block; `clock` is this host's, in Unix seconds."""

    def __init__(self, write: Callable[[bytes], None], clock: Callable[[], float] = time.time) -> None:
        self._write, self._clock = write, clock
        self._lock = Lock()
        self._workers = Workers()
        self._desk = LogDesk()
        self._cancelled: set[int] = set()
        self._open: set[int] = set()
        self._follower: Follower | None = None
        self._credit = Credit(0)
        self._main = get_ident()
        self._rest = b""
        self._rest_came = Signal()

    def greet(self) -> None:
        """The preamble, and who is here."""
        hello = {
            "hello": frames.PROTOCOL, "version": __version__, "python": "%d.%d.%d" % sys.version_info[:3],
            "host": os.uname().nodename, "pid": os.getpid(), "time": self._clock(),
        }  # fmt: skip
        self._write(frames.PREAMBLE + frames.encode(hello))

    def take(self, asked: dict[str, Any], body: bytes) -> None:
        """One request; its answer comes from here or from another thread."""
        operation, identity = asked.get("op"), asked.get("id")
        if operation == "ack":
            self._credit.give()
        elif operation == "code":
            self._rest = body
            self._rest_came.set()
        elif operation == "cancel":
            if identity in self._open:
                self._cancelled.add(identity)
        elif not isinstance(identity, int):
            return
        elif operation == "clock":
            self._answer(identity, **self._clocks())
        elif operation == "follow":
            self._follow(identity, asked, body)
        elif operation in OPERATIONS:
            self._begin(self._workers, identity, lambda: OPERATIONS[operation](self, asked))
        elif operation == "logs":
            workers = self._desk.workers_for(asked) or self._workers
            self._begin(workers, identity, lambda: self._desk.ask(self, asked, lambda: identity in self._cancelled))
        else:
            self._answer(identity, error="its agent (%s) knows no %s" % (__version__, operation))

    def rest_of_code(self, compiled: bool) -> bytes:
        """The modules that were not sent at once: the viewer is asked for them, and the calling thread waits."""
        if not self._rest_came.is_set():
            if self._main == get_ident():
                raise ImportError("the thread that takes answers cannot wait for one")
            self._send({"need": "code", "compiled": compiled})
            self._rest_came.wait()
        return self._rest

    def attempt_directory(self, key: AttemptKey) -> str | None:
        """Where an attempt of the followed run lies; None when it is not known (yet)."""
        return self._follower.reader.attempt_directory(key) if self._follower is not None else None

    def look_soon(self, key: AttemptKey) -> None:
        """Something of an attempt is about to change."""
        if self._follower is not None:
            self._follower.look_soon(key)

    def _clocks(self) -> dict[str, Any]:
        follower = self._follower
        return {
            "time": self._clock(),
            "server": follower.server.ahead() if follower is not None else None,
            "late": round(follower.late(), 1) if follower is not None else 0,
        }

    def _begin(self, workers: Workers, identity: int, operate: Callable[[], Any]) -> None:
        self._open.add(identity)
        if not workers.do(lambda: self._operate(identity, operate)):
            self._open.discard(identity)
            self._answer(identity, error="the file system there does not answer")

    def _operate(self, identity: int, operate: Callable[[], Any]) -> None:
        """In a worker thread: do it and answer, unless nobody wants to know any more."""
        try:
            result = operate()
            if isinstance(result, dict):
                self._answer(identity, **result)
            else:
                self._send_parts(identity, result)
        except OperationError as error:
            self._answer(identity, error=str(error), **error.facts)
        except Exception as error:  # noqa: BLE001 - whatever it is, the viewer must get an answer and the rest go on
            self._answer(identity, error="its agent failed: %s: %s" % (type(error).__name__, error))
        finally:
            self._open.discard(identity)
            self._cancelled.discard(identity)

    def _send_parts(self, identity: int, parts: Iterator[bytes | tuple[dict[str, Any], bytes]]) -> None:
        for part in parts:
            if identity in self._cancelled:
                break
            facts, body = part if isinstance(part, tuple) else ({}, part)
            self._send({**facts, "id": identity, "part": True}, body)
        self._answer(identity)

    def _follow(self, identity: int, asked: dict[str, Any], body: bytes) -> None:
        """Begin to tell changes of a run, all but what the viewer has."""
        try:
            have = Have.from_json(jsontext.loads(zlib.decompress(body).decode("ascii"))) if body else Have()
            directory = str(asked["directory"])
        except (KeyError, ValueError, zlib.error) as error:
            self._answer(identity, error="not understood: %s" % error)
            return
        if self._follower is not None:
            self._answer(identity, error="it follows a run already")
            return
        stream, told = zlib.compressobj(COMPRESSION), wire.Told()
        self._credit = Credit(CREDIT)

        def tell(changes: Sequence[Change], complete: bool) -> None:
            portions = list(wire.packets(changes, told))
            for at, portion in enumerate(portions):
                self._credit.take()
                text = "[%s]" % ",".join(portion)
                data = stream.compress(text.encode("ascii")) + stream.flush(zlib.Z_SYNC_FLUSH)
                last = at == len(portions) - 1
                self._send({"id": identity, "size": len(text), "complete": complete and last}, data)

        self._follower = Follower(directory, bool(asked.get("shared")), tell, self._clock)
        self._follower.start(Resumption(have))

    def _answer(self, request: int, /, **facts: Any) -> None:
        self._send({**facts, "id": request, "done": True})

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        data = frames.encode(header, body)
        with self._lock:
            self._write(data)
