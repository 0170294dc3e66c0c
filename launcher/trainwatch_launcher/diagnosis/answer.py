"""What a diagnosis says: plain values that go into the run directory as JSON and come back from it."""
from __future__ import annotations

from dataclasses import dataclass, fields, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

NONE = "none"
"""Nothing failed."""
UNKNOWN = "unknown"
"""Something failed, and nothing says why."""
SURE = 0.5
"""A confidence below this is a guess."""


@dataclass(frozen=True)
class Evidence:
    """A line that the diagnosis rests on. `line` counts from 1, None when it does not come from the log."""

    line: int | None
    text: str


@dataclass(frozen=True)
class Collective:
    """Where one rank stood in a process group's sequence of collectives, as its watchdog printed it."""

    op: str = ""
    """`ALLREDUCE`; empty when it is not said."""
    sequence: int | None = None
    """The number of the work that timed out."""
    size: int | None = None
    """Elements that went in."""
    enqueued: int | None = None
    completed: int | None = None
    group: str = ""
    """The process group's name or number; empty when it is not said."""
    told: bool = False
    """This rank did not time out itself: another one told it to dump."""
    blames: tuple[int, ...] = ()
    """Ranks that the message itself names as those who did not come."""

    @property
    def waits(self) -> bool:
        """Whether it was inside a collective that did not end."""
        if self.enqueued is not None and self.completed is not None:
            return self.enqueued > self.completed
        return not self.told and self.sequence is not None


@dataclass(frozen=True)
class Inner:
    """One process of several in a log: a torchrun worker, an srun task, a line's rank prefix."""

    rank: int
    kind: str = ""
    """Empty when nothing is known but its end."""
    exit_code: int | None = None
    """As a shell gives it: 128+n for signal n."""
    line: int | None = None
    time: float | None = None
    """When it ended, in Unix seconds, as the log says; None when it does not."""
    summary: str = ""
    pid: int | None = None
    victim: bool = False
    """Somebody ended it because another had failed."""
    collective: Collective | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Why one log's command failed. Line numbers count from 1 and newlines only."""

    kind: str = NONE
    family: str = NONE
    summary: str = ""
    """`ExceptionClass: message`, the line that states it, or the signal and who likely sent it; one line."""
    line: int | None = None
    """The line to take a person to; None when the log has none, or when lines were not counted."""
    offset: int | None = None
    """Where that line begins in the log, in bytes."""
    frame: str = ""
    """The innermost frame of the user's own code: `train.py:123 in forward`; empty when there is none."""
    path: str = ""
    """That frame's file as the traceback names it."""
    rank: int | None = None
    """The one rank in this log that it happened to, where the log tells ranks apart."""
    exit_code: int | None = None
    """As a shell gives it, as the log states it or the launcher knows it."""
    confidence: float = 0.0
    """From 0 to 1; below SURE the cause is not clear."""
    collateral: bool = False
    """This died because something else did: look there."""
    hint: str = ""
    """What people do about it: one sentence."""
    evidence: tuple[Evidence, ...] = ()
    runner_up: str = ""
    """What else it could have been, `kind: summary`; empty when nothing else was stated."""
    time: float | None = None
    """When it happened, in Unix seconds as the log says; None when the log does not."""
    collateral_ranks: tuple[int, ...] = ()
    """Ranks in this log that died because of `rank`."""
    inner: tuple[Inner, ...] = ()
    """What else is known of single ranks in this log."""
    collective: Collective | None = None
    before: Evidence | None = None
    """The last line of its own that it wrote before the trouble began."""
    pid: int | None = None
    """The process that the summary speaks of, where it names one."""
    finished: bool = False
    """The log says that all went well."""
    silent: bool = False
    """The log itself says nothing of a failure; what is known comes from the exit."""

    @property
    def failed(self) -> bool:
        """Whether anything failed."""
        return self.kind != NONE

    @property
    def clear(self) -> bool:
        """Whether the cause is clear enough to act on."""
        return self.kind != UNKNOWN and self.confidence >= SURE

    def at(self, line: int | None, offset: int | None) -> Diagnosis:
        """The same, with line numbers and offset counted from the log's beginning instead of the text's.

        `line` is the number of lines before the text, None when nobody has counted them; `offset` its first byte.
        """
        moved = tuple(_at(one, line) for one in self.evidence)
        before = None if self.before is None else _at(self.before, line)
        inner = tuple(replace(one, line=_moved(one.line, line)) for one in self.inner)
        place = None if self.offset is None or offset is None else self.offset + offset
        facts = {"line": _moved(self.line, line), "offset": place, "evidence": moved, "inner": inner, "before": before}
        return replace(self, **facts)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """Plain values; what is empty is left out."""
        return _plain(self)


def from_json(value: object) -> Diagnosis | None:
    """A diagnosis from what `as_json` made, also by another version; None for what is none.

    Unknown fields are ignored, fields of a wrong type count as absent.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value["kind"]:
        return None
    facts = _known(Diagnosis, value)
    evidence = [_known(Evidence, one) for one in _items(value, "evidence")]
    inner = [{**_known(Inner, one), "collective": _collective(one)} for one in _items(value, "inner")]
    facts["evidence"] = tuple(Evidence(one.get("line"), one["text"]) for one in evidence if "text" in one)
    facts["inner"] = tuple(Inner(**one) for one in inner if "rank" in one)
    facts["collective"] = _collective(value)
    before = [_known(Evidence, one) for one in [value.get("before")] if isinstance(one, dict)]
    facts["before"] = Evidence(before[0].get("line"), before[0]["text"]) if before and "text" in before[0] else None
    return Diagnosis(**facts)


def _collective(value: Mapping[str, Any]) -> Collective | None:
    given = value.get("collective")
    return Collective(**_known(Collective, given)) if isinstance(given, dict) else None


def _at(evidence: Evidence, line: int | None) -> Evidence:
    return Evidence(_moved(evidence.line, line), evidence.text)


def _moved(line: int | None, by: int | None) -> int | None:
    return None if line is None or by is None else line + by


def _items(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items = value.get(name)
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []


def _plain(record: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        empty = value is None or value == field.default or value == ()
        if empty and field.name != "kind":
            continue
        if hasattr(value, "__dataclass_fields__"):
            value = _plain(value)
        elif isinstance(value, tuple):
            value = [_plain(one) if hasattr(one, "__dataclass_fields__") else one for one in value]
        values[field.name] = value
    return values


TYPES: dict[str, Any] = {
    "str": str, "bool": bool, "int": int, "int | None": int, "float": (int, float), "float | None": (int, float),
}  # fmt: skip


def _known(kind: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that are there and have the right type; nested records are left out."""
    facts: dict[str, Any] = {}
    for field in fields(kind):
        given, wanted = value.get(field.name), TYPES.get(str(field.type))
        if field.type == "tuple[int, ...]" and isinstance(given, list):
            facts[field.name] = tuple(one for one in given if isinstance(one, int) and not isinstance(one, bool))
        elif wanted is not None and isinstance(given, wanted) and (wanted is bool or not isinstance(given, bool)):
            facts[field.name] = given
    return facts
