"""Shells inside a shell: `bash x.sh`, `bash -c '…'`, `ssh HOST '…'`, `source x.sh`, `./x.sh`, here-documents."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwatch.lint import catalog, follow
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call
from trainwatch.lint.findings import Mark
from trainwatch.lint.scope import Context
from trainwatch.lint.source import POSIX, Source, inside
from trainwatch.lint.strict import Strict
from trainwatch.lint.syntax import Literal, Redirect, Simple, Word

if TYPE_CHECKING:
    from trainwatch.lint.walk import Walk

WITH_VALUE = frozenset(("--rcfile", "--init-file", "-O", "+O"))
SSH_WITH_VALUE = frozenset((
    "-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-E", "-m", "-O", "-Q", "-S", "-W", "-w", "-e",
    "-B", "-I",
))  # fmt: skip
LOST_IN_CHILD = frozenset(("no-errexit", "exit-status-lost", "pipe-masks-exit", "cd-unchecked"))
"""What a child does because it has no strict mode."""


@dataclass(slots=True)
class Shell:
    """How a shell is started: by a file, a string, or from its standard input."""

    name: str
    strict: Strict
    file: Word | None = None
    string: Word | None = None


def shell_of(call: Call) -> Shell | None:
    """The shell that a call starts, if it starts one."""
    if call.name not in catalog.SHELLS:
        return None
    options: list[str | None] = []
    words, takes_string = list(call.words[1:]), False
    while words:
        text = words[0].text
        if text is None or text in ("-", "--") or text[:1] not in ("-", "+"):
            break
        words.pop(0)
        options.append(text)
        if text in WITH_VALUE or (text[1:2] != "-" and text.endswith("o")):
            options.append(words.pop(0).text if words else None)
        takes_string = takes_string or (text[:1] == "-" and text[1:2] != "-" and "c" in text)
    if words and words[0].text in ("-", "--"):
        words.pop(0)
    made = Shell("sh" if call.name in POSIX else "bash", Strict().options(options))
    if takes_string:
        made.string = words[0] if words else None
    elif words and "-s" not in options:
        made.file = words[0]
    return made


def called(walk: Walk, node: Simple, call: Call, kind: Kind, context: Context) -> None:
    """Look into what a command starts."""
    walk.absent = "absent" in context.inside
    _remember_written(walk, node, call)
    name = call.name
    if name in ("source", ".") and len(call.words) > 1:
        _source(walk, node, call.words[1], context)
        return
    shell = shell_of(call)
    if shell is not None:
        _shell(walk, node, shell)
    elif name == "ssh":
        _remote(walk, node, call)
    elif call.path and ("/" in call.path or name.endswith((".sh", ".bash"))) and walk.function(name) is None:
        _program(walk, node, call)


def _shell(walk: Walk, node: Simple, shell: Shell) -> None:
    inherited = walk.scope.strict if walk.scope.strict.inherited and shell.name == "bash" else Strict()
    strict = _joined(shell.strict, inherited)
    if shell.string is not None:
        _child(walk, node, inside(walk.source, shell.string, shell=shell.name), strict)
    elif shell.file is not None:
        source = _find(walk, node, shell.file)
        if source is not None:
            source.shell = shell.name if shell.name == "sh" else source.shell
            _child(walk, node, source, strict)
    else:
        _standard_input(walk, node, shell, strict)


def _joined(one: Strict, other: Strict) -> Strict:
    return replace(one, errexit=one.errexit or other.errexit, nounset=one.nounset or other.nounset,
                   pipefail=one.pipefail or other.pipefail)  # fmt: skip


def _standard_input(walk: Walk, node: Simple, shell: Shell, strict: Strict) -> None:
    given: Redirect | None = next((one for one in reversed(node.redirects) if one.operator.startswith("<")), None)
    if given is None:
        return
    if given.body is not None:
        _child(walk, node, inside(walk.source, given.body, shell=shell.name), strict)
    elif given.operator == "<" and given.target is not None:
        source = _find(walk, node, given.target)
        if source is not None:
            _child(walk, node, source, strict)


def _remote(walk: Walk, node: Simple, call: Call) -> None:
    """ssh gives its words, joined by spaces, to the user's shell on the host."""
    words = list(call.words[1:])
    while words and words[0].known.startswith("-"):
        flag = words.pop(0).known
        if flag in SSH_WITH_VALUE and words:
            words.pop(0)
    words = words[1:]
    if not words:
        _standard_input(walk, node, Shell("bash", Strict()), Strict())
        return
    parts = [*words[0].parts]
    for word in words[1:]:
        parts += [Literal(word.start, word.start, " "), *word.parts]
    said = inside(walk.source, Word(words[0].start, words[-1].end, parts, ""))
    if len(words) < 4 and words[0].text in catalog.SHELLS and all(w.text in ("-s", "-e", "-l") for w in words[1:]):
        shell = shell_of(Call("bash", words, [], "bash"))
        if shell is not None:
            _standard_input(walk, node, shell, shell.strict)
        return
    _child(walk, node, said, Strict())


