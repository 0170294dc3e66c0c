"""Lines in which somebody else says how a process ended: schedulers, launchers, shells, container engines.

After srun and slurmstepd, Open MPI's and PRRTE's help texts, MPICH's hydra, DeepSpeed's launch.py, accelerate,
Lightning, Python's subprocess, bash, Docker and the kubelet.
"""
from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Text

SIGNALS = {
    "hangup": 1, "interrupt": 2, "quit": 3, "illegal instruction": 4, "trace/breakpoint trap": 5, "aborted": 6,
    "bus error": 7, "floating point exception": 8, "killed": 9, "user defined signal 1": 10, "segmentation fault": 11,
    "user defined signal 2": 12, "broken pipe": 13, "alarm clock": 14, "terminated": 15, "out of memory": 9,
}  # fmt: skip
"""What strsignal(3) calls them, and Slurm's own word for a kill by the kernel."""
NAMED = {"sighup": 1, "sigint": 2, "sigquit": 3, "sigill": 4, "sigabrt": 6, "sigbus": 7, "sigfpe": 8, "sigkill": 9,
         "sigusr1": 10, "sigsegv": 11, "sigusr2": 12, "sigpipe": 13, "sigterm": 15}  # fmt: skip


class Ending:
    """One end of a process, as somebody states it. `line` is from 0; `code` as a shell gives it; None when not said."""

    def __init__(self, line: int, code: int | None, words: str, by: str, rank: int | None = None) -> None:
        self.line, self.code, self.words, self.by, self.rank = line, code, words, by, rank
        self.ranks: tuple[int, ...] = () if rank is None else (rank,)
        self.time: float | None = None
        self.pid: int | None = None
        self.first = False
        """Who states it takes this one for the first."""

    @property
    def signal(self) -> int | None:
        """The signal that ended it; None when it was none."""
        return self.code - 128 if self.code is not None and 128 < self.code < 193 else None


def shell_code(code: int) -> int:
    """An exit code as a shell gives it, from Python's or Slurm's: 128+n for -n."""
    return 128 - code if code < 0 else code


PATTERNS = [
    ("srun: error", "slurm", r"srun: error: (?P<host>[\w.,\[\]-]{1,120}): tasks? (?P<ranks>[\d,\-]{1,200}): "
     r"(?:exited with exit code (?P<code>\d{1,3})|(?P<signal>[a-z][a-z0-9 /]{2,40}?)(?: \(core dumped\))?$)"),
    ("noticed that process rank", "mpi", r"noticed that process rank (?P<rank>\d{1,6}) with pid \d{1,9} on node "
                                         r"\S{1,80} "
     r"exited on signal (?P<number>\d{1,2})"),
    ("was invoked on rank", "mpi", r"(?:mpi_abort|pmix_abort) was invoked on rank (?P<rank>\d{1,6}).{0,80}"),
    ("process name: [", "mpi", r"process name: \[(?:prterun[\w.@-]{1,80}|\[?\d{1,9},\d{1,9}\]?),(?P<rank>\d{1,6})\]"),
    ("running at", "mpi", r"^= {1,4}rank (?P<rank>\d{1,6}) pid (?P<pid>\d{1,9}) running at"),
    ("exit code:", "mpi", r"^=? {0,4}exit code: {1,4}(?P<code>\d{1,3})\b"),
    ("killed by signal: ", "mpi", r"^= {1,4}killed by signal: (?P<number>\d{1,2})\b"),
    ("exits with return code", "deepspeed", r"exits with return code = (?P<code>-?\d{1,3})"),
    ("exits with return code =", "deepspeed", r"process \d{1,9} exits with return code = (?P<code>-?\d{1,3})"),
    ("returned non-zero exit status", "python", r"returned non-zero exit status (?P<code>-?\d{1,3})"),
    ("died with <signals", "python", r"died with <signals\.(?P<name>sig\w{1,8}): \d{1,2}>"),
    ("child process with pid", "lightning", r"\[rank: (?P<rank>\d{1,6})\] child process with pid \d{1,9} terminated "
                                            r"with code (?P<code>-?\d{1,3})"),
    ("terminated with exit code", "python", r"process (?P<rank>\d{1,4}) terminated with exit code (?P<code>\d{1,3})"),
    ("terminated with signal", "python", r"process (?P<rank>\d{1,4}) terminated with signal (?P<name>sig\w{1,8})"),
    ("terminated with the following error", "python", r"process (?P<rank>\d{1,4}) terminated with the following error"),
    ("exited with code", "container", r"exited with code (?P<code>\d{1,3})\b"),
    ("code=killed", "systemd", r"code=killed, status=(?P<number>\d{1,2})/"),
    ("code=dumped", "systemd", r"code=dumped, status=(?P<number>\d{1,2})/"),
    ("code=exited", "systemd", r"main process exited, code=exited, status=(?P<code>\d{1,3})/"),
    ("exitcode:", "container", r"^\s{0,24}\"?exitcode\"?: {1,4}(?P<code>\d{1,3}),?$"),
    ("exit code:", "container", r"^\s{0,12}exit code: {1,12}(?P<code>\d{1,3})$"),
    ("exited with status", "shell", r"(?:exited|finished|ended|failed|completed) with (?:exit )?status:? "
                                    r"(?P<code>\d{1,3})\b"),
    ("with status", "shell", r"(?:exited|finished|ended|failed) with (?:exit )?status:? (?P<code>\d{1,3})\b"),
    ("exit code", "shell", r"(?:exited|finished|ended|failed|terminated|exiting)(?: \w{1,10})? with (?:an? "
                           r")?(?:non-?zero )?(?:exit ?code|code|rc)[:= ]{1,3}(?P<code>-?\d{1,3})\b"),
    ("exitcode", "paddle", r"(?:exit ?code|exitcode)[ :=]{1,3}(?P<code>-\d{1,3})\b"),
    ("status failed", "paddle", r"container (?:rank (?P<rank>\d{1,6}) )?status failed .{0,600}code "
                                r"(?P<code>-?\d{1,3})\b"),
    ("exit_code", "slurm", r"batch script exit_?code ?[:=] ?(?P<code>\d{1,3})"),
    ("exit code -", "paddle", r"exit code (?P<code>-\d{1,2})\b"),
    (": line ", "shell", r": line \d{1,6}: {1,6}(?P<pid>\d{1,9}) (?P<signal>[A-Z][a-z0-9 /]{2,40}?) {2,}"),
    (": line ", "shell", r": line \d{1,6}: {1,6}(?P<pid>\d{1,9}) (?P<signal>[A-Z][a-z0-9 /]{2,40}?) {1,}\(core "
                         r"dumped\)"),
]  # fmt: skip
COMPILED = [(literal, by, re.compile(pattern, re.IGNORECASE)) for literal, by, pattern in PATTERNS]


