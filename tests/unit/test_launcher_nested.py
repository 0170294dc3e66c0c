"""Where a launcher inside another one's command belongs, and when it does not belong there."""
from __future__ import annotations

import pytest

from trainwatch_launcher.attempt import container_of, place_of
from trainwatch_launcher.identity import discover, job_of, own_environment
from trainwatch_launcher.options import parse

ATTEMPT = "/runs/job/rank-00003/attempt-2"
INSIDE = {"TRAINWATCH_ATTEMPT_DIR": ATTEMPT, "TRAINWATCH_RANK": "3", "TRAINWATCH_RUN_DIR": "/runs/job",
          "TRAINWATCH_RUN_ID": "job"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "13", "WORLD_SIZE": "16", "LOCAL_RANK": "5", "GROUP_RANK": "1"}


def who_and_where(environ, *options):
    options = parse([*options, "--", "true"], environ)
    identity = discover(options, environ)
    return identity, place_of(options, identity, environ)


def test_it_is_a_local_rank_of_its_container():
    who, place = who_and_where({**INSIDE, **TORCHRUN})
    assert (who.rank, who.local_rank, who.global_rank, who.world_size, who.run_id) == (3, 5, 13, 16, "job")
    assert (place.run_dir, place.rank_dir, place.nested) == ("/runs/job", f"{ATTEMPT}/local-00005", True)


def test_alone_it_is_no_local_rank_of_anything():
    who, place = who_and_where(TORCHRUN)
    assert (who.rank, who.local_rank, who.global_rank) == (13, 5, None)
    assert not place.nested


@pytest.mark.parametrize(("environ", "local_rank", "source"), [
    ({}, 0, "nothing"),
    ({"LOCAL_RANK": "4"}, 4, "LOCAL_RANK"),
    ({"RANK": "3", "WORLD_SIZE": "8"}, 0, "nothing"),
    ({"SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "2"}, 2, "SLURM_LOCALID"),
    ({"SLURM_PROCID": "9", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "2", "RANK": "1", "LOCAL_RANK": "1"}, 1,
     "LOCAL_RANK"),
    ({"TRAINWATCH_LOCAL_RANK": "6", "LOCAL_RANK": "4"}, 6, "option"),
])  # fmt: skip
def test_its_local_rank_is_what_the_nearest_engine_says_else_0(environ, local_rank, source):
    who, _ = who_and_where({**INSIDE, **environ})
    assert (who.rank, who.local_rank, who.sources["local_rank"]) == (3, local_rank, source)


def test_options_for_the_container_mean_the_container():
    who, place = who_and_where({**INSIDE, **TORCHRUN}, "--rank=1", "--world-size=4", "--run-dir=/runs/other")
    assert (who.rank, who.world_size, place.run_dir) == (3, 16, "/runs/job")


def test_without_the_run_s_name_its_directory_names_it():
    assert who_and_where({"TRAINWATCH_ATTEMPT_DIR": ATTEMPT})[0].run_id == "job"


def test_a_host_s_name_says_nothing_in_a_container_whose_rank_is_known(monkeypatch):
    monkeypatch.setattr("trainwatch_launcher.identity.hostname", lambda: "llama-worker-7")
    who, _ = who_and_where(INSIDE)
    assert (who.rank, who.global_rank) == (3, None)


@pytest.mark.parametrize(("outer", "container"), [
    (ATTEMPT, ATTEMPT),
    (ATTEMPT + "/", ATTEMPT),
    (f"{ATTEMPT}/local-00001/attempt-3", ATTEMPT),
    ("", ""),
    ("relative/rank-00003/attempt-1", ""),
    ("/etc", ""),
    ("/", ""),
    ("/runs/job/attempt-1", ""),
    ("/local-00001/attempt-1", ""),
])
def test_only_an_attempt_s_directory_is_a_container(outer, container):
    assert container_of({"TRAINWATCH_ATTEMPT_DIR": outer}) == container


def test_a_job_submitted_from_a_shell_beside_a_held_worker_is_a_run_of_its_own():
    shell = {**INSIDE, "TRAINWATCH_JOB": "slurm-42", "HOME": "/root", "TRAINWATCH_HOLD": "60"}
    assert own_environment({**shell, "SLURM_JOB_ID": "43"}) == {
        "HOME": "/root", "TRAINWATCH_HOLD": "60", "SLURM_JOB_ID": "43"}


def test_a_run_directory_that_the_new_job_names_itself_is_kept():
    job = {**INSIDE, "TRAINWATCH_JOB": "slurm-42", "SLURM_JOB_ID": "43", "TRAINWATCH_RUN_DIR": "/runs/second"}
    assert own_environment(job)["TRAINWATCH_RUN_DIR"] == "/runs/second"
    assert "TRAINWATCH_ATTEMPT_DIR" not in own_environment(job)


@pytest.mark.parametrize("more", [
    {}, {"TRAINWATCH_JOB": "slurm-42", "SLURM_JOB_ID": "42"}, {"SLURM_JOB_ID": "42"}, {"TRAINWATCH_JOB": "slurm-42"},
])
def test_inside_the_same_job_or_outside_of_any_it_stays_in_its_container(more):
    environ = {**INSIDE, **more}
    assert own_environment(environ) == environ


def test_jobs_of_batch_systems_have_names():
    assert [job_of({name: "7"}) for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID")] == [
        "slurm-7", "pbs-7", "lsf-7", ""]
