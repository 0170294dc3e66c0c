"""A look at the start script: whether it hides a failure in a pipe, or goes on after a step that failed.

Imported when the command runs already, and looked at in a thread in reserve: no start waits for it. It sees two faults
only and is sure of them; `trainwatch lint` sees the rest, with a parser, for which there is no room on a worker.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from trainwatch_launcher.worker import Worker

MAX_SIZE = 64 * 1024
"""Bytes of a script that are looked at: more of a start script is generated, or none."""
SHELLS = ("bash", "sh", "dash")
STRICT = "errexit:nounset:pipefail"
"""What SHELLOPTS has with --strict (bash(1), "Shell Variables")."""
SILENT = frozenset((
    "", "echo", "printf", "set", "export", "local", "unset", "declare", "readonly", "trap", "shift", "true", ":",
    "exit", "return", "sleep", "date", "hostname", "then", "do", "done", "fi", "else", "elif", "if", "for", "while",
    "until", "case", "esac", "in", "function", "{", "}", "[", "[[", "test", "ulimit", "umask", "shopt", "mkdir",
    "rm", "exec", "nvidia-smi", "env", "cat", "ls", "wait", "kill", "break", "continue", "!", "time", "printenv",
    "pwd", "uname", "id",
))  # fmt: skip
"""Words at the beginning of a command whose failure is no failed step."""


class Script:
    """What a command has bash or sh read: its text, and the options on its command line."""

    def __init__(self, name: str, text: str, errexit: bool, pipefail: bool) -> None:
        self.name, self.text, self.errexit, self.pipefail = name, text, errexit, pipefail


def runs_bash(command: list[str]) -> bool:
    """Whether a command is bash, or a script that bash runs. Reads a script's first line."""
    name = command[0].rpartition("/")[2]
    if name == "bash":
        return True
    try:
        with open(command[0], "rb") as file:
            return b"bash" in file.readline(128) if "/" in command[0] else False
    except OSError:
        return False


def with_strict(env: dict[bytes, bytes]) -> None:
    """Make every bash below start with strict mode: it takes SHELLOPTS from its environment, and gives it on."""
    before = [name for name in env.get(b"SHELLOPTS", b"").split(b":") if name]
    env[b"SHELLOPTS"] = b":".join(before + [name for name in STRICT.encode().split(b":") if name not in before])


def report(worker: Worker) -> None:
    """Look at the worker's command, and say what is wrong with it in one line and one event. Never raises."""
    try:
        script = find(worker.options.command)
        found = faults(script) if script is not None else []
    except Exception:  # noqa: BLE001 - whatever is odd about a script, it is no fault of the training
        return
    if script is None or not found:
        return
    message = "%s: %s" % (script.name, "; ".join(found))
    worker.recorder.event("warning", kind="lint", message=message)
    more = "trainwatch lint --command" if script.name == "the command" else "trainwatch lint %s" % script.name
    worker.say("NOTE: %s (more: %s; not again: --no-lint)", message, more)


def find(command: list[str]) -> Script | None:
    """The script that a command runs; None when it is none, or cannot be read."""
    name = command[0].rpartition("/")[2]
    if name not in SHELLS:
        text = read(command[0])
        first = text.split("\n", 1)[0]
        if not first.startswith("#!") or "sh" not in first:
            return None
        words = first[2:].split()
        flags = " ".join(words[1:])
        return Script(command[0], text, "-e" in flags or "-ue" in flags, "pipefail" in flags)
    errexit = pipefail = False
    rest = list(command[1:])
    while rest and rest[0][:1] in "-+" and rest[0] not in ("-", "--", ""):
        flag = rest.pop(0)
        if flag[:2] == "--":
            continue
        on = flag[0] == "-"
        errexit = on if "e" in flag else errexit
        if flag.endswith(("o", "O")) and rest:
            option = rest.pop(0)
            errexit = on if option == "errexit" else errexit
            pipefail = on if option == "pipefail" else pipefail
        if "c" in flag:
            return Script("the command", rest[0], errexit, pipefail) if rest else None
    if not rest or rest[0] in ("-", "--"):
        return None
    return Script(rest[0], read(rest[0]), errexit, pipefail)


