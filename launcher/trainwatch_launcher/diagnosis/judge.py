"""Which of several statements is the cause, and how sure that is."""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.course import Course
from trainwatch_launcher.diagnosis.elastic import Agents
from trainwatch_launcher.diagnosis.endings import endings
from trainwatch_launcher.diagnosis.facts import Facts, end_of
from trainwatch_launcher.diagnosis.levels import SCHEDULED
from trainwatch_launcher.diagnosis.ranks import fingerprint, same_fault
from trainwatch_launcher.diagnosis.statements import Statement, of_bare_exceptions, of_chain, of_lines
from trainwatch_launcher.diagnosis.tracebacks import chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.endings import Ending
    from trainwatch_launcher.diagnosis.lines import Text

ECHOES = frozenset(("native_crash", "killed"))
"""Kinds that may only be how a process ended that has said why before."""
WENT_ON = 6
"""So many ordinary lines of the same program after a traceback show that it was caught."""

SWEPT = 143
"""The exit code of a process that was asked to end, mostly because another had failed."""
LOOK_ON = 400
"""So many lines after one are looked at for it."""
SHELL = re.compile(r": command not found$|^(?:mkdir|cp|mv|rm|cat|ls|ln|tar|cd|source|bash|sh|touch|chmod): .{1,400}: "
                   r"(?:No such file or directory|Permission denied|Operation not permitted|Read-only file system)$")
TIDYING = re.compile(
    r"^(?:cp|mv|rm|cat|ls|tar|touch|chmod): .{1,400}: (?:No such file or directory|Permission denied)$"
)
STARTER = re.compile(r"\b(?:torchrun|python[\d.]{0,5}|deepspeed|accelerate|srun|mpirun|mpiexec|horovodrun|ray|msrun)"
                     r": command not found$")
"""What a job is for; a script that does without it has failed, whatever it does then."""
LONG_AGO = 40
"""So many other lines of the same program after a doubtful one show that it went on."""


