"""The reader and the records run on every Python that a worker may have."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from builders import crashed_run
from support.pythons import every_python

ROOT = Path(__file__).resolve().parents[2]

READ = """
import sys
sys.path.insert(0, sys.argv[1])
from trainwatch_launcher.reader import attempt, log, requests, runs
from trainwatch_launcher.reader.directory import Reader
run = runs.locate(sys.argv[2]).path
reader = Reader(run)
changes = reader.poll()
statuses = [c.status for c in changes if type(c).__name__ == "StatusChanged"]
print(sorted((s.rank, s.exit_code) for s in statuses), reader.poll())
directory = run + "/rank-00002/attempt-1"
index = log.LogIndex(directory)
print(index.line_count(), index.line_to_offset(200), index.offset_to_line(index.line_to_offset(200)))
print(attempt.start_of(directory).texts("argv"), attempt.status_of(directory).reason)
print(len(requests.write_request(directory, "release")) > 9, [r.run_id for r in runs.find_runs(run + "/..")])
print(sorted(statuses, key=lambda s: s.rank)[0].replace(rank=5).rank, statuses[0] == statuses[0])
"""


@every_python
def test_the_reader_says_the_same_on_every_promised_python(tmp_path, python):
    run = crashed_run(tmp_path / "run")
    done = subprocess.run([python, "-I", "-S", "-c", READ, str(ROOT / "launcher"), str(run.directory)],
                          capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[(0, 143), (1, 143), (2, 1), (3, 137)] []",
        "203 3890 200",
        "['python', 'train.py'] ValueError: loss is nan",
        "True ['run-1']",
        "5 True",
    ]
    assert sys.version_info >= (3, 10)