def endings(text: Text) -> list[Ending]:
    """All ends that are stated in a text, in order; those of torchrun's agents are told by `elastic`."""
    found: dict[int, Ending] = {}
    for literal, by, pattern in COMPILED:
        for at in text.holding(literal):
            if at in found:
                continue
            line = text[at]
            if line.level is not None and line.level == 0 and by in ("shell", "container"):
                continue
            match = pattern.search(line.stated) or pattern.search(line.body)
            if match and not quoted(line.stated, match.start()) and "local_rank: " not in line.stated:
                found[at] = _ending(at, by, match.groupdict(), line.stated.strip(), line.rank)
    return [found[at] for at in sorted(found)]


def _ending(at: int, by: str, facts: dict[str, str | None], words: str, owner: int | None) -> Ending:
    code: int | None = None
    if facts.get("code") is not None:
        code = shell_code(int(facts["code"] or 0))
    elif facts.get("number") is not None:
        code = 128 + int(facts["number"] or 0)
    elif facts.get("name"):
        code = 128 + NAMED.get((facts["name"] or "").lower(), 0) or None
    elif facts.get("signal"):
        number = SIGNALS.get((facts["signal"] or "").lower().strip())
        code = None if number is None else 128 + number
    if code == 128:
        code = None
    ranks = expand(facts["ranks"] or "") if facts.get("ranks") else ()
    rank = int(facts["rank"] or 0) if facts.get("rank") is not None else (ranks[0] if len(ranks) == 1 else None)
    ending = Ending(at, code, words, by, rank if rank is not None else (owner if not ranks else None))
    if ranks:
        ending.ranks = ranks
    return ending


def expand(ranges: str) -> tuple[int, ...]:
    """Numbers from `0-1,3`; at most some thousand of them."""
    numbers: list[int] = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (high or low).isdigit():
            numbers += range(int(low), min(int(high or low), int(low) + 8192) + 1)
    return tuple(numbers[:16384])


def quoted(text: str, at: int) -> bool:
    """Whether a place in a line is inside a quotation: data that is shown, not something that happens."""
    before = text[:at]
    if before.count('"') % 2:
        return True
    place = before.rfind("'")
    if place < 0 or before.count("'") % 2 == 0:
        return False
    return place == 0 or before[place - 1] in " :=([{,"
