"""`trainwatch completion`: what makes a shell complete our commands, options and targets.

The scripts know nothing: at each Tab they ask `trainwatch completion --words WORD...`, the last word being the one that
is typed. The answer's first line says which files are offered too, each further one is a word, a tab and its meaning.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

DESCRIPTION = "Print what makes your shell complete the commands, options and targets of trainwatch."
EPILOG = """\
for this shell and all that come:
  bash   echo 'eval "$(trainwatch completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(trainwatch completion zsh)"' >> ~/.zshrc      (below compinit)
  fish   trainwatch completion fish > ~/.config/fish/completions/trainwatch.fish
"""
WORDS = "--words"
NO_FILES = "none"
FILES = "files"
DIRECTORIES = "directories"
PLACES = {
    "DIR": DIRECTORIES, "DIRECTORY": DIRECTORIES, "FILE": FILES, "OUT": FILES, "LOG": FILES, "SCRIPT": FILES,
    "PATH": FILES,
}  # fmt: skip
"""What a word that is called like this may be."""

BASH = """\
_trainwatch() {
    local line kind= cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("${line%%$'\\t'*}"); fi
    done < <("$1" completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $kind in
        files) kind=-f ;;
        directories) kind=-d ;;
        *) return ;;
    esac
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$cur")
}
complete -F _trainwatch trainwatch
"""
ZSH = """\
#compdef trainwatch
_trainwatch() {
    local line kind
    local -a lines found
    lines=("${(@f)$("${words[1]}" completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    kind=${lines[1]}
    for line in "${(@)lines[2,-1]}"; do
        found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    (( $#found )) && _describe -t trainwatch trainwatch found
    case $kind in
        files) _files ;;
        directories) _files -/ ;;
    esac
}
if [[ $funcstack[1] == _trainwatch ]]; then
    _trainwatch "$@"
else
    compdef _trainwatch trainwatch
fi
"""
FISH = """\
function __trainwatch_words
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l lines ($words[1] completion --words $words[2..-1] "$typed" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$typed"
        case directories
            __fish_complete_directories "$typed" ""
    end
    set -e lines[1]
    printf '%s\\n' $lines
end
complete -c trainwatch -f -a '(__trainwatch_words)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    if argv[:1] == [WORDS]:
        kind, found = completed(argv[1:] or [""])
        print(kind, *(f"{word}\t{meaning}" for word, meaning in found), sep="\n")
        return 0
    sys.stdout.write(SCRIPTS[parser().parse_args(argv).shell])
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch completion`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch completion", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("shell", choices=sorted(SCRIPTS), help="your shell")
    return parser


def completed(words: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """Which files may stand where the last of `words` is typed, and which words, each with its meaning."""
    from trainwatch import cli

    *before, typed = words
    found: list[tuple[str, str]] = []
    if not before and not typed.startswith("-"):
        found = [(name, "command") for name in cli.COMMANDS]
    if before and before[0] in cli.COMMANDS:
        options = import_module(cli.COMMANDS[before[0]]).parser()
        before = before[1:]
    else:
        options = cli.parser()
    kind, more = _of_options(options, before, typed)
    return kind, [(word, meaning) for word, meaning in (*found, *more) if word.startswith(typed)]


def _of_options(parser: argparse.ArgumentParser, before: list[str], typed: str) -> tuple[str, list[tuple[str, str]]]:
    """The same for what comes behind a command."""
    if "--" in before:
        return FILES, []
    by_name = {name: action for action in parser._actions for name in action.option_strings}
    if before and _takes_value(by_name.get(before[-1])):
        return _values(by_name[before[-1]])
    if typed.startswith("-"):
        return NO_FILES, list(_unused(parser, before))
    places = [action for action in parser._actions if not action.option_strings]
    at = sum(1 for _ in _positional(by_name, before))
    if places and at >= len(places) and places[-1].nargs in ("*", "+"):
        at = len(places) - 1
    return _values(places[at]) if at < len(places) else (NO_FILES, [])


def _takes_value(action: argparse.Action | None) -> bool:
    return action is not None and action.nargs != 0


def _positional(by_name: dict[str, argparse.Action], before: Iterable[str]) -> Iterator[str]:
    """The words that are neither options nor their values."""
    value = False
    for word in before:
        if not value and not word.startswith("-"):
            yield word
        value = not value and _takes_value(by_name.get(word))


def _unused(parser: argparse.ArgumentParser, before: Sequence[str]) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        names = action.option_strings
        if names and not set(names) & set(before) and action.help is not argparse.SUPPRESS:
            yield max(names, key=len), (action.help or "").replace("%%", "%")


def _values(action: argparse.Action) -> tuple[str, list[tuple[str, str]]]:
    """What may stand for an action's value, by its choices or by what it is called."""
    if action.choices is not None:
        return NO_FILES, [(str(choice), "") for choice in action.choices]
    called = str(action.metavar or action.dest).upper()
    if called == "TARGET":
        return DIRECTORIES, _names()
    return PLACES.get(called, NO_FILES), []


def _names() -> list[tuple[str, str]]:
    """The targets of the configuration file; a broken one offers none, and says so when it is used."""
    from trainwatch.config import load
    from trainwatch_launcher.reader.runs import TargetError

    try:
        return list(load().targets.items())
    except TargetError:
        return []
