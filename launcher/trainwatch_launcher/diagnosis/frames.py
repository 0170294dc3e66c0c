"""Lines of a traceback: a frame, an exception, what links two, and which frame is the user's own."""
from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

HEADER = "Traceback (most recent call last)"
FRAME = re.compile(r'^[ >|\t]{0,40}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,200}))?(?: in (.{1,200}))?')
BOXED = re.compile(r"^(/?[\w.@+/ -]{1,400}\.pyx?):(\d{1,9}) in ([\w<>.]{1,200})")
EXCEPTION = re.compile(
    r"^((?:[A-Za-z_]\w{0,100}\.){0,12}[A-Za-z_]\w{0,100})(?:\((\w{1,100})\))?(?::(?: (.*)|$)|$)", re.DOTALL
)
LOOKS_RAISED = re.compile(
    r"^(?:[A-Za-z_]\w{0,100}\.){0,12}(?:[A-Za-z_]\w{0,100}(?:Error|Exception|Exit|Interrupt|Fault|Failed|Failure|Timeout|NotFound"
    r"|Killed|Mismatch|Missing|Empty|Full|Unavailable|Abort(?:ed)?|Warning|StopIteration)|Timeout"
    r"|Empty)(?:\(\w{1,100}\))?(?:: |$)"
)
DECORATION = re.compile(r"^\s{0,200}(?:[|+╭╰│]|> )[-+|─╮╯│ ]{0,200}")
GROUP_MARK = re.compile(r"^\s{0,200}\+[-+ ]{0,40}-{4,}[- ]{0,60}\d{0,4}[- ]{0,60}$")
LINKS = (
    "During handling of the above exception, another exception occurred",
    "The above exception was the direct cause of the following exception",
)
EMBEDS = re.compile(
    r"Original Traceback \(most|terminated with the following error|^ray::|Caught \w{1,80} in \w+ ?\w* worker"
)
GROUPS = ("ExceptionGroup", "BaseExceptionGroup")
CARRIERS = frozenset(("CheckpointException",))
"""Exceptions whose message is another process's traceback."""
WRAPPERS = frozenset((
    "ChildFailedError", "CalledProcessError", "ProcessRaisedException", "ProcessExitedException", "RemoteTraceback",
    "_RemoteTraceback", "SystemExit", "RayTaskError", "TaskUnschedulableError", "TrainingFailedError", "TuneError",
    "TrainingWorkerError", "ExceptionGroup", "BaseExceptionGroup", "InstantiationException", "ChildProcessError",
    "WorkerCrashedError", "EngineDeadError", "TerminatedWorkerError", "BrokenProcessPool",
))  # fmt: skip
"""Exceptions that only say that another process or layer failed."""
PROBES = frozenset(("Empty", "StopIteration", "StopAsyncIteration", "EndOfStream", "GeneratorExit"))
"""Exceptions that are a program's way of asking; what is raised while they are handled is the failure."""

NOT_OURS = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]lib64[/\\]python\d|^<|[/\\]bin[/\\][\w.-]{1,80}$"
    r"|[/\\](?:torch|transformers|deepspeed|accelerate|lightning|ray|vllm|jax|flax|tensorflow|keras|numpy|triton)"
    r"[/\\](?!.{0,400}\b(?:examples?|train|scripts?)\b)|importlib[/\\]|[/\\]runpy\.py$"
)


class Frame:
    """One frame: its file as the traceback names it, its line, its function (empty when it is not said)."""

    __slots__ = ("function", "line", "path")

    def __init__(self, path: str, line: int, function: str) -> None:
        self.path, self.line, self.function = path, line, function

    def __str__(self) -> str:
        name = self.path.replace("\\", "/").rpartition("/")[2]
        function = " in %s" % self.function if self.function else ""
        return "%s:%d%s" % (name, self.line, function)


def frame_in(body: str) -> Frame | None:
    """The frame that a line of a traceback names; None when it is no such line."""
    if 'File "' in body:
        match = FRAME.match(body)
        if match:
            return Frame(match.group(1), int(match.group(2)), (match.group(3) or match.group(4) or "").strip())
    if ".py:" in body:
        match = BOXED.match(DECORATION.sub("", body).strip())
        if match:
            return Frame(match.group(1), int(match.group(2)), match.group(3))
    return None


def own(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that is neither of the standard library nor of an installed package; None without one.

    Frames are in the order of calls: the innermost last.
    """
    for frame in reversed(frames):
        if not NOT_OURS.search(frame.path):
            return frame
    return None


def undecorated(body: str) -> str:
    """A line without the rails that ExceptionGroup and rich draw at its left and right."""
    stripped = DECORATION.sub("", body, count=1)
    if stripped is not body and body.lstrip()[:1] in "│╭╰":
        return stripped.rstrip("│╮╯─ ")
    return stripped


def simple(name: str) -> str:
    """A class's name without its module."""
    return name.rpartition(".")[2]
