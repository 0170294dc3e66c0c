"""What a TARGET on the command line says, without asking any host: see docs/targets.md."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trainwatch.config import Config, Options
from trainwatch_launcher.reader.runs import TargetError

MAX_HOSTS = 100_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
"""Names of containers, pods, namespaces: never an option, never a path."""
JOB = re.compile(r"[0-9]+(_[0-9]+|\+[0-9]+)?\Z")
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]*\Z")
USER = re.compile(r"[A-Za-z0-9_.$\\][A-Za-z0-9_.$\\@-]*\Z")


@dataclass(frozen=True)
class Directory:
    """A run directory, a root of runs, or a place inside a run, on this machine or on a file system that it mounts."""

    path: str


@dataclass(frozen=True)
class Host:
    """A host to reach by SSH; what is not named the ssh configuration says."""

    name: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class Ssh:
    """One path on one or many hosts."""

    hosts: tuple[Host, ...]
    path: str
    """Absolute, or from the home directory on (`~/runs`); empty for the run that launchers there announce."""


@dataclass(frozen=True)
class Slurm:
    """The nodes of a Slurm job."""

    job: str
    path: str = ""


@dataclass(frozen=True)
class Docker:
    """Docker containers on this machine, or where DOCKER_HOST says."""

    names: tuple[str, ...]
    path: str = ""


@dataclass(frozen=True)
class Kubernetes:
    """Pods, by name or by labels."""

    namespace: str = ""
    """Empty for that of kubectl's context."""
    pod: str = ""
    labels: str = ""
    path: str = ""


Target = Directory | Ssh | Slurm | Docker | Kubernetes


@dataclass(frozen=True)
class Named:
    """A target, how the user calls it, and how it is reached."""

    name: str
    target: Target
    options: Options = field(default_factory=Options)


def parse(written: str, config: Config | None = None, hosts_file: str | None = None) -> Named:
    """What the user wrote: a name from the configuration, a target, or with `--hosts FILE` a path on those hosts.

    Raises TargetError.
    """
    config = config or Config()
    if written in config.targets:
        named = config.targets[written]
        return Named(written, _target(named), config.of_target[written])
    if hosts_file is not None:
        target: Target = Ssh(_hosts_in(hosts_file), _remote_path(written, written))
    else:
        target = _target(written)
    return Named(written, target, config.options)


def is_remote(written: str) -> bool:
    """Whether a target names another place than a directory."""
    return written.partition(":")[0] in ("ssh", "slurm", "docker", "k8s") and ":" in written


def _target(written: str) -> Target:
    scheme, colon, rest = written.partition(":")
    if not colon or scheme not in PARSERS:
        return Directory(written)
    return PARSERS[scheme](written, rest)


def _ssh(written: str, rest: str) -> Ssh:
    if not rest.startswith("//"):
        raise TargetError(f"{written}: write ssh://HOST/PATH")
    # the first slash outside of brackets: in them it is a set's step, as in worker-[0-7/2]
    hosts = re.match(r"(\[[^\]]*\]|[^/\[])*", rest[2:])[0]  # type: ignore[index]  # it matches nothing at least
    path = rest[2 + len(hosts) :]
    if not hosts:
        raise TargetError(f"{written}: no host; write ssh://HOST/PATH")
    return Ssh(tuple(expand(hosts)), _remote_path("" if path == "/" else path, written))


def _slurm(written: str, rest: str) -> Slurm:
    job, slash, path = rest.partition("/")
    if not JOB.match(job):
        raise TargetError(f"{written}: {job or 'nothing'} is no job id; write slurm:JOBID or slurm:JOBID/PATH")
    return Slurm(job, slash + path)


def _docker(written: str, rest: str) -> Docker:
    names, slash, path = rest.partition("/")
    found = tuple(dict.fromkeys(name for name in names.split(",") if name))
    wrong = next((name for name in found if not NAME.match(name)), None if found else "nothing")
    if wrong is not None:
        raise TargetError(f"{written}: {wrong} is no name of a container; write docker:NAME or docker:NAME,NAME/PATH")
    return Docker(found, slash + path)


