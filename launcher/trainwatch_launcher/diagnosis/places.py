"""Where a process is, by its main thread's stack: the user's own innermost frame, what it called, whether it waits.

Pure, like all of `diagnosis`; what a stack looks like is `rundir.stacks`'s.
"""
from __future__ import annotations

import re

from trainwatch_launcher.diagnosis.frames import NOT_OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from trainwatch_launcher.rundir.stacks import Dump, Frame, Process

TRAINER, LOADER, STARTER, HELPER, PROGRAM = "trainer", "loader", "starter", "helper", "program"
"""What a process is for."""
FILES = (
    (LOADER, re.compile(r"/torch/utils/data/_utils/worker\.py$|/(?:mxnet|paddle)/.{0,80}/dataloader/")),
    (STARTER, re.compile(r"/torch/distributed/(?:elastic/|run\.py$|launch\.py$)|/accelerate/commands/"
                         r"|/deepspeed/launcher/")),
    (HELPER, re.compile(r"/multiprocessing/(?:resource_tracker|forkserver)\.py$|/torch/_inductor/compile_worker/")),
)  # fmt: skip
"""By whose files in its main thread's stack a process is known."""
COLLECTIVES = re.compile(
    r"/torch/distributed/(?:distributed_c10d|_functional_collectives)\.py$|/horovod/\w{1,40}/mpi_ops\.py$"
    r"|/torch/cuda/(?:__init__|streams)\.py$|/oneflow/comm/|/deepspeed/comm/(?:torch|comm)\.py$"
)
WAITS = re.compile(
    r"(?:^|\.)_?(?:all_?reduce|all_?gather|reduce_?scatter|broadcast|barrier|monitored_barrier|all_?to_?all|reduce|gather"
    r"|scatter|recv|send|synchronize|wait|wait_tensor)(?:_\w{1,40})?_?$"
)
"""Functions of `COLLECTIVES` in which a rank waits for others, or for a GPU that does."""
WRAPPERS = frozenset((
    "wrapper", "wrapped", "inner", "decorate_context", "_fn", "_wrapped_call_impl", "_call_impl", "__call__",
))  # fmt: skip
"""Functions around others, which say nothing of where one is."""
MOST = 16
"""Processes of one rank whose places are told."""


def role_of(process: Process) -> str:
    """What a process is for."""
    if not process.threads:
        return TRAINER if process.tried else PROGRAM  # a Python that could not be looked into may be what trains
    frames = process.threads[0].frames
    for role, file in FILES:
        if any(file.search(frame.file) for frame in frames):
            return role
    return TRAINER


def own_frame(frames: Sequence[Frame]) -> int | None:
    """Where in a stack, the innermost first, the innermost frame of the user's own is; None when there is none."""
    return next((at for at, frame in enumerate(frames) if not NOT_OURS.search(frame.file)), None)


def called_by(frames: Sequence[Frame], at: int) -> Frame:
    """What the frame there has called by name: not what is wrapped around it."""
    for frame in reversed(frames[:at]):
        if frame.function.rpartition(".")[2] not in WRAPPERS:
            return frame
    return frames[at - 1]


def name_of(frame: Frame) -> str:
    """A function's name, without the function that it stands in."""
    return frame.function.rpartition("<locals>.")[2]


def where(frames: Sequence[Frame]) -> str:
    """`in all_reduce at comm.py:80`, `in data_loader.py:41 (__getitem__)`; the stack has a frame at least."""
    at = own_frame(frames)
    if at == 0:
        return "in %s (%s)" % (place_of(frames[0]), name_of(frames[0]))
    own, called = (frames[0], frames[0]) if at is None else (frames[at], called_by(frames, at))
    return "in %s at %s" % (name_of(called), place_of(own))


def waits(frames: Sequence[Frame]) -> bool:
    """Whether it waits for other ranks: it is in a collective, or waits for its GPU."""
    return any(COLLECTIVES.search(frame.file) and WAITS.search(frame.function) for frame in frames)


def place_of(frame: Frame) -> str:
    """`comm.py:80`."""
    return "%s:%d" % (base(frame.file), frame.line)


def base(path: str) -> str:
    """The last part of a path."""
    return path.replace("\\", "/").rpartition("/")[2]


def told(dump: Dump) -> list[dict[str, Any]]:
    """Where what trains is, for the `stacks` event: nobody must read the file to know who waits for whom."""
    training = [process for process in dump.processes if process.threads and role_of(process) == TRAINER]
    stacks = [process.threads[0].frames for process in training]
    return [{"where": where(frames), "waits": waits(frames)} for frames in stacks if frames][:MOST]
