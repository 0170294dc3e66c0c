"""The hold: a failed container is kept for debugging until its deadline, a request or a signal ends it."""
from __future__ import annotations

import os
import time

from trainwatch_launcher.signals import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.answer import Diagnosis

REMIND_EVERY = 600.0
LAST_REMINDER = 60.0
LONGEST = 30 * 86400.0
CLOCK_WAS_SET = 2.0
"""A difference between the two clocks, in seconds, that no waiting explains."""


class Hold:
    """The state of one hold. Nothing here waits.

    Lengths are measured by the monotonic clock (`tick`), so that a clock that is set does not end or stretch the hold;
    `until` is the deadline in Unix seconds, for people.
    """

    def __init__(self, seconds: float, code: int, now: float, tick: float) -> None:
        self.code = code
        self.seconds = seconds
        self.until = now + seconds
        self.why = ""
        """What ended it: `deadline`, `command`, `signal` or `policy`; empty while it lasts."""
        self.by = ""
        self._deadline = tick + seconds
        self._remind_at = self._next_reminder(tick)

    def left(self, tick: float) -> float:
        """Seconds until the deadline."""
        return max(0.0, self._deadline - tick)

    def extend(self, seconds: float, now: float, tick: float) -> float:
        """Move the deadline later, at most to LONGEST from now; the new deadline in Unix seconds."""
        self._deadline = min(max(self._deadline, tick) + seconds, tick + LONGEST)
        self.until = now + self._deadline - tick
        self._remind_at = self._next_reminder(tick)
        return self.until

    def release(self, why: str, by: str = "") -> None:
        """End it."""
        if not self.why:
            self.why, self.by = why, by

    def tick(self, now: float, tick: float) -> str | None:
        """Let time pass: the deadline may end the hold, and a reminder may be due (returned).

        When the clock was set, `until` follows it.
        """
        left = self.left(tick)
        if abs(now + left - self.until) > CLOCK_WAS_SET:
            self.until = now + left
        if left <= 0:
            self.release("deadline")
            return None
        if tick < self._remind_at:
            return None
        self._remind_at = self._next_reminder(tick)
        return "held, %s left (until %s); then exit %d" % (duration(left), clock(now + left), self.code)

    def _next_reminder(self, tick: float) -> float:
        """Every ten minutes, and once in the last minute."""
        regular = tick + REMIND_EVERY
        last = self._deadline - LAST_REMINDER
        return last if tick < last < regular else regular


def banner(
    *,
    when: float,
    host: str,
    rank: int,
    code: int,
    signal: int | None,
    reason: str,
    diagnosis: Diagnosis | None = None,
    note: str = "",
    log: str,
    run_dir: str,
    hold: Hold | None,
) -> str:
    """What a failed worker says on its console: what happened, where to look, how to get in, how to end the hold.

    `log` and `run_dir` are empty when there is no run directory.
    """
    name = " (%s)" % name_of(signal) if signal is not None else code_name(code)
    lines = ["rank %d on %s failed with exit code %d%s at %s" % (rank, host, code, name, stamp(when))]
    if reason:
        lines.append("why      %s" % reason)
    if diagnosis is not None:
        lines += diagnosis_lines(diagnosis)
    if log:
        lines.append("log      %s" % log)
    if hold is not None:
        lines += hold_lines(hold, run_dir, rank)
    if note:
        lines.append(note)
    rule = "=" * min(100, max(len(line) for line in lines) + 2)
    return "\n".join([rule, *[" " + line for line in lines], rule]) + "\n"


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """The banner's lines about the cause: what kind it is, where, and what people do about it."""
    what = diagnosis.kind.replace("_", " ")
    if not diagnosis.clear:
        what += " (a guess)" if diagnosis.kind != "unknown" else ""
    elif diagnosis.collateral:
        what += ": another rank is the cause"
    places = [diagnosis.frame] if diagnosis.frame else []
    if diagnosis.line is not None:
        places.append("line %d of the log" % diagnosis.line)
    lines = ["kind     %s%s" % (what, "   at %s" % ", ".join(places) if places else "")]
    words = diagnosis.hint.split()
    while words:
        line = "try      " if len(lines) == 1 else "         "
        while words and (len(line) + len(words[0]) < 100 or not line.strip()):
            line += words.pop(0) + " "
        lines.append(line.rstrip())
    return lines


def hold_lines(hold: Hold, run_dir: str, rank: int) -> list[str]:
    """The banner's lines about the hold."""
    end = "kill -TERM %d   (in the container)" % os.getpid()
    left = duration(hold.seconds)
    lines = ["held     until %s (%s); its GPUs are held too, and still paid for" % (clock(hold.until), left)]
    ways = [end]
    if run_dir:
        import shlex  # brings in much that a success needs not

        where = shlex.quote(run_dir)
        lines.append("look in  trainwatch %s   (then s opens a shell here)" % where)
        ways.insert(0, "trainwatch hold %s --rank %d --release" % (where, rank))
    if os.isatty(0):
        ways.append("Ctrl-C here")
    lines.append("end it   %s" % ways[0])
    lines += ["     or  %s" % way for way in ways[1:]]
    return lines


def code_name(code: int) -> str:
    """What a code that a shell passed on stands for: ` (128 + SIGKILL)`; empty for an ordinary code."""
    return " (128 + %s)" % name_of(code - 128) if 128 < code < 160 else ""


def duration(seconds: float) -> str:
    """`45s`, `9m30s`, `2h46m`, `3d04h`."""
    left = max(0, int(seconds + 0.5))
    parts = [(left // 86400, "d"), (left // 3600 % 24, "h"), (left // 60 % 60, "m"), (left % 60, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    text = "%d%s" % parts[0]
    return text if len(parts) == 1 or parts[1][0] == 0 else text + "%02d%s" % parts[1]


def clock(when: float) -> str:
    """The time of day, with the date when it is not today's."""
    pattern = "%H:%M:%S" if time.strftime("%F") == time.strftime("%F", time.localtime(when)) else "%F %H:%M:%S"
    return time.strftime(pattern, time.localtime(when))


def stamp(when: float) -> str:
    """Date, time and zone."""
    return time.strftime("%F %H:%M:%S %z", time.localtime(when))
