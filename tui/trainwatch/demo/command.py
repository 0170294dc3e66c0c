"""`trainwatch demo`: its options, the viewer on the run, and what is said afterwards."""
from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from trainwatch.demo.job import DemoError, Job, Plan, beside_python, make_run_directory
from trainwatch.terminal import no_screen, program

VIEWER_TIMEOUT = 5.0

DESCRIPTION = """\
Start a real training of several workers on this machine, each under trainwatch-launch, and watch it. No GPU is
needed: it is a small network in plain Python, trained data-parallel, its gradients averaged over TCP. After about
30 seconds one rank meets a damaged record in its data and fails, the others fail because of it, and all are held for
10 minutes: read their logs, open a shell at their side, release them. When you quit, the workers are stopped; the
run directory stays.
"""
EPILOG = """\
With --headless the exit code is 0 when the run went as planned: with --ok all ranks ended with 0, without it the
rank with the damaged record ended with 1 and all others failed after it. It is 1 when it went otherwise, 2 when
nothing could be started. The last line on stdout is the run directory.
"""


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch demo`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch demo", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ok", action="store_true", help="train to the end, about a minute; no rank fails")
    parser.add_argument("--headless", action="store_true",
                        help="without the viewer: wait until all workers have ended, print the run directory; holds "
                             "are released as soon as every rank has failed, unless --hold is given")
    parser.add_argument("--ranks", type=count, default=4, metavar="N", help="how many workers (default 4)")
    parser.add_argument("--root", type=Path, metavar="DIR",
                        help="where the run directory is made (default $TRAINWATCH_ROOT, else ./runs)")
    parser.add_argument("--fail-after", type=seconds, default=30.0, metavar="SECONDS",
                        help="when the damaged record is met, about (default 30)")
    parser.add_argument("--hold", type=seconds, metavar="SECONDS", help="how long a failed one is held (default 600)")
    parser.add_argument("--steps", type=count, default=600, metavar="N", help="length of the training (default 600)")
    parser.add_argument("--seed", type=int, default=1, help="of the data and the network (default 1)")
    parser.add_argument("--keep", action="store_true", help="leave the workers running or held when the viewer is quit")
    return parser


def count(text: str) -> int:
    """A whole number from 1 up."""
    if not text.isdigit() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 up, not {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A duration, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}")
    return value


def main(argv: list[str]) -> int:
    """Run the demo; returns the exit code."""
    options = parser().parse_args(argv)
    if not sys.platform.startswith("linux"):
        return complain("the launcher needs Linux; the viewer alone runs here: trainwatch RUN_DIRECTORY")
    missing = "" if options.headless else no_screen()
    if missing:
        return complain(f"{missing}; without one: {program()} demo --headless")
    hold = 600.0 if options.hold is None else options.hold
    plan = Plan(ranks=options.ranks, fail_after=None if options.ok else options.fail_after, steps=options.steps,
                hold=hold, seed=options.seed)
    # a terminal that goes away, or a polite kill, must not leave workers behind
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, interrupt)
    try:
        job = Job(plan, make_run_directory(options.root or Path(os.environ.get("TRAINWATCH_ROOT") or "runs")))
    except DemoError as error:
        return complain(str(error))
    run = headless if options.headless else interactive
    return guarded(job, lambda: run(job, options))


def interrupt(number: int, frame: object) -> None:
    """Turn a signal into what ctrl-C does."""
    raise KeyboardInterrupt


def guarded(job: Job, run: Callable[[], int]) -> int:
    """Start the job and run what watches it; whatever happens, no worker stays that nobody asked for."""
    try:
        job.start()
        job.wait_visible()
        return run()
    except DemoError as error:
        return complain(str(error))
    except KeyboardInterrupt:
        print(f"interrupted; the workers are stopped. The run directory: {job.run_directory}", file=sys.stderr)
        return 130
    finally:
        stop(job)


def stop(job: Job) -> None:
    """End all workers of the job; a second ctrl-C must not leave some behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    job.close()
    signal.signal(signal.SIGINT, before)


def headless(job: Job, options: argparse.Namespace) -> int:
    """Watch without a screen until all launchers have ended; the run directory is the last line on stdout."""
    print(f"{job.plan.ranks} workers started in {job.run_directory}", file=sys.stderr)
    job.watch(lambda line: print(line, file=sys.stderr))
    if options.hold is None:
        stop(job)
    job.wait()
    good = job.went_as_planned()
    if not good:
        complain(f"the run did not go as planned: {program()} {shlex.quote(str(job.run_directory))}")
    print(job.run_directory, flush=True)
    return 0 if good else 1


def interactive(job: Job, options: argparse.Namespace) -> int:
    """Open the viewer on the run, and say afterwards what is left of it."""
    code = view(job.run_directory)
    where = shlex.quote(str(job.run_directory))
    again = f"{program()} {where}"
    if options.keep and job.alive():
        print(f"The workers go on or are held, for {job.plan.hold:g} s after their failure.")
        print(f"  watch them:  {again}")
        print(f"  end a hold:  {program()} hold {where} --all --release")
        job.leave()
    else:
        stop(job)
        print("The demo's workers are stopped. The run can still be looked at:")
        print(f"  {again}")
    return code


def view(run_directory: Path) -> int:
    """Run the viewer in this terminal, as a process of its own: however it ends, we are there to clean up after it."""
    script = beside_python("trainwatch")
    program = [script] if script is not None else [sys.executable, "-m", "trainwatch"]
    viewer = subprocess.Popen([*program, str(run_directory)])
    try:
        return viewer.wait()
    except KeyboardInterrupt:
        viewer.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            viewer.wait(VIEWER_TIMEOUT)
        viewer.kill()
        raise


def complain(message: str) -> int:
    """One line for a person; 2."""
    print(f"trainwatch demo: {message}", file=sys.stderr)
    return 2
