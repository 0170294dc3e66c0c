"""A shell beside an attempt of this machine, as the app wants it."""
from __future__ import annotations

import os

from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch_launcher.agent import standing
from trainwatch_launcher.reader.changes import AttemptKey


def plan(directory: str, key: AttemptKey, command: tuple[str, ...] = ()) -> ShellPlan:
    """A shell, or `command`, in an attempt's working directory and environment. Raises SourceError.

    The environment is the live launcher's, or that of a process of its command. When neither is there any more, it is
    our own, and the plan's note says so.
    """
    try:
        found = standing.find(directory, key, command, os.environ.get("SHELL", ""))
    except standing.NoWayError as error:
        raise SourceError(str(error)) from None
    return ShellPlan(found.argv, found.environment(os.environ), found.cwd, found.note)
