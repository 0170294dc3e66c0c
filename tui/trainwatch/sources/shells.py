"""A shell beside an attempt of this machine, as the app wants it."""
from __future__ import annotations

import os

from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch_launcher.agent import standing
from trainwatch_launcher.reader.changes import AttemptKey


def plan(directory: str, key: AttemptKey, command: tuple[str, ...] = (), label: str = "") -> ShellPlan:
    """A shell, or `command`, in the working directory and environment of an attempt called `label`. Raises SourceError.

    The environment is the live launcher's, or that of a process of its command. When neither is there any more, it is
    our own, and the plan's note says so.
    """
    try:
        found = standing.find(directory, key, command, os.environ.get("SHELL", ""), label)
    except standing.NoWayError as error:
        raise SourceError(str(error)) from None
    if found.container is not None:
        from trainwatch.sources import boot  # what other shells need not wait for

        entering = boot.enter(found.container.python, found.entry())
        return ShellPlan((*found.container.way, *entering), note=found.note)
    return ShellPlan(found.argv, found.environment(os.environ), found.cwd, found.note)
