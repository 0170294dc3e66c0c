"""What simulated ranks print: lines in the form of real ones."""

from __future__ import annotations

import time

from trainwatch.simulation.plan import Fault, Moment, Plan

CODES = {Fault.EXCEPTION: 1, Fault.OOM: 1, Fault.KILLED: 137}
SIGNALS = {134: "SIGABRT", 137: "SIGKILL"}


def stamp(when: float) -> str:
    """A time as logs write it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(when))


def marker(phase: str) -> str:
    """The line that announces a phase."""
    return f"=== [Phase] {phase} ===\n"


def step_line(plan: Plan, now: Moment, when: float) -> str:
    """A training step, as Megatron-LM prints it."""
    return (
        f" [{stamp(when)}] iteration {now.step:8d}/{plan.steps:8d} | consumed samples: {now.step * 512:12d} |"
        f" elapsed time per iteration (ms): {now.step_time * 1000:.1f} | learning rate: 1.500000E-04 |"
        f" global batch size:   512 | lm loss: {now.loss:.6E} | loss scale: 1.0 | grad norm: 0.731 |"
        f" number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def other_line(rank: int, when: float, number: int) -> str:
    """A line of no interest, as frameworks print thousands."""
    return f"[{stamp(when)}] [INFO] rank {rank}: prefetched shard {number:06d} of part {rank % 8} in {number % 17} ms\n"


def failure(plan: Plan, rank: int, fault: Fault, when: float) -> tuple[str, str]:
    """(what a rank prints when it fails by itself, the reason in one line)."""
    if fault is Fault.KILLED:
        return "", "killed by SIGKILL, by the kernel's OOM killer"
    error = "ValueError: record 48213 of shard train-003 is truncated: expected 4096 tokens, found 1187"
    where = ("data.py", 88, "__getitem__", "raise ValueError(message)")
    if fault is Fault.OOM:
        error = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.20 GiB. GPU 0 has a total capacity of"
                 " 79.11 GiB of which 1.02 GiB is free.")  # fmt: skip
        where = ("model.py", 231, "forward", "return self.mlp(self.norm(x))")
    file, line, function, code = where
    text = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 412, in <module>\n    main()\n'
        f'  File "/job/{file}", line {line}, in {function}\n    {code}\n{error}\n'
    )
    return text, error


def collateral(rank: int, step: int, when: float, plan: Plan) -> tuple[str, str]:
    """(what a rank prints when another one has failed, the reason in one line)."""
    ms = int(plan.peers_fail_after * 1000)
    reason = f"NCCL watchdog: collective timed out after {ms} ms (sequence number {step * 4})"
    text = (
        f"[rank{rank}]:[E{time.strftime('%m%d %H:%M:%S', time.gmtime(when))}.000000000 ProcessGroupNCCL.cpp:616] "
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step * 4}, OpType=ALLREDUCE, "
        f"NumelIn=16777216, NumelOut=16777216, Timeout(ms)={ms}) ran for {ms + 12} milliseconds before timing out.\n"
    )
    return text, reason
