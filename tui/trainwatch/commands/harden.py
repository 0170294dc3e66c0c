"""`trainwatch harden`: the better start script."""
from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path, PurePath

from trainwatch.commands.lint import here
from trainwatch.harden.edits import unified
from trainwatch.harden.hardening import Hardened, harden
from trainwatch.lint import follow
from trainwatch.model.text import printable

DESCRIPTION = """\
Write a start script so that failures are seen and GPUs do not wait: strict mode, no pipe into tee, each status kept,
phase markers, downloads in a script of their own. What the script does when all goes well stays as it is, and so does
everything that is not understood. A script in which `trainwatch lint` finds nothing comes back unchanged."""
EPILOG = """\
The script is printed, and the reasons on standard error; with --diff a diff and the reasons instead. With -o OUT it
is written, and beside it, when there are installs and downloads, a prepare script (train.prepare.sh of train.sh), to
be run before the job; without -o they stay in the script.

exit codes:
  0  done, or nothing to do
  1  done, but the linter still finds something, which is listed
  2  FILE could not be read, was not understood, or OUT could not be written

examples:
  trainwatch harden --diff train.sh
  trainwatch harden train.sh -o train.hardened.sh
  trainwatch harden --bash-only train.sh -o start.sh         without trainwatch on the worker
  trainwatch harden --command 'wget https://x/vocab.json; bash train.sh | tee log'
"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    if (options.file is None) == (options.command is None):
        return _failed("name one FILE, - for standard input, or --command")
    try:
        name, path, text = _read(options)
    except OSError as error:
        return _failed(f"{options.file}: {error.strerror or error}")
    line = follow.shebang(text)
    if b"\0" in text[:4096] or (line and follow.interpreter(line) not in ("sh", "bash", "dash")):
        return _failed(f"{name}: not a script for bash or sh")
    prepare_name = _prepare_name(options.output) if options.output else ""
    try:
        made = harden(text, name, path, follow.Disk(), here(), bash_only=options.bash_only, prepare_name=prepare_name)
    except RecursionError:
        return _failed(f"{name}: its commands are nested too deeply")
    if made.broken:
        return _failed(f"{name}:{made.broken}: not understood from here on; nothing was changed")
    try:
        _write(made, options, text, name, prepare_name)
    except OSError as error:
        return _failed(f"{error.filename or options.output}: {error.strerror or error}")
    return 1 if made.left else 0


def _read(options: argparse.Namespace) -> tuple[str, str, bytes]:
    if options.command is not None:
        return "command", "", str(options.command).encode("utf-8", "surrogateescape")
    if options.file == "-":
        return "-", "", sys.stdin.buffer.read()
    return options.file, os.path.abspath(options.file), Path(options.file).read_bytes()  # noqa: PTH100


def _prepare_name(output: str) -> str:
    stem = PurePath(output)
    return f"{stem.stem if stem.suffix in ('.sh', '.bash') else stem.name}.prepare.sh"


def _write(made: Hardened, options: argparse.Namespace, text: bytes, name: str, prepare_name: str) -> None:
    out = sys.stdout.buffer
    if options.output:
        target = Path(options.output)
        target.write_bytes(_with_shebang(made.text, text))
        target.chmod(target.stat().st_mode | 0o111)
        if made.prepare:
            beside = target.with_name(prepare_name)
            beside.write_bytes(made.prepare)
            beside.chmod(beside.stat().st_mode | 0o111)
    if options.diff or options.output:
        sys.stdout.flush()
        for line in unified(text, made.text, printable(name)):
            out.write(line.encode("utf-8", "surrogateescape") + b"\n")
        out.flush()
    else:
        out.write(made.text)
        out.flush()
    _explain(made, options, name, prepare_name)


def _with_shebang(made: bytes, text: bytes) -> bytes:
    """A file that is run by itself says by what."""
    return made if made.startswith(b"#!") or text.startswith(b"#!") else b"#!/bin/bash\n" + made


def _explain(made: Hardened, options: argparse.Namespace, name: str, prepare_name: str) -> None:
    """Say why the script was changed, and what was left."""
    stream = sys.stdout if options.diff or options.output else sys.stderr
    if not made.reasons:
        print(f"{printable(name)}: nothing to change", file=stream)
    for why in made.reasons:
        print(f"- {printable(why)}", file=stream)
    if made.prepare and options.output:
        print(f"run before the job: {printable(prepare_name)}", file=stream)
    for one in made.left:
        print(f"left as it is: line {one.line}: {one.rule}: {printable(one.message)}", file=stream)


def _failed(why: str) -> int:
    print(f"trainwatch harden: {printable(why)}", file=sys.stderr)
    return 2


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="trainwatch harden", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("file", metavar="FILE", nargs="?", help="the script; - for standard input")
    made.add_argument("--command", metavar="STRING", help="a command line, as it would be given to `bash -c`")
    made.add_argument("-o", "--output", metavar="OUT", help="write it there, and a prepare script beside it")
    made.add_argument("--diff", action="store_true", help="print a diff instead of the script")
    made.add_argument("--bash-only", action="store_true", help="use bash alone instead of trainwatch-launch")
    return made