def _kubernetes(written: str, rest: str) -> Kubernetes:
    rest, colon, path = rest.partition(":/")
    path = "/" + path if colon else ""
    namespace, slash, what = rest.partition("/")
    # a label's key may have a prefix with a slash, which is a domain; a namespace has neither dot nor equals sign
    if not slash or "=" in namespace or "." in namespace or rest.startswith("pod/"):
        namespace, what = "", rest
    elif not NAMESPACE.match(namespace):
        raise TargetError(f"{written}: {namespace} is no namespace; write k8s:NAMESPACE/LABELS")
    if what.startswith("pod/"):
        if not NAME.match(what[4:]):
            raise TargetError(f"{written}: {what[4:] or 'nothing'} is no name of a pod")
        return Kubernetes(namespace, pod=what[4:], path=path)
    if not what or what.startswith("-") or any(character.isspace() for character in what.replace(", ", ",")):
        raise TargetError(f"{written}: no labels; write k8s:LABELS such as k8s:job-name=train, or k8s:pod/NAME")
    return Kubernetes(namespace, labels=what, path=path)


PARSERS: dict[str, Callable[[str, str], Target]] = {"ssh": _ssh, "slurm": _slurm, "docker": _docker, "k8s": _kubernetes}


def expand(written: str) -> Iterable[Host]:
    """`[user@]host[:port]`, where the host may be a set such as `worker-[0-7]`, or several with commas between.

    Raises TargetError.
    """
    user, at, hosts = written.rpartition("@")
    hosts, port = _split_port(hosts, written)
    if at and not USER.match(user):
        raise TargetError(f"{written}: {user or 'nothing'} is no user's name")
    try:
        names = [hosts] if re.fullmatch(r"[0-9a-fA-F:]*:[0-9a-fA-F:.]*(%\w+)?", hosts) else nodes(hosts)
    except ValueError as error:
        raise TargetError(f"{written}: {error}") from None
    if not names:
        raise TargetError(f"{written}: no host")
    for name in names:
        if not HOST.match(name):
            raise TargetError(f"{written}: {name or 'nothing'} is no name of a host")
        yield Host(name, user if at else None, port)


def _split_port(hosts: str, written: str) -> tuple[str, int | None]:
    """Host and port; an IPv6 address stands in brackets, which sets of hosts use too."""
    address = re.fullmatch(r"\[([0-9a-fA-F:.%\w]*:[0-9a-fA-F:.%\w]*)\](?::(.*))?", hosts)
    if address is not None:
        hosts, port = address[1], address[2]
    elif ":" in hosts:
        hosts, _, port = hosts.rpartition(":")
    else:
        return hosts, None
    if port is None:
        return hosts, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise TargetError(f"{written}: {port or 'nothing'} is no port")
    return hosts, int(port)


def nodes(hosts: str) -> list[str]:
    """The names in a set of hosts such as `worker-[0-7,9],login`, by ClusterShell's rules. Raises ValueError."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # type: ignore[import-untyped]

    # a range is expanded as soon as it is read, however long it is
    for first, last in re.findall(r"(\d+)-(\d+)", hosts):
        if len(last) > 12 or int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts")
    try:
        # no groups: looking one up runs a command that the system's configuration names
        found = NodeSet(hosts, resolver=RESOLVER_NOGROUP)
        if len(found) > MAX_HOSTS:
            raise ValueError(f"more than {MAX_HOSTS} hosts")
        return list(found)
    except (NodeSetException, AssertionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def _hosts_in(file: str) -> tuple[Host, ...]:
    """The hosts in a file: one or a set a line, first word, `#` begins a comment."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise TargetError(f"--hosts {file}: {why}") from None
    words = [words[0] for line in lines if (words := line.partition("#")[0].split())]
    found = tuple(dict.fromkeys(host for word in words for host in expand(word)))
    if not found:
        raise TargetError(f"--hosts {file}: no host in it")
    return found


def _remote_path(path: str, written: str) -> str:
    if path.startswith("/~"):
        path = path[1:]
    if path and not path.startswith(("/", "~")):
        raise TargetError(f"{written}: {path} is relative; name the whole path, or ~/{path} in the home directory")
    return path
