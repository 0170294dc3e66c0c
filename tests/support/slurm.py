"""A real Slurm of a few nodes, all of them this machine."""
from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sshd import free_port
from support.waiting import wait_until

needs_slurm = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "srun"))),
    reason="needs root, slurm-wlm and munge")

CONFIG = """\
ClusterName=trainwatch
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd-%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=2
WaitTime=0
SchedulerParameters=batch_sched_delay=0
{nodes}
PartitionName=all Nodes=n[0-{last}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Slurm:
    """Daemons of a cluster. Commands work with `env`."""

    def __init__(self, nodes: int = 2) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="tw-slurm-"))
        self.base.chmod(0o755)
        self.names = [f"n{number}" for number in range(nodes)]
        self.env = {**os.environ, "SLURM_CONF": str(self.base / "slurm.conf")}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Slurm:
        host = os.uname().nodename
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1 State=UNKNOWN"
            for name in self.names)  # fmt: skip
        text = CONFIG.format(base=self.base, host=host, port=free_port(), nodes=nodes, last=len(self.names) - 1)
        (self.base / "slurm.conf").write_text(text)
        (self.base / "state").mkdir()
        self._munge()
        self._run("slurmctld", "-D", "-f", f"{self.base}/slurm.conf")
        for name in self.names:
            (self.base / f"spool-{name}").mkdir()
            self._run("slurmd", "-D", "-f", f"{self.base}/slurm.conf", "-N", name)
        wait_until(lambda: self.command("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(len(self.names)), 60,
                   "Slurm's nodes")
        return self

    def command(self, *argv: str) -> str:
        """Run one of Slurm's commands and return what it prints, on either stream."""
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    def allocate(self, nodes: int) -> str:
        """A job of so many nodes that runs nothing yet; its id."""
        said = self.command("salloc", "--no-shell", f"--nodes={nodes}")
        found = re.search(r"job allocation (\d+)", said)
        assert found is not None, said
        return found[1]

    def wait_for(self, job: str, state: str) -> None:
        """Until a job, or one of an array, is in a state."""
        wait_until(lambda: state in self.command("squeue", "--noheader", "--jobs", job, "--format", "%T"), 60, state)

    def start_step(self, job: str, *argv: str) -> subprocess.Popen[bytes]:
        """Run a command on all nodes, as training does."""
        process = subprocess.Popen(["srun", f"--jobid={job}", f"--ntasks={len(self.names)}", *argv], env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._processes.insert(0, process)
        return process

    def close(self) -> None:
        self.command("scancel", "--user=root")
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        shutil.rmtree(self.base, ignore_errors=True)

    def _munge(self) -> None:
        """munged trusts no directory that others could write to, so its files are its user's."""
        user = pwd.getpwnam("munge")
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        os.chown(key, user.pw_uid, user.pw_gid)
        self._run("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.base}/munge.socket",
                  f"--pid-file={self.base}/munge.pid", f"--log-file={self.base}/munge.log",
                  f"--seed-file={self.base}/munge.seed", user=user.pw_uid)
        wait_until((self.base / "munge.socket").exists, 15, "munged")

    def _run(self, *argv: str, user: int | None = None) -> None:
        if user is not None:
            os.chown(self.base, user, -1)
        with (self.base / "out.log").open("ab") as out:
            path = f"{os.environ['PATH']}:/usr/sbin"
            self._processes.append(subprocess.Popen(argv, stdout=out, stderr=out, user=user,
                                                    env={**self.env, "PATH": path}))


@contextlib.contextmanager
def running_slurm(nodes: int = 2) -> Iterator[Slurm]:
    """A cluster until the end of the block."""
    slurm = Slurm(nodes)
    try:
        yield slurm.start()
    finally:
        slurm.close()
