"""Runs the benchmarks: every `bench_*.py` of this folder, or those named on the command line.

Each is a program of its own that measures one budget in one run beside its reference and prints Markdown tables. With
--write they also go to RESULTS.md, with the machine's facts.
"""
from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
BOUNDS = HERE / "bounds.md"


def found() -> dict[str, Path]:
    """The benchmarks of this folder by name: `bench_startup.py` is `startup`."""
    return {path.stem[len("bench_"):]: path for path in sorted(HERE.glob("bench_*.py"))}


def machine() -> str:
    """What the figures depend on, one line."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores {platform.machine()}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load average when it began {load:.1f}"
    )


def run(name: str, path: Path) -> tuple[bool, str]:
    """Run one benchmark, showing its output as it comes; whether it went well, and what it printed."""
    print(f"== {name}", flush=True)
    printed = []
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return process.returncode == 0, "".join(printed)


def main(argv: list[str] | None = None) -> int:
    """Run the chosen benchmarks one after the other; 1 when one of them failed."""
    benchmarks = found()
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(benchmarks)} (all of them)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md from this run")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in benchmarks]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(benchmarks)}")
    if options.list:
        print("\n".join(benchmarks))
        return 0
    facts = machine()
    failed, report = [], [f"# Results\n\nBy `make bench ARGS=--write`. {facts}.\n\n{BOUNDS.read_text()}"]
    for name in options.names or benchmarks:
        went_well, printed = run(name, benchmarks[name])
        report.append(f"## {name}\n{printed}")
        if not went_well:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if options.write:
        RESULTS.write_text("\n".join(report))
        print(f"written: {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
