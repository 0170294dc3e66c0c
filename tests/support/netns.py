"""A network namespace behind a cable that can be pulled: packets then vanish, and nobody is told."""
from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from support.waiting import wait_until


def _possible() -> bool:
    """Whether namespaces may be made here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


needs_netns = pytest.mark.skipif(not _possible(), reason="needs root, iproute2 and network namespaces")


NUMBERS = itertools.count()


class Network:
    """`address` is reached through the cable; what is started with `inside` before it lives behind it."""

    def __init__(self) -> None:
        number = os.getpid() * 4 + next(NUMBERS) % 4  # what was taken down is there for a moment longer
        self.name = f"tw-{number}"
        # 198.18.0.0/15 is for tests of networks (RFC 2544): nobody's address
        block = number % (1 << 14)
        base = f"198.18.{block >> 6 & 255}.{(block & 63) * 4}".rpartition(".")
        self._ours, self.address = (f"{base[0]}.{int(base[2]) + end}" for end in (1, 2))
        self.inside = ["ip", "netns", "exec", self.name]

    def start(self) -> Network:
        ours, theirs = self.name, "tw0"
        ip("netns", "add", self.name)
        ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", self.name)
        ip("address", "add", f"{self._ours}/30", "dev", ours)
        ip("link", "set", ours, "up")
        ip("-n", self.name, "address", "add", f"{self.address}/30", "dev", theirs)
        ip("-n", self.name, "link", "set", "lo", "up")
        self.plug()
        return self

    def unplug(self) -> None:
        """From now on all that is sent vanishes."""
        ip("-n", self.name, "link", "set", "tw0", "down")

    def plug(self) -> None:
        """What was not answered is sent again, by whoever still wants to."""
        ip("-n", self.name, "link", "set", "tw0", "up")

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            wait_until(self._deserted, 10, "the end of what ran there")
            ip("link", "delete", self.name)
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("netns", "delete", self.name)

    def _deserted(self) -> bool:
        pids = ip("netns", "pids", self.name).split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return not pids


def ip(*words: str) -> str:
    """What `ip` says."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network until the end of the block."""
    there = Network()
    try:
        yield there.start()
    finally:
        there.close()
