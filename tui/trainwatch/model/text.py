"""Facts as short words: durations, sizes, signals. Plain text, never wider than it must be."""
from __future__ import annotations

import re
import unicodedata
from datetime import datetime

# Linux's numbers from signal(7), x86, ARM and most others. Written out because the workers are Linux and the viewer may
# be a Mac, whose `signal` module gives other numbers (SIGUSR1 is 30 there, 10 here).
SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
    23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
    30: "SIGPWR", 31: "SIGSYS",
}  # fmt: skip
REAL_TIME = range(34, 65)
SHELL_SIGNAL = 128


def signal_name(number: int) -> str:
    """The name of a Linux signal: `SIGKILL`, `SIGRTMIN+3`, or `signal 99` for what is none."""
    if number in REAL_TIME:
        more = number - REAL_TIME.start
        return f"SIGRTMIN+{more}" if more else "SIGRTMIN"
    return SIGNALS.get(number, f"signal {number}")


def signal_of(code: int | None, signal: int | None = None) -> str | None:
    """The name of the signal behind an exit code; None when there is none.

    Without `signal` the shell's convention speaks: `bash` exits 137 when its command died of SIGKILL.
    """
    if signal is not None:
        return signal_name(signal)
    if code is None or code <= SHELL_SIGNAL:
        return None
    return SIGNALS.get(code - SHELL_SIGNAL)


def exit_text(code: int | None, signal: int | None = None) -> str:
    """An exit code with its signal's name: `1`, `137 SIGKILL`; empty when there is none."""
    if code is None:
        return ""
    name = signal_of(code, signal)
    return f"{code} {name}" if name else str(code)


def duration(seconds: float | None) -> str:
    """A length of time in at most two units: `8s`, `4m12s`, `2h41m`, `3d04h`; empty for None. Negative counts as 0."""
    if seconds is None:
        return ""
    whole = int(max(0.0, min(seconds, 1e12)))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def roughly(seconds: float) -> str:
    """A length of time in one unit, at most four characters: `59s`, `12m`, `31h`, `6d`."""
    whole = int(max(0.0, min(seconds, 999 * 86400)))
    for unit, length, upto in (("s", 1, 60), ("m", 60, 6000), ("h", 3600, 100 * 3600)):
        if whole < upto:
            return f"{whole // length}{unit}"
    return f"{whole // 86400}d"


def ago(seconds: float | None) -> str:
    """An age: `now` within the last second, else as `duration`; empty for None."""
    if seconds is None:
        return ""
    return "now" if seconds < 1 else duration(seconds)


def size(count: int | None) -> str:
    """A number of bytes: `812 B`, `1.2 kB`, `34 MB`, `5.1 GB` (powers of 1000); empty for None."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} B"
    value = float(min(count, 10**24))
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        value /= 1000
        if value < 9.95:
            return f"{value:.1f} {unit}"
        if value < 999.5:
            return f"{value:.0f} {unit}"
    return f"{value / 1000:.0f} EB"


def number(count: int | None) -> str:
    """A count of something: `812`, `12k`, `3.4M`; empty for None."""
    if count is None:
        return ""
    return str(count) if count < 10_000 else size(count).replace(" ", "").removesuffix("B").replace("G", "B")


def countdown(seconds: float | None) -> str:
    """Time left: `9:41`, from one hour on `2h41m`; empty for None."""
    if seconds is None:
        return ""
    whole = int(max(0.0, min(seconds, 1e12)))
    return duration(whole) if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+")


def parse_duration(typed: str) -> float | None:
    """Seconds from `90`, `30m`, `2h`, `1h30m`; None when it is no length of time, or none at all."""
    compact = typed.strip().lower().replace(" ", "")
    if not _DURATION.fullmatch(compact):
        return None
    if compact.isdigit():
        seconds = float(compact[:12])
    else:
        seconds = sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", compact))
    return seconds if 0 < seconds <= 366 * 86400 else None


def moment(time: float | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A Unix time in the reader's zone; empty for None, `?` for one that no calendar has."""
    if time is None:
        return ""
    try:
        return datetime.fromtimestamp(time).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return "?"


def zone_offset(time: float) -> float:
    """Seconds that the reader's clock on the wall is ahead of UTC at a Unix time; 0 for one that no calendar has."""
    try:
        offset = datetime.fromtimestamp(time).astimezone().utcoffset()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return offset.total_seconds() if offset is not None else 0.0


def time_of_day(time: float, now: float) -> str:
    """A moment as a time of day, with the date unless it is today's."""
    today = moment(time, "%Y-%m-%d") == moment(now, "%Y-%m-%d")
    return moment(time, "%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def printable(written: str) -> str:
    """A text from a run directory with nothing in it that acts on a terminal: control characters become spaces."""
    return "".join(_shown(char) for char in written)


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    category = unicodedata.category(char)
    if category == "Cf":  # invisible: marks of writing direction may turn a line around
        return ""
    return "\ufffd" if category in ("Cs", "Co", "Cn") else " "


def width(written: str) -> int:
    """Terminal cells that a printable text takes: 2 for wide characters, 0 for combining ones."""
    if written.isascii():
        return len(written)
    return sum(_cells(char) for char in written)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
