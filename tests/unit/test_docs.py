"""Every command in the documentation is one that bash reads and that our programs understand; links lead somewhere."""
from __future__ import annotations

import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from support.linting import lint
from trainwatch.cli import COMMANDS, parser
from trainwatch.lint import children, syntax
from trainwatch.lint.commands import Call
from trainwatch.lint.source import Source, inside
from trainwatch.lint.syntax import Literal, Simple, Word
from trainwatch.targets import parse as parse_target
from trainwatch_launcher import options as launcher
from trainwatch_launcher.reader.runs import TargetError

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.md"))]
OURS = ("trainwatch", "trainwatch-launch", "trainwatch-launch.pyz")
UNFINISHED = ("…", "[options]", "COMMAND", "[ARG", "...")
"""What a line that only shows a form has in it."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of the page's code blocks, indented ones too."""
    found, inside_block, language, lines = [], False, "", list[str]()
    for line in page.read_text(encoding="utf-8").splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            if inside_block:
                found.append((language, "\n".join(lines) + "\n"))
            inside_block, language, lines = not inside_block, stripped[3:], []
        elif inside_block:
            lines.append(line)
    return found


def commands(source: Source) -> list[list[str]]:
    """The words of each command of ours, also behind srun, in strings for ssh, and inside torchrun."""
    found = []
    for node in syntax.everything(source.script.body):
        if not isinstance(node, Simple):
            continue
        texts = [shown(word) for word in node.words]
        for at, text in enumerate(texts):
            if text.rpartition("/")[2] in OURS:
                found.append(texts[at:])
                break
        if node.name == "ssh" and len(node.words) > 2:
            found += commands(inside(source, node.words[-1]))
        shell = children.shell_of(Call(node.name, node.words, [], node.name))
        if shell is not None and shell.string is not None:
            found += commands(inside(source, shell.string))
    return found


def shown(word: Word) -> str:
    """A word with something in place of each variable."""
    return "".join(part.text if isinstance(part, Literal) else "1" for part in word.parts)


def understood(words: list[str]) -> None:
    """Have the program itself read its arguments. Fails when it does not understand them."""
    if words[0].rpartition("/")[2].startswith("trainwatch-launch"):
        rest = words[1:]
        if rest in ([], ["--help"], ["--version"]):
            return
        read = launcher.parse(rest, {})
        inner = next((at for at, text in enumerate(read.command) if text.rpartition("/")[2] in OURS), None)
        if inner is not None:
            understood(read.command[inner:])
        return
    rest = words[1:]
    if "--help" in rest or rest == ["--version"] or not rest:
        return
    if rest[0] in COMMANDS:
        made = import_module(COMMANDS[rest[0]]).parser()
        cut = rest.index("--") if "--" in rest and rest[0] == "shell" else len(rest)
        made.parse_args(rest[1:cut])
        return
    target = parser().parse_args(rest).target
    parse_target(target)


def bash_reads(text: str) -> bool:
    return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0


def scripts(page: Path) -> list[str]:
    """What of a page is shell: blocks that say so, and of the others what bash reads, as a whole or line by line."""
    found = []
    for language, text in blocks(page):
        if language in ("bash", "sh"):
            assert bash_reads(text), text
            found.append(text)
        elif not language:
            lines = text.replace("\\\n", "\0").splitlines()
            whole = bash_reads(text) and not any(word in text for word in UNFINISHED)
            found += [text] if whole else [line.replace("\0", "\\\n") for line in lines]
    return [text for text in found if not any(word in text for word in UNFINISHED)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_our_programs_understand_every_command(page):
    for text in scripts(page):
        for words in commands(Source(page.name, text.encode())):
            try:
                understood(words)
            except (SystemExit, launcher.UsageError, TargetError) as error:
                pytest.fail(f"{page.name}: {' '.join(words)}: {error}")


def test_the_pages_have_commands():
    found = [words for page in PAGES for text in scripts(page) for words in commands(Source("", text.encode()))]
    assert len(found) > 40
    assert {words[1] for words in found if words[0] == "trainwatch" and len(words) > 1} >= {"lint", "harden", "hold"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    text = page.read_text(encoding="utf-8")
    for link in [part.split(")", 1)[0] for part in text.split("](")[1:]]:
        if link.startswith(("http:", "https:")):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        if heading:
            lines = target.read_text(encoding="utf-8").splitlines()
            assert heading in [anchor(line) for line in lines if line.startswith("#")], f"{page.name}: {link}"


def anchor(line: str) -> str:
    """The name that a heading gets, as GitHub makes it."""
    text = line.lstrip("#").strip().lower()
    return "".join(char for char in text if char.isalnum() or char in " -_").replace(" ", "-")


def test_start_scripts_and_manifests_of_the_quick_starts_hide_nothing():
    for language, text in blocks(ROOT / "docs" / "quickstart.md"):
        if language in ("bash", "yaml"):
            name = "x.yaml" if language == "yaml" else "x.sh"
            assert not [one for one in lint(text, name).findings if one.severity != "style"], text
