"""Progress, GPUs, stalls and costs, from the command's output and a stub of the driver to the run directory."""
from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from support.nvml import Stub, build
from support.waiting import wait_until
from trainwatch_launcher.child import processes
from trainwatch_launcher.rundir import files, paths
from trainwatch_launcher.rundir.gpus import Metrics, gpus_of

SOON = ["--heartbeat=0.5"]
STEPS = """
import sys, time
for step in range(1, 1000):
    print("step %d/1000 | loss: %.2f | lr: 1e-4" % (step, 5 - step / 300), flush=True)
    time.sleep(0.1)
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("nvml")
    build(directory)
    return directory


@pytest.fixture
def stub(tmp_path, library):
    return Stub(tmp_path, library)


def metrics(launched):
    return files.LineFile(str(launched.attempt() / paths.METRICS)).read(Metrics)


def when_status(launched, condition, what, timeout=20.0):
    wait_until(lambda: launched.status() is not None and condition(launched.status()), timeout, what)
    return launched.status()


def probes(launched):
    return [p.pid for p in processes() if p.parent == launched.process.pid and p.name.startswith("python")
            and b"gpu.probe" in Path(f"/proc/{p.pid}/cmdline").read_bytes()]


# -- GPUs


def test_gpus_are_in_the_status_in_the_history_and_on_the_bill(launch, stub):
    stub.steer("gpus 2", "set 1 util 0")
    launched = launch.start("sh", "-c", "sleep 60; exit 3", options=[*SOON, "--hold=600"], env=stub.environment())
    status = when_status(launched, lambda status: gpus_of(status), "GPUs")
    assert [(gpu.index, gpu.util, gpu.memory_total) for gpu in gpus_of(status)] == [(0, 90, 80 << 30), (1, 0, 80 << 30)]
    assert status.gpu_note == ""
    told = launched.wait_for_event("gpus")
    assert (told.text("driver"), told.text("cuda"), len(told.extra["gpus"])) == ("550.54.15", "12.4", 2)
    assert len(probes(launched)) == 1
    os.killpg(status.pid, signal.SIGKILL)
    launched.wait_for_event("hold")
    held = when_status(launched, lambda status: (status.gpu_seconds_held or 0) > 3, "the hold on the bill")
    assert [gpu.util for gpu in gpus_of(held)] == [90, 0]  # still read, because still paid for
    (probe,) = probes(launched)
    launched.signal(signal.SIGTERM)
    launched.wait(20)
    assert launched.code == 137
    wait_until(lambda: not Path(f"/proc/{probe}").exists(), what="the end of the process that reads GPUs")
    final = launched.status()
    assert final.gpu_seconds == pytest.approx(2 * (final.ended - final.started), abs=0.5)
    assert 0 < final.gpu_seconds_idle < final.gpu_seconds
    assert (final.gpu_seconds_setup, final.gpu_seconds_training) == (None, None)  # nobody knows
    closing = launched.err.splitlines()[-1].decode()
    assert re.fullmatch(r"trainwatch: [\d.]+ GPU-(seconds|minutes), [\d.]+ idle, [\d.]+ held", closing)
    (line,) = metrics(launched)[-1:]
    assert [(gpu.index, gpu.pair("util")) for gpu in line.gpus()] == [(0, (90.0, 90.0)), (1, (0.0, 0.0))]


def test_an_xid_is_a_warning_and_the_process_that_reads_ends_with_a_killed_launcher(launch, stub):
    stub.steer("gpus 1")
    launched = launch.start("sleep", "60", options=SOON, env=stub.environment())
    launched.wait_for_event("gpus")
    stub.steer("gpus 1", "event 1 0 8 48")
    warning = launched.wait_for_event("warning")
    assert (warning.text("kind"), warning.integer("xid"), warning.integer("gpu")) == ("xid", 48, 0)
    assert warning.text("message").startswith("GPU 0: Xid 48: ")
    status = when_status(launched, lambda status: status.warning, "the warning")
    assert status.warning == warning.text("message")
    (probe,) = probes(launched)
    launched.process.kill()
    launched.process.communicate()
    wait_until(lambda: not Path(f"/proc/{probe}").exists(), what="the end of the process that reads GPUs")
    wait_until(lambda: not Path(f"/proc/{status.pid}").exists(), what="the end of the command")


def test_the_process_that_reads_gpus_is_none_that_the_command_left_behind(launch, stub):
    launched = launch.start("sh", "-c", "sleep 600 & read -r line; exit 3", options=[*SOON, "--hold=600"], stdin=-1,
                            env=stub.environment())
    launched.wait_for_event("gpus")
    before = probes(launched)
    launched.process.stdin.write(b"go\n")
    launched.process.stdin.flush()
    left = launched.wait_for_event("warning")
    assert (left.text("kind"), left.text("message").partition(" ")[0], len(left.extra["pids"])) == (
        "left-behind", "sleep", 1)
    launched.wait_for_event("hold")
    assert before == probes(launched) != []


def test_a_driver_that_hangs_holds_neither_the_command_nor_its_end(launch, stub):
    stub.steer("hang nvmlDeviceGetUtilizationRates * 60")
    launched = launch.start("sh", "-c", "read -r line; echo done; exit 4", options=SOON, stdin=-1,
                            env=stub.environment())
    warning = launched.wait_for_event("warning", timeout=30)
    assert "nvmlDeviceGetUtilizationRates" in warning.text("message")
    status = when_status(launched, lambda status: status.gpu_note, "a note")
    assert status.gpu_note == "waiting for the driver"
    assert launched.process.poll() is None
    launched.process.stdin.write(b"go\n")
    launched.process.stdin.flush()
    launched.wait(20)
    assert (launched.code, launched.log()) == (4, b"done\n")


def test_gpus_are_not_read_when_the_user_does_not_want_it(launch, stub):
    launched = launch.start("sleep", "60", options=[*SOON, "--no-gpu"], env=stub.environment())
    status = when_status(launched, lambda status: status.time - status.started > 2, "two seconds")
    assert (status.gpu_note, gpus_of(status), probes(launched)) == ("not read: --no-gpu", [], [])


def test_a_short_command_does_not_wait_for_its_gpus_to_be_read(launch, stub):
    stub.steer("hang nvmlInitWithFlags * 60")
    launched = launch("sh", "-c", "echo step 3 loss 1", env=stub.environment())
    assert launched.code == 0
    assert (launched.err, launched.events("gpus")) == (b"", [])


def test_without_a_driver_no_process_is_started(launch):
    launched = launch.start("sleep", "60", options=SOON)
    status = when_status(launched, lambda status: status.gpu_note, "a note")
    if status.gpu_note != "no NVIDIA driver here":
        pytest.skip("this machine has a driver")
    assert probes(launched) == []


# -- progress


def test_what_a_framework_prints_is_in_the_status_and_the_history(launch):
    launched = launch.start(sys.executable, "-c", STEPS, options=SOON)
    first = when_status(launched, lambda status: status.step, "a step")
    assert (first.total, first.lr, first.progress_format, first.loss_text) == (1000, 1e-4, "generic", "")
    assert first.loss == pytest.approx(5 - first.step / 300, abs=0.01)
    later = when_status(launched, lambda status: status.step > first.step, "a later step")
    assert later.first_step == first.first_step <= later.progress_since
    assert first.first_step >= first.started
    launched.signal(signal.SIGTERM)
    launched.wait()
    final = launched.status()
    assert final.step == launched.log().count(b"\n")  # the last one, also of output that came after the last look
    progress = metrics(launched)[-1].progress()
    assert (progress["step"], progress["loss"]) == (final.step, final.loss)


def test_since_which_step_the_loss_is_no_number_is_kept_through_output_that_says_nothing_of_it(launch, tmp_path):
    script = """
