"""The GPU sampler over the real binding (nvidia-ml-py) and a stub of NVIDIA's library that is told how to behave."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.nvml import SOURCE, Stub, build
from support.pythons import every_python
from support.waiting import wait_until
from trainwatch.packing import pack_bytes
from trainwatch_launcher.gpu import sampler as sampler_module
from trainwatch_launcher.gpu.attach import attach
from trainwatch_launcher.gpu.processes import Owners
from trainwatch_launcher.gpu.sampler import Sampler
from trainwatch_launcher.gpu.select import LOCAL_SIZES
from trainwatch_launcher.rundir.gpus import Gpu

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"
PERIOD = 0.1

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("nvml")
    build(directory)
    return directory


@pytest.fixture
def stub(tmp_path, library):
    return Stub(tmp_path, library)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What takes seconds in life, takes tenths here."""
    monkeypatch.setattr(sampler_module, "HANGS", 0.4)
    monkeypatch.setattr(sampler_module, "RETRY", 0.2)
    monkeypatch.setattr(sampler_module, "RESTART", 0.2)
    monkeypatch.setattr(sampler_module, "STALE", 0.6)


class Watched(Sampler):
    """A sampler that keeps its events."""

    def __init__(self, environ, local_rank=None, **options):
        self.events = []
        super().__init__(environ, local_rank, lambda when, event, facts: self.events.append((when, event, facts)),
                         period=PERIOD, **options)

    def gpus(self):
        return [Gpu.from_json(row) for row in self.snapshot()]

    def told(self, event, kind=None):
        return [facts for _, name, facts in self.events if name == event and kind in (None, facts.get("kind"))]

    def wait_told(self, event, kind=None):
        return wait_until(lambda: self.told(event, kind), what=f"{event} {kind}")[0]

    def wait_gpus(self, condition=lambda gpus: True):
        wait_until(lambda: self.gpus() and condition(self.gpus()), what="GPUs")
        return self.gpus()


@pytest.fixture
def sample(stub):
    """Starts samplers over the stub; `sample(CUDA_VISIBLE_DEVICES="0")`."""
    started = []

    def start(local_rank=None, alone=False, environ=None, **more):
        sampler = Watched(stub.environment(more) if environ is None else environ, local_rank, alone=alone)
        sampler.start()
        started.append(sampler)
        return sampler

    yield start
    for sampler in started:
        sampler.stop()


# -- what is read


def test_eight_gpus_are_read_with_all_their_numbers(stub, sample):
    stub.steer("set 3 util 12", "set 3 memory_used 5000000000", "set 3 power 123000", "set 3 temperature 81",
               "set 3 clock 990", "set 3 reasons 0x45", "set 3 ecc_corrected 7", "set 3 ecc_uncorrected_total 2",
               "set 3 remapped_uncorrected 1", "set 3 remap_pending 1", "set 3 links 4")
    rates = pytest.approx([2e9, 3e9, 4 * 1024 * 1e6, 4 * 1024 * 1e6], rel=0.1)
    gpus = sample().wait_gpus(lambda gpus: rates_of(gpus[3]) == rates)
    assert [gpu.index for gpu in gpus] == list(range(8))
    gpu = gpus[3]
    assert gpu.uuid == "GPU-a0000003-1111-2222-3333-000000000003"
    assert (gpu.util, gpu.memory_used, gpu.memory_total) == (12, 5 * 10**9, 80 << 30)
    assert (gpu.power, gpu.power_limit, gpu.temperature, gpu.clock) == (123.0, 700.0, 81, 990)
    assert gpu.throttle == ["sw_power_cap", "hw_thermal"]  # not that it was idle, which is the lowest bit
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected) == (7, 0)
    assert (gpu.ecc_corrected_total, gpu.ecc_uncorrected_total) == (0, 2)
    assert (gpu.remapped_corrected, gpu.remapped_uncorrected) == (0, 1)
    assert (gpu.remap_pending, gpu.remap_failed, gpu.lost) == (True, False, False)


def test_driver_and_gpus_are_told_once(stub, sample):
    sampler = sample(CUDA_VISIBLE_DEVICES="2")
    facts = sampler.wait_told("gpus")
    sampler.wait_gpus()
    assert facts == {**sampler.facts(), "note": ""}
    assert sampler.facts() == {"driver": "550.54.15", "cuda": "12.4", "gpus": [{
        "index": 2, "uuid": "GPU-a0000002-1111-2222-3333-000000000002", "name": "NVIDIA H100 80GB HBM3",
        "pci": "00000000:12:00.0", "memory_total": 80 << 30}]}
    assert sampler.note == ""
    assert len(sampler.told("gpus")) == 1


