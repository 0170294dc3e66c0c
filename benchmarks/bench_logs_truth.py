"""What the log engine says beside plain tools on large logs: counts, line numbers, the order of merged logs."""
from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench_logs import TRAINWATCH
from many_logs import NEEDLE, run_of
from report import table

from trainwatch_launcher.rundir import paths

BYTES = int(os.environ.get("BENCH_TRUTH_BYTES", "1000000000"))
"""Of the one log, and of those that are merged together."""
MERGED = int(os.environ.get("BENCH_TRUTH_MERGED", "8"))
ASKED = [NEEDLE, "step 77", r"step \d*7 ", "INFO rank 0 step 123456 ", "nothing of the kind"]
ORDER = 'sort --stable --merge --field-separator="]" --key=2.2,2.15'


def output_of(words: Sequence[str]) -> bytes:
    return subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout


def counts(place: Path, log: Path) -> list[list[str]]:
    """Lines that match: ours and grep's."""
    rows = []
    for text in ASKED:
        ours = output_of([TRAINWATCH, "logs", str(place), "--grep", text]).count(b"\n")
        theirs = int(output_of(["grep", "-c", "-P", text, str(log)]))
        rows.append([f"`{text}`", f"{ours:,}", f"{theirs:,}", "yes" if ours == theirs else "NO"])
    return rows


def numbers(place: Path, log: Path, lines: int) -> list[list[str]]:
    """Line numbers of the same lines: ours and awk's."""
    steps = sorted(random.Random(6).sample(range(lines), 200))
    pattern = f" step ({'|'.join(map(str, steps))}) "
    ours = output_of([TRAINWATCH, "logs", str(place), "--grep", pattern, "--json"])
    found = [int(number) for number in re.findall(rb'"line": (\d+)', ours)]
    (log.parent / "steps").write_text("\n".join(f" step {step} " for step in steps))
    theirs = output_of(["sh", "-c", f"grep -nF -f {log.parent}/steps {log} | cut -d: -f1"])
    awk = output_of(["awk", f"NR=={found[0]} || NR=={found[-1]}", str(log)]).splitlines()
    same = found == [int(number) for number in theirs.split()] and all(
        f" step {step} ".encode() in line for step, line in zip((steps[0], steps[-1]), awk, strict=True))
    return [["numbers of 200 lines, grep -n and awk NR", f"{len(found):,}", f"{len(theirs.split()):,}",
             "yes" if same else "NO"]]


def order(base: Path) -> list[list[str]]:
    """Merged logs: ours, and a stable sort by the time that stands in each line."""
    place = base / "merged"
    logs = run_of(place, MERGED, BYTES // MERGED)
    prefixed = []
    for rank, log in enumerate(logs):
        path = base / f"{rank}"
        # a line's time is that of its index record: the time in it, which all lines of a block share
        path.write_bytes(b"".join(b"[%d] " % rank + line for line in (log.directory / paths.OUTPUT).open("rb")))
        prefixed.append(str(path))
    began = time.perf_counter()
    ours = subprocess.Popen([TRAINWATCH, "logs", str(place), "--merge"], stdout=subprocess.PIPE)
    script = f"LC_ALL=C {ORDER} {' '.join(prefixed)}"
    with ours, subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as theirs:
        assert ours.stdout is not None
        assert theirs.stdout is not None
        lines, same = 0, True
        for mine, its in zip(ours.stdout, theirs.stdout, strict=False):
            lines, same = lines + 1, same and mine == its
        same = same and not ours.stdout.read(1) and not theirs.stdout.read(1)
    total = sum(log.lines for log in logs)
    took = f"{MERGED} logs merged, {(time.perf_counter() - began):.0f} s"
    return [[took, f"{lines:,}", f"{total:,}", "yes" if same and lines == total else "NO"]]


def main() -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "run"
        [log] = run_of(place, 1, BYTES)
        path = log.directory / paths.OUTPUT
        rows = counts(place, path) + numbers(place, path, log.lines)
    with tempfile.TemporaryDirectory() as base:
        rows += order(Path(base))
    table(f"Beside plain tools, {BYTES / 1e9:g} GB", ["what", "ours", "theirs", "the same"], rows)


if __name__ == "__main__":
    main()
