"""What torchrun does with its workers, without torch: a program for tests.

    python stand_in_torchrun.py [--nproc N] [--max-restarts N] [--node-rank N] COMMAND [ARG...]

Each worker gets torchrun's variables and a session of its own. When one fails, the others get SIGTERM, and all are
started again while restarts are left; then it exits with 1, whatever the worker's code was.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--max-restarts", type=int, default=0)
    parser.add_argument("--node-rank", type=int, default=0)
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for restart in range(options.max_restarts + 1):
        if run_once(options, restart):
            return 0
    return 1


def run_once(options: argparse.Namespace, restart: int) -> bool:
    """Run all workers to their end; whether all of them succeeded."""
    workers = [
        subprocess.Popen(options.command, env=environment(options, local, restart), start_new_session=True)
        for local in range(options.nproc)
    ]
    while None in (codes := [worker.poll() for worker in workers]):
        if any(codes):
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGTERM)
            for worker in workers:
                worker.wait(20)
        time.sleep(0.02)
    return not any(worker.returncode for worker in workers)


def environment(options: argparse.Namespace, local: int, restart: int) -> dict[str, str]:
    """What torch.distributed.run gives to a worker."""
    return {
        **os.environ,
        "RANK": str(options.node_rank * options.nproc + local), "LOCAL_RANK": str(local),
        "GROUP_RANK": str(options.node_rank), "ROLE_RANK": str(local), "ROLE_NAME": "default",
        "WORLD_SIZE": str(options.nnodes * options.nproc), "LOCAL_WORLD_SIZE": str(options.nproc),
        "GROUP_WORLD_SIZE": str(options.nnodes), "ROLE_WORLD_SIZE": str(options.nproc),
        "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": str(restart), "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts),
    }


if __name__ == "__main__":
    sys.exit(main())