import sys
for line in sys.stdin:
    print(*["noise"] * 30_000 * ("it 9" in line), line.strip(), sep="\\n", flush=True)
"""
    tell = tmp_path / "tell"
    os.mkfifo(tell)
    patterns = [r"--progress-pattern=it (?P<step>\d+) L=(?P<loss>\S+)", r"--progress-pattern=it (?P<step>\d+)$"]
    command = f"exec {sys.executable} -c '{script}' < {tell}"
    launched = launch.start("sh", "-c", command, options=[*SOON, *patterns])
    with tell.open("w", buffering=1) as say:
        for line, bad_since in (("it 6 L=2.5", None), ("it 7 L=nan", 7), ("it 8 L=nan", 7), ("it 9", 7),
                                ("it 10 L=nan", 7), ("it 11 L=2.4", None)):  # fmt: skip
            say.write(line + "\n")
            step = int(line.split()[1])
            status = when_status(launched, lambda status, step=step: status.step == step, line)
            assert status.loss_bad_since == bad_since, line
            assert status.loss_text == ("nan" if bad_since else ""), line


def test_a_step_is_read_in_the_user_s_own_words(launch):
    script = "echo 'it 7 of 90: L=nan'; echo 'B 3'; sleep 60"
    patterns = [r"--progress-pattern=it (?P<step>\d+) of (?P<total>\d+): L=(?P<loss>\S+)",
                r"--progress-pattern=B (?P<epoch>\d+)"]
    launched = launch.start("sh", "-c", script, options=[*SOON, *patterns])
    status = when_status(launched, lambda status: status.step, "a step")
    assert (status.step, status.total, status.epoch, status.loss, status.loss_text) == (7, 90, 3, None, "nan")
    assert status.progress_format == "pattern"
    by_variable = launch.start("sh", "-c", "echo 'it 8'; echo 'L=2'; sleep 60", options=SOON, rank=1, env={
        "TRAINWATCH_PROGRESS_PATTERN": "it (?P<step>\\d+)\nL=(?P<loss>\\d+)\n"})
    status = when_status(by_variable, lambda status: status.step, "a step")
    assert (status.step, status.loss) == (8, 2.0)


@pytest.mark.parametrize(("pattern", "why"), [
    ("(?P<step>", b"--progress-pattern is no regular expression: "),
    (r"(?P<stepp>\d+)", b"--progress-pattern has the group 'stepp'; groups are named like (?P<step>"),
    (r"\d+", b"--progress-pattern has no named group"),
    (r"(?P<loss>(\d+)+)x", b"--progress-pattern can take for ever"),
])
def test_an_expression_that_cannot_be_used_is_refused_before_anything_runs(launch, pattern, why):
    launched = launch("touch", "made", options=["--progress-pattern", pattern])
    assert launched.code == 2
    assert why in launched.err
    assert launched.err.count(b"\n") == 1
    assert not (launch.directory / "made").exists()


def test_a_line_of_our_own_is_read_whatever_else_is_printed(launch):
    script = "echo '[12:00] ::trainwatch step=10 total=100 loss=2.31:: x'; echo step 99 loss 1.0; sleep 60"
    launched = launch.start("sh", "-c", script, options=SOON)
    status = when_status(launched, lambda status: status.step, "a step")
    assert (status.step, status.total, status.loss, status.progress_format) == (10, 100, 2.31, "explicit")


# -- stalls


def test_a_stall_is_said_and_its_end_too(launch):
    script = "echo working; read -r line; echo on; read -r line"
    launched = launch.start("sh", "-c", script, options=[*SOON, "--stall-after=1"], stdin=-1)
    stall = launched.wait_for_event("stall")
    assert (stall.text("last"), stall.number("after")) == ("working", 1.0)
    status = when_status(launched, lambda status: status.stalled_since, "stalled")
    assert status.stalled_since == pytest.approx(stall.number("since"), abs=0.01)
    launched.process.stdin.write(b"\n")
    launched.process.stdin.flush()
    recovered = launched.wait_for_event("recovered")
    assert recovered.text("kind") == "stall"
    assert recovered.time > stall.time
    wait_until(lambda: len(launched.events("stall")) == 2)
    launched.process.stdin.write(b"\n")
    launched.process.stdin.close()
    launched.process.stdin = None
    launched.wait()
    assert launched.status().stalled_since is None
    assert b"no output and no progress for" in launched.err


def test_a_command_is_never_said_to_stall_when_nobody_wants_to_know(launch):
    launched = launch("sleep", "2.5", options=[*SOON, "--stall-after=0"])
    assert not launched.events("stall")
