"""A real Docker daemon without network, and containers of this machine's own files."""
from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import wait_until

needs_docker = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("docker", "dockerd"))), reason="needs root and docker.io")

IMAGE = "trainwatch-test"
MOUNTED = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/passwd", "/etc/alternatives")


class Docker:
    """Commands work with `env`. Containers see this machine's programs, read-only, and a disk of their own."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="tw-docker-"))
        self.env = {**os.environ, "DOCKER_HOST": f"unix://{self.base}/socket"}
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> Docker:
        options = ["--iptables=false", "--bridge=none", "--data-root", f"{self.base}/data",
                   "--exec-root", f"{self.base}/exec", "--pidfile", f"{self.base}/pid",
                   "-H", f"unix://{self.base}/socket"]  # fmt: skip
        with (self.base / "dockerd.log").open("wb") as log:
            self._daemon = subprocess.Popen(["dockerd", *options], stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: subprocess.run(["docker", "info"], env=self.env, capture_output=True).returncode == 0, 60,
                   "dockerd")
        image = io.BytesIO()
        with tarfile.open(fileobj=image, mode="w") as tar:
            for name in ("proc", "tmp", "data", "root"):
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
        subprocess.run(["docker", "import", "-", IMAGE], env=self.env, input=image.getvalue(), check=True,
                       capture_output=True)
        return self

    def run(self, name: str, *argv: str, options: tuple[str, ...] = ()) -> None:
        """Start a container."""
        mounts = [word for path in (*MOUNTED, sys.prefix, sys.base_prefix, *self._more())
                  if Path(path).exists() for word in ("--volume", f"{path}:{path}:ro")]  # fmt: skip
        self.command("run", "--detach", "--network=none", "--name", name, "--hostname", name, *mounts, *options,
                     IMAGE, *argv)

    def command(self, *argv: str) -> str:
        """Run a docker command and return what it prints."""
        done = subprocess.run(["docker", *argv], env=self.env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        if self._daemon is not None:
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                ids = self.command("ps", "--all", "--quiet").split()
                if ids:
                    self.command("rm", "--force", *ids)
            self._daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._daemon.wait(15)
            self._daemon.kill()
            self._daemon.wait()
        shutil.rmtree(self.base, ignore_errors=True)

    @staticmethod
    def _more() -> tuple[str, ...]:
        """The checkout, whose launcher runs in the containers."""
        return (str(Path(__file__).resolve().parents[2]),)


@contextlib.contextmanager
def running_docker() -> Iterator[Docker]:
    """A daemon until the end of the block."""
    docker = Docker()
    try:
        yield docker.start()
    finally:
        docker.close()
