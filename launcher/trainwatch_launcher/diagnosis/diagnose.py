"""The way in: a log's text and the launcher's facts become one diagnosis."""
from __future__ import annotations

import re
from dataclasses import replace

from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.answer import NONE, UNKNOWN, Diagnosis, Evidence, Inner
from trainwatch_launcher.diagnosis.facts import (
    Facts,
    end_of,
    ended_by,
    gpu_fault,
    hint_of,
    out_of_memory,
    sender,
    stop_kind,
)
from trainwatch_launcher.diagnosis.judge import Case
from trainwatch_launcher.diagnosis.lines import Text
from trainwatch_launcher.diagnosis.ranks import Who, same_fault
from trainwatch_launcher.diagnosis.watchdog import collectives
from trainwatch_launcher.diagnosis.when import time_of
from trainwatch_launcher.signals import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.frames import Frame
    from trainwatch_launcher.diagnosis.statements import Statement

MOST_TEXT = 1 << 20
"""Bytes at the end of a log that are looked at."""
LONGEST_EVIDENCE = 300
NO_FACTS = Facts()
PID = re.compile(r"(?:\bpid[ =:]{1,2}|Killed process |\bPID )(\d{1,9})\b", re.IGNORECASE)
IMPLIED = {"command_error": 127, "usage_error": 2, "time_limit": 124}
"""Exit codes that a kind's own words imply."""


def diagnose(data: bytes, facts: Facts = NO_FACTS, rank: int | None = None) -> Diagnosis:
    """Why a command failed, from the end of its output and what is known beside it.

    Only the last MOST_TEXT bytes count; lines and offsets are those of `data` (see `Diagnosis.at` to move them).
    `rank` is whose log it is; None when it may be of several ranks. With exit code 0 nothing failed.
    """
    if facts.exit_code == 0:
        return Diagnosis(exit_code=0)
    skipped, start = 0, 0
    if len(data) > MOST_TEXT:
        start = data.find(b"\n", len(data) - MOST_TEXT) + 1 or len(data) - MOST_TEXT
        skipped = data.count(b"\n", 0, start)
        data = data[start:]
    case = Case(Text(data, rank), facts)
    found = _diagnosis(case)
    return found.at(skipped, start) if skipped or start else found


def _diagnosis(case: Case) -> Diagnosis:
    ranked = case.ranked()
    stated = _beyond_the_log(case, ranked[0] if ranked else None)
    if stated is not None:
        return stated
    if not ranked or (ranked[0].echo and "ChildFailedError" in ranked[0].text and case.proven):
        return _silent(case) if case.proven else _well(case)
    return _told(case, ranked)


def _well(case: Case) -> Diagnosis:
    """Nothing failed, as far as the log tells; its last line is what it was at."""
    text = case.text
    last = next((index for index in range(len(text) - 1, -1, -1) if text[index].body.strip()), None)
    before = None if last is None else Evidence(last + 1, text[last].stated.strip()[:LONGEST_EVIDENCE])
    finished = case.course.finished >= 0
    collective = collectives(text).get(text.rank)
    when = None if last is None else time_of(text, last)
    return Diagnosis(
        exit_code=case.facts.exit_code, before=before, finished=finished, collective=collective, time=when
    )


def _told(case: Case, ranked: list[Statement]) -> Diagnosis:
    """The diagnosis that the likeliest statement makes."""
    chosen, text = ranked[0], case.text
    who = Who(text, chosen, [one for one in case.stated if one.line > case.since], case.agents, case.ends)
    other = next((one for one in ranked[1:] if not one.echo and not _tells_the_same(one, chosen)), None)
    frame = _frame(case, chosen)
    known = collectives(text)
    return Diagnosis(
        kind=chosen.kind.name,
        family=chosen.kind.family,
        summary=_summary(case, chosen),
        line=chosen.line + 1,
        offset=text.offset(chosen.line),
        frame=str(frame) if frame is not None else "",
        path=frame.path if frame is not None else "",
        rank=who.rank,
        exit_code=_exit_code(case, chosen, who.rank),
        confidence=_confidence(case, chosen, other),
        collateral=chosen.role == table.COLLATERAL,
        hint=chosen.hint,
        evidence=_evidence(case, chosen, other),
        runner_up="%s: %s" % (other.kind.name, other.text[:200])
        if other is not None and other.level == chosen.level
        else "",
        time=time_of(text, chosen.line),
        collateral_ranks=who.collateral,
        inner=_inner(case, chosen, who),
        collective=known.get(who.rank) or known.get(None),
        before=_before(case, chosen),
        pid=_pid(chosen.text),
    )


def _frame(case: Case, chosen: Statement) -> Frame | None:
    """The user's own innermost frame: of the statement's traceback, or of one after it that tells of the same."""
    if chosen.chain is not None:
        return chosen.chain.frame
    for one in case.stated:
        if one.line > chosen.line and one.chain is not None and one.kind is chosen.kind and one.stream == chosen.stream:
            return one.chain.frame
    return None