def _program(walk: Walk, node: Simple, call: Call) -> None:
    """A file run by its own first line, when that names a shell."""
    source = _find(walk, node, call.words[0], quietly=not call.name.endswith((".sh", ".bash")))
    if source is not None:
        _child(walk, node, source, follow.options_of(source.text))


def _child(walk: Walk, node: Simple, source: Source, strict: Strict) -> None:
    """Walk another shell. What it hides for want of strict mode is the caller's business when that is strict."""
    if not source.text.strip() or walk.depth >= 8:
        return
    inner = walk.child(source, strict)
    if inner is None:
        return
    walk.says_phases = walk.says_phases or inner.says_phases
    lax = walk.scope.strict.errexit is True and not inner.ever_strict and not strict.errexit
    hidden = [mark for mark in inner.marks if lax and mark.rule in LOST_IN_CHILD and mark.source is source]
    walk.marks += [mark for mark in inner.marks if mark not in hidden]
    if hidden:
        line = hidden[0].source.place(hidden[0].offset)[0]
        where = "" if hidden[0].source.file is walk.source.file else f"{source.file.name}:{line} "
        walk.mark("strict-not-inherited", node.start, f"{where}{_what(hidden[0])}")


def _what(mark: Mark) -> str:
    if mark.rule == "pipe-masks-exit":
        return "pipes a step's status away"
    return "goes on after a failed step"


def _source(walk: Walk, node: Simple, word: Word, context: Context) -> None:
    """`source`: the file's commands run here, and what they set stays set."""
    source = _find(walk, node, word)
    if source is None:
        walk.sources_unknown = True
        return
    source.shell, source.job = walk.source.shell, walk.source.job
    if walk.depth >= 8 or source.path in walk.stack:
        return
    walk.learn(source)
    walk.stack.append(source.path)
    with walk.in_source(source):
        script = source.script
        if script.broken is None:
            walk.items(script.body, context._replace(rest=None if source.quiet else context.rest))
    walk.stack.pop()
    if walk.scope.dead == "return":
        walk.scope.dead = ""


def _find(walk: Walk, node: Simple, word: Word, quietly: bool = False) -> Source | None:
    """The script that a word names; None, with a note why, when it cannot be found."""
    text = walk.directory_of(word)
    if text is None:
        text = walk.scope.text(word)
    raw = word.raw.strip("\"'")
    if text is None or not text:
        if not quietly and not any(part in raw for part in ("$@", "$*")) and any(word.parts):
            walk.note(node.start, raw, "its name is only known when it runs")
        return None
    if text in ("/dev/null", "/dev/stdin", "-"):
        return None
    written = walk.written.get(text.removeprefix("./"))
    if written is not None:
        return written
    for path in follow.candidates(text, walk.scope.directory, walk.places):
        content = walk.files.read(path)
        if content is None:
            continue
        if not follow.is_shell(content):
            return None
        return walk.open(text, path, content)
    if not quietly:
        walk.note(node.start, text, "not found")
    return None


def _remember_written(walk: Walk, node: Simple, call: Call) -> None:
    """`cat > x.sh <<EOF`: a script that the script itself writes."""
    if call.name not in ("cat", "tee"):
        return
    body = next((one.body for one in node.redirects if one.body is not None), None)
    target = next((one.target for one in node.redirects if one.operator in (">", ">|") and one.target), None)
    if call.name == "tee" and call.plain and call.plain[0]:
        target = next(word for word in call.words[1:] if not word.known.startswith("-"))
    if body is None or target is None or (text := walk.scope.text(target)) is None:
        return
    made = inside(walk.source, body)
    made.shell = "sh" if follow.interpreter(follow.shebang(made.text)) in POSIX else "bash"
    walk.written[text.removeprefix("./")] = made
