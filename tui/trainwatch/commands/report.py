"""`trainwatch report`: write a run as one page of HTML."""
from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from trainwatch.commands.arguments import price, price_of_gpus
from trainwatch.commands.targets import Followed, run_directory
from trainwatch.model.text import printable

DESCRIPTION = """\
Write a run as one page of HTML, for a ticket or a colleague: who failed first and why, all phases over time, charts,
what the GPUs cost, the end of the log, every rank. The page is one file, needs no network and runs no script.
"""
EPILOG = """\
exit codes:
  0  the page is written
  1  it could not be written
  2  TARGET is no run that can be read

examples:
  trainwatch report /shared/runs/7b-42                     writes 7b-42.html here
  trainwatch report ssh://login/runs/7b-42 -o why.html --gpu-price 2.5
"""
DEFAULT_NAME = "report.html"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    target = run_directory(options.target).path
    followed = Followed(target)
    try:
        return _write(followed, target, options.output, price_of_gpus(options.gpu_price))
    finally:
        followed.close()


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch report`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch report", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?",
                        help="a run, or a directory of runs (default $TRAINWATCH_ROOT, else ./runs)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="what to write (./RUN.html)")
    parser.add_argument("--gpu-price", metavar="PRICE", type=price,
                        help="what an hour of one GPU costs: GPU-hours are told in money too")
    return parser


def _write(followed: Followed, target: str, output: Path | None, price: float | None) -> int:
    from trainwatch.report.material import gather
    from trainwatch.report.page import page

    name = followed.run.run_id or Path(target).name
    path = output or Path(_file_name(name))
    written = page(gather(followed, target, time.time(), _telling), price)
    _telling("")
    try:
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(written, encoding="utf-8", errors="replace")
        temporary.replace(path)
    except OSError as error:
        print(f"trainwatch: cannot write {printable(str(path))}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"{printable(str(path))}: {len(written.encode('utf-8', 'replace')):,} bytes")
    return 0


def _file_name(run: str) -> str:
    kept = "".join(char if char.isalnum() or char in "-_." else "-" for char in run).strip("-.")
    return f"{kept}.html" if kept else DEFAULT_NAME


def _telling(progress: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)