def _tells_the_same(one: Statement, chosen: Statement) -> bool:
    """Whether a statement only says again what the chosen one says, in its words or as its effect."""
    return one.kind is chosen.kind or same_fault(one, chosen)


def _summary(case: Case, chosen: Statement) -> str:
    """The statement's words; of a death by signal what the agent's table says of it."""
    words = chosen.text
    if chosen.kind.name in ("killed", "native_crash"):
        ending = next((one for one in case.ends if one.line == chosen.line), None)
        if ending is not None and ending.words:
            words = ending.words
        elif chosen.kind.name == "native_crash":
            signalled = next((one.words for one in case.ends if one.first and one.words.startswith("Signal ")), "")
            words += "; " + signalled if signalled else ""
    if chosen.kind.name == "command_error" and "exit" not in words and "not found" in words:
        words += " (exit 127)"
    return " ".join(words.split())


def _before(case: Case, chosen: Statement) -> Evidence | None:
    """The last line of the same stream before anything in it tells of trouble."""
    text = case.text
    first = min((one.line for one in case.troubles() if one.stream == chosen.stream), default=chosen.line)
    if chosen.chain is not None:
        first = min(first, chosen.chain.start)
    for index in range(min(first, chosen.line) - 1, max(-1, first - 2000), -1):
        line = text[index]
        if line.stream == chosen.stream and line.body.strip():
            return Evidence(index + 1, line.stated.strip()[:LONGEST_EVIDENCE])
    return None


def _pid(words: str) -> int | None:
    """The process that a line names."""
    match = PID.search(words)
    return int(match.group(1)) if match else None


def _exit_code(case: Case, chosen: Statement, rank: int | None) -> int | None:
    """The exit code: the launcher's, the one stated of that rank, the first one stated, or what the words imply."""
    if case.facts.exit_code is not None:
        return case.facts.exit_code
    bad = [one for one in case.ends if one.code and one.line > case.since]
    for one in sorted(bad, key=lambda one: not one.first):
        if rank is not None and rank in one.ranks:
            return one.code
    first = next((one for one in bad if one.first), None) or (bad[0] if bad else None)
    if first is not None:
        return first.code
    if chosen.chain is not None:
        return chosen.code
    if "can't open file" in chosen.text:
        return 2
    if chosen.kind.name == "permission" and ": line " in chosen.text:
        return 126
    implied = IMPLIED.get(chosen.kind.name, chosen.code)
    raised = any(one.chain is not None and not one.soft for one in case.stated)
    return 1 if implied is None and raised else implied


def _confidence(case: Case, chosen: Statement, other: Statement | None) -> float:
    sure = chosen.sure
    if not case.proven:
        sure -= 0.1
    if chosen.role == table.COLLATERAL:
        sure = min(sure, 0.7)
    if chosen.role == table.WEAK or chosen.echo:
        sure = min(sure, 0.6)
    if other is not None and other.level == chosen.level and other.kind is not chosen.kind and not other.soft:
        sure -= 0.15
    return round(max(0.1, sure), 2)


def _evidence(case: Case, chosen: Statement, other: Statement | None) -> tuple[Evidence, ...]:
    text = case.text
    lines = [chosen.line]
    if chosen.chain is not None:
        lines += [one.line for one in chosen.chain.raised if one.line is not None][:3]
    if case.proof is not None:
        lines.append(case.proof.line)
    if other is not None:
        lines.append(other.line)
    return tuple(Evidence(at + 1, text[at].stated.strip()[:LONGEST_EVIDENCE]) for at in dict.fromkeys(lines))


def _inner(case: Case, chosen: Statement, who: Who) -> tuple[Inner, ...]:
    """What is known of single ranks of a log of several."""
    if case.text.rank is not None:
        return ()
    found: dict[int, Inner] = {}
    for one in case.stated:
        if one.rank is not None and not one.soft and one.line > case.since:
            known = found.get(one.rank)
            if known is None or table.LEVELS[table.kind(known.kind).role] > one.level:
                found[one.rank] = Inner(
                    one.rank, one.kind.name, None, one.line + 1, time_of(case.text, one.line), one.text[:200]
                )
    for ending in case.ends:
        for rank in ending.ranks[:4096]:
            known = found.get(rank) or Inner(rank, "", None, ending.line + 1, ending.time)
            when, victim = ending.time or known.time, known.victim or rank in who.collateral
            pid = ending.pid or known.pid
            found[rank] = Inner(rank, known.kind, ending.code, known.line, when, known.summary, pid, victim)
    if who.rank is not None and who.rank not in found and (who.collateral or found):
        found[who.rank] = Inner(who.rank, chosen.kind.name, None, chosen.line + 1, None, chosen.text[:200])
    for place, collective in collectives(case.text).items():
        if place is not None:
            found[place] = replace(found.get(place) or Inner(place), collective=collective)
    for rank in who.collateral:
        found[rank] = replace(found.get(rank) or Inner(rank), victim=True)
    return tuple(found[rank] for rank in sorted(found))[:4096]