class Case:
    """All that one log and its facts say, put in order."""

    def __init__(self, text: Text, facts: Facts) -> None:
        self.text, self.facts = text, facts
        self.agents = Agents(text)
        self.since = self.agents.restarts[-1] if self.agents.restarts else -1
        """The line of the last restart; what came before was got over."""
        self.ends = sorted(endings(text) + self.agents.endings(text), key=lambda one: one.line)
        self.course = Course(text)
        self.stated = self._statements()
        self.proof = self._proof()

    @property
    def proven(self) -> bool:
        """Whether it is certain that something failed."""
        return bool(self.facts.exit_code) or self.facts.signal is not None or self.proof is not None

    def choose(self) -> Statement | None:
        """The statement of the cause; None when nothing failed or nothing says why."""
        ranked = self.ranked()
        return ranked[0] if ranked else None

    def ranked(self) -> list[Statement]:
        """Statements that can be the cause, the likeliest first."""
        if self.facts.exit_code == 0:
            return []
        real = [one for one in self.stated if not one.soft and not self._got_over(one) and not self._shrugged_off(one)]
        if not real or all(one.echo for one in real):
            if self.proven:
                soft = [one for one in self.stated if not self._got_over(one) and not self._long_ago(one)]
                real = soft or [one for one in self.stated if one.line > self.since and not one.soft] or real
            elif not real:
                real = self._last_words()
        return self._last_command(self._raised_too(sorted(real, key=self._order)))

    def _raised_too(self, ranked: list[Statement]) -> list[Statement]:
        """What was logged and then raised in the same words is told best by the exception, which has frames."""
        if not ranked or ranked[0].chain is not None or ranked[0].role != table.CAUSE:
            return ranked
        first = ranked[0]
        for one in ranked[1:]:
            words = one.text.partition(": ")[2][:60] if one.chain is not None else ""
            if len(words) > 12 and words in first.text and one.kind is first.kind and one.stream == first.stream:
                return [one, *(other for other in ranked if other is not one)]
        return ranked

    def troubles(self) -> list[Statement]:
        """Statements without those that were only warnings, or that the program went on after."""
        return [
            one
            for one in self.stated
            if not (one.soft and one.role == table.CAUSE)
            and not (self._got_over(one) or self._went_past(one) or self._shrugged_off(one))
        ]

    def _last_command(self, ranked: list[Statement]) -> list[Statement]:
        """Of several commands that a shell did not find, the last: it went on after the others."""
        if not ranked or ranked[0].kind.name != "command_error" or ranked[0].chain is not None:
            return ranked
        stream = ranked[0].stream
        same = [one for one in ranked if one.stream == stream and one.text.endswith(": command not found")]
        last = max(same, key=lambda one: one.line, default=ranked[0])
        return [last, *(one for one in ranked if one is not last)]

    def _order(self, one: Statement) -> tuple[float, int, int]:
        caught = 1.0 if self._caught(one) or self._went_past(one) else 0.0
        if self._did_without(one) or self._too_late(one):
            caught = 3.0
        if one.kind.name == "cancelled" and any(other.kind.name in SCHEDULED for other in self.stated):
            caught += 0.25  # a scheduler interrupts as a person does
        return (one.level + caught, 1 if one.soft else 0, one.line)

    def _statements(self) -> list[Statement]:
        text = self.text
        found, taken = chains(text)
        stated = [of_chain(text, chain) for chain in found]
        stated += of_lines(text, taken)
        taken.update(one.line for one in stated)
        stated += of_bare_exceptions(text, taken)
        if self.course.nan is not None:
            nan = Statement(
                table.kind("nan_loss"),
                self.course.nan,
                self.course.nan,
                "the loss is NaN from here on",
                "",
                text[self.course.nan].rank,
                0.8,
            )
            stated.append(nan)
        self._own_words = [one for one in stated if not one.echo and not one.soft and one.line > self.since]
        stated += self._of_ends()
        stated.sort(key=lambda one: one.line)
        self.stated = stated
        _mark_echoes([one for one in stated if not self._did_without(one)])
        return [one for one in stated if not self._swept(one)]

    def _swept(self, one: Statement) -> bool:
        """Whether it tells of a job step that srun ended because one of its tasks had failed: nobody cancelled that."""
        words = one.text.upper()
        if one.kind.name != "cancelled" or "*** STEP" not in words or "DUE TO" in words:
            return False
        return any(end.by == "slurm" and end.code not in (None, 0, SWEPT) and end.line < one.line for end in self.ends)

    def _of_ends(self) -> list[Statement]:
        """What the first death says that somebody reports, for want of anything better."""
        made = self._silent_first()
        bad = [one for one in self.ends if one.code and one.line > self.since]
        firsts = [one for one in bad if one.first] or bad[:1]
        for one in firsts[:4]:
            name, words = end_of(one.code, None)
            if name in ("", "unknown"):
                continue
            kind = table.kind(name)
            shown = one.words if one.words else words
            new = Statement(kind, one.line, one.line, shown, self.text[one.line].stream, one.rank, 0.6)
            new.code = one.code
            if kind.role == table.CAUSE and name == "native_crash":
                new.role = table.WEAK
            made.append(new)
        return made

    def _silent_first(self) -> list[Statement]:
        """A worker that its agent saw fail first, with a code and without a word; others only tell of losing it."""
        told = {one.rank for one in self._own_words}
        if None in told or not told:
            return []
        made = []
        for one in self.ends:
            if one.first and one.code and one.signal is None and one.rank not in told and one.line > self.since:
                words = "rank %s ended with exit code %d without a word why" % (one.rank, one.code)
                new = Statement(table.UNKNOWN, one.line, one.line, words, self.text[one.line].stream, one.rank, 0.5)
                new.code = one.code
                made.append(new)
        return made

    def _proof(self) -> Ending | None:
        """A bad end that is stated, and after which nothing went on."""
        bad = [one for one in self.ends if one.code and one.line > self.since and not self._ended_before(one)]
        own = [one for one in bad if one.by == "slurm" and one.code != SWEPT]
        return own[0] if own and bad[-1].by == "slurm" else bad[-1] if bad else None

    def _ended_before(self, one: Ending) -> bool:
        """Whether training went on, or was said to have finished, after an end that somebody stated."""
        went_on = self.course.last.get(self.text[one.line].stream, -1) > one.line
        return went_on or 0 <= self.course.finished - one.line <= 400

    def _got_over(self, one: Statement) -> bool:
        if one.line < self.since:
            return True
        if one.kind.name == "nan_loss" and one.line == self.course.nan:
            return False
        return self.course.got_over(one.end, one.stream)

    def _caught(self, one: Statement) -> bool:
        """Whether a traceback was followed by so much other output of the same program that it cannot have ended it."""
        if one.chain is None or one.role in (table.FACT, table.STOP) or self.agents.workers:
            return False
        later = [
            other
            for other in self.stated
            if other.line > one.end and other.stream == one.stream and other.chain is not None
        ]
        if not later:
            return False
        goal = later[0].chain.start if later[0].chain is not None else later[0].line
        ordinary = sum(
            1
            for index in range(one.end + 1, goal)
            if self.text[index].stream == one.stream
            and self.text[index].body.strip()
            and self.text[index].level in (0, 1)
        )
        return ordinary >= WENT_ON

    def _went_past(self, one: Statement) -> bool:
        """Whether a program went on for long after a bare line, as if it could do without, and failed later."""
        if one.chain is not None or one.role != table.CAUSE or one.kind.family not in ("code", "data"):
            return False
        if self.text[one.line].told:
            return False
        for other in self.stated:
            mine = other.line > one.end and other.stream == one.stream and not other.soft and not other.echo
            if mine and other.level <= one.level and not same_fault(other, one):
                start = other.chain.start if other.chain is not None else other.line
                return self._went_on(one, start, WENT_ON)
        return False

    def _did_without(self, one: Statement) -> bool:
        """Whether a program found a package missing, went on for long without it, and failed of something else."""
        if one.kind.name != "dependency" or (one.chain is None and not one.soft):
            return False
        for other in self.stated:
            if other.line > one.end and not other.soft and not other.echo and not same_fault(other, one):
                start = other.chain.start if other.chain is not None else other.line
                return self._went_on(one, start, 2 * WENT_ON)
        return False

    def _too_late(self, one: Statement) -> bool:
        """Whether a script's own tidying up failed, after something else had."""
        if one.chain is not None or not TIDYING.search(one.text):
            return False
        return any(other.line < one.line and not (other.soft or other.echo or self._got_over(other)
                   or TIDYING.search(other.text)) for other in self.stated)  # fmt: skip

    def _shrugged_off(self, one: Statement) -> bool:
        """Whether a shell said it of a command, and its script went on, to no bad end that anybody tells of."""
        if self.proven or one.chain is not None or not SHELL.search(one.text) or STARTER.search(one.text):
            return False
        return self._went_on(one, len(self.text), WENT_ON)

    def _long_ago(self, one: Statement) -> bool:
        """Whether a doubtful line stands so far before the end that it can't be why."""
        if not one.soft or one.echo or one.role != table.CAUSE or one.kind.family in ("gpu", "host"):
            return False
        last = self.proof.line if self.proof is not None and self.proof.line > one.line else len(self.text)
        return self._went_on(one, last, LONG_AGO)

    def _went_on(self, one: Statement, until: int, enough: int) -> bool:
        """Whether enough lines of the same stream that state nothing themselves come after one, before a line."""
        mine, taken = fingerprint(self.text[one.line].stated), {other.line for other in self.stated}
        seen = 0
        for index in range(one.end + 1, min(until, one.end + LOOK_ON)):
            line = self.text[index]
            if line.stream == one.stream and line.body.strip() and index not in taken:
                seen += fingerprint(line.stated) != mine
                if seen >= enough:
                    return True
        return False

    def _last_words(self) -> list[Statement]:
        """What a log ends with, when that is nothing but trouble: retries that never succeeded, an error."""
        text = self.text
        last = next((index for index in range(len(text) - 1, -1, -1) if text.lines[index].strip()), -1)
        trying = [one for one in self.stated if one.soft and not one.echo and not self._got_over(one)]
        if 0 <= last - self.course.finished <= LONG_AGO:  # what is lost when all end is no loss
            trying = [one for one in trying if one.role != table.COLLATERAL]
        ended = [one for one in trying if one.line >= last - 1]
        again = [one for one in trying if one.line >= last - 8]
        alone = len(again) < 2 and ended and ended[-1].kind.name == "network"
        return [] if alone else ended  # one try that failed is none


