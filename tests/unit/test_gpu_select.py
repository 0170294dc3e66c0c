"""Which GPUs belong to a rank."""
from __future__ import annotations

import pytest

from trainwatch_launcher.gpu.select import ANOTHER_ORDER, Device, LocalRank, Mig, choose


def gpus(count=8, name="H100", migs=None):
    return [Device(i, f"GPU-{i:08x}-aaaa", name, (migs or {}).get(i)) for i in range(count)]


def chosen(environ, local=None, devices=None):
    return [index for index, _ in choose(devices or gpus(), environ, local).picks]


ALL = list(range(8))
EIGHT_RANKS = {"LOCAL_WORLD_SIZE": "8"}


@pytest.mark.parametrize(("value", "expected"), [
    ("0", [0]),
    ("3,1", [3, 1]),
    (" 3 , 1 ", [3, 1]),
    ("2,3,-1,4", [2, 3]),
    ("-1", []),
    ("", []),
    (" ", []),
    ("NoDevFiles", []),
    ("0,9,1", [0]),           # the first that is not there ends the list
    ("0,,1", [0]),
    ("1gpu,2", [1, 2]),       # as strtol(3) reads it
    ("none", []),
    ("+4", [4]),
    ("1,1", []),              # CUDA shows none when one is named twice
    ("GPU-00000005-aaaa", [5]),
    ("GPU-00000005", [5]),    # any beginning that means one
    ("gpu-00000005", []),
    ("GPU-0000000", []),      # means all eight
    ("GPU-00000005,GPU-00000002", [5, 2]),
    ("GPU-00000005,2", [5]),  # not both kinds in one list
    ("2,GPU-00000005", [2]),
    ("GPU-99", []),
    ("٣", []),
])
def test_cuda_visible_devices_means_what_cuda_makes_of_it(value, expected):
    assert chosen({"CUDA_VISIBLE_DEVICES": value}) == expected


def test_an_entry_that_names_nothing_is_told_and_a_minus_one_is_not():
    assert "'9'" in choose(gpus(), {"CUDA_VISIBLE_DEVICES": "0,9"}).note
    assert choose(gpus(), {"CUDA_VISIBLE_DEVICES": "0,-1"}).note == ""
    assert "hides" in choose(gpus(), {"CUDA_VISIBLE_DEVICES": ""}).note


INSTANCES = {0: [Mig("MIG-1111-a", 1, 0), Mig("MIG-2222-b", 2, 0)], 1: []}


@pytest.mark.parametrize(("value", "expected"), [
    ("MIG-2222-b", [(0, 1)]),
    ("MIG-2222", [(0, 1)]),
    ("MIG-1111-a,MIG-2222-b", [(0, 0), (0, 1)]),
    ("MIG-GPU-00000000-aaaa/2/0", [(0, 1)]),
    ("MIG-GPU-00000000-aaaa/7/0", []),
    ("MIG-GPU-00000000-aaaa/2", []),
    ("0", [(0, 0)]),           # CUDA uses the first instance of a GPU that is named as a whole
    ("GPU-00000000", [(0, 0)]),
    ("1", [(1, None)]),        # in MIG mode, but not divided
    ("2", [(2, None)]),
    (None, [(0, 0), (0, 1), (1, None), (2, None)]),
])
def test_mig_instances_are_named_by_their_uuid_or_the_old_way(value, expected):
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert choose(gpus(3, migs=INSTANCES), environ).picks == expected


@pytest.mark.parametrize(("value", "expected"), [
    ("all", ALL), ("void", ALL), ("none", ALL), ("", ALL),
    ("0,1,2,3,4,5,6,7", ALL),
    ("1,2", [1, 2]),                       # a privileged container sees all of the host's
    ("GPU-00000006-aaaa", [6]),
    ("GPU-of-another-host", ALL),
    ("1,99", ALL),
])
def test_the_container_runtimes_list_counts_only_when_more_can_be_seen(value, expected):
    assert chosen({"NVIDIA_VISIBLE_DEVICES": value}) == expected


def test_inside_a_container_the_runtimes_numbers_are_the_hosts_and_mean_nothing_here():
    assert chosen({"NVIDIA_VISIBLE_DEVICES": "6,7"}, devices=gpus(2)) == [0, 1]


def test_cuda_visible_devices_overrules_the_runtimes_list():
    assert chosen({"NVIDIA_VISIBLE_DEVICES": "6,7", "CUDA_VISIBLE_DEVICES": "0"}) == [0]


@pytest.mark.parametrize(("environ", "local", "expected"), [
    ({}, None, ALL),
    ({}, LocalRank(3, True), [3]),                                    # torchrun's child, a nested launcher
    ({}, LocalRank(0, False), ALL),                                   # a container's only one: torchrun runs inside
    ({"SLURM_STEP_TASKS_PER_NODE": "1"}, LocalRank(0, False), ALL),
    ({"SLURM_STEP_TASKS_PER_NODE": "8(x2)"}, LocalRank(5, False), [5]),
    ({"OMPI_COMM_WORLD_LOCAL_SIZE": "8"}, LocalRank(5, False), [5]),
    ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, LocalRank(1, False), ALL),  # two ranks of eight GPUs: whose is which?
    (EIGHT_RANKS, LocalRank(2, True), [2]),
    ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, LocalRank(2, True), [6]),
    ({"CUDA_VISIBLE_DEVICES": "6"}, LocalRank(2, True), [6]),         # the engine has given it its own already
    ({"CUDA_VISIBLE_DEVICES": "4,5"}, LocalRank(2, True), [4, 5]),
    ({"CUDA_VISIBLE_DEVICES": ""}, LocalRank(2, True), []),
])
def test_a_local_rank_has_the_gpu_of_its_number(environ, local, expected):
    assert chosen(environ, local) == expected


def test_a_local_rank_without_a_gpu_of_its_number_says_so():
    assert "local rank 9" in choose(gpus(), {}, LocalRank(9, True)).note


def test_the_order_is_doubted_only_where_it_matters():
    mixed = [*gpus(2), *gpus(1, "A2")]
    assert choose(mixed, {"CUDA_VISIBLE_DEVICES": "1"}).note == ANOTHER_ORDER
    assert choose(mixed, {}, LocalRank(1, True)).note == ANOTHER_ORDER
    assert choose(mixed, {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).note == ""
    assert choose(mixed, {}).note == ""
    assert choose(gpus(), {"CUDA_VISIBLE_DEVICES": "1"}).note == ""