def test_a_line_of_history_comes_out_of_the_samples(sample):
    sampler = sample(CUDA_VISIBLE_DEVICES="1")
    sampler.wait_gpus()
    line = sampler.take_metrics(time.time(), closing=True)
    assert [gpu.index for gpu in line.gpus()] == [1]
    assert line.gpus()[0].pair("util") == (91.0, 91.0)


def test_a_local_rank_reads_its_own_gpu(sample):
    assert [gpu.index for gpu in sample(5, alone=True).wait_gpus()] == [5]


def test_a_rank_without_gpus_says_why(sample):
    sampler = sample(CUDA_VISIBLE_DEVICES="")
    wait_until(lambda: sampler.note == "CUDA_VISIBLE_DEVICES hides all GPUs")
    assert sampler.snapshot() == []


def test_mig_instances_have_their_own_memory_and_the_whole_gpus_power(stub, sample):
    stub.steer("gpus 2", "mig 0 1 0 MIG-aaaa 111 1000", "mig 0 2 0 MIG-bbbb 222 2000", "set 0 power 250000")
    gpus = sample().wait_gpus()
    assert [(gpu.index, gpu.mig, gpu.uuid) for gpu in gpus] == [
        (0, "1/0", "MIG-aaaa"), (0, "2/0", "MIG-bbbb"), (1, None, "GPU-a0000001-1111-2222-3333-000000000001")]
    assert [(gpu.memory_used, gpu.memory_total) for gpu in gpus[:2]] == [(111, 1000), (222, 2000)]
    assert [(gpu.util, gpu.power) for gpu in gpus[:2]] == [(None, 250.0)] * 2
    assert "MIG" in gpus[0].name


def test_processes_are_told_with_their_memory_and_a_pid_only_when_it_is_surely_ours(stub, sample):
    stub.steer("gpus 1", f"process 0 {os.getpid()} 5000", "process 0 4194000 6000")
    processes = sample().wait_gpus()[0].processes()
    assert sorted(process.memory for process in processes) == [5000, 6000]
    # no process here holds an NVIDIA device open: outside the host's own namespace these numbers may be anybody's
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        assert {(process.pid, process.ours) for process in processes} == {(None, None)}


def test_a_pid_is_believed_when_that_process_holds_a_device_open(tmp_path):
    device = tmp_path / "nvidia0"
    device.touch()
    holds = ["sh", "-c", f"exec 9<{device}; echo; exec sleep 60"]
    with subprocess.Popen(holds, stdout=subprocess.PIPE) as child, subprocess.Popen(["sleep", "60"]) as other:
        child.stdout.readline()
        owners = Owners(os.getpid(), False, str(tmp_path))
        assert owners.judge(child.pid) == (child.pid, True)
        assert owners.judge(other.pid) == (None, None)
        assert Owners(other.pid, False, str(tmp_path)).judge(child.pid) == (child.pid, False)
        assert Owners(os.getpid(), True).judge(other.pid) == (other.pid, True)
        assert owners.judge(0) == (None, None)
        assert Owners(os.getpid(), True).judge(4194303) == (4194303, None)
        child.kill()
        other.kill()


# -- what the driver cannot do


OLD = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetFieldValues",
       "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetEnforcedPowerLimit", "nvmlEventSetCreate",
       "nvmlSystemGetCudaDriverVersion_v2")


def test_an_old_driver_is_asked_by_the_functions_that_it_has(tmp_path):
    stub = Stub(tmp_path, missing=OLD)
    stub.steer("gpus 1", "set 0 reasons 8", "set 0 ecc_corrected 3", "set 0 remapped_corrected 2", "process 0 1 77",
               "set 0 pcie_rx_kib 10")
    sampler = Watched(stub.environment())
    sampler.start()
    try:
        gpu = sampler.wait_gpus()[0]
        assert (gpu.memory_used, gpu.memory_total) == (1_500_000_000, 80 << 30)  # with what the driver reserves
        assert (gpu.throttle, gpu.power_limit) == (["hw_slowdown"], 700.0)
        assert (gpu.ecc_corrected, gpu.remapped_corrected, gpu.remap_failed) == (3, 2, False)
        assert (gpu.pcie_rx, gpu.nvlink_rx) == (10240, None)
        assert [process.memory for process in gpu.processes()] == [77]
        assert sampler.facts()["cuda"] == "12.4"
    finally:
        sampler.stop()


