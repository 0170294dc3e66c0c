"""`trainwatch`: which command was meant. Each command's module is imported only when it is."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

DESCRIPTION = "Watch a training run: all ranks, their logs, who failed first, and a shell beside it."
EPILOG = """\
TARGET is a run directory (what trainwatch-launch was given with --run-dir), or a directory of runs to pick from.
Without one the runs under $TRAINWATCH_ROOT, else ./runs, are offered.

commands, each with its own --help:
  trainwatch status TARGET [--json]              one look, for scripts; exit code 1 when a rank failed
  trainwatch hold TARGET --rank N --release      end or extend (--extend 2h) the hold of a failed worker
  trainwatch shell TARGET --rank N               a shell in the rank's directory and environment
  trainwatch pack                                the launcher as one file, for workers without an installation
  trainwatch demo                                a real training on this machine that fails, to try all this on

examples:
  trainwatch-launch --run-dir /shared/run1 -- python train.py     in each worker
  trainwatch /shared/run1                                         beside it

exit codes: 0 when you quit, 2 when TARGET is no run that can be read.
"""
COMMANDS = {
    "status": "trainwatch.commands.status",
    "hold": "trainwatch.commands.hold",
    "shell": "trainwatch.commands.shell",
    "pack": "trainwatch.commands.pack",
    "demo": "trainwatch.demo.command",
}
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: list[str] | None = None) -> int:
    """Run `trainwatch` with these arguments, by default the process's own; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    _prepare_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read us has left; the interpreter must not complain about that when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE


def _prepare_streams() -> None:
    """Streams that take everything: closed ones nowhere, and a terminal without UTF-8 still gets its table."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - open as long as we run
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _run(argv: list[str]) -> int:
    from trainwatch_launcher.reader.runs import TargetError

    try:
        if argv and argv[0] in COMMANDS:
            command: Callable[[list[str]], int] = import_module(COMMANDS[argv[0]]).main
            return command(argv[1:])
        return _watch(argv)
    except TargetError as error:
        print(f"trainwatch: {_one_line(str(error))}", file=sys.stderr)
        return 2


def _watch(argv: list[str]) -> int:
    """The screen."""
    from trainwatch.commands.targets import TargetError, find

    options = _parser().parse_args(argv)
    try:
        target = find(options.target)
    except TargetError as error:
        if options.target is not None and options.target.isidentifier() and not Path(options.target).exists():
            raise TargetError(f"{error} (commands are {', '.join(COMMANDS)})") from None
        raise
    from trainwatch.app import run

    code: int = run(Path(target.path))
    return code


def _parser() -> argparse.ArgumentParser:
    from trainwatch_launcher.version import __version__

    parser = argparse.ArgumentParser(
        prog="trainwatch", description=DESCRIPTION, epilog=EPILOG,
        usage="trainwatch [TARGET]\n       trainwatch COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?", help="what to watch")
    parser.add_argument("--version", action="version", version=f"trainwatch {__version__}")
    return parser


def _one_line(message: str) -> str:
    """A message as one line: a path may hold anything, a line break too."""
    from trainwatch.model.text import printable

    return printable(message)


if __name__ == "__main__":
    sys.exit(main())
