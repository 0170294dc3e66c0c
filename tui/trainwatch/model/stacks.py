"""Stacks of many ranks folded: who is at the same place, the most shared first, and who differs from the many. Pure.

A process stands for what its main thread does. Two are at the same place when the user's own part of their stacks is
the same, and what it has called; what a library does below that differs from moment to moment.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainwatch.model import naming
from trainwatch.model.holding import container
from trainwatch.model.rows import row_of
from trainwatch.model.state import Run
from trainwatch.model.text import printable
from trainwatch_launcher.diagnosis import places
from trainwatch_launcher.diagnosis.places import HELPER, LOADER, PROGRAM, STARTER, TRAINER
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.stacks import Dump, Frame, Process, Thread
from trainwatch_launcher.rundir.state import RUNNING, STALLED

ROLES = {
    TRAINER: "", LOADER: "data loader workers", STARTER: "what starts the trainers", HELPER: "helpers",
    PROGRAM: "programs",
}  # fmt: skip
"""What a process is for, in the order in which they are told; what trains needs no word."""
FEWEST = 3
"""Of fewer ranks nobody is the odd one out."""
ROUND = 60.0
"""Stacks that were taken within so many seconds belong together."""


@dataclass(frozen=True)
class Member:
    """A process at a place."""

    key: AttemptKey
    label: str
    host: str
    process: Process

    @property
    def thread(self) -> Thread | None:
        """Its main thread; None when only the kernel tells of it."""
        return self.process.threads[0] if self.process.threads else None


@dataclass(frozen=True)
class Group:
    """Processes at the same place."""

    where: str
    """`in all_reduce at comm.py:80`, `in data_loader.py:41 (__getitem__)`."""
    role: str
    members: tuple[Member, ...]
    odd: bool = False
    """Whether it is of the few, while most ranks are together elsewhere."""

    @property
    def keys(self) -> tuple[AttemptKey, ...]:
        """Whose they are, each once, by rank."""
        return tuple(sorted({member.key for member in self.members}))

    @property
    def frames(self) -> Sequence[Frame]:
        """The stack of one of them, the innermost first."""
        thread = self.members[0].thread
        return thread.frames if thread is not None else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What the ranks are called, by rank."""
        named = {member.key: member.label for member in self.members}
        return tuple(named[key] for key in sorted(named))

    @property
    def who(self) -> str:
        """`63 ranks`, or `rank 12`."""
        labels = self.labels
        return f"{len(labels)} ranks" if len(labels) > 1 else f"rank {labels[0]}"

    @property
    def ranks(self) -> str:
        """Which ranks, in few words: `0-11, 13-63`."""
        labels = self.labels
        if all(label.isdigit() for label in labels):
            return naming.spans(int(label) for label in labels)
        return ", ".join(labels)


def fold(dumps: Mapping[AttemptKey, Dump], labels: Mapping[AttemptKey, str]) -> tuple[Group, ...]:
    """All processes by where they are: what trains first, then by how many ranks are there, then by rank."""
    found: dict[tuple[object, ...], list[Member]] = defaultdict(list)
    for key, dump in sorted(dumps.items()):
        for process in dump.processes:
            if is_launcher(process):
                continue
            member = Member(key, labels.get(key) or naming.label(key), dump.host, process)
            place = (places.role_of(process), *_place(process))
            found[place].append(member)
    groups = [Group(where(members[0].process), str(place[0]), tuple(members)) for place, members in found.items()]
    order = {role: at for at, role in enumerate(ROLES)}
    groups.sort(key=lambda group: (order[group.role], -len(group.keys), group.keys[0], group.where))
    odd = _odd(groups)
    return tuple(Group(one.where, one.role, one.members, one in odd) for one in groups)


def _odd(groups: Sequence[Group]) -> list[Group]:
    """Of what trains, and tells its stack, what is elsewhere, of ranks that have fewer processes than usual where most
    are: what a rank has besides is not odd."""
    training = [group for group in groups if group.role == TRAINER and group.frames]
    everyone = {key for group in training for key in group.keys}
    if len(everyone) < FEWEST:
        return []
    most = max(training, key=lambda group: len(group.keys))
    if 2 * len(most.keys) <= len(everyone):
        return []
    here = Counter(member.key for member in most.members)
    usual = Counter(here.values()).most_common(1)[0][0]
    missing = {key for key in everyone if here[key] < usual}
    return [group for group in training if group is not most and missing.issuperset(group.keys)]


def is_launcher(process: Process) -> bool:
    """Whether it is a launcher of ours inside the command, which is nobody's concern."""
    return any("launcher of ours" in why for why in process.tried)


def where(process: Process) -> str:
    """Where a process is, in few words."""
    frames = process.threads[0].frames if process.threads else []
    return places.where(frames) if frames else _in_kernel(process)


