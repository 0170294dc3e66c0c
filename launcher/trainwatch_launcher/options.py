"""The launcher's command line: one table of options, parsed by hand because argparse costs 8 ms at every start."""
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

    from trainwatch_launcher.progress.explicit import Pattern

DEFAULT_HOLD = 10_000.0
DEFAULT_DRAIN = 5.0
DEFAULT_HEARTBEAT = 5.0
DEFAULT_GRACE = 10.0
DEFAULT_SPOOL = 4 << 30
HOLD_POLICIES = ("all", "root", "none")


class UsageError(Exception):
    """The command line or a TRAINWATCH_* variable is wrong; the message is one line and says what to do."""


class Options:
    """What the user asked for. Durations in seconds, sizes in bytes; None means "not said"."""

    def __init__(self) -> None:
        self.command: list[str] = []
        self.run_dir: str | None = None
        self.root: str | None = None
        self.run_id: str | None = None
        self.rank: int | None = None
        self.world_size: int | None = None
        self.local_rank: int | None = None
        self.hold = DEFAULT_HOLD
        self.hold_on: list[tuple[int, int]] | None = None
        self.no_hold_on: list[tuple[int, int]] = []
        self.hold_policy = "all"
        self.stop_on_peer_failure: float | None = None
        self.drain_timeout = DEFAULT_DRAIN
        self.grace = DEFAULT_GRACE
        self.kill_after: float | None = None
        self.heartbeat = DEFAULT_HEARTBEAT
        self.buffered = False
        self.share_group = False
        self.leave_orphans = False
        self.quiet = False
        self.pty = False
        self.console_prefix = False
        self.rewrite: dict[int, int] = {}
        self.spool_max = DEFAULT_SPOOL
        self.strict = False
        self.no_lint = False
        self.no_gpu = False
        self.progress_patterns: list[Pattern] = []
        self.faulthandler = False
        self.stall_dump = False
        self.stall_after: float | None = None
        """0 for never, None for what suits the command (see stall.py)."""

    def holds(self, code: int) -> bool:
        """Whether a command that ended with this exit code is held."""
        if code == 0 or self.hold <= 0 or self.hold_policy == "none" or within(code, self.no_hold_on):
            return False
        return self.hold_on is None or within(code, self.hold_on)


