"""What stands before the words of a line: whose line it is, when it was written, how serious it is.

torchrun --tee (`[default3]:`), PyTorch (`[rank3]:`), srun -l (`3: `), Open MPI (`[1,3]<stdout>:`), Intel MPI (`[3] `),
Ray (`(WorkerDict pid=41, ip=10.0.0.3)`), vLLM (`(VllmWorker rank=3 pid=41)`), Docker Compose (`worker-3  | `), kubectl
(`[pod/worker-3/main] `), pdsh (`node-a: `), time stamps of platforms, glog (`[E612 03:04:05.6 file.cpp:7]`), logging.
"""
from __future__ import annotations

import re

LONGEST = 4096
"""Characters of a line that are looked at."""
MOST_PREFIXES = 8

TIME = re.compile(
    r"[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[\])]?(?:[ ,|:-] ?"
    r"|(?<=\])|$)"
    r"|[\[(]\d{2,4}[-/]\d\d(?:[-/]\d\d)? \d\d:\d\d:\d\d(?:[.,]\d{1,9})? [\w.]{1,60}\]:? ?"  # detectron2
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]{1,64} )?"  # syslog
    r"(?:(?:kernel|[\w./-]{1,40}(?:\[\d{1,8}\])?): ?)?"
    r"|\[ {0,8}\d{1,8}\.\d{6}\] ?"  # dmesg
)
GLOG = re.compile(
    r"\[?[IWEF] ?(?:(?:\d{4}-)?\d\d?-?\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})? {1,3}(?:\d{1,8} "
    r")?)?[\w./+<>-]{1,200}:\d{1,6}\] ?"
)
DAEMON = re.compile(r"docker: (?:Error response from daemon: )?")
LEVEL = re.compile(
    r" {0,3}(?:[-|] )?[\[(]?(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|CRITICAL|FATAL|EXCEPTION)[\])]?"
    r"(?: {0,8}[:|-] {0,4}| {1,8}|(?=\[)|$)(?=\S|$)|(ERROR|WARNING|INFO|CRITICAL|DEBUG):[\w.]{1,120}:"
)
CRI = re.compile(r"std(?:out|err) [FP] ")
"""What container engines put after the time in the files that the kubelet reads."""
VLLM = re.compile(
    r"(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[\w./-]{1,80}:\d{1,6}\] ?)?"
)
SOURCE = re.compile(
    r" {0,3}(?:- )?[\[(](?:[\w./+-]{1,120}:\d{1,6}(?::[\w<>.]{1,80})?|[\w.]{1,80}\.py)[\])]:? {0,2}(?:- )?"
)
LOGGER = re.compile(r" {0,3}(?:[-|] )?[\w.]{1,80} {0,12}[|] |  ?- [\w.]{1,80} - ")
NCCL = re.compile(
    r"[\w.-]{1,120}:\d{1,9}:\d{1,9} \[\d{1,4}\] (?:[\w./-]{1,120}:\d{1,6} )?NCCL (?:WARN|INFO|ERROR|TRACE) ?"
)
KINDLY_RANK = re.compile(r"[\[(](?:rank|RANK|Rank)[ =:_-]{0,2}(\d{1,6})[\])](?! Child process with PID):? ?")
ROLE = re.compile(r"\[([A-Za-z_][A-Za-z_-]{0,30})(\d{1,6})\]:(?: (?! ))?")  # torchrun puts no blank behind it
SINGLE = re.compile(r"\[[A-Za-z_-]{1,40}\d{1,6}\]:|[^/]{1,80}/\d{1,9}$")
"""A prefix of one process, whose lines are of one stream whether or not they also name the rank."""
OPEN_MPI = re.compile(r"\[(?:[\w.@-]{1,120}[@,])?(?:\d{1,9},)?(\d{1,6})\]<std(?:out|err|diag)>: ?")
RAY = re.compile(
    r"\(([A-Za-z_][\w.]{0,60})(?:\([^()]{0,80}\))?(?: rank=(\d{1,6}))?(?: pid=(\d{1,9}))(?:, "
    r"ip=[\da-fA-F.:]{1,45})?\) ?"
)
VLLM_RANK = re.compile(r"[A-Za-z]\w{0,30}?_[A-Z]{2}(\d{1,6})\b")
POD = re.compile(
    r"\[(?:pod/)?([\w.-]{1,120})/[\w.-]{1,120}\] |\[(worker-\d{1,6}|node-\d{1,6})\] |([\w.-]{1,80}-\d{1,6}) {1,12}\| "
)
TASK = re.compile(r" {0,6}(\d{1,6}): ?")
BRACKET = re.compile(r"\[(\d{1,6})\] ")
HOST = re.compile(r"([A-Za-z][\w.-]{1,60}): ")

LAST = 60
"""So many of the last lines show which prefixes a log uses."""
SEVERITY = {"E": 2, "F": 2, "C": 2, "W": 1, "N": 0, "I": 0, "D": 0, "T": 0}


class Prefix:
    """What was found before a line's words."""

    __slots__ = ("body", "level", "rank", "stamped", "stated", "stream", "told")

    def __init__(self) -> None:
        self.rank: int | None = None
        self.stream = ""
        """Whose line it is, in whatever words; lines of one stream come from one place, in order."""
        self.stated = ""
        """The words with everything but rank and time: what a person would quote."""
        self.body = ""
        """The words alone, their indentation kept."""
        self.level: int | None = None
        """0 information, 1 warning, 2 error; None when it does not say."""
        self.stamped = False
        """A time stands before its words."""
        self.told = False
        """A logger wrote it, or a program with a head of its own: it is no bare output."""


