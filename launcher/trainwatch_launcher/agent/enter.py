"""Becomes the shell beside an attempt, on the host where that runs. Sent as text, for `python3 -c`, so it stands alone.

Its one argument is base64 of JSON: `argv`; `cwd` or null; `pid` and `born` of the process whose environment it takes,
read here and now and kept nowhere, or null; `marks`, variables above all others; `path` and `terminal`, see `standing`.
Where `born` is empty nobody knows when that process began, and it counts when it is a launcher.
"""
from __future__ import annotations

import base64
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def read(pid: int, name: str) -> bytes:
    """What the kernel tells of a process. Raises OSError."""
    with open("/proc/%d/%s" % (pid, name), "rb") as file:
        return file.read()


def is_same(pid: int, born: str) -> bool:
    """Whether a process is still the one that was meant. Raises OSError and IndexError."""
    if not born:
        return b"trainwatch" in read(pid, "cmdline")
    return read(pid, "stat").rpartition(b")")[2].split()[19].decode("ascii") == born


def environment(plan: dict[str, Any]) -> dict[str, str]:
    """The process's environment when it is still the same process, else our own."""
    own = dict(os.environ)
    if plan["pid"] is None:
        return own
    try:
        same = is_same(plan["pid"], plan["born"])
        pairs = [entry.partition(b"=") for entry in read(plan["pid"], "environ").split(b"\0")]
    except (OSError, IndexError):
        same, pairs = False, []
    if not same:
        sys.stderr.write("trainwatch: that process has ended meanwhile: this is your own environment\n")
        return own
    found = {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if name and equals}
    found.setdefault("PATH", plan["path"])
    found.update({name: own[name] for name in plan["terminal"] if name in own})
    return found


def enter(argument: str) -> NoReturn:
    """Become what the argument says."""
    plan = json.loads(base64.b64decode(argument).decode("ascii"))
    environ = environment(plan)
    environ.update(plan["marks"])
    argv = plan["argv"]
    try:
        if plan["cwd"] is not None:
            os.chdir(plan["cwd"])
    except OSError as error:
        sys.stderr.write("trainwatch: its directory %s: %s; this is %s\n" % (plan["cwd"], error.strerror, os.getcwd()))
    try:
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        sys.stderr.write("trainwatch: cannot run %s: %s\n" % (argv[0], error.strerror))
        sys.exit(127 if error.errno == 2 else 126)


if __name__ == "__main__":
    enter(sys.argv[1])