def _first(case: Case) -> int | None:
    """The rank that somebody says failed first."""
    first = {one.rank for one in case.ends if one.first and one.line > case.since}
    if not first and case.proof is not None and case.proof.by == "slurm":
        return case.proof.rank
    return first.pop() if len(first) == 1 else None


def _inner_ends(case: Case) -> tuple[Inner, ...]:
    """How single ranks ended, of a log that says nothing else."""
    if case.text.rank is not None:
        return ()
    found: dict[int, Inner] = {rank: Inner(rank, victim=True) for rank in case.agents.victims()}
    for ending in case.ends:
        for rank in ending.ranks[:4096]:
            victim = rank in found and found[rank].victim
            found[rank] = Inner(rank, "", ending.code, ending.line + 1, ending.time, "", ending.pid, victim)
    return tuple(found[rank] for rank in sorted(found))[:4096]


def _beyond_the_log(case: Case, chosen: Statement | None) -> Diagnosis | None:
    """What the machine says where the log can only tell the effect, or says nothing."""
    facts = case.facts
    kinds = ("killed", "native_crash", "dataloader", "peer_lost", "nccl_timeout", "unknown")
    if chosen is None or chosen.kind.name in (*kinds, "cuda_fault", "cuda_setup", "nccl_error", "python_error"):
        words = gpu_fault(facts)
        if words:
            return _stated(case, "gpu_hardware", words, 0.9, chosen)
    if chosen is None or chosen.kind.name in kinds:
        words = out_of_memory(facts)
        if words and (ended_by(facts) == 9 or chosen is None or chosen.kind.name == "dataloader"):
            return _stated(case, "host_oom", words, 0.9, chosen)
    if facts.stopped_for:
        words = "stopped (--stop-on-peer-failure): %s" % facts.stopped_for
        return _stated(case, "peer_lost", words, 0.95, chosen)
    if facts.stop_signal is not None and (chosen is None or chosen.role not in (table.CAUSE, table.FACT, table.STOP)):
        words = "asked to stop with %s%s" % (name_of(facts.stop_signal), sender(facts))
        return _stated(case, stop_kind(facts), words, 0.7, chosen)
    return None


def _stated(case: Case, kind: str, words: str, sure: float, chosen: Statement | None) -> Diagnosis:
    """A diagnosis by what the launcher knows; the log's own statement is the line to look at."""
    row, facts = table.kind(kind), case.facts
    line = None if chosen is None else chosen.line + 1
    evidence = [Evidence(None, words)]
    if chosen is not None:
        evidence += _evidence(case, chosen, None)
    return Diagnosis(
        kind=kind, family=row.family, summary=words, line=line,
        offset=None if chosen is None else case.text.offset(chosen.line),
        rank=case.text.rank, exit_code=facts.exit_code, confidence=sure, hint=row.hint,
        collateral=row.role == table.COLLATERAL, evidence=tuple(evidence),
        time=None if chosen is None else time_of(case.text, chosen.line),
    )  # fmt: skip


def _silent(case: Case) -> Diagnosis:
    """A failure of which the log says nothing: what its exit says, and its last line."""
    facts, text = case.facts, case.text
    proof = case.proof
    code = facts.exit_code if facts.exit_code is not None else (proof.code if proof is not None else None)
    kind, words = end_of(code, facts.signal)
    last = next((index for index in range(len(text) - 1, -1, -1) if text[index].body.strip()), None)
    shown = "" if last is None else text[last].stated.strip()[:LONGEST_EVIDENCE]
    if facts.spawn_error:
        words = facts.spawn_error
    elif facts.core_dumped:
        words += ", core dumped"
    elif kind == "killed" and facts.oom_kills == 0:
        words += " from outside: not counted as out of memory in this container"
    if proof is not None and not words:
        words = proof.words
    kind = kind or UNKNOWN
    if not words:
        words = "exit code %s without a word why" % code + ("; the last line: %s" % shown if shown else "")
    row = table.kind(kind)
    place = proof.line if proof is not None else last
    evidence = [Evidence(place + 1, text[place].stated.strip()[:LONGEST_EVIDENCE])] if place is not None else []
    return Diagnosis(
        kind=kind, family=row.family, summary=" ".join(words.split()), line=None if place is None else place + 1,
        offset=None if place is None else text.offset(place), rank=text.rank if text.rank is not None else _first(case),
        exit_code=code, confidence=0.1 if kind == UNKNOWN else 0.6, hint=hint_of(kind), evidence=tuple(evidence),
        collective=collectives(text).get(text.rank), silent=True, inner=_inner_ends(case),
        before=Evidence(last + 1, shown) if last is not None else None,
    )  # fmt: skip


__all__ = ["MOST_TEXT", "NONE", "Facts", "diagnose"]
