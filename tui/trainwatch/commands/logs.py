"""`trainwatch logs`: logs for pipes, of one rank or of many as one, filtered, from any moment on, followed."""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from trainwatch.commands import logs_reading
from trainwatch.commands.arguments import ranks
from trainwatch.commands.logs_reading import Line, NothingError, Reading
from trainwatch.commands.targets import Followed, run_directory
from trainwatch.loglist import is_log
from trainwatch.model import naming
from trainwatch.sources.base import SourceError
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.query import Query, QueryError
from trainwatch_launcher.reader.runs import TargetError
from trainwatch_launcher.textline import plain

DESCRIPTION = (
    "Print the logs of a run, or logs that no launcher wrote, for pipes: one rank's as it is, several ranks' with the "
    "rank before each line."
)
EPILOG = """\
Without --rank the newest attempt of each rank. Several ranks come one after the other, or with --merge (and with -f)
as one in the order of time, on clocks that are corrected as far as the run directory tells. A terminal gets plain
text; a pipe or a file gets the bytes of the log as they are. An expression is one of Python's, for one line.

With --json each line is an object: {"rank", "attempt", "local_rank", "label", "time", "line", "offset", "text"};
time is in Unix seconds, line counts from 1, offset is in bytes; "context": true marks lines that -C added.

exit codes:
  0    lines were printed
  1    there were none
  2    TARGET is no run and no log that can be read, there is no such rank or phase, or the options make no sense
  130  ctrl-c     141  whoever read us has left

examples:
  trainwatch logs RUN --rank 3 --tail 100
  trainwatch logs RUN --merge --since -10m | less -R
  trainwatch logs RUN --grep 'loss=nan' -C 3
  trainwatch logs RUN -f --grep 'Error|Traceback'      all ranks, as it happens, until the run ends
  trainwatch logs slurm-991-*.out --merge -f            as for `trainwatch LOG...`: ranks from the names
  trainwatch logs RUN --rank 0 --phase Train --json | jq -r .text
"""
FOLLOWED_FROM = 10
"""Lines before the end from which a log is followed, unless something else is said."""


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch logs`."""
    made = argparse.ArgumentParser(
        prog="trainwatch logs", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("target", metavar="TARGET", help="a run as for `trainwatch`, or a log, or a directory of logs")
    made.add_argument("more", metavar="LOG", nargs="*", help="more logs that no launcher wrote")
    made.add_argument("--rank", type=ranks, metavar="LIST", help="which ranks: 2, 0-7 or 0-7,12; 2#1, 2.0")
    made.add_argument("-f", "--follow", action="store_true", help="go on as lines come, until all of them have ended")
    made.add_argument("--merge", action="store_true", help="as one, in the order of time")
    made.add_argument("--grep", metavar="RE", help="only lines that match this expression")
    made.add_argument("-F", "--fixed", action="store_true", help="RE is text, no expression")
    made.add_argument("-i", "--ignore-case", action="store_true", help="capitals are as good as small letters")
    made.add_argument("-v", "--invert", action="store_true", help="only lines that do not match")
    made.add_argument("-C", "--context", type=_count, default=0, metavar="N", help="N lines around each, too")
    made.add_argument("--since", metavar="T", help="from then on: -10m (before the end), 12:31:05, 2025-11-30 12:31")
    made.add_argument("--tail", type=_count, metavar="N", help="only the last N lines of each rank, or of all merged")
    made.add_argument("--phase", metavar="NAME", help="only what was written in this phase")
    made.add_argument("--json", action="store_true", help="an object for each line")
    return made


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_intermixed_args(_joined(argv))
    query = _query(options)
    followed, inside = _opened([options.target, *options.more])
    keys = _chosen(followed, options.rank, inside)
    if not keys:
        print("trainwatch: there is no rank yet", file=sys.stderr)
        return 1
    tail = options.tail
    if options.follow and tail is None and options.since is None and options.phase is None:
        tail = FOLLOWED_FROM
    reading = Reading(followed, query, options.context, options.since, tail, options.phase)
    writer = _Writer(followed, keys, options.json)
    try:
        if options.follow:
            writer.write(reading.follow(keys))
        elif options.merge or len(keys) == 1:
            writer.write_all(reading, keys)
        else:
            for key in keys:
                writer.write_all(reading, (key,))
    except NothingError as error:
        raise TargetError(str(error)) from None
    except SourceError as error:
        print(f"trainwatch: {error}", file=sys.stderr)
        return 2
    finally:
        sys.stdout.flush()
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            sys.stdout.buffer.flush()
        followed.close()
    return 0 if writer.count else 1


def _opened(targets: list[str]) -> tuple[Followed, AttemptKey | None]:
    """The run that is meant, or the logs, and the attempt whose directory was named. Raises TargetError."""
    if len(targets) > 1:
        return Followed("", logs=targets), None
    try:
        target = run_directory(targets[0])
    except TargetError:
        if not is_log(targets[0]):
            raise
        return Followed("", logs=targets), None
    return Followed(target.path), target.key


def _joined(argv: list[str]) -> list[str]:
    """`--since -10m` as one word: what begins with a dash is an option for argparse."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--since" and word[:1] == "-" and word[1:2].isdigit():
            joined[-1] = f"--since={word}"
        else:
            joined.append(word)
    return joined


def _query(options: argparse.Namespace) -> Query | None:
    if options.grep is None:
        if options.invert or options.fixed or options.ignore_case:
            raise TargetError("-i, -v and -F say how --grep RE is meant, and there is none")
        return None
    try:
        return Query(options.grep, not options.fixed, not options.ignore_case, options.invert)
    except QueryError as error:
        raise TargetError(f"--grep {options.grep}: {error}") from None


def _count(written: str) -> int:
    if not written.isdecimal() or len(written) > 12:
        raise argparse.ArgumentTypeError(f"must be a number of lines, not {written!r}")
    return int(written)


def _chosen(
    followed: Followed, names: tuple[naming.Name, ...] | None, inside: AttemptKey | None
) -> tuple[AttemptKey, ...]:
    """The attempts that are meant, in their order. Raises TargetError."""
    run = followed.run
    if names is None:
        current = [attempt.key for attempt in run.current() if inside is None or attempt.key.rank == inside.rank]
        exact = [key for key in run.order if inside is not None and inside.attempt and key == inside]
        return tuple(exact or current)
    found: set[AttemptKey] = set()
    for name in names:
        keys = [key for key in run.order if name.covers(key)]
        if name.attempt is None:
            keys = [key for key in keys if key not in run.superseded]
        if name.local_rank is None and not name.is_span:
            keys = [key for key in keys if key.local_rank < 0] or keys
        if not keys and not name.is_span:
            raise TargetError(f"there is no rank {name.written}; there are {naming.spans(k.rank for k in run.order)}")
        found.update(keys)
    return tuple(sorted(found))


class _Writer:
    """Writes lines to standard output, as bytes where they go into a pipe."""

    def __init__(self, followed: Followed, keys: tuple[AttemptKey, ...], as_json: bool) -> None:
        self.count = 0
        self._followed, self._json = followed, as_json
        self._terminal = sys.stdout.isatty()
        self._labels = {key: followed.run.label(key) for key in keys}
        self._prefixes = {key: b"" if len(keys) == 1 else f"[{label}] ".encode() for key, label in self._labels.items()}

    def write_all(self, reading: Reading, keys: tuple[AttemptKey, ...]) -> None:
        """All that is asked for of these logs, as it is now."""
        as_bytes = reading.is_plain and not self._followed.is_part(keys[0])
        if len(keys) == 1 and not self._json and not self._terminal and as_bytes:
            for data in reading.copy(keys[0], self._prefixes[keys[0]]):
                sys.stdout.buffer.write(data)
                self.count += 1
            return
        self.write(reading.read(keys))

    def write(self, batches: Iterator[list[Line]]) -> None:
        """Lines as they come."""
        out = sys.stdout.buffer
        for batch in batches:
            self.count += len(batch)
            if self._json:
                out.write("".join(self._object(line) for line in self._numbered(batch)).encode())
            else:
                out.write(b"".join(self._prefixes[line.key] + self._shown(line.data) + b"\n" for line in batch))
            out.flush()

    def _shown(self, data: bytes) -> bytes:
        """A terminal gets no sequence that could act on it."""
        return plain(data).encode("utf-8", "replace") if self._terminal else data

    def _numbered(self, batch: list[Line]) -> list[Line]:
        return logs_reading.numbered(self._followed, batch)

    def _object(self, line: Line) -> str:
        key = line.key
        value = {
            "rank": key.rank, "attempt": key.attempt, "local_rank": key.local_rank if key.local_rank >= 0 else None,
            "label": self._labels[key], "time": line.time or None, "line": line.number, "offset": line.offset,
            "text": line.data.decode("utf-8", "replace"), **({"context": True} if line.context else {}),
        }  # fmt: skip
        return json.dumps(value, ensure_ascii=self._terminal) + os.linesep
