"""What a viewer may ask for that touches files. Each takes the request's facts and gives facts or parts of bytes.

What only some of them need is imported by them: an agent's start is paid for on each of a thousand hosts.
"""
from __future__ import annotations

import os
import sys

from trainwatch_launcher.agent import mounts
from trainwatch_launcher.agent.wire import decode_key, encode_key
from trainwatch_launcher.reader.runs import Target, TargetError, find_runs, locate
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.files import read_record
from trainwatch_launcher.rundir.records import RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    from trainwatch_launcher.agent.server import Server
    from trainwatch_launcher.reader.changes import AttemptKey

    Facts = dict[str, Any]

PART = 256 << 10
"""So many bytes of a log go into one frame, so that other answers come between them."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class OperationError(Exception):
    """What was asked cannot be done; the message is one line for a person. `facts` go with it."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


def find(_: Server, asked: Facts) -> Facts:
    """The run that a path means, of a root its newest; without a path, the run that launchers here announce."""
    path = _text(asked, "path")
    if path:
        target = _located(path)
    else:
        target = Target(_announced({str(name): str(value) for name, value in (asked.get("environ") or {}).items()}))
    directory = os.path.realpath(target.path)
    shared = mounts.is_remote(mounts.file_system(directory))
    return {
        "directory": directory,
        "key": None if target.key is None else encode_key(target.key),
        "shared": shared,
        "identity": _identity(directory, shared),
    }


def runs(_: Server, asked: Facts) -> Facts:
    """The newest runs directly under a root."""
    try:
        found = find_runs(_text(asked, "path"))
    except OSError as error:
        raise OperationError("%s: %s" % (_text(asked, "path"), error.strerror or error)) from None
    return {"runs": [{**run.to_dict(), "command": list(run.command)} for run in found]}


def log_size(server: Server, asked: Facts) -> Facts:
    """Bytes in an attempt's log now, and which file it is; 0 when there is none."""
    from trainwatch_launcher.reader import log
    from trainwatch_launcher.reader.attempt import log_number, log_path

    directory = server.attempt_directory(_key(asked))
    if directory is None:
        return {"size": 0, "file": 0}
    path = log_path(directory)
    try:
        return {"size": log.size(path), "file": log_number(directory)}
    except OSError as error:
        raise OperationError("cannot read %s: %s" % (path, error.strerror or error)) from None


def read_log(server: Server, asked: Facts) -> Iterator[bytes]:
    """Bytes of an attempt's log, part by part."""
    from trainwatch_launcher.reader import log
    from trainwatch_launcher.reader.attempt import log_path

    path = log_path(_directory(server, _key(asked)))
    offset, length = int(asked["offset"]), int(asked["length"])
    while length > 0:
        try:
            data = log.read(path, offset, min(PART, length))
        except OSError as error:
            raise OperationError("cannot read %s: %s" % (path, error.strerror or error)) from None
        if not data:
            return
        yield data
        offset, length = offset + len(data), length - len(data)


def read_metrics(server: Server, asked: Facts) -> Iterator[bytes]:
    """The newest lines of an attempt's history, compressed: they are much alike."""
    import zlib

    from trainwatch_launcher.reader import metrics

    directory = _directory(server, _key(asked))
    try:
        data = zlib.compress(metrics.tail(directory, int(asked["most"])))
    except OSError as error:
        raise OperationError("the history in %s cannot be read: %s" % (directory, error.strerror or error)) from None
    for offset in range(0, len(data), PART):
        yield data[offset:offset + PART]


def read_stacks(server: Server, asked: Facts) -> Iterator[bytes]:
    """The newest files of an attempt with stacks, compressed."""
    from trainwatch_launcher.reader import stacks

    directory = _directory(server, _key(asked))
    try:
        data = stacks.packed(stacks.newest(directory, int(asked["most"])))
    except OSError as error:
        raise OperationError("the stacks in %s cannot be read: %s" % (directory, error.strerror or error)) from None
    for offset in range(0, len(data), PART):
        yield data[offset:offset + PART]


def read_idle(server: Server, asked: Facts) -> Iterator[bytes]:
    """When the GPUs of some attempts were idle: a line for each, by their order."""
    from trainwatch_launcher.reader.idle import idle_spans
    from trainwatch_launcher.reader.spans import encode

    for key, since in zip(asked["keys"], asked["since"]):
        directory = server.attempt_directory(decode_key(key))
        yield encode(idle_spans(directory, float(since), int(asked["lines"])) if directory is not None else [])