def _mark_echoes(stated: list[Statement]) -> None:
    """Deaths that follow a reason are no reasons."""
    for place, one in enumerate(stated):
        if one.kind.name not in ECHOES or one.echo:
            continue
        for other in stated[max(0, place - 200) : place]:
            near = other.stream == one.stream or not one.stream
            lost = other.soft and other.role == table.COLLATERAL and near and _is_abort(one)
            if other.kind.name in ECHOES or other.echo or (other.soft and not lost):
                continue
            same = other.stream == one.stream or not one.stream or one.rank is None
            aborted = one.kind.name == "native_crash" and _is_abort(one)
            ended = one.kind.name == "killed" and _ended_by_others(one) and _explains(other)
            if same and (aborted or ended):
                one.echo = True
                other.soft = False  # what was a warning is why it aborted


def _explains(other: Statement) -> bool:
    """Whether a bare death after it is the end of what it tells, and no cause of its own."""
    return other.role != table.COLLATERAL or "terminating all other" in other.text.lower()


def _is_abort(one: Statement) -> bool:
    words = one.text.lower()
    return one.code == 134 or "abort" in words or "terminate" in words or "signal 6" in words or "core dumped" in words


def _ended_by_others(one: Statement) -> bool:
    words = one.text.lower()
    return (
        "sigterm" in words or "signal 15" in words or "signal: 15" in words or words.strip() in ("killed", "terminated")
    )