def _in_kernel(process: Process) -> str:
    name = places.base(process.command.split(" ")[0]) or "a process"
    script = next((places.base(word) for word in process.command.split(" ")[1:] if word.endswith((".py", ".sh"))), "")
    named = f"{name} {script}" if script else name
    task = process.tasks[0] if process.tasks else None
    if task is None or not (task.syscall or task.wchan):
        return f"{named}, state {process.state or 'unknown'}"
    return f"{named} in {task.syscall or task.wchan}" + (f" ({task.wchan})" if task.syscall and task.wchan else "")


def _place(process: Process) -> tuple[object, ...]:
    """The same for processes at the same place."""
    frames = process.threads[0].frames if process.threads else []
    if not frames:
        return ("kernel", where(process))
    at = places.own_frame(frames)
    called = [] if at == 0 else [frames[0] if at is None else places.called_by(frames, at)]
    own = frames[at:] if at is not None else frames
    # one way of reading them says `Event.wait`, another one `wait`
    return (*((one.function.rpartition(".")[2], places.base(one.file)) for one in called),
            *((one.function.rpartition(".")[2], places.base(one.file), one.line) for one in own))  # fmt: skip


# Of whom, and when


def running(run: Run, now: float) -> list[AttemptKey]:
    """The containers whose commands run, by rank: who can be asked."""
    rows = (row_of(run, key, now) for key in run.order if key == container(key) and key not in run.superseded)
    return [row.key for row in rows if row.state in (RUNNING, STALLED)]


def runs(run: Run, key: AttemptKey, now: float) -> bool:
    """Whether an attempt's command runs, a local rank's too."""
    return key in run.attempts and row_of(run, key, now).state in (RUNNING, STALLED)


def has_stacks(run: Run, key: AttemptKey) -> bool:
    """Whether stacks of an attempt were taken, as far as is known."""
    attempt = run.attempts[key]
    return bool(attempt.status is not None and attempt.status.stacks) or attempt.last("stacks") is not None


ASKED, TAKING, DONE, FAILED = "asked", "taking", "done", "failed"


@dataclass(frozen=True)
class Taken:
    """What became of a request for stacks; `said` is why it failed."""

    state: str
    said: str = ""

    @property
    def pending(self) -> bool:
        """Whether it is still awaited."""
        return self.state in (ASKED, TAKING)


@dataclass(frozen=True)
class Round:
    """Stacks of several ranks that were taken together: of each rank its newest in that time."""

    time: float
    """When the first of these was taken, in Unix seconds."""
    dumps: Mapping[AttemptKey, Dump]


def rounds(taken: Mapping[AttemptKey, Sequence[Dump]], shifts: Mapping[AttemptKey, float]) -> tuple[Round, ...]:
    """What was taken together, the newest first. `shifts` are added to each rank's times."""
    every = sorted(
        ((dump.time + shifts.get(key, 0.0), key, dump) for key, dumps in taken.items() for dump in dumps),
        key=lambda one: one[0], reverse=True,
    )  # fmt: skip
    found: list[Round] = []
    dumps: dict[AttemptKey, Dump] = {}
    before = first = 0.0
    for time, key, dump in every:
        if dumps and before - time > ROUND:
            found.append(Round(first, dumps))
            dumps = {}
        before = time
        if key not in dumps:
            dumps[key], first = dump, time
    return (*found, Round(first, dumps)) if dumps else ()


def notes(dumps: Mapping[AttemptKey, Dump], labels: Mapping[AttemptKey, str]) -> tuple[str, ...]:
    """What stood in the way, each once, with the ranks where it did."""
    said: dict[str, list[AttemptKey]] = defaultdict(list)
    for key, dump in sorted(dumps.items()):
        if dump.note:
            said[dump.note].append(key)
    return tuple(f"{naming.ranks(keys, labels)}: {note}" for note, keys in said.items())


MOST_FRAMES = 60
"""Frames of a stack that are told."""


def as_lines(groups: Sequence[Group], full: bool) -> list[str]:
    """The groups as text: who is where, with `full` their stacks too."""
    lines: list[str] = []
    role = TRAINER
    width = max((len(group.who) for group in groups), default=0)
    for group in groups:
        if group.role != role:
            role = group.role
            lines += ["", f"{ROLES[role]}:"] if lines else [f"{ROLES[role]}:"]
        mark = "  <- not where most ranks are" if group.odd else ""
        which = f"   [{group.ranks}]" if len(group.labels) > 1 else ""
        lines.append(printable(f"{group.who:{width}} {group.where}{which}{mark}"))
        if full:
            lines += [f"    {frame_line(frame)}" for frame in group.frames[:MOST_FRAMES]]
            lines += [f"    {len(group.frames) - MOST_FRAMES} more"] if len(group.frames) > MOST_FRAMES else []
    return lines


def frame_line(frame: Frame) -> str:
    """A frame on one line."""
    return printable(f"{frame.function} ({frame.file}:{frame.line})")
