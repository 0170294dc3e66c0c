"""The worker side as one file: a shell line that starts an isolated Python, and behind it a zip archive of sources.

Python runs such a file as it is (`python3 FILE`), whatever stands before the archive; executed, it starts itself.
"""
from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import secrets
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import trainwatch_launcher
from trainwatch.slimming import slim
from trainwatch_launcher import bundle
from trainwatch_launcher.stacks.arming import HOOKS
from trainwatch_launcher.stacks.spy import MACHINES, MEMBER, NAME, machine_of
from trainwatch_launcher.version import __version__

DEFAULT_NAME = "trainwatch-launch.pyz"
ENTRY = "__main__.py"
PACKAGE = "trainwatch_launcher"
INIT, BUNDLE = f"{PACKAGE}/__init__.py", f"{PACKAGE}/bundle.py"
STARTS = f"{PACKAGE}.cli"
"""What the entry imports: all that it needs before the command runs lies in the archive by itself."""
NOT_NEEDED = ("rundir/state.py",)
"""Modules that only viewers import."""
BINDING = "nvidia-ml-py"
"""The distribution that asks NVIDIA's driver; its one module is packed too when it is installed here, as it is."""
BINDING_FILE = "pynvml.py"
HOOK = f"{PACKAGE}/stacks/{HOOKS}/sitecustomize.py"
"""What --faulthandler has other Pythons import from the packed file, each at its start: as it is, and found alone."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can give its members."""
READABLE = 0o100644

# Python is started isolated (-I) and without site hooks (-S), which no #! line can ask for on every system: neither
# PYTHONPATH nor a broken .pth file shall stand between a worker and its training. What it does as PID 1 stands in
# launcher/bin/trainwatch-launch too, and why.
HEAD = """\
#!/bin/sh
# trainwatch-launch %s: start as  ./FILE [options] -- COMMAND  or  python3 FILE [options] -- COMMAND
hold=
if [ $$ = 1 ]; then
    early=
    for name in TERM INT HUP QUIT USR1 USR2; do trap "early=\\"\\$early $name\\"" $name; done
    if env --block-signal=TERM true 2>/dev/null; then
        export TRAINWATCH_HELD="TERM INT HUP QUIT USR1 USR2"
        hold="env --block-signal=TERM,INT,HUP,QUIT,USR1,USR2"
    fi
fi
become() {
    [ $$ != 1 ] || export TRAINWATCH_EARLY="$early"
    exec $hold "$@"
}
for python in python3 /usr/bin/python3; do
    if command -v "$python" >/dev/null 2>&1; then become "$python" -I -S -X utf8 "$0" "$@"; fi
done
echo "trainwatch-launch: no python3 here: running the command without logging, events or hold" >&2
while [ $# -gt 0 ]; do
    if [ "$1" = -- ]; then shift; exec "$@"; fi
    shift
done
echo "trainwatch-launch: no command: trainwatch-launch.pyz [options] -- COMMAND [ARG...]" >&2
exit 2
"""


class PackError(Exception):
    """The file cannot be written; the message is one line and says why."""


@dataclass(frozen=True)
class Packed:
    """A file that has been written."""

    path: str
    size: int
    """In bytes."""
    sha256: str
    version: str
    nvidia_ml_py: str | None
    """The version of the driver's binding inside; None when it is not there."""
    py_spy: str | None = None
    """The machine that py-spy inside is for; None when it is not there."""


