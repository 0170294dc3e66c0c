"""What a log states: every sentence in it that says that something went wrong, with its kind and its place."""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.endings import quoted
from trainwatch_launcher.diagnosis.frames import EXCEPTION, LOOKS_RAISED
from trainwatch_launcher.gpu.xid import APPLICATION, NOTICE, cause, meaning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Line, Text
    from trainwatch_launcher.diagnosis.tracebacks import Chain, Raised

LONGEST_SUMMARY = 400
HUB_OVER = frozenset(("network", "rendezvous", "file_missing", "permission", "storage_io", "python_error", "peer_lost"))
"""Kinds that a chain has on its way to saying that the hub could not be reached."""
MEETING = frozenset((
    "init_process_group", "next_rendezvous", "_rendezvous", "_create_c10d_store", "_env_rendezvous_handler",
    "_create_tcp_store", "_tcp_rendezvous_handler", "init_distributed", "initialize_distributed",
))  # fmt: skip
"""Functions in which the group is formed: what fails in them is that."""
IGNORED = re.compile(
    r"exception ignored in|--- logging error ---|exception ignored on|error in atexit|during shutdown", re.I
)
THREAD = re.compile(r"exception in thread (?!main)|task exception was never retrieved|future exception was never", re.I)
XID = re.compile(r"NVRM: Xid \((PCI:)?([^)]{1,40})\): (\d{1,4})\b")
WHAT = re.compile(r"^\s*what\(\): {0,4}(.{0,2000})")
RANK_WORDS = re.compile(r"\[(?:PG [^\]]{1,120} )?Rank (\d{1,6})\]")
DOWNLOADS = re.compile(r"urllib|http[/\\]client|requests[/\\]|botocore|aiohttp|fsspec|s3fs|gcsfs|oss2")
LAST_ERROR = re.compile(r"^Last error: ?(.{0,600})")
FIELD = re.compile(r"^ {0,8}(?:time|host|rank|exitcode|error_file|traceback) {1,8}: ")
"""A line of the table in torchrun's ChildFailedError, which is read as a whole."""
WORDS_BEFORE = 9
HARD_WORDS = 5


class Statement:
    """One sentence that says that something went wrong. Lines are from 0; `end` is the last line that belongs to it."""

    def __init__(
        self, kind: table.Kind, line: int, end: int, text: str, stream: str, rank: int | None, sure: float
    ) -> None:
        self.kind, self.line, self.end, self.stream, self.rank, self.sure = kind, line, end, stream, rank, sure
        self.text = text.strip()[:LONGEST_SUMMARY]
        self.role = kind.role
        self.hint = kind.hint
        self.chain: Chain | None = None
        self.code: int | None = None
        self.bare = False
        """It is the mere last line of a traceback that is not there, and of no kind of its own."""
        self.soft = False
        """It counts only when something is known to have failed."""
        self.echo = False
        """It says that something ended that another statement explains."""

    @property
    def level(self) -> float:
        """Statements of a lower level count before those of a higher one."""
        return table.LEVELS[self.role] + (0.5 if self.bare else 0.0) + (4 if self.echo else 0)


def of_chain(text: Text, chain: Chain) -> Statement:
    """What a chain of exceptions states."""
    one = chain.cause
    found, hint = _classify(chain, one)
    place = one.line if one.line is not None else one.end
    line, words = (
        place,
        one.text if one.name else "traceback cut off at %s" % (one.frames[-1] if one.frames else "its start"),
    )
    detail = _last_error(text, one) if found.name in ("nccl_error", "network", "cuda_oom", "shm_full") else None
    if detail is not None and len(detail[1]) > 8:
        line, words = detail[0], "%s: %s" % (_nccl_name(one) or one.name, detail[1])
    specific = found.name != "python_error"
    place = max(each.line if each.line is not None else each.end for each in chain.raised)
    made = Statement(found, line, place, words, chain.stream, chain.rank, 0.95 if specific else 0.9)
    made.hint, made.chain = hint or found.hint, chain
    made.code = 130 if one.simple == "KeyboardInterrupt" else 1
    if one.name == "" or one.line is None:
        made.sure = 0.5
    if IGNORED.search(chain.before):
        made.soft = made.echo = True
    elif THREAD.search(chain.before):
        made.sure = 0.7
    if all(each.wraps for each in chain.raised):
        made.echo = True
    return made


