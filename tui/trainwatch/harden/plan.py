"""What one pass changes: edits, and what has to be put at the script's beginning and end because of them."""
from __future__ import annotations

from dataclasses import dataclass, field

from trainwatch.harden.edits import Edits
from trainwatch.harden.view import View
from trainwatch.lint import facts
from trainwatch.lint.source import IGNORE
from trainwatch.lint.syntax import Item, Simple


@dataclass
class State:
    """What is kept from pass to pass."""

    bash_only: bool
    prepare_name: str = ""
    """The prepare script's file name; `` when downloads have to stay in the script."""
    status: str = "RET"
    """The variable for a status that is kept."""
    processes: str = "PIDS"
    """The array for processes to wait for."""
    prepare: list[str] = field(default_factory=list)
    """The prepare script's lines."""
    done: set[str] = field(default_factory=set)

    def choose_names(self, view: View) -> None:
        """Names that the script does not use itself."""
        used = facts.assigned_names(view.source.nodes)
        self.status = next(name for name in ("RET", "JOB_STATUS", "_trainwatch_status") if name not in used)
        self.processes = next(name for name in ("PIDS", "JOB_PIDS", "_trainwatch_pids") if name not in used)


@dataclass
class Plan:
    """One pass over one view."""

    view: View
    state: State
    edits: Edits = field(default_factory=Edits)
    keeps_status: int | None = None
    """The first place where the status variable is set: it has to be 0 before, and the script's own at the end."""
    keeps_processes: int | None = None
    waits_at_end: bool = False
    ends_with: str = ""
    """Another variable that the script has to end with."""

    def insert(self, at: int, text: str, why: str) -> None:
        """Put a text in."""
        self.edits.insert(at, text, why)

    def before(self, at: int, command: str, why: str) -> None:
        """Put a command before the statement that begins here."""
        at = self._beginning(at)
        indent = self.view.indent(at)
        if indent is None:
            self.edits.insert(at, f"{command}; ", why)
        else:
            self.edits.insert(at, command.replace("\n", f"\n{indent}") + f"\n{indent}", why)

    def _beginning(self, at: int) -> int:
        """Where a statement begins, with `time` and `!` before it, and a comment above it that is for it."""
        text = self.view.text
        line = text.rfind(b"\n", 0, at) + 1
        for word in (b"!", b"time", b"time -p"):
            before = text[line:at].rstrip()
            if before.endswith(word) and not before[: -len(word)].strip():
                at = line + len(before) - len(word)
                break
        above = text.rfind(b"\n", 0, max(line - 1, 0)) + 1
        if line > above and IGNORE.encode() in text[above:line] and text[above:line].lstrip().startswith(b"#"):
            return above + len(text[above:line]) - len(text[above:line].lstrip())
        return at

    def after(self, item: Item, command: str, why: str) -> None:
        """Put a command behind a statement, on a line of its own where the statement ends its line."""
        end, text = self.view.end(item), self.view.text
        line_end = text.find(b"\n", end)
        line_end = len(text) if line_end < 0 else line_end
        rest = text[end:line_end].strip()
        if rest.startswith(b";") and not rest.startswith(b";;") and not rest[1:].strip():
            rest = b""
        start = item.node.start
        indent = self.view.indent(start)
        if indent is None:
            line = text.rfind(b"\n", 0, start) + 1
            indent = text[line : len(text) - len(text[line:].lstrip(b" \t"))].decode()
        if rest[:1] in (b"", b"#"):
            self.edits.insert(line_end, f"\n{indent}" + command.replace("\n", f"\n{indent}"), why)
        else:
            joint = " " if item.background else "; "
            self.edits.insert(end, f"{joint}{command}" + ("; " if item.background else ""), why)

    def keep_status(self, at: int) -> str:
        """Use the status variable at a place; its name."""
        self.keeps_status = at if self.keeps_status is None else min(self.keeps_status, at)
        return self.state.status

    def settle(self) -> None:
        """Put in what the edits need at the beginning and at the end."""
        if not self.edits and not self.ends_with:
            return
        status, processes = self.state.status, self.state.processes
        if self.keeps_processes is not None and "processes" not in self.state.done:
            self.state.done.add("processes")
            self._begin(self.keeps_processes, f"{processes}=()", "the processes to wait for")
        if self.waits_at_end:
            self._at_end(wait_loop(processes, self.keep_status(self.keeps_processes or 0)), "each is waited for")
        if self.keeps_status is not None and "status" not in self.state.done:
            self.state.done.add("status")
            self._begin(self.keeps_status, f"{status}=0", "the status to end with")
            self._end_with(status)
        elif self.ends_with:
            self._end_with(self.ends_with)

    def _begin(self, at: int, command: str, why: str) -> None:
        top = self.view.top(at)
        self.before(top.node.start if top is not None else at, command, why)

    def _end_with(self, variable: str) -> None:
        why = "the script ends with the status of the step that failed"
        body = self.view.source.script.body
        last = body[-1].node if body else None
        if isinstance(last, Simple) and last.name == "exit":
            if len(last.words) == 1:
                self.insert(last.end, f' "${variable}"', why)
            elif last.words[1].text == "0":
                self.edits.replace(last.words[1].start, last.words[1].end, f'"${variable}"', why)
            return
        self._at_end(f'exit "${variable}"', why)

    def _at_end(self, command: str, why: str) -> None:
        text = self.view.text
        joint = "" if not text or text.endswith(b"\n") else "\n"
        self.edits.insert(len(text), f"{joint}{command}\n", why)


def wait_loop(processes: str, status: str) -> str:
    """Wait for each process, and keep a failure."""
    return f'for pid in "${{{processes}[@]}}"; do wait "$pid" || {status}=$?; done'
