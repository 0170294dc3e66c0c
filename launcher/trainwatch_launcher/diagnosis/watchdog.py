"""Where a rank stood in its sequence of collectives, from what watchdogs and barriers print.

After ProcessGroupNCCL.cpp from PyTorch 1.9 on (WorkNCCL with and without SeqNum, "Timeout at NCCL work", heartbeat
monitor, dump signals), its desynchronization report, ProcessGroupWrapper.cpp and ProcessGroupGloo.cpp
(monitoredBarrier).
"""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis.answer import Collective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Text

WORK = re.compile(
    r"Watchdog caught collective operation timeout: Work\w{1,8}\((?:SeqNum=(\d{1,12}), )?OpType=(\w{1,40})(?:, "
    r"(?:NumelIn=(\d{1,18})"
    r"|TensorShape=\[([\d, ]{0,200})\]))?"
)
STATUS = re.compile(r"last enqueued (?:NCCL )?work: (-?\d{1,12}), last completed (?:NCCL )?work: (-?\d{1,12})", re.I)
AT_WORK = re.compile(r"(?:at work sequence id:|Timeout at NCCL work:) (\d{1,12})")
RANK = re.compile(r"[\[ ]Rank (\d{1,6})\]")
GROUP = re.compile(r"PG (?:ID (\d{1,6}) )?(?:PG )?GUID (\S{1,80})")
TOLD = re.compile(r"(?:dump signal|timeout(?: signal)?) from another rank|dump signal due to .{1,60} from +rank", re.I)
OWN = re.compile(
    r"First PG on this rank (?:to signal dumping|that detected)|Watchdog caught collective operation timeout"
)
LAGGING = re.compile(r"\[([\d, ]{1,400})\] (?:finished collective #\d{1,12}, but didn't join|didn't join)")
BARRIER = re.compile(r"Ranks? ([\d, ]{1,400}?) failed to pass monitoredBarrier")
LITERALS = (
    "collective operation timeout", "last enqueued", "at nccl work", "at work sequence id", "dump signal", "from an"
                                                                                                           "other rank",
    "didn't join", "failed to pass monitoredbarrier",
)  # fmt: skip


def collectives(text: Text) -> dict[int | None, Collective]:
    """Where each rank of a text stood; the key is None where the text does not say which rank it is."""
    found: dict[int | None, dict[str, object]] = {}
    for at in sorted({at for literal in LITERALS for at in text.holding(literal)}):
        line = text[at]
        body = line.body
        named = RANK.search(body)
        rank = int(named.group(1)) if named else line.rank
        facts = found.setdefault(rank, {})
        _read(body, facts)
    return {rank: _made(facts) for rank, facts in found.items() if facts}


def _read(body: str, facts: dict[str, object]) -> None:
    """Take what one line says; what was said first stays, because later lines repeat it or follow from it."""
    work = WORK.search(body)
    if work and "op" not in facts:
        sequence, facts["op"], size, shape = work.group(1), work.group(2), work.group(3), work.group(4)
        if sequence:
            facts.setdefault("sequence", int(sequence))
        if size or shape:
            facts["size"] = int(size) if size else _product(shape or "")
    status = STATUS.search(body)
    if status and "enqueued" not in facts:
        facts["enqueued"], facts["completed"] = int(status.group(1)), int(status.group(2))
    at_work = AT_WORK.search(body)
    if at_work:
        facts.setdefault("sequence", int(at_work.group(1)))
    group = GROUP.search(body)
    if group and (work or status):
        facts.setdefault("group", group.group(2))
    if OWN.search(body):
        facts["own"] = True
    if TOLD.search(body):
        facts["told"] = True
    blamed = LAGGING.search(body) or BARRIER.search(body)
    if blamed:
        ranks = tuple(int(one) for one in blamed.group(1).replace(" ", "").split(",") if one.isdigit())
        facts.setdefault("blames", ranks)


def _made(facts: dict[str, object]) -> Collective:
    own = bool(facts.pop("own", False))
    told = bool(facts.pop("told", False)) and not own
    return Collective(told=told, **facts)  # type: ignore[arg-type]


def _product(shape: str) -> int | None:
    total = 1
    for part in shape.split(","):
        if not part.strip().isdigit():
            return None
        total *= int(part)
        if total > 1 << 60:
            return None
    return total
