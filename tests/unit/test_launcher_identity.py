"""Who a worker is, from what engines set: the table of variables and its order."""
from __future__ import annotations

import pytest

from trainwatch_launcher import identity as subject
from trainwatch_launcher.identity import discover, doubts, job_of_pod, safe_name
from trainwatch_launcher.options import parse

TORCHRUN = {"TORCHELASTIC_RUN_ID": "job7", "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "2"}
SLURM = {"SLURM_JOB_ID": "42", "SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}
STEP = {**SLURM, "SLURM_STEP_NUM_TASKS": "4"}


def who(environ: dict[str, str], *options: str, host: str = "node-a", monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setattr(subject, "hostname", lambda: host)
    return discover(parse([*options, "--", "true"], {}), environ)


@pytest.mark.parametrize(
    ("environ", "rank", "world_size", "local_rank"),
    [
        ({}, 0, None, None),
        (TORCHRUN, 5, 8, 1),
        (SLURM, 3, 4, 1),
        ({"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "2"}, 6, 8, 2),
        ({"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}, 2, 4, 0),
        ({"JOB_COMPLETION_INDEX": "9"}, 9, None, None),
        ({"RANK": "1", "WORLD_SIZE": "2"}, 1, 2, None),
        ({"NODE_RANK": "3", "NNODES": "4"}, 3, 4, None),
        ({**STEP, "RANK": "0", "WORLD_SIZE": "1"}, 3, 4, 1),
        ({**STEP, **TORCHRUN}, 5, 8, 1),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "1", "RANK": "2", "WORLD_SIZE": "4"}, 2, 4, None),
        ({"RANK": "abc"}, 0, None, None),
        ({"RANK": "-1"}, 0, None, None),
        ({"RANK": " 4 "}, 4, None, None),
        ({"RANK": "0", "WORLD_SIZE": "0"}, 0, None, None),
    ],
)
def test_the_nearest_engine_says_who_we_are(environ, rank, world_size, local_rank):
    found = who(environ)
    assert (found.rank, found.world_size, found.local_rank) == (rank, world_size, local_rank)


def test_options_win_over_every_engine():
    found = who(TORCHRUN, "--rank=9", "--world-size=10", "--local-rank=0")
    assert (found.rank, found.world_size, found.local_rank) == (9, 10, 0)
    assert found.sources["rank"] == "option"


PODS = {"llama-master-0": 0, "llama-worker-0": 1, "llama-worker-3": 4, "gpu-7": 0}


@pytest.mark.parametrize(("host", "rank"), PODS.items())
def test_a_pytorchjob_pod_s_name_gives_the_rank_when_nothing_else_does(host, rank, monkeypatch):
    assert who({}, host=host, monkeypatch=monkeypatch).rank == rank


@pytest.mark.parametrize(
    ("environ", "host", "run_id"),
    [
        (TORCHRUN, "n", "job7"),
        ({**SLURM, "TORCHELASTIC_RUN_ID": "none"}, "n", "slurm-42"),
        ({"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "0"}, "n", "10.0.0.1-29500"),
        ({"JOB_COMPLETION_INDEX": "2"}, "bert-2", "bert"),
        ({"KUBERNETES_SERVICE_HOST": "1"}, "llama-worker-3", "llama"),
    ],
)
def test_all_workers_of_a_job_come_to_the_same_run_id(environ, host, run_id, monkeypatch):
    assert who(environ, host=host, monkeypatch=monkeypatch).run_id == run_id


def test_a_run_directory_given_as_such_names_the_run():
    assert who(SLURM, "--run-dir=/data/runs/llama-7b/").run_id == "llama-7b"


def test_a_job_without_a_name_and_a_rank_beyond_the_world_are_doubted():
    assert doubts(who({})) == []
    assert doubts(who({"RANK": "0", "WORLD_SIZE": "2"}, "--run-id=x")) == []
    assert "--run-id" in doubts(who({"RANK": "0", "WORLD_SIZE": "2"}))[0]
    assert "count from 0" in doubts(who({"RANK": "2", "WORLD_SIZE": "2"}, "--run-id=x"))[0]


def test_without_any_job_the_clock_names_the_run():
    assert who({}).sources["run_id"] == "clock"


def test_a_run_id_is_always_one_safe_directory_name():
    assert safe_name("../../etc") == "_._.._etc"
    assert safe_name("a b/c\n") == "a_b_c_"
    assert safe_name("") == "run"
    assert len(safe_name("x" * 500)) == 100
    assert safe_name("训练") == "训练"


def test_job_names_in_pod_names():
    jobs = {"a-b-3": "a-b", "a-worker-3": "a", "a-master-0": "a", "plain": "", "3": ""}
    assert {pod: job_of_pod(pod) for pod in jobs} == jobs
