"""Who this worker is: rank, world size, node, run id, found from options and from the engine's variables.

One table, read from the most certain to the least. Sources of the names: torchrun (torch.distributed.elastic's
"Environment Variables"), Slurm (srun(1), OUTPUT ENVIRONMENT VARIABLES), Open MPI (mpirun(1)), MPICH and Intel MPI
(Hydra's PMI_*), Kubernetes (indexed Jobs), Kubeflow (PyTorchJob).
"""
from __future__ import annotations

import os
import time

from trainwatch_launcher.attempt import ATTEMPT_VARIABLE, container_of, rank_of, run_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from trainwatch_launcher.options import Options


class Engine:
    """How one engine names a worker: `when` is the variable (or all variables) that says it is in charge."""

    def __init__(
        self, name: str, when: str, rank: str, world_size: str = "", local_rank: str = "", node: str = ""
    ) -> None:
        self.name, self.when = name, when.split()
        self.rank, self.world_size, self.local_rank, self.node = rank, world_size, local_rank, node


# Nearest first: torchrun or mpirun may run inside a Slurm step, a Slurm step inside a platform's container.
# A Slurm step of one task says nothing about a rank that somebody set: `RANK=2 cmd` typed in a Slurm shell is rank 2.
ENGINES = (
    Engine("torchrun", "TORCHELASTIC_RUN_ID RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),
    # What starts the processes of one container (deepspeed, accelerate) sets both; what is inherited from the engines
    # below, which do not set them, tells of the container.
    Engine("inside a worker", ATTEMPT_VARIABLE + " RANK LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"),
    Engine(
        "Open MPI", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    ),
    Engine("PMI", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    Engine(
        "Slurm step", "SLURM_PROCID SLURM_STEP_NUM_TASKS",
        "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID",
    ),
    Engine("environment", "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"),
    Engine("Slurm", "SLURM_PROCID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    Engine("PMIx", "PMIX_RANK", "PMIX_RANK"),
    Engine("Kubernetes indexed job", "JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX"),
    Engine("environment", "NODE_RANK", "NODE_RANK", "NNODES", "", "NODE_RANK"),
)

RUN_ID_VARIABLES = (
    ("TORCHELASTIC_RUN_ID", ""),
    ("SLURM_JOB_ID", "slurm-"),
    ("PBS_JOBID", "pbs-"),
    ("LSB_JOBID", "lsf-"),
)
OF_THE_PROCESS, OF_THE_RUN = ("local_rank",), ("rank", "world_size")
"""What options may say of a nested launcher, and what besides of one that is not."""
JOB_VARIABLE = "TRAINWATCH_JOB"
"""Set for the command: the batch system's job that its launcher runs in."""
EXPORTED = ("TRAINWATCH_RUN_ID", "TRAINWATCH_RANK", "TRAINWATCH_RUN_DIR")
"""Set for the command beside ATTEMPT_VARIABLE; also read as options."""
NO_RUN_ID = ("", "none", "None", "default")


class Identity:
    """Who this worker is; `sources` tells for each fact where it was found."""

    def __init__(self) -> None:
        self.rank = 0
        self.world_size: int | None = None
        self.local_rank: int | None = None
        self.global_rank: int | None = None
        """A nested launcher's rank among the processes of all containers, where the engine says it."""
        self.node: int | None = None
        self.host = hostname()
        self.run_id = ""
        self.sources: dict[str, str] = {}


def hostname() -> str:
    """This machine's or container's name."""
    return os.uname().nodename


def discover(options: Options, environ: Mapping[str, str]) -> Identity:
    """Find all facts: options first, then the nearest engine that is in charge, then the host's name."""
    identity, container = Identity(), container_of(environ)
    for engine in ENGINES:
        if number(environ, engine.rank) is None or any(not environ.get(name) for name in engine.when):
            continue
        if engine.name == "Slurm step" and number(environ, engine.world_size) == 1:
            continue
        take(identity, engine, environ)
        break
    else:
        if not container:
            from_hostname(identity)
    if container:
        belong(identity, container, options, environ)
    for field in OF_THE_PROCESS if container else OF_THE_PROCESS + OF_THE_RUN:
        value = getattr(options, field)
        if value is not None:
            setattr(identity, field, value)
            identity.sources[field] = "option"
    if not container:
        identity.run_id, identity.sources["run_id"] = run_id(options, identity, environ)
    return identity


def belong(identity: Identity, container: str, options: Options, environ: Mapping[str, str]) -> None:
    """Take the place of a local rank in a container's attempt: rank and run are the container's.

    What the engine calls rank counts the processes of all containers; it and its world size are kept as they are.
    Options that say rank and world size were meant for the container, or come from its launcher.
    """
    if "rank" in identity.sources:
        identity.global_rank, identity.sources["global_rank"] = identity.rank, identity.sources["rank"]
    identity.rank = rank_of(container) or 0
    identity.run_id = safe_name(options.run_id or os.path.basename(run_of(container)))
    identity.sources["rank"] = identity.sources["run_id"] = ATTEMPT_VARIABLE
    if identity.local_rank is None:
        said = number(environ, "LOCAL_RANK")
        identity.local_rank, identity.sources["local_rank"] = said or 0, "nothing" if said is None else "LOCAL_RANK"


def job_of(environ: Mapping[str, str]) -> str:
    """The batch system's job that we run in, such as `slurm-42`; empty outside of one."""
    for variable, prefix in RUN_ID_VARIABLES:
        value = environ.get(variable, "").strip()
        if prefix and value:
            return prefix + value
    return ""


def own_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment without what the launcher of another job left in it.

    sbatch, qsub and bsub hand on the whole environment of the shell where they are typed. Typed in a shell beside a
    held worker, the new job would take itself for a part of the old one, write there, and never hold.
    """
    container, job, outer_job = container_of(environ), job_of(environ), environ.get(JOB_VARIABLE, "")
    if not container or not job or not outer_job or job == outer_job:
        return environ
    alien = {ATTEMPT_VARIABLE, JOB_VARIABLE}
    if environ.get("TRAINWATCH_RUN_DIR") == run_of(container):
        alien.update(EXPORTED)
    return {name: value for name, value in environ.items() if name not in alien}


def take(identity: Identity, engine: Engine, environ: Mapping[str, str]) -> None:
    """Copy the facts that an engine states."""
    for field in ("rank", "world_size", "local_rank", "node"):
        variable = getattr(engine, field)
        value = number(environ, variable)
        if value is not None and (value or field != "world_size"):
            setattr(identity, field, value)
            identity.sources[field] = variable


def number(environ: Mapping[str, str], variable: str) -> int | None:
    """A variable's value as a number from 0 up; None when it is unset or something else."""
    text = environ.get(variable, "").strip() if variable else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def from_hostname(identity: Identity) -> None:
    """The rank in a pod's name: PyTorchJob calls its pods NAME-master-0 and NAME-worker-N, whose rank is N+1."""
    parts = identity.host.split(".")[0].rsplit("-", 2)
    if len(parts) == 3 and parts[1] == "worker" and parts[2].isdigit():
        identity.rank = int(parts[2]) + 1
        identity.sources["rank"] = "host name"


def run_id(options: Options, identity: Identity, environ: Mapping[str, str]) -> tuple[str, str]:
    """(run id, where it was found). All workers of a job must come to the same one, so the clock is the last resort."""
    if options.run_id is not None:
        return safe_name(options.run_id), "option"
    if options.run_dir is not None:
        return safe_name(os.path.basename(os.path.abspath(options.run_dir))), "run directory"
    for variable, prefix in RUN_ID_VARIABLES:
        value = environ.get(variable, "").strip()
        if value not in NO_RUN_ID:
            return safe_name(prefix + value), variable
    job = job_of_pod(identity.host)
    if job and ("JOB_COMPLETION_INDEX" in environ or "KUBERNETES_SERVICE_HOST" in environ):
        return safe_name(job), "host name"
    address = environ.get("MASTER_ADDR", "").strip()
    if address and (identity.world_size or 1) > 1:
        return safe_name("%s-%s" % (address, environ.get("MASTER_PORT", "").strip() or "run")), "MASTER_ADDR"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return safe_name("%s-%s-%d" % (stamp, identity.host.split(".")[0], os.getpid())), "clock"


def doubts(identity: Identity) -> list[str]:
    """What looks wrong about who we seem to be, a sentence each."""
    found = []
    size = identity.world_size
    if size is not None and identity.rank >= size:
        found.append("rank %d, but the world size is %d: ranks count from 0" % (identity.rank, size))
    if (size or 1) > 1 and identity.sources.get("run_id") == "clock":
        found.append("nothing names this job, so each of its workers makes a run of its own: give all --run-id NAME")
    return found


def job_of_pod(host: str) -> str:
    """The job's name in a pod's name: `NAME-3`, `NAME-worker-3`, `NAME-master-0`; empty when it has no such form."""
    parts = host.split(".")[0].split("-")
    if len(parts) < 2 or not parts[-1].isdigit():
        return ""
    parts = parts[:-1]
    if len(parts) > 1 and parts[-1] in ("worker", "master", "launcher"):
        parts = parts[:-1]
    return "-".join(parts)


def safe_name(text: str) -> str:
    """Text as a directory name: letters, digits, `._-`, no leading dot, at most 100 characters."""
    kept = [c if c.isalnum() or c in "._-" else "_" for c in text[:100]]
    name = "".join(kept)
    return "_" + name[1:] if name.startswith(".") else name or "run"