def _classify(chain: Chain, one: Raised) -> tuple[table.Kind, str]:
    """The kind of a chain: its cause's, a later one's where the cause has none of its own, the hub's above all."""
    functions = {frame.function for each in chain.raised for frame in each.frames}
    order = [one, *(each for each in chain.raised if each is not one)]
    kinds = [_kind_of(each) for each in order]
    found, hint = kinds[0]
    if found.name in ("python_error", "killed"):
        found, hint = next(
            ((kind, words) for kind, words in kinds if kind.name not in ("python_error", "native_crash")), kinds[0]
        )
    for kind, words in kinds:
        if kind.name == "hub_access" and found.name in HUB_OVER:
            return kind, words
        if kind.name == "shm_full" and found.name in ("dataloader", "native_crash", "disk_full"):
            return kind, words
    if found.name in ("network", "peer_lost") and functions & MEETING and one.simple != "RendezvousClosedError":
        return table.kind("rendezvous"), ""
    if one.simple == "EOFError" and any("multiprocessing" in frame.path for frame in one.frames):
        return table.kind("peer_lost"), ""
    paths = [frame.path for each in chain.raised for frame in each.frames]
    if found.name == "peer_lost" and any(map(DOWNLOADS.search, paths)):
        return table.kind("network"), ""
    return found, hint


def _kind_of(one: Raised) -> tuple[table.Kind, str]:
    where = " ".join("%s %s" % (frame.path[-80:], frame.function) for frame in one.frames[-6:])
    words = "\n".join(["%s: %s" % (one.name, one.message[:2000]), where, *one.notes[:6]])
    if not one.name:
        return table.kind("python_error"), ""
    return kind_of(words)


def kind_of(words: str) -> tuple[table.Kind, str]:
    """The kind of an exception's text, and the hint that its words call for (empty for the kind's own)."""
    lowered = words.lower()
    for kind in table.KINDS:
        for pattern in kind.raises:
            if pattern.search(words, lowered):
                return kind, pattern.hint
    return table.kind("python_error"), ""


def _last_error(text: Text, one: Raised) -> tuple[int, str] | None:
    """NCCL's own words, which stand some lines below the exception: their line and they."""
    if one.line is None:
        return None
    for index in range(one.line + 1, min(len(text), one.end + 1)):
        body = text[index].body.strip()
        match = LAST_ERROR.match(body)
        if match and match.group(1):
            return index, match.group(1)
        if match and index + 1 <= one.end:
            return index + 1, text[index + 1].body.strip()
    return None


def _nccl_name(one: Raised) -> str:
    for note in one.notes:
        if note.startswith("nccl") and ":" in note:
            return note.partition(":")[0]
    return ""


def of_lines(text: Text, taken: set[int]) -> list[Statement]:
    """What single lines state, those of chains (`taken`) left out."""
    best: dict[int, Statement] = {}
    for softly in (False, True):
        for kind in table.KINDS:
            for pattern in kind.softly if softly else kind.prints:
                for index in sorted({index for literal in pattern.literals for index in text.holding(literal)}):
                    if index in taken or index in best:
                        continue
                    made = _of_line(text, index, kind, pattern, softly)
                    if made is not None:
                        best[index] = made
    for index in text.holding("nvrm: xid"):
        made = _xid(text[index])
        if made is not None:
            best[index] = made
    for made in _terminations(text, taken):
        best[made.line] = made
    return [best[index] for index in sorted(best)]


