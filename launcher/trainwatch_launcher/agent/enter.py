"""Becomes the shell beside an attempt, on the host where that runs. Sent as text, for `python3 -c`, so it stands alone.

Its one argument is base64 of JSON: `argv`; `cwd` or null; `pid` and `born` of the process whose environment it takes,
read here and now and kept nowhere, or null; `marks`, variables above all others; `path` and `terminal`, see `standing`.
"""
from __future__ import annotations

import base64
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def environment(plan: dict[str, Any]) -> dict[str, str]:
    """The process's environment when it is still the same process, else our own."""
    own = dict(os.environ)
    if plan["pid"] is None:
        return own
    try:
        with open("/proc/%d/stat" % plan["pid"], "rb") as file:
            born = file.read().rpartition(b")")[2].split()[19].decode("ascii")
        with open("/proc/%d/environ" % plan["pid"], "rb") as file:
            pairs = [entry.partition(b"=") for entry in file.read().split(b"\0")]
    except (OSError, IndexError):
        born, pairs = "", []
    if born != plan["born"]:
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
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        sys.stderr.write("trainwatch: cannot run %s: %s\n" % (argv[0], error.strerror))
        sys.exit(127 if error.errno == 2 else 126)


if __name__ == "__main__":
    enter(sys.argv[1])
