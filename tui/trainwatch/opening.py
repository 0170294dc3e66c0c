"""From a target to a source: the one place that knows which ways lead where."""
from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from trainwatch.sources import listing
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import Source, SourceError
from trainwatch.sources.channel import ExecWay, WayError
from trainwatch.sources.local import LocalSource
from trainwatch.sources.merged import MergedSource, Newcomers
from trainwatch.targets import Directory, Docker, Kubernetes, Named, Slurm, Ssh
from trainwatch_launcher.agent.mounts import file_system, is_remote

Ask = Callable[[str], Awaitable[str]]
Places = Mapping[str, Callable[[], AgentSource]]
"""Where a run is, by names that no two places share."""

NODES_AGAIN = 30.0
"""Seconds between two questions to Slurm's controller, which has others to answer."""
PODS_AGAIN = 10.0


async def open_source(named: Named, ask: Ask | None = None) -> Source:
    """The source of a target's run. Raises SourceError when it is certain that there is none.

    Hosts are connected to when its `changes` are followed, not before, save that `ask`, which asks the person for a
    secret, is used now: later the terminal is not ours to ask in.
    """
    target, options = named.target, named.options
    if isinstance(target, Directory):
        return await directory(target.path, named.name)
    if isinstance(target, Ssh):
        return await _ssh(named, target, ask)
    if isinstance(target, Slurm):
        return await _slurm(named, target)
    if isinstance(target, Docker):
        ways = [
            ExecWay(name, ["docker", "exec", "-i", name], ["docker", "exec", "-it", name]) for name in target.names
        ]  # fmt: skip
        # one source of many also for one: a container of that name may be made anew, with another disk
        return MergedSource(named.name, [AgentSource(way, target.path, python=options.python) for way in ways])
    return await _kubernetes(named, target)


async def directory(path: str, name: str = "") -> Source:
    """A directory of this machine: read here where the kernel tells of changes, else by an agent beside us.

    A mount that hangs then hangs that process and not this one.
    """
    full = os.path.abspath(path)  # noqa: PTH100 - pathlib's resolve would touch the mount
    # a link may lead onto a network file system, but following it is safe only when it does not begin on one
    if is_remote(file_system(full)) or is_remote(file_system(await asyncio.to_thread(os.path.realpath, full))):
        return AgentSource(ExecWay(name or path), full, python=_our_python())
    return LocalSource(path)


def _our_python() -> str:
    import sys

    return sys.executable


async def _ssh(named: Named, target: Ssh, ask: Ask | None) -> Source:
    # asyncssh takes 0.2 s to import, which a local run need not wait for
    from trainwatch.sources.ssh import SshWay
    from trainwatch.sources.ssh_settings import Address, SshSettings
    from trainwatch.sources.ssh_unlock import unlock

    options = named.options
    settings = SshSettings(options.ssh_config or None, options.handshakes)
    labels = _labels([str(Address(host.name, host.user, host.port)) for host in target.hosts], target)
    ways = [
        SshWay(Address(host.name, host.user, host.port), settings, label)
        for host, label in zip(target.hosts, labels, strict=True)
    ]  # fmt: skip
    if ask is not None:
        try:
            await unlock(ways[0], settings, ask)
        except WayError as error:
            raise SourceError(f"{ways[0].name}: {error}") from None
    return _one([AgentSource(way, target.path, python=options.python) for way in ways], named.name)


def _labels(addresses: Sequence[str], target: Ssh) -> list[str]:
    """The hosts' bare names where these tell them apart."""
    names = [host.name for host in target.hosts]
    return names if len(set(names)) == len(names) else list(addresses)


async def _slurm(named: Named, target: Slurm) -> Source:
    async def places() -> Places:
        return {
            f"{job.number} {node}": partial(_node, named, target, job.number, node)
            for job in await listing.slurm_job(target.job) for node in job.nodes
        }  # fmt: skip

    return await _growing(named.name, places, NODES_AGAIN)


def _node(named: Named, target: Slurm, job: str, node: str) -> AgentSource:
    environ = {} if target.path else {"SLURM_JOB_ID": job, "SLURMD_NODENAME": node}
    return AgentSource(_srun(job, node), target.path, environ=environ, python=named.options.python)


def _srun(job: str, node: str) -> ExecWay:
    step = ["srun", f"--jobid={job}", "--overlap", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--quiet"]
    # unbuffered: slurmstepd would keep what does not end with a newline
    return ExecWay(node, [*step, "--unbuffered"], [*step, "--pty"])


async def _kubernetes(named: Named, target: Kubernetes) -> Source:
    async def places() -> Places:
        found = await listing.pods(target.namespace, target.pod, target.labels, named.options.container)
        return {f"{pod.namespace}/{pod.name}": partial(_pod, named, target, pod) for pod in found}

    if target.pod:
        return _one([make() for make in (await places()).values()], named.name)
    return await _growing(named.name, places, PODS_AGAIN)


def _pod(named: Named, target: Kubernetes, pod: listing.Pod) -> AgentSource:
    place = ["--namespace", pod.namespace, pod.name, "--container", pod.container, "--"]
    way = ExecWay(pod.name, ["kubectl", "exec", "-i", *place], ["kubectl", "exec", "-it", *place])
    return AgentSource(way, target.path, python=named.options.python)


async def _growing(name: str, places: Callable[[], Awaitable[Places]], every: float) -> Source:
    """One source for all places that there are, and for those that there will be. Raises SourceError."""
    known: set[str] = set()

    async def look() -> list[AgentSource]:
        fresh = {place: make for place, make in (await places()).items() if place not in known}
        known.update(fresh)
        return [make() for make in fresh.values()]

    return MergedSource(name, await look(), Newcomers(look, every))


def _one(sources: Sequence[AgentSource], name: str) -> Source:
    """One source for all; a single host is its own."""
    if not sources:
        raise SourceError(f"{name}: there is no host")
    if len(sources) == 1:
        sources[0].name = name
        return sources[0]
    return MergedSource(name, sources)
