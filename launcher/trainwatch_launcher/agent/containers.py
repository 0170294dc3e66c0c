"""The way into a container of this machine by the runtime that made it: no root is needed, only its permission."""
from __future__ import annotations

import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.rundir.records import Event

RUNTIMES = ("docker", "podman")
"""Both take the same words; asked in this order which of them knows the container."""
PATIENCE = 5.0
"""Seconds that a runtime has to answer: its daemon may hang."""
ID_LENGTH = 64
PYTHON = "python3"
# A terminal is passed on where there is one. In the container the Python that ran the launcher becomes the shell.
EXEC = 't=; [ -t 0 ] && t=-t; r=$1; i=$2; shift 2; exec "$r" exec -i $t -e TERM -e COLORTERM "$i" "$@"'
INSIDE = 'p=$1; shift; command -v "$p" >/dev/null 2>&1 || p=%s; exec "$p" "$@"' % PYTHON


class Container:
    """A running container that a runtime of this machine knows."""

    def __init__(self, runtime: str, identity: str, python: str) -> None:
        self.runtime = runtime
        self.identity = identity
        self.python = python
        """The Python in it that the launcher runs on."""

    @property
    def way(self) -> tuple[str, ...]:
        """The command of this machine that runs a Python in it, whose name and arguments come behind."""
        return ("sh", "-c", EXEC, "sh", self.runtime, self.identity, "sh", "-c", INSIDE, "sh")

    @property
    def called(self) -> str:
        """What a person calls it."""
        return "%s %s" % (self.runtime, self.identity[:12])


def find(start: Event | None) -> Container | None:
    """The container that a launcher's `start` event names, when it runs on this machine and we may enter it."""
    facts = start.extra.get("container") if start is not None else None
    identity = facts.get("container_id") if isinstance(facts, dict) else None
    if start is None or not isinstance(identity, str) or not is_identity(identity):
        return None
    python = start.text("executable")
    for runtime in RUNTIMES:
        if shutil.which(runtime) is not None and _runs(runtime, identity):
            return Container(runtime, identity, python if python.startswith("/") else PYTHON)
    return None


def is_identity(word: str) -> bool:
    """Whether it is a container's full id: 64 hexadecimal digits, never a name and never an option."""
    return len(word) == ID_LENGTH and set("0123456789abcdef").issuperset(word)


def _runs(runtime: str, identity: str) -> bool:
    argv = [runtime, "container", "inspect", "--format", "{{.State.Running}}", identity]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == b"true"