def within(code: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether a code lies in one of the ranges, both ends included."""
    return any(low <= code <= high for low, high in ranges)


def parse_text(text: str) -> str:
    """Any text but an empty one."""
    if not text:
        raise ValueError("must not be empty")
    return text


def parse_count(text: str, least: int = 0) -> int:
    """A whole number from `least` up, of nine digits at most."""
    if not is_count(text) or int(text) < least:
        raise ValueError("must be a whole number from %d up, not %r" % (least, text))
    return int(text)


def parse_world_size(text: str) -> int:
    """A number of ranks: one at least."""
    return parse_count(text, 1)


def parse_duration(text: str) -> float:
    """Seconds from `90`, `1.5`, `90s`, `10m`, `2h` or `1d`."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    factor = units.get(text[-1:], 0)
    try:
        seconds = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ValueError("must be a number of seconds, or like 90s, 10m, 2h, not %r" % text)
    return seconds


def parse_codes(text: str) -> list[tuple[int, int]]:
    """Ranges of exit codes from `1,3,128-255`."""
    ranges = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not is_count(low) or (dash and not is_count(high)):
            raise ValueError("must be exit codes like 1,3,128-255, not %r" % text)
        ranges.append((int(low), int(high or low)))
    return ranges


def is_count(text: str) -> bool:
    """Whether a text is a number of at most nine digits."""
    return text.isascii() and text.isdigit() and len(text) < 10


def parse_policy(text: str) -> str:
    """`all`, `root` or `none`."""
    if text not in HOLD_POLICIES:
        raise ValueError("must be %s, not %r" % (" or ".join(HOLD_POLICIES), text))
    return text


def parse_size(text: str) -> int:
    """Bytes from `4096`, `64K`, `100M` or `4G` (powers of 1024)."""
    power = "KMGT".find(text[-1:].upper()) + 1 if text else 0
    digits = text[:-1] if power else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("must be a size like 100M or 4G, not %r" % text)
    return int(digits) << 10 * power


def parse_rewrite(text: str) -> dict[int, int]:
    """Signals from `USR1:TERM,HUP:0`: each is forwarded as the other, or with 0 not at all."""
    from trainwatch_launcher.signals import number_of

    pairs = {}
    for part in text.split(","):
        taken, _, sent = part.partition(":")
        source, goal = number_of(taken), 0 if sent.strip() == "0" else number_of(sent)
        if source is None or goal is None:
            raise ValueError("must be signals like USR1:TERM or HUP:0, not %r" % part)
        pairs[source] = goal
    return pairs


def parse_pattern(text: str) -> Pattern:
    """A regular expression whose named groups are values of progress."""
    from trainwatch_launcher.progress.explicit import Pattern

    return Pattern(text)


def parse_stall(text: str) -> float | None:
    """Seconds as in `parse_duration`, or None from `auto`."""
    return None if text == "auto" else parse_duration(text)


class Option:
    """One option: its names, how its value is read, and what help says.

    `parse` is None for a switch. One that may be given `many` times is a list; its variable has one value a line.
    """

    def __init__(
        self, flag: str, field: str, parse: Callable[[str], Any] | None, value: str, help: str, env: str,
        many: bool = False,
    ) -> None:
        self.flag, self.field, self.parse, self.value, self.help, self.env = flag, field, parse, value, help, env
        self.many = many


WHERE, WHO, HOLD, RUNNING = "Where it writes", "Who am I", "After a failure", "While it runs"
WATCH = "What it looks at"

OPTIONS = {
    WHERE: [
        Option(
            "--run-dir", "run_dir", parse_text, "DIR",
            "the run directory itself, the same for all workers",
            "TRAINWATCH_RUN_DIR",
        ),
        Option(
            "--root", "root", parse_text, "DIR",
            "where runs are kept: the run directory is DIR/RUN_ID (default ./runs)",
            "TRAINWATCH_ROOT",
        ),
        Option(
            "--run-id", "run_id", parse_text, "ID",
            "the run's name, the same for all workers (default: the engine's job)",
            "TRAINWATCH_RUN_ID",
        ),
        Option(
            "--share-group", "share_group", None, "",
            "let the files' group read and act, not only their owner",
            "TRAINWATCH_SHARE_GROUP",
        ),
    ],
    WHO: [
        Option(
            "--rank", "rank", parse_count, "N",
            "this worker's rank (default: found from the engine's variables)",
            "TRAINWATCH_RANK",
        ),
        Option(
            "--world-size", "world_size", parse_world_size, "N",
            "how many ranks the run has",
            "TRAINWATCH_WORLD_SIZE",
        ),
        Option(
            "--local-rank", "local_rank", parse_count, "N",
            "this worker's rank on its node",
            "TRAINWATCH_LOCAL_RANK",
        ),
    ],
    HOLD: [
        Option(
            "--hold", "hold", parse_duration, "SECONDS",
            "keep a failed container this long for debugging, like 90s, 10m, 2h; 0: not (default 10000)",
            "TRAINWATCH_HOLD",
        ),
        Option(
            "--hold-on", "hold_on", parse_codes, "CODES",
            "hold only on these exit codes, like 1,3,128-255",
            "TRAINWATCH_HOLD_ON",
        ),
        Option(
            "--no-hold-on", "no_hold_on", parse_codes, "CODES",
            "never hold on these exit codes",
            "TRAINWATCH_NO_HOLD_ON",
        ),
        Option(
            "--hold-policy", "hold_policy", parse_policy, "WHO",
            "hold all failed workers, none, or only the root: not those that died of another's failure (default all)",
            "TRAINWATCH_HOLD_POLICY",
        ),
    ],
    RUNNING: [
        Option(
            "--drain-timeout", "drain_timeout", parse_duration, "SECONDS",
            "wait this long for output of processes left behind (default 5)",
            "TRAINWATCH_DRAIN_TIMEOUT",
        ),
        Option(
            "--grace", "grace", parse_duration, "SECONDS",
            "between TERM and KILL for processes left behind (default 10)",
            "TRAINWATCH_GRACE",
        ),
        Option(
            "--kill-after", "kill_after", parse_duration, "SECONDS",
            "KILL the command this long after a stop signal (default: never)",
            "TRAINWATCH_KILL_AFTER",
        ),
        Option(
            "--stop-on-peer-failure", "stop_on_peer_failure", parse_duration, "SECONDS",
            "stop the command this long after another rank has failed: TERM, then KILL (default: never)",
            "TRAINWATCH_STOP_ON_PEER_FAILURE",
        ),
        Option(
            "--rewrite", "rewrite", parse_rewrite, "SIGNALS",
            "forward a signal as another, like USR1:TERM, or HUP:0 for not at all",
            "TRAINWATCH_REWRITE",
        ),
        Option(
            "--pty", "pty", None, "",
            "give the command a terminal, for progress bars and programs that ask for one",
            "TRAINWATCH_PTY",
        ),
        Option(
            "--console-prefix", "console_prefix", None, "",
            "begin each console line with [time] [worker-N]; the log stays raw",
            "TRAINWATCH_CONSOLE_PREFIX",
        ),
        Option(
            "--spool-max", "spool_max", parse_size, "SIZE",
            "how much output waits on local disk for a console or log that hangs (default 4G)",
            "TRAINWATCH_SPOOL_MAX",
        ),
        Option(
            "--heartbeat", "heartbeat", parse_duration, "SECONDS",
            "longest time between two status snapshots (default 5)",
            "TRAINWATCH_HEARTBEAT",
        ),
        Option(
            "--buffered", "buffered", None, "",
            "do not set PYTHONUNBUFFERED=1 for the command",
            "TRAINWATCH_BUFFERED",
        ),
        Option(
            "--leave-orphans", "leave_orphans", None, "",
            "let processes live that the command left behind",
            "TRAINWATCH_LEAVE_ORPHANS",
        ),
        Option(
            "--strict", "strict", None, "",
            "run a bash script with errexit, nounset and pipefail, and every bash that it starts too",
            "TRAINWATCH_STRICT",
        ),
        Option(
            "--no-lint", "no_lint", None, "",
            "do not look at the start script for what would hide a failure",
            "TRAINWATCH_NO_LINT",
        ),
        Option(
            "--quiet", "quiet", None, "",
            "say nothing on stderr but errors and the failure banner",
            "TRAINWATCH_QUIET",
        ),
    ],
    WATCH: [
        Option(
            "--no-gpu", "no_gpu", None, "",
            "do not read the GPUs (NVML)",
            "TRAINWATCH_NO_GPU",
        ),
        Option(
            "--progress-pattern", "progress_patterns", parse_pattern, "REGEX",
            "read progress by this too, like 'it (?P<step>\\d+): L=(?P<loss>\\S+)'; may be repeated",
            "TRAINWATCH_PROGRESS_PATTERN", many=True,
        ),
        Option(
            "--stall-after", "stall_after", parse_stall, "SECONDS",
            "say that it stalls after so long without output or progress; 0: never (default auto)",
            "TRAINWATCH_STALL_AFTER",
        ),
        Option(
            "--stall-dump", "stall_dump", None, "",
            "when it stalls, take the stacks of its processes into stacks-N.txt",
            "TRAINWATCH_STALL_DUMP",
        ),
        Option(
            "--faulthandler", "faulthandler", None, "",
            "arm the Pythons that it starts, so that their stacks can be taken without py-spy",
            "TRAINWATCH_FAULTHANDLER",
        ),
    ],
}

USAGE = "trainwatch-launch [options] -- COMMAND [ARG...]"


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Options from the command line (without the program's name) and TRAINWATCH_* variables; the command line wins.

    Raises UsageError. `--help` and `--version` are the caller's business.
    """
    options = Options()
    table = {option.flag: option for group in OPTIONS.values() for option in group}
    given: set[str] = set()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            options.command = rest
            break
        if not word.startswith("-") or word == "-":
            options.command = [word, *rest]
            break
        flag, equals, value = word.partition("=")
        option = table.get(flag)
        if option is None:
            raise UsageError("unknown option %s%s; see --help" % (flag, suggestion(flag, table)))
        if option.parse is None:
            if equals:
                raise UsageError("%s takes no value" % flag)
            setattr(options, option.field, True)
        else:
            if not equals:
                if not rest or rest[0] == "--":
                    raise UsageError("%s needs %s" % (flag, option.value))
                value = rest.pop(0)
            assign(options, option, value, flag)
        given.add(option.field)
    if not options.command:
        raise UsageError("no command: %s" % USAGE)
    from_environment(options, environ, given)
    if "run_dir" in given and "root" in given:
        raise UsageError("--run-dir names the run directory itself and --root its parent: give one of them")
    if options.heartbeat < 0.1:
        raise UsageError("--heartbeat must be at least 0.1 seconds")
    return options


def from_environment(options: Options, environ: Mapping[str, str], given: set[str]) -> None:
    """Fill what the command line did not say from TRAINWATCH_* variables."""
    for group in OPTIONS.values():
        for option in group:
            value = environ.get(option.env, "")
            if not value or option.field in given:
                continue
            if {"run_dir": "root", "root": "run_dir"}.get(option.field) in given:
                continue  # the command line said where, in the other way
            if option.parse is None:
                setattr(options, option.field, value not in ("0", "no", "false"))
            else:
                for part in filter(None, value.splitlines()) if option.many else [value]:
                    assign(options, option, part, option.env)


def assign(options: Options, option: Option, value: str, said: str) -> None:
    """Read one value into its field; `said` names where it stood."""
    parse_value = option.parse
    assert parse_value is not None
    try:
        read = parse_value(value)
        setattr(options, option.field, [*getattr(options, option.field), read] if option.many else read)
    except ValueError as error:
        raise UsageError("%s %s" % (said, error)) from None


def suggestion(flag: str, table: dict[str, Option]) -> str:
    """`, did you mean --hold?` for a near miss, else nothing."""
    import difflib  # only on the way to an error

    near = difflib.get_close_matches(flag, list(table), 1, 0.7)
    return ", did you mean %s?" % near[0] if near else ""


def environment() -> Mapping[str, str]:
    """The process's environment as text, undecodable bytes as surrogate escapes."""
    return os.environ
