"""Finds the modules of the packed file that the start does not need: they lie there compressed together, in less room.

There this stands in the package's `__init__`, so that it is imported before any of them; elsewhere it is not used.
"""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

NAME = "trainwatch_launcher/rest"
"""What it is called in the packed file."""


def sources_of(data: bytes) -> dict[str, bytes]:
    """All files of a bundle, by their names. Each is its name, its size in digits, and its bytes."""
    import zlib

    text, found = zlib.decompress(data), {}
    head, _, rest = text.partition(b"\0")
    at = len(text) - len(rest)
    for entry in head.decode("ascii").splitlines():
        name, _, size = entry.partition(" ")
        found[name] = text[at : at + int(size)]
        at += int(size)
    return found


class Bundle:
    """A finder and loader of modules. `archive` is the loader of the packed file."""

    def __init__(self, archive: Any, spec: Any) -> None:
        self._archive, self._spec = archive, spec
        self._sources: dict[str, bytes] | None = None

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Where a module is: here, when nothing before us had it."""
        if not name.startswith("trainwatch_launcher."):
            return None
        file = self._file(name)
        if not file:
            return None
        found = self._spec(name, self, origin=file, is_package=file.endswith("/__init__.py"))
        found.has_location = True  # tracebacks name the file
        return found

    def create_module(self, spec: object) -> None:
        """The usual one."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module; its source is not kept."""
        file = self._file(module.__name__)
        exec(self._code(file), module.__dict__)
        (self._sources or {}).pop(file, None)

    def get_source(self, name: str) -> str | None:
        """A module's source, for tracebacks."""
        file = name.replace(".", "/")
        found = self._read()
        data = found.get(file + ".py", found.get(file + "/__init__.py"))
        return None if data is None else data.decode("utf-8")

    def _file(self, name: str) -> str:
        if self._sources is None:
            self._sources = self._read()
        path = name.replace(".", "/")
        return next((file for file in (path + ".py", path + "/__init__.py") if file in self._sources), "")

    def _code(self, file: str) -> CodeType:
        assert self._sources is not None
        return compile(self._sources[file], file, "exec", dont_inherit=True)

    def _read(self) -> dict[str, bytes]:
        return sources_of(self._archive.get_data("%s/%s" % (self._archive.archive, NAME)))


if __name__ == "trainwatch_launcher":
    sys.meta_path.append(Bundle(globals()["__loader__"], type(__spec__)))