def read(path: str) -> str:
    """The beginning of a file; nothing when there is none, or it is no text. Raises OSError."""
    with open(path, "rb") as file:
        data = file.read(MAX_SIZE)
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def faults(script: Script) -> list[str]:
    """What is wrong, each in a few words."""
    errexit, pipefail = script.errexit, script.pipefail
    piped: int | None = None
    steps: list[int] = []
    checks = ever_strict = False
    for line, words, before, after in commands(bare(script.text)):
        first = words[0]
        if first == "set":
            on = not any(word[:1] == "+" for word in words[1:])
            flags = "".join(word[1:] for word in words[1:] if word[:1] in "-+")
            if "errexit" in words or "e" in flags:
                errexit = on
            pipefail = on if "pipefail" in words else pipefail
            ever_strict = ever_strict or errexit
        if first == "tee" and before in ("|", "|&") and not pipefail and piped is None:
            piped = line
        checks = checks or before in ("||", "&&") or after in ("||", "&&")
        inside = before in ("|", "|&", "$(") or after in ("(", ")")  # a pipe, a substitution, a function, a pattern
        if first not in SILENT and "=" not in first and not inside and not errexit:
            steps.append(line)
    found = []
    if piped is not None and "PIPESTATUS" not in script.text:
        found.append("line %d pipes into tee without `set -o pipefail`, so a failure before it is not seen" % piped)
    if len(steps) > 1 and not errexit and not ever_strict and not checks and "$?" not in script.text:
        found.append("no `set -e`: it goes on when line %d fails" % steps[0])
    return found


def commands(text: str) -> Iterator[tuple[int, list[str], str, str]]:
    """Each command of a text without quotes and comments: its line, its words, and the operators around it."""
    line, start, before, at = 1, 0, "", 0
    end = len(text)
    while at <= end:
        char = text[at] if at < end else "\n"
        if char not in "\n;&|()":
            at += 1
            continue
        operator = char
        if text[at : at + 2] in ("&&", "||", "|&", ";;"):
            operator = text[at : at + 2]
        beside = text[at - 1 : at] in (">", "<") or text[at + 1 : at + 2] == ">"
        if operator == "&" and beside:  # 2>&1, &> file
            at += 1
            continue
        piece = text[start:at]
        words = piece.split()
        if words:
            yield line + piece.count("\n", 0, len(piece) - len(piece.lstrip())), words, before, operator
        line += text.count("\n", start, at + 1)
        at += len(operator)
        start = at
        if operator == "(" and text[at - 2 : at - 1] in ("$", "<", ">"):
            operator = "$("
        before = operator if operator != "\n" or before not in ("|", "|&", "||", "&&") or words else before


def bare(text: str) -> str:
    """A script with all that is quoted, commented or a here-document's text made blank, and lines that go on joined."""
    out: list[str] = []
    waiting: list[str] = []
    at, end, quote = 0, len(text), ""
    while at < end:
        char = text[at]
        if quote:
            if char == "\\" and quote == '"' and at + 1 < end:
                out.append("__" if text[at + 1] != "\n" else "_\n")
                at += 2
                continue
            if char == quote:
                quote = ""
            out.append("\n" if char == "\n" else "_")
        elif char == "\\" and at + 1 < end:
            out.append("  " if text[at + 1] == "\n" else "__")
            at += 2
            continue
        elif char in "'\"`":
            quote = char
            out.append("_")
        elif char == "#" and (at == 0 or text[at - 1] in " \t\n;|&("):
            stop = text.find("\n", at)
            at = end if stop < 0 else stop
            continue
        elif char == "<" and text[at : at + 2] == "<<" and text[at : at + 3] != "<<<" and text[at - 1 : at] != "<":
            word = text[at + 2 : at + 80].lstrip("-").split()
            if word:
                waiting.append(word[0].strip("'\"\\;|&)"))
            out.append("<")
        elif char == "\n" and waiting:
            at = skip(text, at, waiting, out)
            continue
        else:
            out.append(char)
        at += 1
    return "".join(out)


def skip(text: str, at: int, waiting: list[str], out: list[str]) -> int:
    """Pass over the texts of here-documents that begin behind the newline at `at`; where to go on."""
    out.append("\n")
    at += 1
    while waiting and at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        if text[at:stop].strip() == waiting[0]:
            waiting.pop(0)
        out.append("\n")
        at = stop + 1
    waiting.clear()
    return at

