"""Who holds: which launcher keeps the container of a row alive, and which launchers a person means. Pure.

A nested launcher never holds: the one around it does, which is the container's.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainwatch.model import naming
from trainwatch.model.failure import first_failure
from trainwatch.model.rows import Row, row_of, standing
from trainwatch.model.state import Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.state import HELD, LOST


@dataclass(frozen=True)
class Picked:
    """Launchers that were meant, and what is to be said about the choice."""

    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person may not expect: another attempt than the newest, a container instead of its local rank."""
    problems: tuple[str, ...] = ()
    """Why some that were named are not among `rows`."""


def container(key: AttemptKey) -> AttemptKey:
    """The launcher that holds for an attempt: its own, or that of the container around a local rank."""
    return AttemptKey(key.rank, key.attempt)


def holder(run: Run, key: AttemptKey, now: float) -> Row | None:
    """The row of the launcher that holds for an attempt, or would; None when nothing is known of it."""
    outer = container(key)
    return row_of(run, outer, now) if outer in run.attempts else None


def hold_left(run: Run, key: AttemptKey, now: float) -> float | None:
    """Seconds for which the container of an attempt is held; None when it is not."""
    row = holder(run, key, now)
    return None if row is None else row.hold_left


def called(run: Run, key: AttemptKey) -> str:
    """The holder of an attempt in words: `rank 1`, or `rank 1's container` from one of its local ranks."""
    name = f"rank {run.label(container(key))}"
    return name if key == container(key) else f"{name}'s container"


def stand_beside(run: Run, key: AttemptKey, now: float) -> tuple[AttemptKey, str]:
    """Beside which launcher a shell is opened, and what is to be said about it, if anything.

    A local rank whose own launcher has left is looked at from its container, which may be held.
    """
    outer = holder(run, key, now)
    if key == container(key) or outer is None or not outer.live or row_of(run, key, now).live:
        return key, ""
    return outer.key, f"rank {run.label(key)} has ended; this is beside {called(run, key)}"


def may_hold(row: Row) -> bool:
    """Whether a launcher can be asked to hold longer or to let go: it holds, or looks lost with a hold that still runs.

    A hold must not run out while a person watches only because two clocks disagree; a launcher that is really gone does
    not answer, which is said.
    """
    return row.state == HELD or (row.state == LOST and bool(row.hold_left))


def held(run: Run, now: float) -> tuple[Row, ...]:
    """All launchers that hold, by rank."""
    rows = (row_of(run, key, now) for key in run.order if key == container(key))
    return tuple(row for row in rows if may_hold(row))


def collateral(run: Run, now: float) -> Picked:
    """All launchers that hold but the one where it began, which is named. Where nothing is known of that, none."""
    failure = first_failure(run, now)
    rows = held(run, now)
    if failure is None:
        return Picked(problems=("no rank has failed" if not rows else "it is not known which rank failed first",))
    outer = container(failure.key)
    others = tuple(row for row in rows if row.key != outer)
    sure = failure.cause is not None and failure.cause.clear
    kept = f"rank {run.label(outer)} is left alone: it failed first" + ("" if sure else ", as far as can be told")
    if not others:
        return Picked(problems=(f"no other rank than {run.label(outer)}, which failed first, is held",))
    return Picked(others, (kept,))


def pick_held(run: Run, names: Sequence[naming.Name], now: float) -> Picked:
    """The holding launchers that some names mean, each once.

    A rank without an attempt means its newest one; when that is not held, its only attempt that is.
    """
    found = [pick for name in names for pick in _of_name(run, name, now)]
    rows = {row.key: row for pick in found for row in pick.rows}
    return Picked(
        tuple(rows.values()),
        tuple(dict.fromkeys(note for pick in found for note in pick.notes)),
        tuple(dict.fromkeys(problem for pick in found for problem in pick.problems)),
    )


def _of_name(run: Run, name: naming.Name, now: float) -> list[Picked]:
    keys = [key for key in run.order if name.covers(key)]
    if not keys:
        return [Picked(problems=(not_there(run, name),))]
    if not name.is_span:
        return [_of_rank(run, keys, name, now)]
    ranks = sorted({key.rank for key in keys})
    picks = [_of_rank(run, [key for key in keys if key.rank == rank], name, now) for rank in ranks]
    some = [Picked(pick.rows, pick.notes) for pick in picks if pick.rows]  # of many, those that are held are meant
    return some or [Picked(problems=(f"none of the ranks {naming.spans(ranks)} is held",))]


def _of_rank(run: Run, keys: Sequence[AttemptKey], name: naming.Name, now: float) -> Picked:
    """The holder for one rank, of whose attempts `keys` are those that the name covers."""
    inner = name.local_rank is not None
    outers = sorted({container(key) for key in keys} & run.attempts.keys())
    rows = [row_of(run, key, now) for key in outers]
    candidates = [row for row in rows if may_hold(row)]
    if not rows:
        return Picked(problems=(f"nothing is known of {called(run, keys[-1])}",))
    chosen, last = None, rows[-1]
    if may_hold(last):
        chosen = last
    elif len(candidates) == 1:
        chosen = candidates[0]
    if chosen is None:
        return Picked(problems=(_not_held(rows, candidates, inner),))
    notes = []
    if chosen is not last:
        notes.append(f"rank {last.label}, the newest attempt, {standing(last.state)}; this is rank {chosen.label}")
    elif len(candidates) > 1:
        older = " and ".join(row.label for row in candidates[:-1])
        notes.append(f"this is rank {chosen.label}, the newest attempt; {older} is held too")
    if inner:
        notes.append(f"a local rank is held by its container: this is rank {chosen.label}")
    return Picked((chosen,), tuple(notes))


def _not_held(rows: Sequence[Row], candidates: Sequence[Row], inner: bool) -> str:
    if candidates:
        labels = ", ".join(row.label for row in candidates)
        return f"several attempts of rank {rows[-1].key.rank} are held, none of them the newest; name one: {labels}"
    return f"rank {rows[-1].label}{', the container,' if inner else ''} {standing(rows[-1].state)}"


def pick_one(run: Run, name: naming.Name, now: float) -> Picked:
    """The attempt that a name means to somebody who wants to stand beside it.

    The newest one; when that has ended, the only attempt that is still held.
    """
    keys = [key for key in run.order if name.covers(key)]
    if name.local_rank is None:
        keys = [key for key in keys if key == container(key)]
    if not keys:
        return Picked(problems=(not_there(run, name),))
    rows = [row_of(run, key, now) for key in keys]
    last, still = rows[-1], [row for row in rows if may_hold(row)]
    if not last.live and len(still) == 1:
        note = f"rank {last.label}, the newest attempt, {standing(last.state)}; this is rank {still[0].label}"
        return Picked((still[0],), (note,))
    return Picked((last,), (f"this is rank {last.label}, the newest attempt",) if len(rows) > 1 else ())


def not_there(run: Run, name: naming.Name) -> str:
    """That a name means nothing in this run, and what there is instead."""
    same = [key for key in run.order if name.first <= key.rank <= name.last]
    if not same:
        ranks = {key.rank for key in run.order}
        there = f"there are {naming.spans(ranks)}" if ranks else "no rank has come yet"
        return f"no rank {name.written} in this run; {there}"
    labels = [run.label(key) for key in same]
    shown = ", ".join(labels if len(labels) <= 12 else [*labels[:10], "…", labels[-1]])
    return f"no rank {name.written} in this run; of rank {name.first} there is {shown}"