def test_a_library_that_can_only_count_its_gpus_still_shows_them(tmp_path):
    functions = set(re.findall(r"nvmlDeviceGet\w+", SOURCE.read_text()))
    stub = Stub(tmp_path, missing=sorted(functions - {"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"}))
    stub.steer("gpus 2")
    sampler = Watched(stub.environment())
    sampler.start()
    try:
        assert sampler.wait_gpus() == [Gpu(index=0), Gpu(index=1)]
        assert sampler.told("warning") == []
    finally:
        sampler.stop()


SWEEP = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import pynvml
from support.nvml import Stub
from trainwatch_launcher.gpu.binding import GONE, KINDS, LOST, Failed, Nvml
from trainwatch_launcher.gpu.processes import Owners
from trainwatch_launcher.gpu import session as session_module
from pathlib import Path

session_module.QUICK_SHARE = session_module.SLOW_SHARE = 1e9  # read as often as we like

stub = Stub(Path(sys.argv[3]), Path(sys.argv[4]))
codes = sorted({value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_") if 0 < value < 1000})
asked = set()
call = Nvml.call
Nvml.call = lambda self, function, *rest: (asked.add(function), call(self, function, *rest))[1]


def session(*lines):
    stub.steer("gpus 2", "set * event_types 0", *lines)
    opened = session_module.Session(Nvml(pynvml), {}, None, Owners(1))
    try:
        opened.open(0.0, 0.0, lambda *_: None)
        return [opened.read() for _ in range(2)][-1]
    finally:
        opened.close()


healthy = session()
print(len(codes), "codes", len(asked), "functions")
for function in sorted(asked - {"nvmlInit", "nvmlShutdown", "nvmlEventSetCreate"}):
    versions = [function + version for version in ("", "_v2", "_v3")]
    for code in codes:
        try:
            rows = session(*("error %s 1 %d" % (name, code) for name in versions))
        except Failed as failure:
            assert failure.kind == GONE, (function, code, failure)
            continue
        assert rows[0].keys() == healthy[0].keys(), (function, code, rows[0])
        assert len(rows) == 2 and rows[1]["index"] == 1, (function, code, rows)
        known = {name for name in rows[1] if name not in ("index", "uuid", "name", "lost")}
        if KINDS.get(code) == LOST and function != "nvmlDeviceGetMigMode":
            continue
        assert len(known) >= 8 or "Handle" in function, (function, code, known)
for code in codes:
    try:
        session("init %d" % code)
        raise AssertionError(code)
    except Failed as failure:
        assert failure.code == code
print("all tolerated")
"""


def test_each_error_of_each_function_costs_no_more_than_its_own_number(tmp_path, library):
    environ = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library), "NVML_STUB": str(tmp_path / "nvml")}
    places = [str(LAUNCHER), str(Path(__file__).parents[1]), str(tmp_path), str(library)]
    sweep = [sys.executable, "-c", SWEEP, *places]
    done = subprocess.run(sweep, env=environ, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "all tolerated" in done.stdout


def test_what_a_gpu_cannot_answer_is_not_asked_again(tmp_path, library):
    code = """
        import sys
        sys.path[:0] = [sys.argv[1]]
        import pynvml
        from trainwatch_launcher.gpu.binding import Nvml, Questions
        nvml, count = Nvml(pynvml), 0
        nvml.call("nvmlInit")
        questions, handle = Questions(nvml, 0), nvml.call("nvmlDeviceGetHandleByIndex", 0)
        call = nvml.call
        def counted(*arguments):
            global count
            count += 1
            return call(*arguments)
        nvml.call = counted
        answers = {questions.ask(function, handle) for _ in range(5) for function in (
            "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates", "nvmlNoSuchFunction")}
        print(answers, count)
    """
    Stub(tmp_path, library).steer("error nvmlDeviceGetPowerUsage * 3", "error nvmlDeviceGetUtilizationRates * 999")
    environ = {"LD_LIBRARY_PATH": str(library), "NVML_STUB": str(tmp_path / "nvml")}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(LAUNCHER)], env=environ,
                          capture_output=True, text=True, timeout=30, check=True)
    # unknown errors may pass: the second try comes at once, later ones after pauses that double
    answers, count = done.stdout.split()
    assert answers == "{None}"
    assert int(count) < 8  # of fifteen


# -- what goes wrong while it runs


def test_a_gpu_that_falls_off_the_bus_is_told_and_the_others_are_read_on(stub, sample):
    sampler = sample()
    sampler.wait_gpus()
    stub.steer("lost 3", "event 1 3 8 79")
    lost = sampler.wait_told("warning", "gpu-lost")
    assert lost["gpu"] == 3
    gpus = sampler.gpus()
    assert [gpu.index for gpu in gpus if gpu.lost] == [3]
    assert (gpus[3].util, gpus[4].util) == (None, 94)
    assert gpus[3].uuid
    xid = sampler.wait_told("warning", "xid")
    assert (xid["gpu"], xid["xid"], xid["cause"]) == (3, 79, "gpu")
    stub.steer()
    assert sampler.wait_told("recovered", "gpu-lost")["gpu"] == 3
    assert sampler.wait_gpus(lambda gpus: gpus[3].util == 93)
    assert len(sampler.told("warning", "gpu-lost")) == 1


def test_a_gpu_that_was_lost_before_the_start_is_shown_as_lost(stub, sample):
    stub.steer("gpus 2", "lost 1")
    gpus = sample().wait_gpus()
    assert [(gpu.index, gpu.lost) for gpu in gpus] == [(0, False), (1, True)]


def test_xids_and_ecc_errors_are_told_with_their_meaning_and_a_flood_only_once(stub, sample):
    sampler = sample()
    sampler.wait_gpus()
    flood = [f"event {seq} 5 8 31" for seq in range(1, 50)]
    stub.steer(*flood, "event 50 6 2 1", "event 51 5 8 13")
    wait_until(lambda: len(sampler.told("warning")) >= 3)
    first, ecc, other = sampler.told("warning")
    assert (first["kind"], first["gpu"], first["xid"]) == ("xid", 5, 31)
    assert first["uuid"] == "GPU-a0000005-1111-2222-3333-000000000005"
    assert first["message"].startswith("GPU 5: Xid 31: page fault")
    assert (ecc["kind"], ecc["gpu"]) == ("ecc", 6)
    assert "double-bit" in ecc["message"]
    assert other["xid"] == 13
    when = sampler.events[-1][0]
    assert abs(when - time.time()) < 30


def test_events_of_other_ranks_gpus_are_not_ours(stub, sample):
    sampler = sample(CUDA_VISIBLE_DEVICES="5")
    sampler.wait_gpus()
    stub.steer("event 1 2 8 79", "event 2 5 8 43")
    assert sampler.wait_told("warning")["xid"] == 43
    assert len(sampler.told("warning")) == 1


def test_a_call_that_hangs_is_told_and_sampling_goes_on_when_it_returns(stub, sample):
    sampler = sample()
    sampler.wait_gpus()
    stub.steer("hang nvmlDeviceGetPowerUsage 6 2")
    told = sampler.wait_told("warning", "nvml")
    assert told["gpu"] == 6
    assert "nvmlDeviceGetPowerUsage of GPU 6" in told["message"]
    assert threads_of(sampler.pid) == 3  # the one that watches, the one that hangs, the one for events
    wait_until(lambda: sampler.note)  # numbers grow old: what is not known any more is not shown
    assert "not answered" in sampler.note
    assert [(gpu.util, gpu.power, gpu.memory_total) for gpu in sampler.gpus()] == [(None, None, 80 << 30)] * 8
    stub.steer()
    sampler.wait_told("recovered", "nvml")
    sampler.wait_gpus(lambda gpus: gpus[6].util == 96)
    assert sampler.note == ""
    assert len(sampler.told("warning", "nvml")) == 1


@pytest.mark.parametrize("function", ["nvmlDeviceGetUtilizationRates", "nvmlInitWithFlags"])
def test_a_call_that_hangs_for_a_minute_holds_nobody(stub, sample, function):
    stub.steer(f"hang {function} * 60")
    sampler = sample()
    sampler.wait_told("warning", "nvml")
    pid, before = sampler.pid, time.monotonic()
    assert (sampler.snapshot(), sampler.note) == ([], "waiting for the driver")
    sampler.stop()
    assert time.monotonic() - before < 10.0
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the process's end")


def test_a_process_that_does_not_move_at_all_does_not_hold_the_launcher(sample):
    sampler = sample()
    sampler.wait_gpus()
    os.kill(sampler.pid, signal.SIGSTOP)
    wait_until(lambda: sampler.note)
    assert all(gpu.util is None for gpu in sampler.gpus())
    before, pid = time.monotonic(), sampler.pid
    sampler.stop()
    assert time.monotonic() - before < 10.0
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_driver_that_is_unloaded_and_loaded_again_is_found_again(stub, sample):
    sampler = sample()
    sampler.wait_gpus()
    stub.steer("epoch 2", "init 9")
    assert "driver is gone" in sampler.wait_told("warning", "nvml")["message"]
    wait_until(lambda: sampler.note == "NVML: Driver Not Loaded")
    assert sampler.snapshot() == []
    stub.steer("epoch 3", "driver 570.1", "set 1 util 33")
    sampler.wait_told("recovered", "nvml")
    assert sampler.wait_gpus()[1].util == 33
    assert sampler.facts()["driver"] == "570.1"
    assert len(sampler.told("gpus")) == 2


def test_another_driver_version_gets_a_process_that_loads_its_library(stub, sample):
    sampler = sample()
    sampler.wait_gpus()
    pid = sampler.pid
    stub.steer("epoch 2", "init 18")
    wait_until(lambda: "version mismatch" in sampler.note or "started again" in sampler.note)
    stub.steer("epoch 3")
    sampler.wait_gpus()
    assert sampler.pid != pid


def test_a_library_that_crashes_takes_nothing_with_it(sample):
    sampler = sample()
    sampler.wait_gpus()
    pid = sampler.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "started again" in sampler.note)
    sampler.wait_gpus()
    assert sampler.pid != pid


def test_a_driver_that_was_there_first_and_then_never_ends_no_rank(stub, sample):
    stub.steer("init 9")
    sampler = sample()
    wait_until(lambda: sampler.note == "NVML: Driver Not Loaded")
    assert sampler.told("warning") == []


# -- beginning and end


def test_stopping_leaves_no_process_but_the_last_rows(sample):
    sampler = sample()
    sampler.wait_gpus()
    pid = sampler.pid
    sampler.stop(20.0)
    assert not Path(f"/proc/{pid}").exists()
    assert sampler.pid == 0
    assert sampler.gpus()[3].util == 93
    sampler.stop()


def test_the_process_ends_with_a_launcher_that_was_killed(stub):
    code = f"""
        import sys, time
        sys.path[:0] = [{str(LAUNCHER)!r}]
        from trainwatch_launcher.gpu.sampler import Sampler
        sampler = Sampler({stub.environment()!r}, None, lambda *_: None, period=0.1)
        sampler.start()
        while not sampler.snapshot():
            time.sleep(0.01)
        print(sampler.pid, flush=True)
        time.sleep(60)
    """
    launcher = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    pid = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    wait_until(lambda: not is_running(pid), what="the process's end")


def test_signals_for_the_whole_container_do_not_end_it(sample):
    """As the launcher has them: blocked, so that TERM to everybody leaves the sampler until the launcher goes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        sampler = sample()
        sampler.wait_gpus()
        pid = sampler.pid
        os.kill(pid, signal.SIGTERM)
        assert os.getpgid(pid) == pid  # Ctrl-C of a terminal does not reach it
        sampler.take_metrics(time.time(), closing=True)
        wait_until(lambda: sampler.take_metrics(time.time(), closing=True))
        assert sampler.pid == pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Recorder:
    """What the launcher's recorder is told."""

    def __init__(self):
        self.events, self.changes = [], []

    def event_at(self, when, kind, /, **facts):
        self.events.append((kind, facts))

    def update(self, **changes):
        self.changes.append(changes)


@pytest.mark.parametrize(("source", "nested", "expected"), [
    ("LOCAL_RANK", True, [1]),         # a nested launcher
    ("option", False, [1]),
    ("nothing", True, [0, 1, 2, 3]),   # nested, but nobody said of which process
    ("SLURM_LOCALID", False, [0, 1, 2, 3]),
])
def test_a_worker_gets_the_gpus_of_its_place_and_their_faults_into_its_events(
    stub, monkeypatch, source, nested, expected
):
    stub.steer("gpus 4")
    for name, value in stub.environment().items():
        monkeypatch.setenv(name, value)
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TORCHELASTIC_RUN_ID", *LOCAL_SIZES):
        monkeypatch.delenv(name, raising=False)
    said, recorder = [], Recorder()
    worker = SimpleNamespace(
        identity=SimpleNamespace(local_rank=1, sources={"local_rank": source}), place=SimpleNamespace(nested=nested),
        recorder=recorder, gpu_events=[], warn=lambda text, *arguments: said.append(text % arguments))
    sampler = attach(worker)
    try:
        wait_until(sampler.snapshot)
        assert [row["index"] for row in sampler.snapshot()] == expected
        stub.steer("gpus 4", "event 1 1 8 31", "event 2 1 8 48")
        wait_until(lambda: len(recorder.events) == 3)
        assert [(kind, facts.get("xid")) for kind, facts in recorder.events] == [
            ("gpus", None), ("warning", 31), ("warning", 48)]
        # a fault of the program is in the events; a fault of the GPU also in the status and on the console
        assert len(said) == len(recorder.changes) == 1
        assert said[0].startswith("WARNING: GPU 1: Xid 48")
    finally:
        sampler.stop()


def test_a_machine_without_a_driver_starts_no_process():
    sampler = Watched({"PATH": os.environ["PATH"]})
    sampler.start()
    wait_until(lambda: sampler.note)
    assert sampler.note == "no NVIDIA driver here"
    assert (sampler.pid, sampler.snapshot(), sampler.facts(), sampler.told("warning")) == (0, [], {}, [])
    sampler.stop()


FROM_A_PACKED_FILE = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
sys.path.append("/proc/self/fd/%d" % fd)
from trainwatch_launcher.gpu.sampler import Sampler
sampler = Sampler(dict(os.environ), None, lambda *_: None, period=0.1)
sampler.start()
deadline = time.time() + 20
while not sampler.snapshot() and sampler.note in ("", "waiting for the driver") and time.time() < deadline:
    time.sleep(0.01)
print([row.get("util") for row in sampler.snapshot()], sampler.note)
sampler.stop()
"""


@every_python
def test_from_a_packed_file_it_works_with_every_python_and_brings_its_binding(python, stub, tmp_path):
    packed = tmp_path / "launcher.pyz"
    packed.write_bytes(pack_bytes())
    stub.steer("gpus 2")
    done = subprocess.run([python, "-I", "-S", "-c", FROM_A_PACKED_FILE, str(packed)], capture_output=True, text=True,
                          env={**stub.environment(), "PATH": "/nonexistent"}, timeout=40)
    assert done.stdout.strip() == "[90, 91]", done.stderr


@every_python
def test_without_one_of_its_own_it_takes_the_binding_of_the_python_on_path(python, stub, tmp_path):
    code = FROM_A_PACKED_FILE.replace('"/proc/self/fd/%d" % fd', repr(str(LAUNCHER)))
    stub.steer("gpus 2")
    environ = {**stub.environment(), "PATH": str(Path(sys.executable).parent)}
    done = subprocess.run([python, "-I", "-S", "-c", code, os.devnull], capture_output=True, text=True, env=environ,
                          timeout=40)
    assert done.stdout.strip() == "[90, 91]", done.stderr


def test_without_any_binding_it_says_what_is_missing(tmp_path, stub):
    """An interpreter in a place of its own, where nothing is installed."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to("/usr/bin/python3")
    code = FROM_A_PACKED_FILE.replace('"/proc/self/fd/%d" % fd', repr(str(LAUNCHER)))
    done = subprocess.run([str(python), "-I", "-S", "-c", code, os.devnull], capture_output=True, text=True,
                          env={**stub.environment(), "PATH": "/nonexistent"}, timeout=40)
    assert done.stdout.strip() == "[] nvidia-ml-py is not installed (pip install nvidia-ml-py)", done.stderr


def rates_of(gpu: Gpu) -> list[float]:
    return [rate or 0.0 for rate in (gpu.pcie_tx, gpu.pcie_rx, gpu.nvlink_tx, gpu.nvlink_rx)]


def threads_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
