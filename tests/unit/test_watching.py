"""When the kernel tells of some changes only: a limit that is partly used up, and what is no reason to think so."""
from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import threading

import pytest

from builders import RunBuilder
from support.waiting import wait_until
from trainwatch.sources.watching import Doubt

USER = ["unshare", "--user", "--map-root-user", "sh", "-c"]
LIMIT = "/proc/sys/user/max_inotify_watches"
VIEWER = """
import asyncio, sys
from trainwatch.sources import local
from trainwatch_launcher.reader.changes import StatusChanged, Unreadable
local.SAFETY = 0.4
async def main():
    source = local.LocalSource(sys.argv[1])
    async for batch in source.changes():
        for change in batch:
            if isinstance(change, StatusChanged) and change.status.phase:
                print(change.key.rank, change.status.phase, flush=True)
            if isinstance(change, Unreadable):
                print(change.message, flush=True)
asyncio.run(main())
"""


def may_limit() -> bool:
    """Whether a process may have a limit of its own for what it watches."""
    argv = [*USER, f"echo 4 > {LIMIT}"]
    return shutil.which("unshare") is not None and subprocess.run(argv, capture_output=True).returncode == 0


@pytest.mark.skipif(not may_limit(), reason="needs user namespaces with limits of their own")
def test_a_limit_that_lets_only_some_directories_be_watched_is_said_and_all_are_looked_at(tmp_path):
    run = RunBuilder(tmp_path / "run")
    ranks = [run.rank(number).start() for number in range(6)]
    argv = [*USER, f'echo 4 > {LIMIT} && exec "$@"', "sh", sys.executable, "-c", VIEWER, str(run.directory)]
    seen: list[str] = []
    numbers = itertools.count()

    def said() -> bool:
        phase = f"P{next(numbers)}"
        for rank in ranks:
            rank.set(phase=phase)
        return any("fs.inotify.max_user_watches" in line for line in seen)

    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as viewer:
        reading = threading.Thread(target=lambda: seen.extend(iter(viewer.stdout.readline, "")))
        reading.start()
        try:
            wait_until(said, 30, "the limit to be said")
            for rank in ranks:
                rank.set(phase="Last")
            wait_until(lambda: {f"{rank} Last\n" for rank in range(6)} <= set(seen))
        finally:
            viewer.kill()
            reading.join()
    assert sum("the kernel does not tell of all changes" in line for line in seen) == 1


def test_a_word_that_comes_late_is_no_reason_to_doubt_the_kernel():
    doubt = Doubt()
    for _ in range(3):  # each change just before the look, and the word of it just after
        assert not doubt.confirmed({"/run/a"})
        doubt.note({"/run/a/status.json"})
    assert not doubt.confirmed({"/run/b"})
    assert not doubt.confirmed({"/run/a"})
    assert not doubt.confirmed(set())
    assert not doubt.confirmed({"/run/a"})
    assert doubt.confirmed({"/run/a"})