def pack(path: Path, with_py_spy: bool = False) -> Packed:
    """Write the packed file, executable for everybody, in one step: a launcher that starts meanwhile sees the old one.

    Raises PackError.
    """
    spy = find_py_spy() if with_py_spy else None
    data = pack_bytes(None if spy is None else spy.read_bytes())
    path = Path(os.path.realpath(path))  # a link stays, and what it leads to is replaced
    if path.is_dir():
        raise PackError(f"{path} is a directory; name a file in it: {path / DEFAULT_NAME}")
    if path.exists() and not path.is_file():
        raise PackError(f"{path} is no regular file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            temporary.write_bytes(data)
            temporary.chmod(0o755)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise PackError(f"{path}: {error.strerror}") from None
    return Packed(str(path), len(data), hashlib.sha256(data).hexdigest(), __version__, binding_version(),
                  None if spy is None else machine_of(str(spy)))  # fmt: skip


def find_py_spy() -> Path:
    """py-spy beside our own Python, or in PATH. Raises PackError."""
    beside = Path(sys.executable).with_name(NAME)
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(NAME)
    if found is None:
        raise PackError("there is no py-spy here: pip install 'trainwatch[py-spy]', and pack again")
    machine = machine_of(found)
    if machine not in MACHINES.values():
        raise PackError(f"{found} is no program for Linux; pack where it is one")
    return Path(os.path.realpath(found))


def pack_bytes(py_spy: bytes | None = None) -> bytes:
    """The packed file's contents. The same sources give the same bytes, whoever packs them, wherever and whenever.

    `py_spy` is that program, to be packed too.
    """
    file = io.BytesIO()
    file.write((HEAD % __version__).encode("ascii"))
    with zipfile.ZipFile(file, "a") as archive:
        files = {name: data if name == BINDING_FILE else slim(data) for name, data in sources().items()}
        files[INIT] = files.pop(BUNDLE)
        alone = {_file(module) for module in at_start(files)} | {ENTRY, INIT, BINDING_FILE, HOOK}
        members = {name: data for name, data in files.items() if name in alone}
        members[bundle.NAME] = bundled({name: data for name, data in files.items() if name not in alone})
        if py_spy is not None:
            members[MEMBER] = py_spy
        for name, data in sorted(members.items()):
            # The entry is what cleans the path, and inflating it would import zlib before that is done.
            stored = name in (ENTRY, bundle.NAME, HOOK)
            _add(archive, name, data, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    return file.getvalue()


def bundled(files: Mapping[str, bytes]) -> bytes:
    """Files compressed together, for `bundle.sources_of`."""
    ordered = sorted(files.items())
    head = "\n".join(f"{name} {len(data)}" for name, data in ordered)
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9)
    return packer.compress(head.encode("ascii") + b"\0" + b"".join(data for _, data in ordered)) + packer.flush()


def at_start(files: Mapping[str, bytes]) -> set[str]:
    """The modules that are imported before the command runs: what the entry's module imports, then or in its
    functions, and what those import when they are imported."""
    known = {module_of(name): data.decode("utf-8") for name, data in files.items()}
    tree = ast.parse(known[STARTS])
    return needed(known, [STARTS, *(name for node in ast.walk(tree) for name in imports(node))])


def needed(modules: Mapping[str, str], first: list[str]) -> set[str]:
    """The modules that are imported when `first` are: those that each of them names outside of functions."""
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        module = waiting.pop()
        if module in modules and module not in found:
            found.add(module)
            waiting.append(module.rpartition(".")[0])
            waiting += [name for node in ast.parse(modules[module]).body for name in imports(node)]
    return found


def imports(node: ast.AST) -> Iterator[str]:
    """What a statement imports, by all names that may be modules."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(name: str) -> str:
    """The module that a file is."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _file(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (Path(trainwatch_launcher.__file__).parents[1] / path).is_dir() else f"{path}.py"


def sources() -> dict[str, bytes]:
    """What workers need, by name in the archive: launcher, reader, agent; the entry at the top; the binding."""
    package = Path(trainwatch_launcher.__file__).parent
    found = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in package.rglob("*.py")}
    found[ENTRY] = found.pop(f"{package.name}/{ENTRY}")
    for name in NOT_NEEDED:
        del found[f"{package.name}/{name}"]
    binding = binding_module()
    if binding is not None:
        found[binding.name] = binding.read_bytes()
    return found


def binding_module() -> Path | None:
    """nvidia-ml-py's module; None when it is not installed (others of the same name are packages of many files)."""
    spec = importlib.util.find_spec("pynvml")
    if binding_version() is None or spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return None
    return Path(spec.origin)


def binding_version() -> str | None:
    """The version of nvidia-ml-py that is installed here; None when it is not."""
    try:
        return importlib.metadata.version(BINDING)
    except importlib.metadata.PackageNotFoundError:
        return None


def _add(archive: zipfile.ZipFile, name: str, data: bytes, compression: int) -> None:
    """Add one member in which nothing tells of this machine: neither times nor modes nor the kind of system."""
    member = zipfile.ZipInfo(name, EPOCH)
    member.create_system = 3  # Unix, whose modes `external_attr` holds
    member.external_attr = READABLE << 16
    archive.writestr(member, data, compression, 9)
