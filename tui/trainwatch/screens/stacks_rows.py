"""What the screen of stacks shows, line by line: groups of processes, and what is in those that are unfolded."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from trainwatch.model.stacks import ROLES, Group, Member
from trainwatch.widgets.header import Part, fit_most
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.diagnosis.places import TRAINER
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.stacks import Frame, Tasks

MOST_FRAMES, MOST_MEMBERS = 80, 200
"""Of a stack, and of a group."""
MUTED, ODD = "$tw-muted", "bold $state-failed"


@dataclass(frozen=True)
class Line:
    """One line; `name` tells it from all others, `unfolds` whether it does, `key` whose it is."""

    name: str
    parts: tuple[Part, ...]
    unfolds: bool = False
    key: AttemptKey | None = None


def lines(groups: Sequence[Group], opened: Container[str], width: int) -> list[Line]:
    """All lines. `opened` has the names of those that are unfolded."""
    found: list[Line] = []
    role = TRAINER
    who = max((len(group.who) for group in groups), default=0)
    for group in groups:
        if group.role != role:
            role = group.role
            found.append(Line(f"role {role}", ((f"  {ROLES[role]}", MUTED),)))
        name = name_of(group)
        found.append(Line(name, _group(group, name in opened, who, width), True, group.keys[0]))
        if name in opened:
            found += _inside(group, name, opened, width)
    return found


def name_of(group: Group) -> str:
    """The same for a group when stacks are taken again, as long as it is at the same place."""
    callers = " ".join(f"{frame.function}:{frame.line}" for frame in group.frames[-8:])
    return f"group {group.role} {group.where} {callers}"


def _group(group: Group, is_open: bool, who: int, width: int) -> tuple[Part, ...]:
    style = ODD if group.odd else "bold" if group.role == TRAINER else ""
    sign = "▾ " if is_open else "▸ "
    mark = "▲ " if group.odd else "  "
    where = clean(group.where)
    head: list[Part] = [(sign, MUTED), (mark, ODD), (f"{group.who:{who}}  ", style), (where, style)]
    used = 4 + who + 2 + len(where)
    if len(group.labels) > 1 and width - used > 12:
        head.append((f"   {fit_most(clean(group.ranks), width - used - 4)}", MUTED))
    return tuple(head)


def _inside(group: Group, name: str, opened: Container[str], width: int) -> list[Line]:
    found = [*_stack(group.frames, name, 6, group.keys[0])]
    for place, member in enumerate(group.members[:MOST_MEMBERS]):
        process = member.process
        own = f"{name} {place} {member.label} {process.pid}"
        is_open = own in opened
        said = f"rank {member.label} · {clean(member.host)} · process {process.pid} · {_threads(member)}"
        command = fit_most(clean(process.command), max(10, width - len(said) - 11))
        parts: tuple[Part, ...] = (("    ▾ " if is_open else "    ▸ ", MUTED), (said, ""), (f" · {command}", MUTED))
        found.append(Line(own, parts, True, member.key))
        if is_open:
            found += _process(member, own)
    if len(group.members) > MOST_MEMBERS:
        found.append(Line(f"{name} more", ((f"      and {len(group.members) - MOST_MEMBERS} more", MUTED),)))
    return found


def _threads(member: Member) -> str:
    count = sum(tasks.count for tasks in member.process.tasks)
    return f"{count} thread{'' if count == 1 else 's'}"


def _process(member: Member, name: str) -> list[Line]:
    """All that is known of a process: its threads, what the kernel tells, what did not work."""
    process, found = member.process, []
    for number, thread in enumerate(process.threads):
        state = f" · {thread.state}" if thread.state else ""
        title = f"        thread {clean(thread.name) or number}{state}"
        found.append(Line(f"{name} t{number}", ((title, "$tw-accent"),), False, member.key))
        found += _stack(thread.frames, f"{name} t{number}", 10, member.key)
    said = [(f"kernel: {task_words(tasks)}", "") for tasks in process.tasks]
    said += [(f"in the kernel: {clean(process.kernel)}", MUTED)] if process.kernel else []
    said += [(clean(why), "$state-stalled") for why in process.tried]
    for number, (text, style) in enumerate(said):
        found.append(Line(f"{name} k{number}", ((f"        {text}", style or MUTED),), False, member.key))
    return found


def task_words(tasks: Tasks) -> str:
    """What the kernel says of some threads."""
    wait = " ".join(clean(part) for part in (tasks.syscall, f"({tasks.wchan})" if tasks.wchan else "") if part)
    many = f"{tasks.count} × " if tasks.count > 1 else ""
    return f"{many}{clean(tasks.name)} {tasks.state}{' in ' + wait if wait else ''}"


def _stack(frames: Sequence[Frame], name: str, indent: int, key: AttemptKey) -> list[Line]:
    found = []
    for number, frame in enumerate(frames[:MOST_FRAMES]):
        function, place = " " * indent + clean(frame.function), f"  {clean(frame.file)}:{frame.line}"
        found.append(Line(f"{name} f{number}", ((function, ""), (place, MUTED)), False, key))
    if len(frames) > MOST_FRAMES:
        more = f"{' ' * indent}{len(frames) - MOST_FRAMES} more"
        found.append(Line(f"{name} f-more", ((more, MUTED),), False, key))
    return found
