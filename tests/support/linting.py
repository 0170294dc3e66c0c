"""Scripts to lint: the reference ones, those of this machine, and a bash in a world of stubs to run some in."""
from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trainwatch.lint import follow, inputs, linting
from trainwatch.lint.findings import STYLE, Report

DATA = Path(__file__).resolve().parents[1] / "data" / "lint"
REAL = ("tee", "cat", "sed", "grep", "date", "head", "tr", "cut", "basename", "dirname", "ls", "mktemp", "env", "bash",
        "sh", "seq", "wc", "tail", "touch", "mkdir", "sync",
        "sort", "mv")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A script and the findings (rule, line) that it must have."""

    title: str
    script: str
    finds: frozenset[tuple[str, int]]


def cases() -> list[Case]:
    """The scripts of rules.txt."""
    found = []
    for block in (DATA / "rules.txt").read_text(encoding="utf-8").split("\n######## ")[1:]:
        head, _, script = block.partition("\n")
        title, _, finds = head.partition(" | ")
        pairs = [] if finds == "nothing" else [one.partition(":") for one in finds.split()]
        found.append(Case(title, script + "\n", frozenset((rule, int(line)) for rule, _, line in pairs)))
    return found


def lint(text: str | bytes, name: str = "script.sh", path: str = "", here: str = "/nowhere") -> Report:
    """What is found in a file with this text."""
    data = text.encode() if isinstance(text, str) else text
    taken = inputs.read(name, path, data, follow.Disk())
    report = linting.lint(taken.sources, follow.Disk(), here)
    return Report(report.findings, [*report.not_followed, *taken.missing])


def pairs(report: Report, style: bool = False) -> set[tuple[str, int]]:
    """(rule, line) of what was found; matters of style only on request."""
    return {(one.rule, one.line) for one in report.findings if style or one.severity != STYLE}


class World:
    """A directory with a PATH of stubs. `torchrun` fails with 7, so does `python` when it trains, and `python w.py 1`;
    the rest succeeds."""


    def __init__(self, root: Path) -> None:
        self.bin, self.root, self._count = root / "bin", root, 0
        self.bin.mkdir()
        for name in REAL:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.stub("torchrun", "echo ran >> $TRACE; exit 7")
        self.stub("python", 'case "$*" in *train*|"w.py 1") echo ran >> $TRACE; exit 7;; esac; exit 0')
        self.stub("srun", 'exec "$@"')
        self.stub("stdbuf", 'shift; exec "$@"')
        self.stub("nohup", 'exec "$@"')
        for name in ("rm", "git", "wget", "zip", "unzip", "nvidia-smi", "scontrol", "module", "pip", "conda", "pkill",
                     "sleep"):  # fmt: skip
            self.stub(name, "exit 0")

    def stub(self, name: str, body: str) -> None:
        """Put a command in the PATH."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str, *arguments: str, shell: str = "bash") -> tuple[int, bool, str]:
        """Run a script in a new directory: its code, whether it came to train, and its output."""
        self._count += 1
        place = self.root / f"run-{self._count}"
        (place / "x").mkdir(parents=True)
        (place / "script").write_text(script, encoding="utf-8")
        done = subprocess.run(
            [shell, "script", *arguments], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60,
            env={"PATH": str(self.bin), "TRACE": str(place / "trace"), "HOME": str(place)},
        )  # fmt: skip
        return done.returncode, (place / "trace").exists(), done.stdout


def scripts_of_this_machine(limit: int) -> list[Path]:
    """Shell scripts that the system's packages have put here, at most `limit`, the same ones each time."""
    found: list[Path] = []
    for place in ("/usr/bin", "/usr/sbin", "/etc/init.d", "/usr/share", "/usr/lib"):
        for directory, _, names in os.walk(place):
            if len(found) >= 4 * limit:
                break
            found += [path for name in names if _is_script(path := Path(directory, name))]
    found = sorted(set(found))
    return found[:: max(1, len(found) // limit)][:limit]


def _is_script(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200_000:
            return False
        with path.open("rb") as file:
            line = file.readline(80)
        return line.startswith(b"#!") and follow.interpreter(line.decode("latin-1")) in ("sh", "bash", "dash")
    except OSError:
        return False
