"""`trainwatch`: which command was meant. Each command's module is imported only when it is."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwatch.alarm import Alarm
    from trainwatch.targets import Named
    from trainwatch.taste import Taste

DESCRIPTION = "Watch a training run: all ranks, their logs, who failed first, and a shell beside it."
EPILOG = """\
TARGET is a run directory (what trainwatch-launch was given with --run-dir), or a directory of runs to pick from.
Without one the runs under $TRAINWATCH_ROOT, else ./runs, are offered. A run elsewhere:
  ssh://[user@]host[:port]/PATH     on another machine         ssh://worker-[0-7]/PATH    on each host's own disk
  slurm:JOBID[/PATH]                in a Slurm job             docker:NAME[,NAME][/PATH]  in containers
  k8s:[NAMESPACE/]LABELS            in pods                    NAME                       from config.toml
  LOG...                            logs that no launcher wrote, or a directory of them, with ranks from their names

commands, each with its own --help:
  trainwatch status TARGET [--json]              one look, for scripts; exit code 1 when a rank failed
  trainwatch why TARGET|LOG...                   which rank failed first, why, and what to do about it
  trainwatch logs TARGET [--rank N] [-f]         logs for pipes: filtered, merged, followed
  trainwatch hold TARGET --rank N --release      end or extend (--extend 2h) the hold of a failed worker
  trainwatch shell TARGET --rank N               a shell in the rank's directory and environment
  trainwatch stacks TARGET                       it hangs: where all ranks' processes are, folded
  trainwatch report TARGET                       a run as one page of HTML, for a ticket
  trainwatch serve TARGET                        the screen in a browser
  trainwatch inspect LOG...                      what any log says: newest step, loss, rates, phases
  trainwatch lint FILE...                        what hides failures or wastes GPU time in a start command
  trainwatch harden FILE                         the same script, written so that it does not
  trainwatch pack                                the launcher as one file, for workers without an installation
  trainwatch completion bash|zsh|fish            what makes your shell complete commands, options and names
  trainwatch man [COMMAND]                       the manual page of a command, or of the launcher (man launch)
  trainwatch demo                                a real training on this machine that fails, to try all this on

examples:
  trainwatch-launch --run-dir /shared/run1 -- python train.py     in each worker
  trainwatch /shared/run1                                         beside it

exit codes: 0 when you quit, 2 when TARGET is no run that can be read, 128+n when signal n ended it (130: INT,
129: the terminal went away).
"""
COMMANDS = {
    "status": "trainwatch.commands.status",
    "logs": "trainwatch.commands.logs",
    "hold": "trainwatch.commands.hold",
    "shell": "trainwatch.commands.shell",
    "stacks": "trainwatch.commands.stacks",
    "inspect": "trainwatch.commands.inspect",
    "report": "trainwatch.commands.report",
    "serve": "trainwatch.commands.serve",
    "why": "trainwatch.commands.why",
    "pack": "trainwatch.commands.pack",
    "lint": "trainwatch.commands.lint",
    "harden": "trainwatch.commands.harden",
    "demo": "trainwatch.demo.command",
    "simulate": "trainwatch.simulation.command",
    "completion": "trainwatch.commands.completion",
    "man": "trainwatch.commands.man",
}
"""Each command's module has `main(argv)`, and `parser()` for those who want to know its options."""
NO_KEEP_HOLD = "do not extend a rank's hold while a shell is open beside it"
INTERRUPTED = 130
BROKEN_PIPE = 141
UNREADABLE = 2


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
    except OSError as error:
        return _failed(error)


def _failed(error: OSError) -> int:
    """Say in one line what the system refused: a full disk for our output, a working directory that is gone."""
    what = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    with suppress(OSError):
        print(f"trainwatch: {_one_line(f'{what}{error.strerror or error}')}", file=sys.stderr, flush=True)
    try:
        sys.stdout.flush()
    except OSError:  # the interpreter must not complain about that again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return UNREADABLE


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
        _refuse_unknown_command(argv)
        return _watch(argv)
    except TargetError as error:
        print(f"trainwatch: {_one_line(str(error))}", file=sys.stderr)
        return 2


