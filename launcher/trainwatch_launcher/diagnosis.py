"""Why a command failed, in one line, from its exit and the end of its output."""
from __future__ import annotations

import re
import signal

from trainwatch_launcher.signals import name_of
from trainwatch_launcher.textline import last_line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.child import Exit

RANK_PREFIX = re.compile(r"^(?:\[(?:rank|default)\d+\]:\s?|\d+: )")
"""What torchrun, NCCL and srun -l put before each rank's lines."""
EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)(?:: .*)?$")
"""The last line of a Python traceback: a class name, qualified or not, and its message."""
LOOK_BACK_LINES = 200


def reason(ended: Exit, tail: bytes, oom_kills: int, stop_asked: bool = False) -> str:
    """What is known, in one line: the signal that killed the command, else its exception, else its last line."""
    if ended.signal is not None:
        return "killed by %s%s" % (name_of(ended.signal), what_killed(ended, oom_kills, stop_asked))
    if ended.code == 128 + signal.SIGKILL and oom_kills:
        return "a process was killed for memory by the kernel (%d in this container)" % oom_kills
    lines = [plain(line) for line in tail.split(b"\n")[-LOOK_BACK_LINES:]]
    for line in reversed(lines):
        text = RANK_PREFIX.sub("", line)
        if EXCEPTION.match(text):
            return text[:200]
    last = last_line(tail)
    return "last line: %s" % last if last else ""


def what_killed(ended: Exit, oom_kills: int, stop_asked: bool) -> str:
    """What more is known of a death by signal: the kernel's OOM killer, somebody else, a core dump."""
    if stop_asked:
        return " after it was asked to stop"
    if ended.signal == signal.SIGKILL:
        if oom_kills:
            return ": out of memory, by the kernel (%d killed in this container)" % oom_kills
        return ": by somebody or something outside; not counted as out of memory in this container"
    return ", core dumped" if ended.core_dumped else ""
