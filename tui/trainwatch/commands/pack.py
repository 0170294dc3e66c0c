"""`trainwatch pack`: write the launcher as one file for workers on which nothing is installed."""
from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from trainwatch.model.text import printable
from trainwatch.packing import BINDING, DEFAULT_NAME, Packed, PackError, pack

DESCRIPTION = """\
Write the worker side of trainwatch as one executable file. A worker needs nothing but a Python of 3.8 or newer to run
it: put the file where all workers can read it, or copy it into their image.
"""
EPILOG = """\
The same version packed anywhere is the same file, byte for byte, with the same nvidia-ml-py beside it or none.

exit codes:
  0  the file is written
  1  it could not be written
  2  the options make no sense

examples:
  trainwatch pack -o /shared/trainwatch-launch.pyz
  trainwatch pack -o /shared/trainwatch-launch.pyz --with-py-spy
  /shared/trainwatch-launch.pyz --root /shared/runs -- bash train.sh             in each worker
  python3 -I /shared/trainwatch-launch.pyz --root /shared/runs -- bash train.sh  the same, with a Python of your choice
"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    try:
        packed = pack(options.output, options.with_py_spy)
    except PackError as error:
        print(f"trainwatch: cannot pack: {printable(str(error))}", file=sys.stderr)
        return 1
    print(json.dumps(asdict(packed), indent=2) if options.json else as_text(packed))
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch pack`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch pack", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path(DEFAULT_NAME),
                        help=f"what to write (default ./{DEFAULT_NAME}); a file that is there is replaced")
    parser.add_argument("--with-py-spy", action="store_true",
                        help="pack py-spy too, for stacks of hung ranks: about 3 MB more, for machines like this one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def as_text(packed: Packed) -> str:
    """What a person is told."""
    inside = f"with {BINDING} {packed.nvidia_ml_py}" if packed.nvidia_ml_py else (
        f"without {BINDING}: workers that have none show no GPUs (pip install {BINDING} here, and pack again)")
    inside += f", py-spy for {packed.py_spy}" if packed.py_spy else ""
    return "\n".join([
        printable(packed.path),
        f"size     {packed.size:,} bytes, {inside}",
        f"sha256   {packed.sha256}",
        f"use it   {printable(shlex.quote(packed.path))} --root /shared/runs -- COMMAND   (any Python from 3.8 on)",
    ])  # fmt: skip
