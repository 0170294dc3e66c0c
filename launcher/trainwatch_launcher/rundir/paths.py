"""Every name in a run directory, and how a rank's next attempt gets its own."""
from __future__ import annotations

import errno
import os

RUN_FILE = "run.json"
EVENTS = "events.jsonl"
OUTPUT = "output.log"
INDEX = "output.index"
STATUS = "status.json"
METRICS = "metrics.jsonl"
CONTROL = "control"
FAILURES = "failures"

STACKS_PREFIX, STACKS_SUFFIX = "stacks-", ".txt"

RANK_PREFIX = "rank-"
LOCAL_PREFIX = "local-"
ATTEMPT_PREFIX = "attempt-"
MAX_ATTEMPTS = 100_000


def rank_name(rank: int) -> str:
    """The directory of a rank inside a run: `rank-00003`."""
    return "%s%05d" % (RANK_PREFIX, rank)


def local_name(local_rank: int) -> str:
    """The directory of a nested launcher inside its container's attempt: `local-00002`."""
    return "%s%05d" % (LOCAL_PREFIX, local_rank)


def attempt_name(attempt: int) -> str:
    """The directory of an attempt inside its rank: `attempt-1`."""
    return "%s%d" % (ATTEMPT_PREFIX, attempt)


def failure_name(rank: int, attempt: int) -> str:
    """The file in `failures/` in which an attempt tells the others that it failed: `rank-00003.1.json`."""
    return "%s.%d.json" % (rank_name(rank), attempt)


def stacks_name(number: int) -> str:
    """The file in an attempt that has the stacks taken as its `number`-th: `stacks-1.txt`."""
    return "%s%d%s" % (STACKS_PREFIX, number, STACKS_SUFFIX)


def stacks_number(name: str) -> int | None:
    """The number in `stacks-1.txt`; None when it is not such a name."""
    return number_of(name[: -len(STACKS_SUFFIX)], STACKS_PREFIX) if name.endswith(STACKS_SUFFIX) else None


def number_of(name: str, prefix: str) -> int | None:
    """The number in a directory name such as `rank-00003`; None when it is not such a name."""
    digits = name[len(prefix):]
    if not name.startswith(prefix) or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits)


def numbered(directory: str, prefix: str) -> list[tuple[int, str]]:
    """The numbered subdirectories of one kind, as (number, path), in the order of their numbers.

    Raises OSError when `directory` cannot be listed.
    """
    found = []
    for name in os.listdir(directory):
        number = number_of(name, prefix)
        if number is not None:
            found.append((number, os.path.join(directory, name)))
    return sorted(found)


def make_directory(path: str, mode: int) -> None:
    """Make a directory with exactly this mode, if it is not there. Raises OSError, also when a file has its name."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, not a directory", path) from None
    else:
        os.chmod(path, mode)


def make_directories(top: str, path: str, mode: int) -> None:
    """Make `path` and what is missing above it, down from `top`, each with exactly this mode. Raises OSError."""
    if path != top and os.path.dirname(path) != path:
        make_directories(top, os.path.dirname(path), mode)
    make_directory(path, mode)


def claim_attempt(rank_directory: str, mode: int = 0o700) -> tuple[int, str]:
    """Make the next attempt's directory and return (attempt, path).

    mkdir is what makes it ours: it is atomic, also on NFS, so that two launchers of one rank get different numbers.
    Raises OSError when nothing can be made there.
    """
    make_directory(rank_directory, mode)
    taken = numbered(rank_directory, ATTEMPT_PREFIX)
    attempt = taken[-1][0] + 1 if taken else 1
    while attempt <= MAX_ATTEMPTS:
        path = os.path.join(rank_directory, attempt_name(attempt))
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            attempt += 1
            continue
        os.chmod(path, mode)  # the umask may have taken the group's part away
        return attempt, path
    raise OSError("more than %d attempts in %s" % (MAX_ATTEMPTS, rank_directory))