def request(server: Server, asked: Facts) -> Facts:
    """Ask an attempt's launcher for something."""
    from trainwatch_launcher.reader.requests import RequestError, write_request

    key = _key(asked)
    try:
        identity = write_request(
            _directory(server, key), _text(asked, "command"), asked.get("seconds"), asked.get("signal"),
            _text(asked, "by"),
        )  # fmt: skip
    except RequestError as error:
        raise OperationError(str(error)) from None
    server.look_soon(key)
    return {"request": identity}


def withdraw(server: Server, asked: Facts) -> Facts:
    """Take a request back that nobody has answered."""
    from trainwatch_launcher.reader.requests import RequestError, withdraw_request

    try:
        return {"withdrawn": withdraw_request(_directory(server, _key(asked)), _text(asked, "request"))}
    except RequestError as error:
        raise OperationError(str(error)) from None


def shell(server: Server, asked: Facts) -> Facts:
    """Where a shell for an attempt is to stand; the environment stays here and is read by `enter` when it starts."""
    from trainwatch_launcher.agent import standing

    key = _key(asked)
    command = [word for word in asked.get("argv") or [] if isinstance(word, str)]
    directory = _text(asked, "directory") or _directory(server, key)
    try:
        found = standing.find(directory, key, command, _text(asked, "shell"), _text(asked, "label"))
    except standing.NoWayError as error:
        raise OperationError(str(error), host=error.host) from None
    python = found.container.python if found.container is not None else sys.executable
    way = found.container.way if found.container is not None else ()
    return {"python": python, "note": found.note, "way": list(way), "enter": found.entry()}


OPERATIONS: dict[str, Callable[[Server, Facts], Any]] = {
    "find": find, "runs": runs, "log_size": log_size, "read_log": read_log, "read_metrics": read_metrics,
    "read_stacks": read_stacks, "read_idle": read_idle, "request": request, "withdraw": withdraw, "shell": shell,
}  # fmt: skip


def _located(path: str) -> Target:
    """Where a path leads. A root's newest run is meant, as on the command line."""
    try:
        target = locate(os.path.expanduser(path))
        if not target.is_root:
            return target
        found = find_runs(target.path)
    except (TargetError, OSError) as error:
        raise OperationError(str(error)) from None
    newest = next((run for run in found if not run.problem), None)
    if newest is None:
        why = ": %s" % found[0].problem if found else ""
        raise OperationError("%s: none of its runs can be opened%s" % (path, why))
    return Target(newest.path)


def _announced(environ: dict[str, str]) -> str:
    from trainwatch_launcher.agent.announced import announced

    found = announced(environ)
    if not found:
        raise OperationError("no launcher runs here; name the run directory behind the target: TARGET/PATH")
    if len(found) > 1:
        places = ", ".join(found[:4])
        raise OperationError("launchers of %d runs run here; name one behind the target: %s" % (len(found), places))
    return found[0]


def _identity(directory: str, shared: bool) -> str:
    """The same for the same directory, as any host sees it; empty when nobody can tell.

    Device and inode numbers of a network file system differ from host to host; there run.json, which is written once
    for each directory, tells. Elsewhere it does so too, because a container that is made anew gets the old numbers.
    """
    try:
        info = read_record(RunInfo, os.path.join(directory, paths.RUN_FILE))
        written = "%s %r" % (info.run_id, info.created)
    except (OSError, ValueError):  # RecordError is a ValueError
        written = ""
    if shared:
        return written
    try:
        facts = os.stat(directory)
        with open(BOOT_ID, encoding="ascii") as file:
            return "%s %d %d %s" % (file.read().strip(), facts.st_dev, facts.st_ino, written)
    except (OSError, ValueError):
        return ""


def _directory(server: Server, key: AttemptKey) -> str:
    directory = server.attempt_directory(key)
    if directory is None:
        raise OperationError("this run has no attempt %d of rank %d" % (key.attempt, key.rank))
    return directory


def _key(asked: Facts) -> AttemptKey:
    return decode_key(asked.get("key"))


def _text(asked: Facts, name: str) -> str:
    value = asked.get(name)
    return value if isinstance(value, str) else ""