def _of_line(text: Text, index: int, kind: table.Kind, pattern: table.Pattern, softly: bool) -> Statement | None:
    line = text[index]
    body = line.body
    match = pattern.search(body, body.lower()) or pattern.search(line.stated, line.stated.lower())
    if not match:
        return None
    shown = match.string
    before = shown[: match.start()]
    if FIELD.match(body) or quoted(shown, match.start()) or shown.lstrip()[:1] in "{<" or shown.startswith("+ "):
        return None
    if line.level == 0 and kind.role not in (table.FACT, table.STOP):
        return None
    words = len(before.split())
    if words > WORDS_BEFORE and not line.told:
        return None
    said = body if line.told else line.stated
    named = RANK_WORDS.match(body) if line.rank is None else None
    rank = int(named.group(1)) if named else line.rank
    made = Statement(kind, index, index, said, line.stream, rank, 0.8)
    made.hint = pattern.hint or kind.hint
    hard = line.told or words <= HARD_WORDS or kind.role in (table.FACT, table.STOP)
    told = kind.role in (table.FACT, table.STOP, table.WEAK)
    if softly or not hard or (line.level == 1 and not told) or (line.level == 0 and kind.role != table.FACT):
        made.soft, made.sure = True, 0.55
    return made


def _xid(line: Line) -> Statement | None:
    """What an Xid states: those of the program are faults in a kernel, those that only inform state nothing."""
    match = XID.search(line.stated)
    if not match:
        return None
    number = int(match.group(3))
    where = cause(number)
    if where == NOTICE or quoted(line.stated, match.start()):
        return None
    kind = table.kind("cuda_fault" if where == APPLICATION else "gpu_hardware")
    made = Statement(kind, line.index, line.index, line.stated, line.stream, line.rank, 0.95)
    made.hint = "Xid %d: %s. %s" % (number, meaning(number), kind.hint)
    made.soft = where == APPLICATION
    return made


def _terminations(text: Text, taken: set[int]) -> list[Statement]:
    """C++ exceptions that nobody caught: of the kind that their `what()` says, else a crash."""
    found = []
    for index in text.holding("terminate called"):
        line = text[index]
        if index in taken or quoted(line.stated, line.stated.find("terminate called")):
            continue
        words, end = line.stated.strip(), index
        for at in range(index + 1, min(len(text), index + 8)):
            what = WHAT.match(text[at].body) if text[at].stream == line.stream else None
            if what:
                words, end = what.group(1), at
                break
        kind, hint = kind_of("terminate: " + words)
        if kind.name == "python_error":
            kind, hint = table.kind("native_crash"), ""
        shown = (
            words
            if end == index
            else "%s: %s" % (line.stated.strip().partition("instance of ")[2].strip("'") or "terminate", words)
        )
        made = Statement(kind, index, end, shown, line.stream, line.rank, 0.85)
        made.hint, made.code = hint or kind.hint, 134
        found.append(made)
    return found


def of_bare_exceptions(text: Text, taken: set[int]) -> list[Statement]:
    """Exceptions of which only the last line is there: `ValueError: …` without a traceback."""
    found = []
    for literal in ("error: ", "error\n", "exception", "interrupt", "exit:"):
        for index in text.holding(literal.strip(), 10, 60):
            if index in taken:
                continue
            line = text[index]
            body = line.body.strip()
            match = EXCEPTION.match(body)
            if not match or not LOOKS_RAISED.match(body) or line.level in (0, 1) or match.group(1).endswith("Warning"):
                continue
            if match.group(1).islower() or not match.group(1).rpartition(".")[2][:1].isupper():
                continue
            taken.add(index)
            kind, hint = kind_of(body)
            made = Statement(
                kind, index, index, body, line.stream, line.rank, 0.65 if kind.name == "python_error" else 0.75
            )
            made.hint, made.code, made.bare = hint or kind.hint, 1, kind.name == "python_error"
            if match.group(1).rpartition(".")[2] in ("ChildFailedError", "CalledProcessError", "SystemExit"):
                made.echo = True
            found.append(made)
    return found