def split(text: str, tasks: str = "") -> Prefix:
    """Take a line apart. `tasks` says which doubtful prefixes this log uses: `:` for `3: `, `]`, `h` for hosts."""
    found = Prefix()
    place = 0
    stream: list[str] = []
    text = text[:LONGEST]
    for _ in range(MOST_PREFIXES):
        took = _owner(text, place, tasks, found, stream)
        if not took:
            took = _time(text, place)
            found.stamped = found.stamped or bool(took)
        if not took:
            break
        place = took
    found.stated = text[place:]
    for _ in range(MOST_PREFIXES):
        took = _head(text, place, found)
        if not took:
            break
        place = took
    found.body = text[place:]
    found.stream = "/".join(stream)
    return found


def _time(text: str, place: int) -> int:
    match = TIME.match(text, place)
    if not match or match.end() == place:
        return 0
    stream = CRI.match(text, match.end())
    return stream.end() if stream else match.end()


def _owner(text: str, place: int, tasks: str, found: Prefix, stream: list[str]) -> int:
    """The end of a prefix that says whose line it is; 0 when there is none."""
    first = text[place : place + 1]
    if first == "[":
        match = KINDLY_RANK.match(text, place) or OPEN_MPI.match(text, place)
        if match:
            found.rank = int(match.group(1))
            if not (stream and SINGLE.match(stream[-1])):
                stream.append("rank%d" % found.rank)
            return match.end()
        match = ROLE.match(text, place)
        if match:
            if found.rank is None:
                found.rank = int(match.group(2))
            stream.append(match.group(0))
            return match.end()
        match = POD.match(text, place)
        if match:
            stream.append(match.group(1) or match.group(2))
            return match.end()
        match = BRACKET.match(text, place) if "]" in tasks else None
        if match:
            found.rank = int(match.group(1))
            stream.append(match.group(0))
            return match.end()
        return 0
    if first == "(":
        return _ray(text, place, found, stream)
    if ":" in tasks:
        match = TASK.match(text, place)
        if match:
            found.rank = int(match.group(1))
            stream.append("task%d" % found.rank)
            return match.end()
    if first.isalpha():
        match = POD.match(text, place) if "| " in text[place : place + 100] else None
        if match and match.group(3):
            stream.append(match.group(3))
            return match.end()
        match = HOST.match(text, place) if "h" in tasks and not stream else None
        if match and _is_host(match.group(1)):
            stream.append(match.group(1))
            return match.end()
    return 0


def _ray(text: str, place: int, found: Prefix, stream: list[str]) -> int:
    match = RAY.match(text, place) or KINDLY_RANK.match(text, place)
    if not match:
        return 0
    if match.re is KINDLY_RANK:
        found.rank = int(match.group(1))
        stream.append("rank%d" % found.rank)
        return match.end()
    name, rank, pid = match.groups()
    named = VLLM_RANK.match(name)
    if rank is not None or named:
        found.rank = int(rank if rank is not None else named.group(1) if named else 0)
    stream.append("%s/%s" % (name, pid))
    return match.end()


def _head(text: str, place: int, found: Prefix) -> int:
    """The end of what a logger writes before the words; 0 when there is none."""
    match = GLOG.match(text, place)
    if match:
        found.level, found.told = SEVERITY[match.group(0).lstrip("[")[0]], True
        return match.end()
    match = NCCL.match(text, place)
    if match:
        found.told = True
        found.level = 0 if "NCCL INFO" in match.group(0) or "NCCL TRACE" in match.group(0) else 2
        return match.end()
    match = VLLM.match(text, place) or LEVEL.match(text, place)
    if match:
        word = match.group(1) or match.group(2)
        found.level, found.told = SEVERITY.get(word[0], 2) if word != "EXCEPTION" else 2, True
        return match.end()
    match = DAEMON.match(text, place)
    if match:
        found.level, found.told = 2, True
        return match.end()
    match = TIME.match(text, place)
    if match and match.end() > place:
        return match.end()
    match = SOURCE.match(text, place) or LOGGER.match(text, place)
    if match:
        found.told = True
        return match.end()
    return 0


def doubtful(lines: list[str]) -> str:
    """Which of the doubtful prefixes the end of a log uses, as `split` takes it.

    Most of the last lines have it, or the beginning of a traceback has.
    """
    seen = [line for line in lines if line.strip()]
    last = seen[-LAST:]
    used = ""
    for mark, pattern in ((":", TASK), ("]", BRACKET)):
        ranks = [match.group(1) for match in map(pattern.match, last) if match]
        numbered = len(ranks) > 4 and len(set(ranks)) > len(ranks) * 0.8  # a list with numbers, no ranks
        if (len(last) > 1 and len(ranks) * 2 >= len(last) and not numbered) or _before_a_traceback(seen, pattern):
            used += mark
    hosts = [match.group(1) for match in map(HOST.match, last) if match]
    named = all(map(_is_host, hosts))
    if (len(hosts) > 4 and len(hosts) * 5 >= len(last) * 4 and named) or _before_a_traceback(seen, HOST):
        used += "h"
    return used


def _is_host(name: str) -> bool:
    """Whether a word is a machine's name and no ordinary one, like `ERROR`."""
    return "-" in name or any(c.isdigit() for c in name)


def _before_a_traceback(lines: list[str], pattern: re.Pattern[str]) -> bool:
    for line in lines:
        if "Traceback (most recent call last)" in line:
            match = pattern.match(line)
            if match and line.startswith("Traceback", match.end()) and (pattern is not HOST or _is_host(match[1])):
                return True
    return False
