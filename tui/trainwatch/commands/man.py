"""`trainwatch man`: manual pages, from the same words as --help."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from trainwatch.model.text import printable
from trainwatch_launcher.options import OPTIONS, USAGE
from trainwatch_launcher.usage import HELP_HEAD, HELP_TAIL
from trainwatch_launcher.version import __version__

DESCRIPTION = "Print a manual page, or write all of them."
EPILOG = """\
exit codes: 0 done, 2 there is no such page, or DIR could not be written

examples:
  trainwatch man | man -l -                          this program
  trainwatch man launch | man -l -                   trainwatch-launch
  trainwatch man --all ~/.local/share/man/man1       then: man trainwatch-lint
"""
LAUNCH = "trainwatch-launch"
SELF = "trainwatch"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(argv)
    if options.all:
        return _write(Path(options.all))
    name = page_name(options.page or "")
    if name not in names():
        known = ", ".join(one.partition("-")[2] for one in names() if one != SELF)
        print(f"trainwatch man: no page {printable(options.page)}; there are: {known}", file=sys.stderr)
        return 2
    print(page(name), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="trainwatch man", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("page", metavar="COMMAND", nargs="?", help="a command of trainwatch, or launch")
    made.add_argument("--all", metavar="DIR", help="write all pages into this directory, as *.1")
    return made


def page_name(word: str) -> str:
    """The page that a word means: `lint` and `trainwatch-lint` are the same."""
    if word in ("", SELF):
        return SELF
    return word if word.startswith(f"{SELF}-") else f"{SELF}-{word}"


def names() -> list[str]:
    """Every page there is."""
    from trainwatch.cli import COMMANDS

    return [SELF, LAUNCH, *(f"{SELF}-{command}" for command in COMMANDS)]


def page(name: str) -> str:
    """One page as roff, in the man macros (man(7))."""
    return "\n".join(_launch_page() if name == LAUNCH else _command_page(name)) + "\n"


def _write(place: Path) -> int:
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in names():
            (place / f"{name}.1").write_text(page(name), "utf-8")
    except OSError as error:
        print(f"trainwatch man: {printable(str(error.filename or place))}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(f"{len(names())} pages in {printable(str(place))}")
    return 0


def _command_page(name: str) -> Iterator[str]:
    from trainwatch.cli import COMMANDS

    module = "trainwatch.cli" if name == SELF else COMMANDS[name.partition("-")[2]]
    made: argparse.ArgumentParser = import_module(module).parser()
    description = " ".join((made.description or "").split())
    yield from _head(name, description.partition(". ")[0].rstrip(".:"))
    yield ".SH SYNOPSIS"
    yield from _verbatim(made.format_usage().removeprefix("usage: ").replace("\n       ", "\n").rstrip())
    yield ".SH DESCRIPTION"
    yield _text(description)
    yield ".SH OPTIONS"
    formatter = argparse.HelpFormatter(made.prog)
    for action in made._actions:  # argparse has no public way to its options
        if action.help == argparse.SUPPRESS:
            continue
        yield ".TP"
        words = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        if action.option_strings and action.nargs != 0:
            words += f" {action.metavar or (action.dest.upper() if not action.choices else '|'.join(action.choices))}"
        yield rf"\fB{_text(words)}\fR"
        yield _text(formatter._expand_help(action) if action.help else "")
    yield from _parts(made.epilog or "")
    yield from _tail(name)


def _launch_page() -> Iterator[str]:
    first, _, rest = HELP_HEAD.partition("\n\n")
    yield from _head(LAUNCH, first.rstrip("."))
    yield ".SH SYNOPSIS"
    yield from _verbatim(USAGE)
    yield ".SH DESCRIPTION"
    yield from _verbatim(rest.partition("\n\n")[2].strip("\n"))
    for title, group in OPTIONS.items():
        yield f".SH {_text(title).upper()}"
        for option in group:
            yield ".TP"
            yield rf"\fB{_text(f'{option.flag} {option.value}'.rstrip())}\fR"
            yield _text(f"{option.help} [{option.env}]")
    yield from _parts("exit codes:\n" + HELP_TAIL.strip())
    yield from _tail(LAUNCH)


def _head(name: str, what: str) -> Iterator[str]:
    yield f'.TH "{name.upper()}" "1" "" "trainwatch {__version__}" ""'
    yield ".SH NAME"
    yield _text(f"{name} - {what[:1].lower()}{what[1:]}")


def _tail(name: str) -> Iterator[str]:
    others = [other for other in names() if other != name]
    yield ".SH SEE ALSO"
    yield _text(", ".join(f"{other}(1)" for other in others))


def _parts(epilog: str) -> Iterator[str]:
    """What stands below the options: its paragraphs, as they are laid out; one that begins `NAME:` has a heading."""
    for part in epilog.strip("\n").split("\n\n"):
        first, _, rest = part.partition("\n")
        heading, colon, same_line = first.partition(":")
        if colon and heading.islower() and len(heading) < 30 and not heading.startswith(" "):
            yield f".SH {_text(heading).upper()}"
            part = "\n".join(line for line in (same_line.strip(), rest) if line)
        else:
            yield ".PP"
        yield from _verbatim(part)


def _verbatim(text: str) -> Iterator[str]:
    yield ".nf"
    for line in text.splitlines():
        yield _text(line) or ".sp"
    yield ".fi"


def _text(text: str) -> str:
    """A line that roff takes as it is: no escapes, no requests, and dashes that can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
