"""What linting costs: a script of 2,000 lines after import (bar: 150 ms), beside `bash -n`, and the import itself."""
from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from report import table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]
from support.linting import DATA, lint  # noqa: E402

ROUNDS = 9
LINES = 2000
BAR = 0.150


def job() -> str:
    """A start script of 2,000 lines, as varied as the reference scripts that bash takes."""
    cases = (DATA / "rules.txt").read_text(encoding="utf-8").split("\n######## ")[1:]
    bodies = [case.partition("\n")[2] for case in cases]
    whole = [body for body in bodies if is_bash(body)]
    lines: list[str] = []
    while len(lines) < LINES:
        for number, body in enumerate(whole):
            lines += [f"step_{number}_{len(lines)}() {{", *body.splitlines(), "}"]
    return "\n".join(lines[:LINES]) + "\n"


def is_bash(text: str) -> bool:
    """Whether bash reads it."""
    return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0


def seconds(call: Callable[[], object]) -> float:
    """The least of some rounds: other processes only add."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def started(command: str) -> float:
    """How long an interpreter takes for a statement, the median."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", command], check=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    flat = "".join(f"python step{n}.py --in $A{n} 2>&1 | tee log{n} || true\n" for n in range(LINES))
    rows: list[list[str]] = []
    for name, script in (("functions of all kinds", job()), ("one pipe a line, a finding in each", flat)):
        lint(script)
        took = seconds(lambda text=script: lint(text))  # type: ignore[misc]
        bash = seconds(lambda text=script: is_bash(text))  # type: ignore[misc]
        rows.append([name, f"{1000 * took:.0f} ms", "" if rows else f"{1000 * BAR:.0f} ms", f"{1000 * bash:.0f} ms"])
    table(f"Lint of {LINES:,} lines, least of {ROUNDS}", ["script", "lint", "bar", "bash -n"], rows)
    nothing, imported = started("pass"), started("import trainwatch.lint.linting, trainwatch.lint.inputs")
    rows = [["nothing", f"{1000 * nothing:.0f} ms"], ["the linter", f"{1000 * imported:.0f} ms"]]
    table(f"Import, median of {ROUNDS}", ["what", "time"], rows)


if __name__ == "__main__":
    main()
