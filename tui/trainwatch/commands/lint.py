"""`trainwatch lint`: what is wrong with a start command."""
from __future__ import annotations

import argparse
import os
import shutil
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from trainwatch.config import load
from trainwatch.lint import follow, inputs, linting, report
from trainwatch.lint.findings import RULES, NotFollowed, Report
from trainwatch.model.text import printable

if TYPE_CHECKING:
    from trainwatch.lint.source import Source

DESCRIPTION = """\
Find what hides failures and wastes GPU time in start commands: shell scripts, Slurm batch scripts, one-line commands,
CMD and ENTRYPOINT of a Dockerfile, command and args of Kubernetes manifests. Scripts that they call are looked into
too, where they can be found. Nothing is run."""
EPILOG = """\
A comment `# trainwatch: ignore[RULE]` on the same line or the line before silences a rule there; without [RULE] all.
`[lint] ignore = ["RULE"]` in config.toml leaves rules out for good.

exit codes:
  0  nothing found
  1  something found
  2  a FILE could not be read

with --json {"findings": [{"rule", "file", "line", "column", "severity", "message", "fix"}], "not_followed": [{"file",
"line", "script", "why"}]} is printed; severities are error, warning and style.

examples:
  trainwatch lint train.sh
  trainwatch lint --command 'bash train.sh 2>&1 | tee train.log'
  trainwatch lint job.sbatch Dockerfile pytorchjob.yaml
  kubectl get pytorchjob NAME -o yaml | trainwatch lint -
  trainwatch lint --format github scripts/*.sh      annotations in a GitHub workflow
"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    if options.rules:
        print("\n".join(_rules()))
        return 0
    if not options.file and options.command is None:
        print("trainwatch lint: nothing to look at: name a FILE, - for standard input, or --command", file=sys.stderr)
        return 2
    ignore = _ignored(options.ignore)
    if ignore is None:
        return 2
    sources, missing, failed = _sources(options)
    found = linting.lint(sources, follow.Disk(), here(), ignore)
    whole = Report(found.findings, sorted({*found.not_followed, *missing}))
    _print(whole, options, len(options.file) or 1)
    return 2 if failed else 1 if whole.findings else 0


def _sources(options: argparse.Namespace) -> tuple[list[Source], list[NotFollowed], bool]:
    """The shell texts to look at, what they start that is not here, and whether a file could not be read."""
    sources, missing, failed = list["Source"](), list[NotFollowed](), False
    disk = follow.Disk()
    if options.command is not None:
        sources.append(inputs.command_line(options.command, options.shell))
    for name in options.file:
        try:
            path = "" if name == "-" else os.path.abspath(name)  # noqa: PTH100 - links are not resolved
            text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            taken = inputs.read(name, path, text, disk, options.shell)
        except (OSError, inputs.Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            print(f"trainwatch lint: {printable(name)}: {printable(why)}", file=sys.stderr)
            failed = True
            continue
        sources += taken.sources
        missing += taken.missing
    return sources, missing, failed


def here() -> str:
    """The working directory, or the root when it is gone."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _ignored(more: list[str]) -> frozenset[str] | None:
    """The rules to leave out; None, said on stderr, when there is no such rule."""
    names = [(name, "--ignore") for text in more for name in text.split(",")]
    names += [(name, "lint.ignore in config.toml") for name in load().lint_ignore]
    for name, where in names:
        if name not in RULES:
            near = get_close_matches(name, RULES, n=1)
            meant = f", did you mean {near[0]}?" if near else "; trainwatch lint --rules lists them"
            print(f"trainwatch lint: {where}: no rule {printable(name)}{meant}", file=sys.stderr)
            return None
    return frozenset(name for name, _ in names)


def _print(whole: Report, options: argparse.Namespace, checked: int) -> None:
    form = "json" if options.json else options.format
    if form == "json":
        print(report.dumps(report.as_json(whole)))
    elif form == "sarif":
        from trainwatch_launcher.version import __version__

        print(report.dumps(report.as_sarif(whole, __version__)))
    elif form == "github":
        for line in report.as_github(whole):
            print(line)
    else:
        terminal = sys.stdout.isatty()
        coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        columns = shutil.get_terminal_size().columns if terminal else 200
        for line in report.as_text(whole, checked, report.Paint(coloured), columns):
            print(line)


def _rules() -> list[str]:
    lines = []
    for rule in RULES.values():
        lines += [f"{rule.name} ({rule.severity})", f"    {rule.why}", f"    fix: {rule.fix}"]
    return lines


def parser() -> argparse.ArgumentParser:
    """What its command line understands."""
    parser = argparse.ArgumentParser(
        prog="trainwatch lint", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE", nargs="*", help="what to look at; - for standard input")
    parser.add_argument("--command", metavar="STRING", help="a command line, as it would be given to `bash -c`")
    parser.add_argument("--shell", choices=("bash", "sh"), default="", help="the shell that runs it (default: its #!)")
    parser.add_argument("--ignore", metavar="RULE", action="append", default=[], help="leave a rule out (repeatable)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--format", choices=("text", "json", "github", "sarif"), default="text", help="how to print")
    parser.add_argument("--rules", action="store_true", help="list the rules and exit")
    return parser
