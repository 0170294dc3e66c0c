"""Which nodes and pods there are, asked from the engine's own commands."""
from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainwatch.sources.base import SourceError
from trainwatch.sources.channel import ExecChannel, WayError
from trainwatch.targets import nodes

PATIENCE = 30.0
"""Seconds that an engine's command has to answer."""
RUNNING = "RUNNING"
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True)
class Job:
    """A Slurm job, or one of an array."""

    number: str
    """What its environment calls it."""
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Pod:
    """A pod that runs."""

    namespace: str
    name: str
    container: str


async def slurm_job(job: str) -> list[Job]:
    """The running jobs that a job id means: several for an array. Raises SourceError."""
    text = await output_of(["squeue", "--noheader", "--jobs", job, "--format", "%A|%T|%N"])
    rows = [line.strip().split("|") for line in text.splitlines() if line.count("|") == 2]
    try:
        found = [Job(number, tuple(nodes(names))) for number, state, names in rows if state == RUNNING and names]
    except ValueError as error:
        raise SourceError(f"squeue: {error}") from None
    if not found:
        states = ", ".join(sorted({state.lower() for _, state, _ in rows}))
        raise SourceError(f"slurm:{job}: the job is not running" + (f", it is {states}" if states else ""))
    return found


async def pods(namespace: str, name: str, labels: str, container: str) -> list[Pod]:
    """The running pods of a name or with some labels. Raises SourceError."""
    which = [name] if name else ["--selector", labels]
    scope = ["--namespace", namespace] if namespace else []
    text = await output_of(["kubectl", "get", "pods", *which, *scope, "--output", "json"])
    try:
        data = json.loads(text)
        items = [data] if name else data["items"]
        found = [_pod(item, container) for item in items if item["status"].get("phase") == "Running"]
        phases = sorted({f"{item['status'].get('phase')}" for item in items})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"kubectl get pods: not understood ({type(error).__name__}: {error})") from None
    if not found:
        there = f"; there are pods that are {', '.join(phases).lower()}" if phases else ""
        raise SourceError(f"no running pod {'is called ' + name if name else 'has the labels ' + labels}{there}")
    return found


async def output_of(argv: Sequence[str]) -> str:
    """What a command of this machine prints. Raises SourceError with what it says when it fails."""
    try:
        channel = await ExecChannel.start(argv)
    except WayError as error:
        raise SourceError(str(error)) from None
    try:
        data = await asyncio.wait_for(_all_of(channel), PATIENCE)
        ended = await channel.ended()
    except asyncio.TimeoutError:
        await channel.close()
        raise SourceError(f"{argv[0]} does not answer (waited {PATIENCE:.0f} s)") from None
    except asyncio.CancelledError:  # the viewer is left while it looks for newcomers
        await channel.close()
        raise
    if ended.code:
        raise SourceError(f"{argv[0]}: {ended.stderr or f'exit code {ended.code}'}")
    return data.decode("utf-8", "replace")


async def _all_of(channel: ExecChannel) -> bytes:
    parts = []
    while part := await channel.read():
        parts.append(part)
    return b"".join(parts)


def _pod(item: dict[str, Any], container: str) -> Pod:
    meta = item["metadata"]
    names = [each["name"] for each in item["spec"]["containers"]]
    chosen = container or (meta.get("annotations") or {}).get(DEFAULT_CONTAINER) or names[0]
    if chosen not in names:
        raise SourceError(f"pod {meta['name']} has no container {chosen}; it has {', '.join(names)}")
    return Pod(str(meta["namespace"]), str(meta["name"]), str(chosen))
