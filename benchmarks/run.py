"""Runs the benchmarks: every `bench_*.py` of this folder, or those named on the command line.

Each is a program of its own that measures one budget in one run beside its reference and prints what it found.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def found() -> dict[str, Path]:
    """The benchmarks of this folder by name: `bench_startup.py` is `startup`."""
    return {path.stem[len("bench_"):]: path for path in sorted(HERE.glob("bench_*.py"))}


def main(argv: list[str] | None = None) -> int:
    """Run the chosen benchmarks one after the other; 1 when one of them failed."""
    benchmarks = found()
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(benchmarks)} (all of them)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in benchmarks]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(benchmarks)}")
    if options.list:
        print("\n".join(benchmarks))
        return 0
    failed = []
    for name in options.names or benchmarks:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, str(benchmarks[name])], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
