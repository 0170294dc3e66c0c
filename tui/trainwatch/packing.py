"""The worker side as one file: a shell line that starts an isolated Python, and behind it a zip archive of sources.

Python runs such a file as it is (`python3 FILE`), whatever stands before the archive; executed, it starts itself.
"""
from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
import os
import secrets
import zipfile
from dataclasses import dataclass
from pathlib import Path

import trainwatch_launcher
from trainwatch.slimming import slim
from trainwatch_launcher.version import __version__

DEFAULT_NAME = "trainwatch-launch.pyz"
ENTRY = "__main__.py"
NOT_NEEDED = ("rundir/state.py",)
"""Modules that only viewers import."""
FOR_AGENTS = ("trainwatch_launcher/agent/", "trainwatch_launcher/reader/")
"""What no launcher imports: a viewer sends it to where it needs it."""
BINDING = "nvidia-ml-py"
"""The distribution that asks NVIDIA's driver; its one module is packed too when it is installed here, as it is."""
BINDING_FILE = "pynvml.py"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can give its members."""
READABLE = 0o100644

# Python is started isolated (-I) and without site hooks (-S), which no #! line can ask for on every system: neither
# PYTHONPATH nor a broken .pth file shall stand between a worker and its training.
HEAD = """\
#!/bin/sh
# trainwatch-launch %s: start as  ./FILE [options] -- COMMAND  or  python3 FILE [options] -- COMMAND
for python in python3 /usr/bin/python3; do
    if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 "$0" "$@"; fi
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


def pack(path: Path) -> Packed:
    """Write the packed file, executable for everybody, in one step: a launcher that starts meanwhile sees the old one.

    Raises PackError.
    """
    data = pack_bytes()
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
    return Packed(str(path), len(data), hashlib.sha256(data).hexdigest(), __version__, binding_version())


def pack_bytes() -> bytes:
    """The packed file's contents. The same sources give the same bytes, whoever packs them, wherever and whenever."""
    file = io.BytesIO()
    file.write((HEAD % __version__).encode("ascii"))
    with zipfile.ZipFile(file, "a") as archive:
        for name, data in sorted(sources().items()):
            if name.startswith(FOR_AGENTS):
                continue
            data = data if name == BINDING_FILE else slim(data)
            # The entry is what cleans the path, and inflating it would import zlib before that is done.
            _add(archive, name, data, zipfile.ZIP_STORED if name == ENTRY else zipfile.ZIP_DEFLATED)
    return file.getvalue()


def sources() -> dict[str, bytes]:
    """What is packed or sent, by name in the archive: the launcher, its entry at the top, the driver's binding."""
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
