"""From a target to a source: the one place that knows which ways lead where."""
from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from trainwatch.sources import listing
from trainwatch.sources.agent_source import AgentSource
from trainwatch.sources.base import Source, SourceError
from trainwatch.sources.channel import ExecWay, WayError
from trainwatch.sources.local import LocalSource
from trainwatch.sources.merged import MergedSource
from trainwatch.targets import Directory, Docker, Kubernetes, Named, Slurm, Ssh
from trainwatch_launcher.agent.mounts import file_system, is_remote

Ask = Callable[[str], Awaitable[str]]


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
        return _one([AgentSource(way, target.path, python=options.python) for way in ways], named.name)
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
    sources = []
    for job in await listing.slurm_job(target.job):
        for node in job.nodes:
            environ = {} if target.path else {"SLURM_JOB_ID": job.number, "SLURMD_NODENAME": node}
            sources.append(AgentSource(_srun(job.number, node), target.path, environ=environ,
                                       python=named.options.python))
    return _one(sources, named.name)


def _srun(job: str, node: str) -> ExecWay:
    step = ["srun", f"--jobid={job}", "--overlap", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--quiet"]
    # unbuffered: slurmstepd would keep what does not end with a newline
    return ExecWay(node, [*step, "--unbuffered"], [*step, "--pty"])


async def _kubernetes(named: Named, target: Kubernetes) -> Source:
    found = await listing.pods(target.namespace, target.pod, target.labels, named.options.container)
    sources = []
    for pod in found:
        place = ["--namespace", pod.namespace, pod.name, "--container", pod.container, "--"]
        way = ExecWay(pod.name, ["kubectl", "exec", "-i", *place], ["kubectl", "exec", "-it", *place])
        sources.append(AgentSource(way, target.path, python=named.options.python))
    return _one(sources, named.name)


def _one(sources: Sequence[AgentSource], name: str) -> Source:
    """One source for all; a single host is its own."""
    if not sources:
        raise SourceError(f"{name}: there is no host")
    if len(sources) == 1:
        sources[0].name = name
        return sources[0]
    return MergedSource(name, sources)