def _refuse_unknown_command(argv: list[str]) -> None:
    """A word that is no command, no path and no target, with more after it, was meant as one. Raises TargetError."""
    from difflib import get_close_matches

    from trainwatch_launcher.reader.runs import TargetError

    word = argv[0] if len(argv) > 1 else ""
    if not word.isidentifier() or argv[1].startswith("-") or Path(word).exists():
        return
    near = get_close_matches(word, COMMANDS, n=1)
    meant = f"did you mean: trainwatch {near[0]}" if near else f"commands are {', '.join(COMMANDS)}"
    raise TargetError(f"unknown command {word}; {meant}")


def _watch(argv: list[str]) -> int:
    """The screen."""
    from trainwatch.commands.arguments import alarm_for, price_of_gpus
    from trainwatch.commands.targets import TargetError, find, is_remote, named
    from trainwatch.config import load
    from trainwatch.loglist import is_log
    from trainwatch.taste import of_user

    options = parser().parse_args(argv)
    written = options.target
    config = load()
    keep_hold = not options.no_keep_hold and config.shell.keep_hold
    taste = of_user(config.filters)
    paid = price_of_gpus(options.gpu_price)
    if options.more:
        return _watch_logs([written, *options.more], paid, taste)
    alarm = alarm_for(options.on_failure, options.no_notify)
    try:
        if written is not None:
            meant = named(written, options.hosts)
            alarm = alarm_for(options.on_failure, options.no_notify, meant.options)
            if is_remote(meant):
                return _watch_elsewhere(meant, keep_hold, paid, alarm, taste)
            written = getattr(meant.target, "path", written)
        target = find(written)
    except TargetError as error:
        if written is not None and is_log(written):
            return _watch_logs([written], paid, taste)
        if options.target is not None and options.target.isidentifier() and not Path(options.target).exists():
            raise TargetError(f"{error} (commands are {', '.join(COMMANDS)})") from None
        raise

    from trainwatch.showing import run_directory

    code: int = run_directory(Path(target.path), keep_hold, paid, alarm, taste)
    return code


def _watch_logs(paths: list[str], gpu_price: float | None, taste: Taste) -> int:
    from trainwatch.showing import run_logs

    code: int = run_logs(paths, gpu_price, taste)
    return code


def _watch_elsewhere(
    meant: Named, keep_hold: bool, gpu_price: float | None, alarm: Alarm, taste: Taste
) -> int:
    from trainwatch.commands.targets import TargetError
    from trainwatch.showing import run_elsewhere
    from trainwatch.sources.base import SourceError

    try:
        code: int = run_elsewhere(meant, keep_hold, gpu_price, alarm, taste)
    except SourceError as error:
        raise TargetError(str(error)) from None
    return code


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch` when it is no command's."""
    from trainwatch.commands.arguments import command, price
    from trainwatch_launcher.version import __version__

    parser = argparse.ArgumentParser(
        prog="trainwatch", description=DESCRIPTION, epilog=EPILOG,
        usage="trainwatch [TARGET | LOG...]\n       trainwatch COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?", help="what to watch")
    parser.add_argument("more", metavar="LOG", nargs="*", help="logs that no launcher wrote")
    parser.add_argument("--hosts", metavar="FILE", help="hosts, one a line, that each have TARGET, a path, on a disk")
    parser.add_argument("--no-keep-hold", action="store_true", help=NO_KEEP_HOLD)
    parser.add_argument("--gpu-price", metavar="PRICE", type=price,
                        help="what an hour of one GPU costs: GPU-hours are told in money too")
    parser.add_argument("--on-failure", metavar="COMMAND", type=command,
                        help="run this once on the run's first failure, with the JSON of trainwatch why on its stdin")
    parser.add_argument("--no-notify", action="store_true", help="no notification by the terminal on a failure")
    parser.add_argument("--version", action="version", version=f"trainwatch {__version__}")
    return parser


def _one_line(message: str) -> str:
    """A message as one line: a path may hold anything, a line break too."""
    from trainwatch.model.text import printable

    return printable(message)


if __name__ == "__main__":
    sys.exit(main())
