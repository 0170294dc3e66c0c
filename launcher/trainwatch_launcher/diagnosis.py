"""Why a command failed, in one line, from its exit and the end of its output."""
from __future__ import annotations

import re

from trainwatch_launcher.signals import name_of
from trainwatch_launcher.textline import last_line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.child import Exit

EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning)(?:: .*)?$")
"""The last line of a Python traceback: a class name, qualified or not, and its message."""
LOOK_BACK_LINES = 200


def reason(ended: Exit, tail: bytes) -> str:
    """What is known, in one line: the signal that killed the command, else its exception, else its last line."""
    if ended.signal is not None:
        return "killed by %s%s" % (name_of(ended.signal), ", core dumped" if ended.core_dumped else "")
    lines = [plain(line) for line in tail.split(b"\n")[-LOOK_BACK_LINES:]]
    for line in reversed(lines):
        if EXCEPTION.match(line):
            return line[:200]
    last = last_line(tail)
    return "last line: %s" % last if last else ""
